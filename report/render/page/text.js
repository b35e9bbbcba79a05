// Texts and numbers as people read them, and the few ways to put them on the page. Names come from the profiled program
// and may hold anything: they get into the page as text nodes only.
'use strict';

const MAX_SHOWN = 8000;  // characters of one name; some programs have megabytes

// Characters that would break a line or turn the direction of what follows.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+/g;

function printable(text) {
  const cut = text.length > MAX_SHOWN ? text.slice(0, MAX_SHOWN) + '…' : text;
  return cut.replace(UNPRINTABLE, ' ');
}

const TIME_UNITS = [
  {name: 's', ns: 1e9, digits: 3, from: 1e9},
  {name: 'ms', ns: 1e6, digits: 3, from: 1e6},
  {name: 'µs', ns: 1e3, digits: 2, from: 0},
];

// The unit for numbers that are read beside each other: that of a tenth of the largest.
function unit_for(largest_ns) {
  return TIME_UNITS.find(unit => largest_ns / 10 >= unit.from);
}

function grouped(number, digits) {
  return number.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

function time_in(unit, ns) {
  return grouped(ns / unit.ns, unit.digits);
}

function time_text(ns) {
  const unit = TIME_UNITS.find(each => ns >= each.from) || TIME_UNITS[2];
  return `${time_in(unit, ns)} ${unit.name}`;
}

function percent(part, whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

function percent_text(part, whole) {
  return `${percent(part, whole).toFixed(2)} %`;
}

function count_text(number) {
  return grouped(number, Number.isInteger(number) ? 0 : 2);
}

function counted(number, word) {
  return `${count_text(number)} ${word}${number === 1 ? '' : 's'}`;
}

// ---- the page

function by_id(id) {
  return document.getElementById(id);
}

// make('td', {class: 'x', title: 'y'}, 'text', node...)
function make(tag, attributes, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

function css_colour(rgb) {
  return '#' + rgb.toString(16).padStart(6, '0');
}

// A row of buttons of which one is chosen. `options`: [{label, note, value}].
function segments(container, options, chosen, choose) {
  const buttons = options.map(({label, note, value}) => {
    const button = make('button', {type: 'button', role: 'radio', 'aria-checked': value === chosen, tabindex: value === chosen ? 0 : -1}, printable(label));
    if (note) button.append(make('small', {}, note));
    button.onclick = () => choose(value);
    return button;
  });
  const had_focus = container.contains(document.activeElement);
  container.replaceChildren(...buttons);
  container.onkeydown = event => {
    const move = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!move) return;
    event.preventDefault();
    const at = options.findIndex(option => option.value === chosen);
    choose(options[(at + move + options.length) % options.length].value);
  };
  if (had_focus) container.querySelector('[aria-checked=true]')?.focus();
}
