// The table. Only the rows in sight are elements of the page, so that it does not matter how many there are.
'use strict';

const table = by_id('table');
const ROW_HEIGHT = 26;
const HEAD_HEIGHT = 30;
const ROWS_BEYOND = 6;  // made above and below what is in sight

let rows = [];
let columns = [];
let largest = new Map();  // by column
let active = 0;           // the row of the keyboard

const head = make('div', {role: 'row', class: 'head'});
const body = make('div', {role: 'rowgroup', class: 'body'});
table.append(head, body);

function fill_table() {
  const kept = rows[active]?.row;
  rows = TABS.find(tab => tab.value === state.tab).rows();
  columns = shown_columns();
  largest = measure_columns(columns, rows);
  const again = kept === undefined ? -1 : rows.findIndex(row => row.row === kept);
  active = again >= 0 ? again : Math.max(0, Math.min(active, rows.length - 1));
  draw_head();
  table.style.setProperty('--columns', columns.map(({id, width}) => id === 'name' ? `minmax(${width}px, 1fr)` : `${width}px`).join(' '));
  table.style.setProperty('--least', `${columns.reduce((sum, {width}) => sum + width, 0)}px`);
  table.setAttribute('role', state.tab === 'layers' ? 'treegrid' : 'grid');
  table.setAttribute('aria-rowcount', rows.length + 1);
  table.setAttribute('aria-colcount', columns.length);
  body.style.height = `${rows.length * ROW_HEIGHT}px`;
  by_id('row-count').textContent = counted(rows.length, 'row');
  segments(by_id('tabs'), TABS, state.tab, tab => choose({tab}));
  for (const id of ['open-all', 'close-all']) by_id(id).hidden = state.tab !== 'layers';
  draw_rows();
}

// ---- the head

function draw_head() {
  const at = [...head.children].findIndex(cell => cell.contains(document.activeElement));
  head.replaceChildren(...columns.map(column => {
    const down = state.sort?.column === column.id ? state.sort.down : null;
    const arrow = down === null ? '' : down ? ' ↓' : ' ↑';
    const button = make('button', {type: 'button', tabindex: 0}, column.title() + arrow);
    button.onclick = () => sort_by(column);
    const order = down === null ? 'none' : down ? 'descending' : 'ascending';
    return make('div', {role: 'columnheader', 'aria-sort': order, class: column.number ? 'number' : 'text', 'data-column': column.id}, button);
  }));
  if (at >= 0) head.children[at]?.firstChild.focus();
}

// The most first, then the least first, then as they came. Names begin with A.
function sort_by(column) {
  const first = Boolean(column.number);
  const sort = state.sort?.column === column.id ? state.sort : null;
  choose({sort: !sort ? {column: column.id, down: first} : sort.down === first ? {column: column.id, down: !first} : null});
}

// ---- rows

function rows_in_sight() {
  const first = Math.floor(table.scrollTop / ROW_HEIGHT) - ROWS_BEYOND;
  const last = Math.ceil((table.scrollTop + table.clientHeight) / ROW_HEIGHT) + ROWS_BEYOND;
  return [Math.max(first, 0), Math.min(last, rows.length)];
}

function draw_rows() {
  const [first, last] = rows_in_sight();
  const elements = [];
  for (let i = first; i < last; ++i) elements.push(row_element(i));
  body.replaceChildren(...elements);
  table.setAttribute('aria-activedescendant', rows.length ? `row-${active}` : '');
}

function row_element(i) {
  const row = rows[i];
  const element = make('div', {role: 'row', id: `row-${i}`, 'aria-rowindex': i + 2, class: i === active ? 'row active' : 'row', 'data-index': i});
  element.style.top = `${i * ROW_HEIGHT}px`;
  if (state.tab === 'layers') {
    element.setAttribute('aria-level', row.depth + 1);
    if (row.has_rows) element.setAttribute('aria-expanded', row.open || row.row === state.zoom);
  }
  element.append(...columns.map(column => column.id === 'name' ? name_cell(row) : column.number ? number_cell(column, row) : text_cell(column, row)));
  return element;
}

function name_cell(row) {
  const cell = make('div', {role: 'rowheader', class: 'name'});
  cell.style.paddingInlineStart = `${6 + Math.min(row.depth, 40) * 14}px`;
  const mark = row.has_rows ? (row.open || row.row === state.zoom ? '▾' : '▸') : '';
  const swatch = make('i', {});
  swatch.style.background = row.fill;
  cell.append(make('span', {class: 'twist', 'aria-hidden': 'true'}, mark), swatch, marked(printable(row.name.slice(0, 600))));
  return cell;
}

// The text with what was searched for set off.
function marked(text) {
  const label = make('span', {class: 'label'});
  const word = current.filter.words.find(each => text.toLowerCase().includes(each));
  if (!word) {
    label.append(text);
    return label;
  }
  const at = text.toLowerCase().indexOf(word);
  label.append(text.slice(0, at), make('mark', {}, text.slice(at, at + word.length)), text.slice(at + word.length));
  return label;
}

