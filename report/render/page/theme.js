// Light and dark: as the system has it, or as the user says.
'use strict';

const THEMES = [
  {name: 'auto', label: '◐ Auto'},
  {name: 'light', label: '☀ Light'},
  {name: 'dark', label: '☾ Dark'},
];
const THEME_KEY = 'lamina-theme';
const system_dark = matchMedia('(prefers-color-scheme: dark)');

// Storage may be forbidden.
function stored_theme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null;
  }
}

function store_theme(name) {
  try {
    localStorage.setItem(THEME_KEY, name);
  } catch {
    // The choice lasts as long as the page, then.
  }
}

let theme = THEMES.find(each => each.name === stored_theme()) || THEMES[0];
const theme_colours = {};  // the style's variables, for what is drawn on a canvas

function is_dark() {
  return theme.name === 'dark' || (theme.name === 'auto' && system_dark.matches);
}

function apply_theme() {
  document.documentElement.dataset.theme = is_dark() ? 'dark' : 'light';
  by_id('theme').textContent = theme.label;
  by_id('theme').setAttribute('aria-label', `Theme: ${theme.name}. Press to change`);
  const style = getComputedStyle(document.documentElement);
  for (const name of ['page', 'panel', 'ink', 'faint', 'line', 'accent', 'mark', 'idle']) {
    theme_colours[name] = style.getPropertyValue('--' + name).trim();
  }
}

function next_theme() {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  store_theme(theme.name);
  apply_theme();
  refresh({});
}

by_id('theme').onclick = next_theme;
system_dark.addEventListener('change', () => {
  apply_theme();
  refresh({});
});
apply_theme();

// ---- colours of rows

const channels = rgb => [rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255];

// `share` (0..1) of a colour on the page's ground.
function mixed(rgb, share) {
  const ground = is_dark() ? 0x1b1d22 : 0xffffff;
  const [from, to] = [channels(ground), channels(rgb)];
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

// Black or white, whichever can be read on it (relative luminance as in WCAG 2.2).
function ink_on([red, green, blue]) {
  const linear = [red, green, blue].map(value => (value / 255) ** 2.2);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.22 ? '#14161a' : '#ffffff';
}

const LAYER_SHARE = 0.35;  // layers stand back, so that kernels are what one sees
const KERNEL_SHARE = 0.85;

const row_styles = new Map();
function row_style(tree, row) {
  const layer = is_layer(tree, row);
  const rgb = colour_of(tree, row);
  const key = `${rgb} ${layer} ${is_dark()}`;
  if (!row_styles.has(key)) {
    const fill = mixed(rgb, layer ? LAYER_SHARE : KERNEL_SHARE);
    row_styles.set(key, {fill: `rgb(${fill.join(' ')})`, ink: ink_on(fill)});
  }
  return row_styles.get(key);
}
