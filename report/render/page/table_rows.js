// What stands in the table: the rows of the tree that are open, or kernels or groups added up.
'use strict';

const TABS = [
  {value: 'layers', label: 'Layers', rows: layer_rows},
  {value: 'kernels', label: 'Kernels', rows: kernel_rows},
  {value: 'groups', label: 'Groups', rows: group_rows},
];

// A row of the tree.
class LayerRow {
  constructor(tree, row, depth) {
    this.tree = tree;
    this.row = row;
    this.depth = depth;
  }
  get full() { return full_name(this.tree, this.row); }
  get name() { return short_name(this.tree, this.row); }
  get fill() { return row_style(this.tree, this.row).fill; }
  get time() { return this.tree.time[this.row]; }
  get calls() { return this.tree.calls ? this.tree.calls[this.row] : 0; }
  get idle() { return this.tree.idle ? this.tree.idle[this.row] : 0; }
  get cpu() { return this.tree.cpu ? this.tree.cpu[this.row] : 0; }
  get trace() { return text_of(this.tree.trace, this.row); }
  get path() { return text_of(this.tree.path, this.row); }
  get has_rows() { return this.tree.shape.has_children(this.row); }
  get open() { return opened()[this.row] === 1; }
}

function text_of(strings, row) {
  return strings && strings[row] !== NONE ? data.strings[strings[row]] : '';
}

// What is open is remembered of the tree, and of each search by itself.
function opened() {
  return current.filter.active ? current.filter.open : current.tree.shape.open;
}

// `text` or `number` of a column, sorted the way that the user chose; as they came where he chose none.
function sorted(rows) {
  const column = state.sort && COLUMNS.find(each => each.id === state.sort.column);
  if (!column) return rows;
  const sign = state.sort.down ? -1 : 1;
  const value = column.number || column.text;
  const keyed = rows.map(row => ({row, key: value(row)}));
  keyed.sort((a, b) => sign * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.map(each => each.row);
}

// The open rows under the row that is zoomed to, or of everything: with `all`, also those that are closed.
function layer_rows(all = false) {
  const {tree, filter} = current;
  const children = (parent, depth) => {
    const list = [];
    for (const row of tree.shape.children(parent)) {
      if (tree.has(row) && (!filter.active || filter.kept[row])) list.push(new LayerRow(tree, row, depth));
    }
    return sorted(list).reverse();
  };
  const rows = [];
  const waiting = state.zoom === NONE ? children(NONE, 0) : [new LayerRow(tree, state.zoom, 0)];
  while (waiting.length) {
    const row = waiting.pop();
    rows.push(row);
    if (all || row.open || row.row === state.zoom) {
      for (const child of children(row.row, row.depth + 1)) waiting.push(child);
    }
  }
  return rows;
}

// Kernels under the zoomed row that the search keeps, added up by a key.
function added_up(key_of, make_row) {
  const {tree, filter} = current;
  const rows = new Map();
  const [from, to] = state.zoom === NONE ? [0, tree.shape.count] : [state.zoom, tree.shape.end[state.zoom]];
  for (let row = from; row < to; ++row) {
    if (is_layer(tree, row) || !tree.has(row) || (filter.active && !filter.kept[row])) continue;
    const key = key_of(tree, row);
    if (!rows.has(key)) rows.set(key, {...make_row(tree, row), depth: 0, time: 0, calls: 0, idle: 0, first: row});
    const sum = rows.get(key);
    sum.time += tree.time[row];
    sum.calls += tree.calls ? tree.calls[row] : 1;
    sum.idle += tree.idle ? tree.idle[row] : 0;
  }
  const list = [...rows.values()].sort((a, b) => b.time - a.time);
  return sorted(list);
}

function kernel_rows() {
  return added_up((tree, row) => tree.shape.string[row], (tree, row) => ({
    full: full_name(tree, row), name: short_name(tree, row), fill: row_style(tree, row).fill, group: data.groups[group_of(tree, row)].name,
  }));
}

function group_rows() {
  return added_up(group_of, (tree, row) => {
    const {name} = data.groups[group_of(tree, row)];
    return {full: name, name, fill: row_style(tree, row).fill, group: name};
  });
}
