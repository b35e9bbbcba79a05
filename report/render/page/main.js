// Joins the rooms of the page, and has the keys that work everywhere.
'use strict';

const search = by_id('search');

function is_typing(event) {
  return event.target.matches('input, select, textarea');
}

function zoom_out() {
  if (state.zoom !== NONE) zoom_to(current.tree.shape.parent[state.zoom]);
}

function end_search() {
  search.value = '';
  choose({query: '', groups: new Set()});
}

// Escape undoes one thing after the other.
function escape(event) {
  hide_tip();
  if (search.value || state.groups.size) return end_search();
  if (event.target === search) return search.blur();
  return zoom_out();
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') escape(event);
  if (is_typing(event)) {
    if (event.key === 'Enter' && event.target === search) by_id('table').focus();
    return;
  }
  if (event.key === 'Backspace') go_back();
  if (event.key !== '/') return;
  event.preventDefault();
  search.focus();
  search.select();
});

let resizing = 0;
addEventListener('resize', () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => refresh({}));
});

listen(draw_choices);
listen(draw_steps);
listen(show_icicle);
listen(fill_table);
draw_heading();
draw_account();
Object.assign(state, read_place(location.hash));
if (!location.hash) state.phase = first_phase();
refresh({zoom: state.zoom});

// What people come for: the decode steps, else the phase with the most time.
function first_phase() {
  const decode = phases.findIndex(phase => phase.json.name === 'decode');
  if (decode >= 0) return decode;
  const times = phases.map(phase => phase.find_view(0, 0)?.total || 0);
  return times.indexOf(Math.max(...times, 0));
}
