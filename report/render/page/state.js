// What the user has chosen, and the history of it. Rooms of the page listen, and draw themselves from `state` and `current`.
'use strict';

const state = {
  phase: 0,
  rank: 0,
  step: 0,          // 0: all
  mode: 'summary',  // or 'model': call by call
  zoom: NONE,       // row of the tree
  query: '',
  groups: new Set(),
  tab: 'layers',
  sort: null,       // {column, down}; null: in order of launch
};

// Follows from the state: the phase, its tree, what the search leaves of it.
const current = {phase: null, tree: null, filter: null};

const listeners = [];
function listen(draw) {
  listeners.push(draw);
}

// These are one place to go back to; they stand in the page's address.
const PLACE = ['phase', 'rank', 'step', 'mode', 'zoom'];
let places_before = 0;

const EMPTY_SHAPE = {all: 0, depth: [], string: [], layer: []};
const EMPTY_TREE = new Tree(new Shape(EMPTY_SHAPE), {total: 0, time: [], calls: []});

// Takes back choices that the data does not have.
function settle() {
  state.phase = Math.min(Math.max(state.phase, 0), Math.max(phases.length - 1, 0));
  state.rank = Math.min(Math.max(state.rank, 0), data.ranks.length - 1);
  const phase = current.phase = phases[state.phase] || null;
  if (!phase) {
    current.tree = EMPTY_TREE;
  } else {
    const model = phase.find_model(state.rank);
    if (!model) state.mode = 'summary';
    if (state.mode === 'model') state.step = phase.find_view(state.rank, model.step) ? model.step : 0;  // a single step is the whole
    if (state.mode === 'summary' && !phase.find_view(state.rank, state.step)) state.step = 0;
    current.tree = (state.mode === 'model' ? phase.model(state.rank) : phase.summary(state.rank, state.step)) || EMPTY_TREE;
  }
  if (!(state.zoom >= 0 && state.zoom < current.tree.shape.count && current.tree.has(state.zoom))) state.zoom = NONE;
}

function refresh(changed) {
  settle();
  current.filter = make_filter(current.tree, state.query, state.groups);
  for (const draw of listeners) draw(changed);
}

// A row of one tree is no row of another.
function forget_zoom(change) {
  const other_tree = ('phase' in change && change.phase !== state.phase) || ('mode' in change && change.mode !== state.mode) ||
      ('rank' in change && change.rank !== state.rank && state.mode === 'model');
  return other_tree && !('zoom' in change) ? {...change, zoom: NONE} : change;
}

function choose(change) {
  change = forget_zoom(change);
  const moves = PLACE.some(key => key in change && change[key] !== state[key]);
  Object.assign(state, change);
  settle();
  if (moves) remember_place();
  refresh(change);
}

function zoom_to(row) {
  if (row !== state.zoom) choose({zoom: row});
}

// ---- history

function place_text() {
  return '#' + PLACE.map(key => `${key}=${state[key]}`).join('&');
}

// Pages from a file have no history in some browsers; the page works without.
function remember_place() {
  try {
    history.pushState({before: ++places_before}, '', place_text());
  } catch {
    places_before = 0;
  }
}

function go_back() {
  if (places_before > 0) history.back();
}

function read_place(text) {
  const place = {phase: 0, rank: 0, step: 0, mode: 'summary', zoom: NONE};
  for (const [key, value] of new URLSearchParams(text.replace(/^#/, ''))) {
    if (key === 'mode') place.mode = value === 'model' ? 'model' : 'summary';
    else if (PLACE.includes(key) && /^-?\d{1,9}$/.test(value)) place[key] = Number(value);
  }
  return place;
}

addEventListener('popstate', event => {
  places_before = event.state?.before || 0;
  const place = read_place(location.hash);
  Object.assign(state, place);
  refresh(place);
});
