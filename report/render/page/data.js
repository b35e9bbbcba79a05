// Reads the data of the page (report/render/page_data.h says what it holds) into trees.
'use strict';

const NONE = -1;
const data = JSON.parse(by_id('data').textContent || 'null') ||
    {title: '', version: '', strings: [], short: [], group: [], colour: [], groups: [], ranks: ['all'], context: [], account: [], phases: []};

// Rows of a tree, parents before children: what the views of a phase share.
class Shape {
  constructor(json) {
    this.count = json.depth.length;
    this.all = json.all;
    this.depth = Uint16Array.from(json.depth);
    this.string = Int32Array.from(json.string);
    this.layer = Uint8Array.from(json.layer);
    this.parent = new Int32Array(this.count);
    this.end = new Int32Array(this.count);  // the row after its last descendant
    this.link();
    this.open = new Uint8Array(this.count);
    this.open_first(150);
  }

  link() {
    const path = [];
    for (let row = 0; row < this.count; ++row) {
      while (path.length > this.depth[row]) this.end[path.pop()] = row;
      this.parent[row] = path.length ? path[path.length - 1] : NONE;
      path.push(row);
    }
    while (path.length) this.end[path.pop()] = this.count;
  }

  // Opens level after level while there are no more than so many rows to see.
  open_first(limit) {
    const levels = [];
    for (let row = 0; row < this.count; ++row) levels[this.depth[row]] = (levels[this.depth[row]] || 0) + 1;
    let seen = levels[0] || 0;
    for (let level = 1; level < levels.length && (seen += levels[level]) <= limit; ++level) this.open_level = level;
    for (let row = 0; row < this.count; ++row) this.open[row] = this.depth[row] < (this.open_level || 0) ? 1 : 0;
  }

  * children(row) {
    const end = row === NONE ? this.count : this.end[row];
    for (let child = row + 1; child < end; child = this.end[child]) yield child;
  }

  has_children(row) {
    return this.end[row] > row + 1;
  }

  path(row) {
    const path = [];
    for (; row !== NONE; row = this.parent[row]) path.unshift(row);
    return path;
  }
}

// A shape with the numbers of one view of it, and a place for each row on a line as long as the whole.
class Tree {
  // `some`: the rows that the columns are of, where they are not of all.
  constructor(shape, json, some) {
    this.shape = shape;
    this.total = json.total;
    this.rows_known = some ? some.length : shape.count;
    for (const column of ['time', 'calls', 'idle', 'cpu', 'trace', 'path']) {
      this[column] = json[column] && some ? spread_out(json[column], some, shape.count) : json[column];
    }
    this.time = Float64Array.from(this.time);
    this.lay_out();
  }

  // Children fill their parent from the left; those that are longer than it (other tools' files) are shrunk to fit.
  lay_out() {
    const {count, parent} = this.shape;
    const inside = new Float64Array(count + 1);  // of the children; at the end of the roots
    for (let row = 0; row < count; ++row) inside[parent[row] === NONE ? count : parent[row]] += this.time[row];
    this.length = Math.max(this.total, inside[count]);
    this.begin = new Float64Array(count);
    this.width = new Float64Array(count);
    const next = new Float64Array(count + 1);
    for (let row = 0; row < count; ++row) {
      const above = parent[row];
      const slot = above === NONE ? count : above;
      const scale = above === NONE ? 1 : this.width[above] / Math.max(this.time[above], inside[above], Number.MIN_VALUE);
      this.begin[row] = next[slot];
      this.width[row] = this.time[row] * scale;
      next[slot] += this.width[row];
      next[row] = this.begin[row];
    }
  }

  // Whether the row occurs in this step and rank.
  has(row) {
    return this.time[row] > 0 || !this.calls || this.calls[row] > 0;
  }

}

function spread_out(values, places, count) {
  const column = new Float64Array(count);
  places.forEach((place, i) => column[place] = values[i]);
  return column;
}

const is_layer = (tree, row) => tree.shape.layer[row] === 1;
const full_name = (tree, row) => data.strings[tree.shape.string[row]];
const group_of = (tree, row) => is_layer(tree, row) ? NONE : data.group[tree.shape.string[row]];

function short_name(tree, row) {
  const string = tree.shape.string[row];
  return is_layer(tree, row) || data.short[string] === NONE ? data.strings[string] : data.strings[data.short[string]];
}

function colour_of(tree, row) {
  return is_layer(tree, row) ? data.colour[tree.shape.string[row]] : data.groups[group_of(tree, row)].colour;
}

// Trees are made when they are first looked at.
class Phase {
  constructor(json) {
    this.json = json;
    this.shape = new Shape(json);
    this.trees = new Map();
  }

  views(rank) {
    return this.json.views.filter(view => view.rank === rank);
  }

  // The steps of a rank, without the sum.
  steps(rank) {
    return this.views(rank).filter(view => view.step > 0);
  }

  find_view(rank, step) {
    return this.json.views.find(view => view.rank === rank && view.step === step);
  }

  find_model(rank) {
    return this.json.models.find(model => model.rank === rank);
  }

  tree_of(json, make) {
    if (json && !this.trees.has(json)) this.trees.set(json, make(json));
    return this.trees.get(json);
  }

  summary(rank, step) {
    return this.tree_of(this.find_view(rank, step), view => new Tree(this.shape, view, step > 0 ? this.json.step_rows : undefined));
  }

  model(rank) {
    return this.tree_of(this.find_model(rank), model => new Tree(new Shape(model), model));
  }
}

const phases = data.phases.map(json => new Phase(json));
