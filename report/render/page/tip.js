// All there is to say about a row: shown beside the mouse or the row with the keyboard's focus.
'use strict';

const tip = by_id('tip');

function row_facts(tree, row) {
  const facts = [['GPU time', `${time_text(tree.time[row])}, ${percent_text(tree.time[row], tree.total)} of all`]];
  const above = tree.shape.parent[row];
  if (above !== NONE && tree.time[above] !== tree.total) facts.push(['', `${percent_text(tree.time[row], tree.time[above])} of the layer around it`]);
  if (tree.calls && tree.calls[row] > 0) {
    const word = is_layer(tree, row) ? 'call' : 'time';
    facts.push(['Invocations', `${counted(tree.calls[row], word)}, ${time_text(tree.time[row] / tree.calls[row])} each`]);
  }
  if (tree.idle && tree.idle[row] > 0) facts.push(['GPU idle before', time_text(tree.idle[row])]);
  if (tree.cpu && tree.cpu[row] > 0) facts.push(['CPU time', time_text(tree.cpu[row])]);
  if (group_of(tree, row) !== NONE) facts.push(['Group', printable(data.groups[group_of(tree, row)].name)]);
  if (tree.trace && tree.trace[row] !== NONE) facts.push(['Trace', printable(data.strings[tree.trace[row]])]);
  if (tree.path && tree.path[row] !== NONE) facts.push(['Instance', printable(data.strings[tree.path[row]])]);
  return facts;
}

function fill_tip(title, facts) {
  const list = make('dl');
  for (const [label, value] of facts) list.append(make('dt', {}, label), make('dd', {}, value));
  tip.replaceChildren(make('strong', {}, title), list);
}

// Beside the point, and in the window.
function place_tip(x, y) {
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? Math.max(4, x - 14 - width) : x + 14;
  const top = y + 18 + height > innerHeight ? Math.max(4, y - 12 - height) : y + 18;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

function show_row_tip(tree, row, x, y) {
  fill_tip(printable(full_name(tree, row)), row_facts(tree, row));
  place_tip(x, y);
}

function show_tip(title, facts, x, y) {
  fill_tip(title, facts);
  place_tip(x, y);
}

function hide_tip() {
  tip.hidden = true;
}

// For screen readers.
function row_speech(tree, row) {
  return `${printable(short_name(tree, row)).slice(0, 200)}: ${row_facts(tree, row).map(fact => fact.filter(text => text).join(' ')).join('; ')}`;
}

addEventListener('scroll', hide_tip, {passive: true});
