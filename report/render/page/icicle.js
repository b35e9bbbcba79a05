// The icicle: every row a box as wide as its time, under the box of the layer it is in. On a canvas, where boxes too narrow
// to see are passed over with all they hold, so that it does not matter how many there are.
'use strict';

const icicle = by_id('icicle');
const canvas = by_id('icicle-canvas');
const BOX_HEIGHT = 23;
const MIN_WIDTH = 0.7;   // of a box, in pixels; narrower ones are a stroke together
const MIN_LABEL = 26;
const MAX_HEIGHT = 460;  // of the chart; deeper trees scroll
const ZOOM_MS = 220;

let window_ = {begin: 0, length: 1};  // what is seen, on the tree's line
let focus_row = NONE;                 // of the keyboard
let hover_row = null;
let icicle_tree = null;
const still = matchMedia('(prefers-reduced-motion: reduce)');

function box_of(row) {
  const {tree} = current;
  return row === NONE ? {begin: 0, length: tree.length} : {begin: tree.begin[row], length: tree.width[row]};
}

// Calls draw(row, x, width, y) for what is in the window, and crumb(row, x, y) for what is too narrow.
function each_box(view, width, top, height, draw, crumb) {
  const {tree} = current;
  const {count, depth, end} = tree.shape;
  const scale = width / view.length;
  const last_y = top + height;
  draw(NONE, -view.begin * scale, tree.length * scale, -top);
  for (let row = 0; row < count;) {
    const x = (tree.begin[row] - view.begin) * scale;
    const wide = tree.width[row] * scale;
    const y = (depth[row] + 1) * BOX_HEIGHT;
    const out = x >= width || x + wide <= 0 || y > last_y;
    if (out || wide < MIN_WIDTH) {
      if (!out && wide > 0) crumb(row, x, y - top);
      row = end[row];
    } else {
      draw(row, x, wide, y - top);
      ++row;
    }
  }
}

// ---- drawing

function icicle_height() {
  const {shape} = current.tree;
  const [from, to] = state.zoom === NONE ? [0, shape.count] : [state.zoom, shape.end[state.zoom]];
  let deepest = 0;
  for (let row = from; row < to; ++row) deepest = Math.max(deepest, shape.depth[row]);
  return (deepest + 2) * BOX_HEIGHT;
}

function draw_icicle() {
  if (current.tree.total <= 0) return;
  const width = icicle.clientWidth, height = icicle.clientHeight;
  const context = sized_context(canvas, width, height);
  context.font = '12px system-ui, "Segoe UI", sans-serif';
  context.textBaseline = 'middle';
  const crumbs = new Map();  // by depth: the last pixel with a stroke, and whether that is of a row that the search keeps
  each_box(window_, width, icicle.scrollTop, height, (row, x, wide, y) => {
    const left = Math.max(x, 0), right = Math.min(x + wide, width);
    if (y > -BOX_HEIGHT) draw_box(context, row, left, right - left, y);
  }, (row, x, y) => {
    const depth = current.tree.shape.depth[row], pixel = Math.floor(x);
    const kept = !current.filter.active || current.filter.kept[row] === 1;
    const last = crumbs.get(depth);
    if (last && last.pixel === pixel && (last.kept || !kept)) return;
    crumbs.set(depth, {pixel, kept});
    context.globalAlpha = kept ? 1 : 0.16;
    context.fillStyle = row_style(current.tree, row).fill;
    context.fillRect(pixel, y, 1, BOX_HEIGHT - 1);
  });
  context.globalAlpha = 1;
}

function draw_box(context, row, x, wide, y) {
  const {tree, filter} = current;
  const whole = row === NONE;
  const style = whole ? {fill: theme_colours.line, ink: theme_colours.ink} : row_style(tree, row);
  context.globalAlpha = whole || !filter.active || filter.kept[row] ? 1 : 0.16;
  context.fillStyle = style.fill;
  context.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.7), BOX_HEIGHT - 1);
  if (!whole && filter.active && filter.found[row]) frame(context, x, wide, y, theme_colours.mark);
  if (row === hover_row) frame(context, x, wide, y, theme_colours.ink);
  if (row === focus_row && document.activeElement === canvas) frame(context, x, wide, y, theme_colours.accent, 3);
  if (wide >= MIN_LABEL) {
    context.fillStyle = style.ink;
    context.fillText(label_text(context, row, wide - 10), x + 5, y + BOX_HEIGHT / 2);
  }
  context.globalAlpha = 1;
}

function frame(context, x, wide, y, colour, thick = 2) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(x + thick / 2, y + thick / 2, Math.max(wide - thick - 1, 1), BOX_HEIGHT - 1 - thick);
}

const text_widths = new Map();
function text_width(context, text) {
  if (text_widths.size > 20000) text_widths.clear();
  if (!text_widths.has(text)) text_widths.set(text, context.measureText(text).width);
  return text_widths.get(text);
}

// The name, and the share of the whole where there is room for both; cut where there is not even for the name.
function label_text(context, row, room) {
  const {tree} = current;
  const name = row === NONE ? place_name() : printable(short_name(tree, row).slice(0, 300));
  const share = row === NONE ? time_text(tree.total) : percent_text(tree.time[row], tree.total);
  if (text_width(context, name) + 60 < room) return `${name}  ${share}`;
  if (text_width(context, name) <= room) return name;
  let letters = Math.floor(name.length * room / text_width(context, name));
  while (letters > 0 && text_width(context, name.slice(0, letters) + '…') > room) --letters;
  return letters > 0 ? name.slice(0, letters) + '…' : '';
}

