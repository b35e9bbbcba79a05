// Which phase, rank, tree and groups are shown, where in the tree, and what has been left out.
'use strict';

function draw_phases() {
  const options = phases.map((phase, value) => {
    const view = phase.find_view(state.rank, 0);
    return {value, label: phase.json.name, note: view ? time_text(view.total) : 'not here'};
  });
  segments(by_id('phases'), options, state.phase, phase => choose({phase, step: 0}));
  by_id('phases').hidden = phases.length < 2;
}

function draw_ranks() {
  const select = by_id('rank');
  by_id('rank-choice').hidden = data.ranks.length < 2;
  select.replaceChildren(...data.ranks.map((name, value) => make('option', {value}, printable(name))));
  select.value = String(state.rank);
  select.onchange = () => choose({rank: Number(select.value)});
}

function draw_modes() {
  const model = current.phase?.find_model(state.rank);
  by_id('modes').hidden = !model;
  if (!model) return;
  const several = current.phase.steps(state.rank).length > 1;
  const options = [
    {value: 'summary', label: 'Summary', note: 'equal layers merged'},
    {value: 'model', label: 'Call by call', note: several ? `step ${model.step}` : 'in order'},
  ];
  segments(by_id('modes'), options, state.mode, mode => choose({mode}));
}

function draw_groups() {
  const times = group_times();
  const order = data.groups.map((_, group) => group).filter(group => times[group] > 0 || state.groups.has(group));
  order.sort((a, b) => times[b] - times[a]);
  by_id('groups').replaceChildren(...order.map(group => {
    const {name, colour} = data.groups[group];
    const share = percent(times[group], current.tree.total);
    const button = make('button', {type: 'button', class: 'group', 'aria-pressed': state.groups.has(group)},
        make('i', {style: `background:${css_colour(colour)}`}), printable(name), make('small', {}, `${share.toFixed(share < 9.95 ? 1 : 0)} %`));
    button.onclick = () => toggle_group(group);
    return button;
  }));
}

// Of the kernels under the row that is zoomed to.
function group_times() {
  const {tree} = current;
  const times = new Float64Array(data.groups.length);
  const [from, to] = state.zoom === NONE ? [0, tree.shape.count] : [state.zoom, tree.shape.end[state.zoom]];
  for (let row = from; row < to; ++row) {
    if (!is_layer(tree, row)) times[group_of(tree, row)] += tree.time[row];
  }
  return times;
}

function toggle_group(group) {
  const groups = new Set(state.groups);
  if (!groups.delete(group)) groups.add(group);
  const at = [...by_id('groups').children].indexOf(document.activeElement);
  choose({groups});
  by_id('groups').children[at]?.focus();
}

// The way from the whole to what is shown.
function draw_crumbs() {
  const {tree} = current;
  const path = tree.shape.path(state.zoom);
  const crumbs = [NONE, ...path].map(row => {
    const text = row === NONE ? place_name() : printable(short_name(tree, row)).slice(0, 80);
    const crumb = make('button', {type: 'button', class: 'crumb'}, text);
    if (row === state.zoom) crumb.setAttribute('aria-current', 'location');
    crumb.onclick = () => zoom_to(row);
    return crumb;
  });
  by_id('crumbs').replaceChildren(...crumbs);
  by_id('back').disabled = places_before === 0;
}

// As in `decode`, `decode_7`, `decode_1, rank 2`.
function place_name() {
  if (!current.phase) return 'no phase';
  const step = state.step > 0 ? `_${state.step}` : '';
  const rank = data.ranks[state.rank] === 'all' ? '' : `, rank ${data.ranks[state.rank]}`;
  return printable(current.phase.json.name) + step + rank;
}

function draw_notes() {
  const {tree, phase} = current;
  const notes = [];
  if (!phase) notes.push('The profile has no phase in which the GPU worked.');
  else if (tree === EMPTY_TREE) notes.push(`Rank ${data.ranks[state.rank]} did nothing in this phase.`);
  else if (tree.total <= 0) notes.push('No GPU time here.');
  const {all} = tree.shape;
  if (tree.rows_known < all) {
    notes.push(`These are the heaviest ${count_text(tree.rows_known)} of ${counted(all, 'row')}; the rest is only in the time of the layers around it.`);
  }
  by_id('notes').replaceChildren(...notes.map(note => make('li', {}, note)));
}

function draw_matches() {
  const {filter, tree} = current;
  by_id('matches').textContent = !filter.active ? '' :
      `${counted(filter.count, 'row')}, ${time_text(filter.time)}, ${percent_text(filter.time, tree.total)}`;
}

function draw_heading() {
  document.title = `${printable(data.title)} · Lamina`;
  by_id('title').textContent = printable(data.title);
  by_id('version').textContent = `Lamina ${data.version}`;
  const facts = data.context.filter(([key]) => HEADING_FACTS.has(key));
  by_id('facts').replaceChildren(...facts.map(([key, value]) => make('li', {}, `${HEADING_FACTS.get(key)} `, make('b', {}, printable(value).slice(0, 120)))));
}

const HEADING_FACTS = new Map([
  ['engine_args.model', 'model'], ['model', 'model'], ['dtype', 'dtype'], ['engine_args.tensor_parallel_size', 'tensor parallel'],
  ['batch_size', 'batch'], ['prompt_len', 'prompt'], ['output_len', 'output'], ['torch_version', 'PyTorch'],
]);

function draw_choices() {
  draw_phases();
  draw_ranks();
  draw_modes();
  draw_groups();
  draw_crumbs();
  draw_notes();
  draw_matches();
}

by_id('back').onclick = go_back;

let typing = 0;
by_id('search').oninput = event => {
  clearTimeout(typing);
  typing = setTimeout(() => choose({query: event.target.value}), 80);
};