function text_cell(column, row) {
  return make('div', {role: 'gridcell', class: 'text'}, printable((column.text(row) || '').slice(0, 600)));
}

// Heat as the root of the share, so that what is a hundredth of the most is still seen.
function number_cell(column, row) {
  const number = column.number(row);
  const cell = make('div', {role: 'gridcell', class: 'number'}, number || column.id !== 'idle' ? column.show(number) : '');
  const most = largest.get(column);
  if (column.heat && most > 0) cell.style.setProperty('--heat', `${(Math.sqrt(number / most) * 100).toFixed(0)}%`);
  if (column.bar) {
    cell.classList.add('bar');
    cell.style.setProperty('--share', `${Math.min(number, 100).toFixed(2)}%`);
  }
  return cell;
}

// ---- what the user does

function set_open(row, open) {
  if (!row?.has_rows || row.row === state.zoom) return;
  opened()[row.row] = open ? 1 : 0;
  fill_table();
}

function open_all(open) {
  opened().fill(open ? 1 : 0);
  fill_table();
}

function activate(i) {
  active = Math.max(0, Math.min(i, rows.length - 1));
  const top = active * ROW_HEIGHT;
  const room = table.clientHeight - HEAD_HEIGHT;
  if (top < table.scrollTop) table.scrollTop = top;
  if (top + ROW_HEIGHT > table.scrollTop + room) table.scrollTop = top + ROW_HEIGHT - room;
  draw_rows();
}

// A layer is zoomed to; a kernel, or a group, is what to look for.
function enter(row) {
  if (state.tab === 'layers') return zoom_to(row.has_rows ? row.row : row.tree.shape.parent[row.row]);
  if (state.tab === 'groups') return choose({groups: new Set([group_of(current.tree, row.first)]), tab: 'layers'});
  by_id('search').value = row.full;
  return choose({query: row.full, tab: 'layers'});
}

function row_of(event) {
  const element = event.target.closest('[data-index]');
  return element ? Number(element.dataset.index) : NONE;
}

body.onclick = event => {
  const i = row_of(event);
  if (i === NONE) return;
  const twist = event.target.closest('.twist');
  activate(i);
  if (twist) set_open(rows[i], !rows[i].open);
};

body.ondblclick = event => {
  const i = row_of(event);
  if (i !== NONE && !event.target.closest('.twist')) enter(rows[i]);
};

// The icicle shows where the row is. Numbers stay free of the tip.
body.onmousemove = event => {
  const i = row_of(event);
  point_at(rows[i]?.row ?? null);
  if (i === NONE || event.target.closest('.number')) hide_tip();
  else show_table_tip(i, event.clientX, event.clientY);
};
body.onmouseleave = () => {
  point_at(null);
  hide_tip();
};

function show_table_tip(i, x, y) {
  const row = rows[i];
  if (state.tab === 'layers') return show_row_tip(row.tree, row.row, x, y);
  const times = row.calls > 0 ? `, ${counted(row.calls, 'time')}, ${time_text(row.time / row.calls)} each` : '';
  show_tip(printable(row.full), [['GPU time', `${time_text(row.time)}, ${percent_text(row.time, current.tree.total)} of all${times}`], ['Group', printable(row.group)]], x, y);
}

function above(i) {
  for (let up = i - 1; up >= 0; --up) {
    if (rows[up].depth < rows[i].depth) return up;
  }
  return i;
}

const page_rows = () => Math.max(1, Math.floor(table.clientHeight / ROW_HEIGHT) - 2);

const TABLE_KEYS = {
  ArrowDown: () => activate(active + 1),
  ArrowUp: () => activate(active - 1),
  PageDown: () => activate(active + page_rows()),
  PageUp: () => activate(active - page_rows()),
  Home: () => activate(0),
  End: () => activate(rows.length - 1),
  ArrowRight: row => row.has_rows && !row.open && row.row !== state.zoom ? set_open(row, true) : row.has_rows && activate(active + 1),
  ArrowLeft: row => row.has_rows && row.open && row.row !== state.zoom ? set_open(row, false) : activate(above(active)),
  Enter: row => enter(row),
};

table.onkeydown = event => {
  const act = TABLE_KEYS[event.key];
  if (!act || !rows.length || event.target !== table) return;
  event.preventDefault();
  act(rows[active]);
  tell_active();
};

function tell_active() {
  if (!rows.length) return;
  const place = table.getBoundingClientRect();
  const y = place.top + HEAD_HEIGHT + active * ROW_HEIGHT - table.scrollTop;
  show_table_tip(active, place.left + 40, y + ROW_HEIGHT - 12);
}

table.onscroll = () => {
  hide_tip();
  draw_rows();
};
table.onblur = hide_tip;
by_id('open-all').onclick = () => open_all(true);
by_id('close-all').onclick = () => open_all(false);
