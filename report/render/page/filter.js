// Search and groups: which rows are found, and which are kept because something in or around them is.
'use strict';

// {active, found, kept, open, count, time}: found rows match the search themselves; kept ones are found, in a found one, or
// around one. `open` is how far the table opens to show them, `count` and `time` are of what matches, counted once.
function make_filter(tree, query, groups) {
  const words = query.toLowerCase().split(/\s+/).filter(word => word);
  const filter = {active: words.length > 0 || groups.size > 0, words, count: 0, time: 0};
  if (!filter.active) return filter;
  filter.found = found_rows(tree, words);
  keep_rows(tree, groups, filter);
  return filter;
}

let searched = {words: null, strings: null};  // the strings are the same for every tree

function found_strings(words) {
  if (searched.words !== words.join(' ')) {
    const hit = data.strings.map(text => {
      const small = text.toLowerCase();
      return words.every(word => small.includes(word)) ? 1 : 0;
    });
    searched = {words: words.join(' '), strings: Uint8Array.from(hit)};
  }
  return searched.strings;
}

function found_rows(tree, words) {
  const {count, string} = tree.shape;
  const found = new Uint8Array(count);
  if (!words.length) return found;
  const strings = found_strings(words);
  const extra = [tree.trace, tree.path].filter(column => column);
  for (let row = 0; row < count; ++row) {
    found[row] = strings[string[row]] || extra.some(column => column[row] !== NONE && strings[column[row]]) ? 1 : 0;
  }
  return found;
}

function keep_rows(tree, groups, filter) {
  const {count, parent} = tree.shape;
  const inside = new Uint8Array(count);  // found, or in something found
  filter.kept = new Uint8Array(count);
  filter.open = new Uint8Array(count);
  for (let row = 0; row < count; ++row) {
    const above = parent[row] === NONE ? !filter.words.length : inside[parent[row]];
    inside[row] = above || filter.found[row] ? 1 : 0;
    const in_group = !groups.size || groups.has(group_of(tree, row));
    const matches = in_group && (groups.size ? inside[row] : filter.found[row]);
    filter.kept[row] = inside[row] && in_group ? 1 : 0;
    if (!matches || !tree.has(row)) continue;
    ++filter.count;
    if (!above || groups.size) filter.time += tree.time[row];
    for (let up = parent[row]; up !== NONE && !filter.open[up]; up = parent[up]) filter.kept[up] = filter.open[up] = 1;
  }
}
