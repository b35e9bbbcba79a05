// The columns of the table: what each holds, how it is shown, and what it is called in the CSV.
'use strict';

// Units of the times in view: of totals, and of single executions.
const units = {total: TIME_UNITS[2], each: TIME_UNITS[2]};

// A time column: `time` of a row of table_rows.js, in nanoseconds.
function time_column(id, title, csv, time, more) {
  const unit = more.unit || 'total';
  return {id, title: () => `${title} (${units[unit].name})`, csv, number: time, show: ns => time_in(units[unit], ns), raw: ns => String(ns / 1000), heat: true,
    width: 122, ...more};
}

// Columns show in the tabs that they name, where they are known. `number` sorts and heats; `text` only sorts. Widths are in
// pixels; the name takes what is left.
const ALL_TABS = ['layers', 'kernels', 'groups'];
const COLUMNS = [
  {id: 'name', title: () => 'Name', tabs: ALL_TABS, width: 270, csv: 'name', text: row => row.full},
  time_column('time', 'GPU time', 'cuda_time_us', row => row.time, {tabs: ALL_TABS}),
  {id: 'share', title: () => 'Share', tabs: ALL_TABS, width: 100, csv: 'pct_cuda_time', number: row => percent(row.time, current.tree.total),
    show: share => `${share.toFixed(2)} %`, raw: share => share.toFixed(4), bar: true},
  {id: 'calls', title: () => 'Invocations', tabs: ALL_TABS, width: 106, csv: 'invocations', number: row => row.calls, show: count_text, raw: String,
    known: tree => tree.calls},
  time_column('each', 'Each', 'cuda_time_us_each', row => row.calls > 0 ? row.time / row.calls : 0,
      {tabs: ['layers', 'kernels'], unit: 'each', known: tree => tree.calls}),
  time_column('idle', 'Idle before', 'idle_before_us', row => row.idle, {tabs: ALL_TABS, known: tree => tree.idle, width: 146}),
  time_column('cpu', 'CPU time', 'cpu_time_us', row => row.cpu, {tabs: ['layers'], known: tree => tree.cpu}),
  {id: 'group', title: () => 'Group', tabs: ['kernels'], width: 130, csv: 'group', text: row => row.group},
  {id: 'trace', title: () => 'Trace', tabs: ['layers'], width: 280, csv: 'trace', text: row => row.trace, known: tree => has_texts(tree.trace)},
  {id: 'path', title: () => 'Instance', tabs: ['layers'], width: 200, csv: 'path', text: row => row.path, known: tree => has_texts(tree.path)},
];

function has_texts(strings) {
  return strings && strings.some(string => string !== NONE);
}

function shown_columns() {
  return COLUMNS.filter(column => column.tabs.includes(state.tab) && (!column.known || column.known(current.tree)));
}

// Sets the units, and gives for each column of numbers its largest.
function measure_columns(columns, rows) {
  const largest = new Map();
  for (const column of columns.filter(each => each.number)) {
    let most = 0;
    for (const row of rows) most = Math.max(most, column.number(row));
    largest.set(column, most);
  }
  const each = columns.find(column => column.id === 'each');
  units.total = unit_for(current.tree.total);
  units.each = each ? unit_for(largest.get(each)) : units.total;
  return largest;
}