// ---- zooming

// Another tree is there at once; another row of it is flown to.
function move_window() {
  const to = box_of(state.zoom);
  const from = {...window_};
  const jump = icicle_tree !== current.tree || still.matches || !(from.length > 0);
  icicle_tree = current.tree;
  if (jump || !(to.length > 0)) {
    window_ = to.length > 0 ? to : box_of(NONE);
    return draw_icicle();
  }
  const start = performance.now();
  const target = current.tree;
  requestAnimationFrame(function fly() {
    if (current.tree !== target || icicle_tree !== target) return;
    const done = Math.min((performance.now() - start) / ZOOM_MS, 1);
    const ease = 1 - (1 - done) ** 3;
    window_ = {begin: from.begin + (to.begin - from.begin) * ease, length: from.length + (to.length - from.length) * ease};
    draw_icicle();
    if (done < 1 && box_of(state.zoom).begin === to.begin && box_of(state.zoom).length === to.length) requestAnimationFrame(fly);
  });
}

function resize_icicle() {
  const full = icicle_height();
  icicle.hidden = current.tree.total <= 0;
  icicle.style.height = `${Math.min(full, MAX_HEIGHT)}px`;
  by_id('icicle-space').style.height = `${full}px`;
}

function scroll_to_row(row) {
  const y = row === NONE ? 0 : (current.tree.shape.depth[row] + 1) * BOX_HEIGHT;
  if (y < icicle.scrollTop || y + BOX_HEIGHT > icicle.scrollTop + icicle.clientHeight) icicle.scrollTop = y - BOX_HEIGHT * 2;
}

function show_icicle(changed) {
  const moved = changed && ['zoom', 'phase', 'mode', 'rank', 'step'].some(key => key in changed);
  resize_icicle();
  if (moved) {
    focus_row = state.zoom;
    hover_row = null;
    hide_tip();
    scroll_to_row(state.zoom);
  }
  move_window();
}

// ---- mouse

function row_at(event) {
  const x = event.offsetX, y = event.offsetY;
  let found = null;
  each_box(window_, icicle.clientWidth, icicle.scrollTop, icicle.clientHeight, (row, left, wide, top) => {
    if (x >= left && x < left + wide && y >= top && y < top + BOX_HEIGHT) found = row;
  }, () => {});
  return found;
}

canvas.onmousemove = event => {
  const row = row_at(event);
  if (row === null) hide_tip();
  else if (row === NONE) show_tip(place_name(), [['GPU time', time_text(current.tree.total)]], event.clientX, event.clientY);
  else show_row_tip(current.tree, row, event.clientX, event.clientY);
  canvas.style.cursor = row === null ? 'default' : 'pointer';
  point_at(row);
};

// The mouse is on this row, here or in the table.
function point_at(row) {
  if (row === hover_row) return;
  hover_row = row;
  draw_icicle();
}

canvas.onmouseleave = () => {
  point_at(null);
  hide_tip();
};

canvas.onclick = event => {
  const row = row_at(event);
  if (row !== null) zoom_to(row);
};

icicle.addEventListener('scroll', () => {
  hide_tip();
  draw_icicle();
});

// ---- keyboard

function siblings(row) {
  const {tree} = current;
  return [...tree.shape.children(tree.shape.parent[row])].filter(each => tree.width[each] > 0);
}

function heaviest_child(row) {
  const {tree} = current;
  let heaviest = NONE;
  for (const child of tree.shape.children(row)) {
    if (tree.width[child] > (heaviest === NONE ? 0 : tree.width[heaviest])) heaviest = child;
  }
  return heaviest === NONE ? row : heaviest;
}

const ICICLE_KEYS = {
  ArrowDown: row => heaviest_child(row),
  ArrowUp: row => row === NONE ? NONE : current.tree.shape.parent[row],
  ArrowRight: row => row === NONE ? row : siblings(row)[siblings(row).indexOf(row) + 1] ?? row,
  ArrowLeft: row => row === NONE ? row : siblings(row)[siblings(row).indexOf(row) - 1] ?? row,
  Home: () => state.zoom,
};

canvas.onkeydown = event => {
  if (event.key === 'Enter') return zoom_to(focus_row);
  const move = ICICLE_KEYS[event.key];
  if (!move) return;
  event.preventDefault();
  focus_row = move(focus_row);
  keep_focus_in_sight();
  draw_icicle();
  tell_focus();
};

// A row beside what is seen is seen in the layer around both.
function keep_focus_in_sight() {
  const row = focus_row, box = box_of(row), seen = box_of(state.zoom);
  const rounding = 1e-9 * current.tree.length;
  if (row !== NONE && (box.begin < seen.begin - rounding || box.begin + box.length > seen.begin + seen.length + rounding)) {
    zoom_to(current.tree.shape.parent[row]);
    focus_row = row;
  }
  scroll_to_row(row);
}

function tell_focus() {
  const {tree} = current;
  by_id('spoken').textContent = focus_row === NONE ? `${place_name()}: ${time_text(tree.total)}` : row_speech(tree, focus_row);
  if (focus_row === NONE) return hide_tip();
  const place = canvas.getBoundingClientRect();
  const x = (box_of(focus_row).begin - window_.begin) * icicle.clientWidth / window_.length;
  const y = (tree.shape.depth[focus_row] + 2) * BOX_HEIGHT - icicle.scrollTop;
  show_row_tip(tree, focus_row, place.left + Math.max(x, 0), place.top + y - 14);
}

canvas.onfocus = draw_icicle;
canvas.onblur = () => {
  hide_tip();
  draw_icicle();
};
