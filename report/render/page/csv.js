// The table as CSV (RFC 4180), the whole of it: closed rows too, and what the search leaves.
'use strict';

function csv_field(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv_lines() {
  const layers = state.tab === 'layers';
  const fields = shown_columns();
  const all = layers ? layer_rows(true) : rows;
  const lines = [[...(layers ? ['depth'] : []), ...fields.map(column => column.csv)]];
  for (const row of all) {
    const values = fields.map(column => column.number ? column.raw(column.number(row)) : column.text(row) || '');
    lines.push([...(layers ? [String(row.depth)] : []), ...values]);
  }
  return lines.map(line => line.map(csv_field).join(',') + '\r\n');
}

// Pages from a file may not use the clipboard everywhere: then the old way.
async function copy_text(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make('textarea', {class: 'hidden', 'aria-hidden': 'true'});
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

by_id('copy').onclick = async () => {
  const lines = csv_lines();
  const copied = await copy_text(lines.join(''));
  by_id('copied').textContent = copied ? `${counted(lines.length - 1, 'row')} copied` : 'The browser does not let the page copy';
  by_id('copy').focus();
  setTimeout(() => by_id('copied').textContent = '', 4000);
};
