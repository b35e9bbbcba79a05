// A bar for each step, as high as it took; a click or the arrows choose one.
'use strict';

const bars = by_id('bars');
const BARS_HEIGHT = 98;
const BARS_TOP = 16;  // for the number of the scale
const BARS_FOOT = 14;  // for the numbers of the steps
const MAX_BAR = 44;

let bar_steps = [];  // views of the steps
let bar_width = 0;

// Parts of a bar from the bottom, in nanoseconds. Without what the GPU did when, its kernels' sum.
function bar_parts(view) {
  if (!view.gpu) return [[view.total, 'accent']];
  const [span, busy, , exposed] = view.gpu;
  return [[busy - exposed, 'accent'], [exposed, 'mark'], [Math.max(span - busy, 0), 'idle']];
}

const bar_length = view => bar_parts(view).reduce((sum, [ns]) => sum + ns, 0);

function draw_steps() {
  bar_steps = current.phase ? current.phase.steps(state.rank) : [];
  by_id('steps').hidden = bar_steps.length < 2;
  draw_step_text();
  if (bar_steps.length < 2) return;
  by_id('all-steps').setAttribute('aria-pressed', state.step === 0);
  const chosen = bar_steps.find(view => view.step === state.step);
  bars.setAttribute('aria-valuemin', 0);
  bars.setAttribute('aria-valuemax', bar_steps.length);
  bars.setAttribute('aria-valuenow', chosen ? bar_steps.indexOf(chosen) + 1 : 0);
  bars.setAttribute('aria-valuetext', by_id('step-text').textContent);
  draw_bars();
}

function draw_bars() {
  const context = sized_context(bars, bars.clientWidth, BARS_HEIGHT);
  const longest = bar_steps.reduce((most, view) => Math.max(most, bar_length(view)), 1);
  const scale = (BARS_HEIGHT - BARS_TOP - BARS_FOOT) / longest;
  bar_width = Math.min(bars.clientWidth / bar_steps.length, MAX_BAR);
  const gap = bar_width > 4 ? 2 : bar_width > 2 ? 1 : 0;
  context.fillStyle = theme_colours.line;
  context.fillRect(0, BARS_TOP, bars.clientWidth, 1);
  context.fillStyle = theme_colours.faint;
  context.font = '11px system-ui, sans-serif';
  context.fillText(`longest ${time_text(longest)}`, 0, 11);
  bar_steps.forEach((view, i) => {
    const chosen = view.step === state.step;
    context.globalAlpha = chosen || state.step === 0 ? 1 : 0.45;
    let y = BARS_HEIGHT - BARS_FOOT;
    for (const [ns, colour] of bar_parts(view)) {
      context.fillStyle = theme_colours[colour];
      context.fillRect(i * bar_width, y - ns * scale, Math.max(bar_width - gap, 0.6), ns * scale);
      y -= ns * scale;
    }
  });
  context.globalAlpha = 1;
  draw_step_numbers(context, gap);
}

// Every first, second, fifth, tenth … step has its number under it, as there is room.
function draw_step_numbers(context, gap) {
  const room = String(bar_steps[bar_steps.length - 1].step).length * 7 + 6;
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(each => each * bar_width >= room) || Infinity;
  context.textAlign = 'center';
  bar_steps.forEach(({step}, i) => {
    context.fillStyle = step === state.step ? theme_colours.ink : theme_colours.faint;
    if (step % every === 0 || step === state.step) context.fillText(step, i * bar_width + (bar_width - gap) / 2, BARS_HEIGHT - 2);
  });
  context.textAlign = 'start';
}

// A canvas sharp on every screen, in CSS pixels.
function sized_context(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const step_name = view => `${printable(current.phase.json.name)}_${view.step}`;

function step_facts(view) {
  const facts = [['kernels', time_text(view.total)]];
  if (view.sequences !== undefined) facts.push(['sequences', count_text(view.sequences)]);
  if (!view.gpu) return facts;
  const [span, busy, communication, exposed] = view.gpu;
  facts.push(['GPU span', time_text(span)], ['busy', `${time_text(busy)} (${percent(busy, span).toFixed(1)} %)`]);
  facts.push(['idle', time_text(Math.max(span - busy, 0))]);
  if (communication > 0) facts.push(['communication', `${time_text(communication)}, exposed ${time_text(exposed)}`]);
  return facts;
}

function draw_step_text() {
  const view = current.phase?.find_view(state.rank, state.step);
  if (!view) return by_id('step-text').replaceChildren();
  const several = bar_steps.length > 1;
  const which = state.step > 0 ? `${step_name(view)}, ${count_text(bar_steps.indexOf(view) + 1)} of ${count_text(bar_steps.length)}` : several ? counted(bar_steps.length, 'step') : '';
  const facts = step_facts(view).map(([label, value]) => `${label} ${value}`);
  if (several && state.step === 0) facts.push(...spread_facts());
  by_id('step-text').textContent = [which, ...facts].filter(text => text).join(' · ');
  draw_step_legend();
}

const BAR_LABELS = new Map([['accent', 'busy'], ['mark', 'exposed communication'], ['idle', 'idle']]);

// Of what the bars are made of, where it is more than one thing.
function draw_step_legend() {
  const colours = new Set(bar_steps.flatMap(bar_parts).filter(([ns]) => ns > 0).map(([, colour]) => colour));
  const labels = [...BAR_LABELS].filter(([colour]) => colours.size > 1 && colours.has(colour));
  by_id('step-legend').replaceChildren(...labels.map(([colour, label]) => make('span', {}, make('i', {class: `swatch-${colour}`}), label)));
}

function spread_facts() {
  const times = bar_steps.map(bar_length).sort((a, b) => a - b);
  return [`each ${time_text(times[0])} to ${time_text(times[times.length - 1])}, median ${time_text(times[times.length >> 1])}`];
}

function bar_at(event) {
  return bar_steps[Math.floor(event.offsetX / bar_width)];
}

function choose_step(step) {
  choose({step, mode: 'summary'});
}

bars.onclick = event => {
  const view = bar_at(event);
  if (view) choose_step(view.step === state.step ? 0 : view.step);
};

bars.onmousemove = event => {
  const view = bar_at(event);
  if (view) show_tip(step_name(view), step_facts(view), event.clientX, event.clientY);
  else hide_tip();
};
bars.onmouseleave = hide_tip;

bars.onkeydown = event => {
  const at = bar_steps.findIndex(view => view.step === state.step);  // -1: all of them
  const to = {
    ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, PageUp: at + 10, PageDown: at - 10,
    Home: 0, End: bar_steps.length - 1, Escape: -1,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  const bounded = Math.min(Math.max(to, -1), bar_steps.length - 1);
  choose_step(bounded < 0 ? 0 : bar_steps[bounded].step);
};

by_id('all-steps').onclick = () => choose_step(0);
