// What was recorded and what is missing, as `lamina info` says it; and what the context of a layerwise JSON holds.
'use strict';

function draw_account() {
  const problems = data.account.flatMap(section => section.lines).filter(([, , problem]) => problem).length;
  const badge = by_id('completeness');
  const known = data.account.length > 1;  // a section besides the phases
  badge.textContent = problems ? `⚠ ${counted(problems, 'problem')}` : known ? '✓ Complete' : 'Completeness not known';
  badge.className = problems ? 'bad' : known ? 'good' : '';
  badge.title = 'What was recorded, and what is missing';
  const parts = data.account.map(section => account_section(section.title, section.lines));
  if (data.context.length) parts.push(account_section('context', data.context));
  by_id('account').replaceChildren(make('h2', {}, 'What was recorded'), ...parts);
}

function account_section(title, lines) {
  const list = make('dl');
  for (const [label, value, problem] of lines) {
    const kind = problem ? {class: 'problem'} : {};
    const indent = label.startsWith('  ') ? {class: problem ? 'problem inner' : 'inner'} : kind;
    list.append(make('dt', indent, printable(label.trim())), make('dd', kind, printable(value)));
  }
  return make('section', {}, make('h3', {}, printable(title)), list);
}
