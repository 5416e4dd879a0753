// SPDX-License-Identifier: Apache-2.0
// Time and memory of the shown run.

const COLORS = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#b07aa1', '#76b7b2', '#edc948', '#9c755f'];
const OTHER = '#9aa3ad';
const LEFT = 8;
const timeView = {from: 0, to: 0};

// Colors of kernels, those that take most time first; what is left shares one.
function kernelColors() {
  const totals = new Map();
  for (const site of data.sites) totals.set(kindOf(site), (totals.get(kindOf(site)) || 0) + site.share);
  const kinds = [...totals.entries()].sort((a, b) => b[1] - a[1]);
  return {of: new Map(kinds.slice(0, COLORS.length).map(([kind], i) => [kind, COLORS[i]])), totals: kinds};
}

function axis(svg, width, height, values, place, text) {
  let taken = 0;
  for (const value of values) {
    const x = place(value);
    if (x < LEFT - 1 || x > width) continue;
    draw(svg, 'line', {class: 'grid', x1: x, x2: x, y1: 0, y2: height - 16});
    const wide = 7 * text(value).length;
    // Left of its line where there is no room on the right, and not over the text before it.
    const fits = x + 3 + wide < width;
    const left = fits ? x + 3 : x - 3 - wide;
    if (left < taken) continue;
    draw(svg, 'text', {class: 'axis', x: fits ? left : left + wide, y: height - 4, 'text-anchor': fits ? 'start' : 'end'}, text(value));
    taken = left + wide;
  }
}

function drawTimeline(colors) {
  const svg = byId('timeline');
  const width = svg.clientWidth, height = 110, top = 8, tall = 52;
  svg.setAttribute('height', height);
  svg.replaceChildren();
  const {from, to} = timeView;
  const place = (ns) => LEFT + (ns - from) / (to - from) * (width - LEFT - 8);
  const step = ticks(to - from, 8, false);
  const first = Math.ceil(from / (step[1] || 1)) * (step[1] || 1);
  axis(svg, width, height, step.map((at) => first + at), place, durationText);
  let drawn = -1;
  for (const [index, start, duration] of data.timeline.calls) {
    const left = place(start), right = place(start + duration);
    if (right < LEFT || left > width || right < drawn + 0.3) continue;
    const site = data.sites[index];
    const shape = draw(svg, 'rect', {x: left, y: top, width: Math.max(0.5, right - left - (right - left > 3 ? 0.5 : 0)),
      height: tall, fill: colors.of.get(kindOf(site)) || OTHER});
    tip(shape, () => `${siteText(site)}\nthis call: ${durationText(duration)}, ${durationText(start)} after the start`);
    shape.addEventListener('click', () => chooseSite(index));
    drawn = right;
  }
  for (const [cause, start, duration] of data.timeline.waits) {
    const shape = draw(svg, 'rect', {x: place(start), y: top + tall + 6, height: 14, fill: 'var(--hot)',
      width: Math.max(0.5, place(start + duration) - place(start))});
    tip(shape, () => `the host waits ${durationText(duration)}: ${cause}`);
  }
}

function startTimeline() {
  const colors = kernelColors();
  for (const [kind, color] of colors.of) {
    const share = colors.totals.find(([name]) => name === kind)[1];
    const mark = make('i');
    mark.style.background = color;
    byId('legend').append(make('span', {}, mark, `${kind} ${percentText(share)}`));
  }
  const rest = colors.totals.slice(COLORS.length).reduce((sum, [, share]) => sum + share, 0);
  if (rest > 0) {
    const mark = make('i');
    mark.style.background = OTHER;
    byId('legend').append(make('span', {}, mark, `others ${percentText(rest)}`));
  }
  const timeline = data.timeline;
  byId('timeline-hint').textContent = `The run that is nearest to the median: ${durationText(timeline.duration)}, ` +
      `${timeline.calls.length + timeline.left_out} kernel calls` +
      `${timeline.left_out ? ` (the last ${timeline.left_out} are not drawn)` : ''}. ` +
      `Turn the wheel to zoom, drag to move${timeline.waits.length ? '; below: waits for devices' : ''}.`;
  Object.assign(timeView, {from: 0, to: Math.max(1, timeline.duration)});
  const svg = byId('timeline');
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const {from, to} = timeView;
    const at = from + (event.clientX - box.left - LEFT) / (box.width - LEFT - 8) * (to - from);
    const span = Math.min(timeline.duration, Math.max(100, (to - from) * Math.exp(event.deltaY / 400)));
    timeView.from = Math.min(timeline.duration - span, Math.max(0, at - (at - from) / (to - from) * span));
    timeView.to = timeView.from + span;
    drawTimeline(colors);
  }, {passive: false});
  let drag = null;
  svg.addEventListener('pointerdown', (event) => { drag = [event.clientX, timeView.from]; });
  addEventListener('pointermove', (event) => {
    if (drag === null) return;
    const span = timeView.to - timeView.from;
    const moved = (drag[0] - event.clientX) / svg.clientWidth * span;
    timeView.from = Math.min(timeline.duration - span, Math.max(0, drag[1] + moved));
    timeView.to = timeView.from + span;
    drawTimeline(colors);
  });
  addEventListener('pointerup', () => { drag = null; });
  drawTimeline(colors);
  return () => drawTimeline(colors);
}

// The first instruction after which memory in use can be seen. Those before it load constants and compute sizes.
function firstStep() {
  const used = bytesInUse();
  const most = used.reduce((more, bytes) => Math.max(more, bytes), 1);
  return Math.max(0, used.findIndex((bytes) => bytes * 20 >= most));
}

// Bytes of storages after each instruction.
function bytesInUse() {
  const changes = new Float64Array(data.memory.steps + 2);
  for (const [, bytes, from, to, isStorage] of data.memory.blocks) {
    if (!isStorage) continue;
    changes[from] += bytes;
    changes[to] -= bytes;
  }
  for (let i = 1; i < changes.length; ++i) changes[i] += changes[i - 1];
  return changes.slice(0, Math.max(1, data.memory.steps));
}

function drawInUse(place) {
  const svg = byId('in-use');
  const width = svg.clientWidth, height = 120, bottom = height - 16;
  svg.setAttribute('height', height);
  svg.replaceChildren();
  const used = bytesInUse();
  const bound = data.memory.bound || 0;
  const most = Math.max(1, bound, data.memory.peak, ...used) * 1.12;
  const level = (bytes) => bottom - bytes / most * bottom;
  const first = firstStep();
  let path = `M${place(first)},${bottom}`;
  used.slice(first).forEach((bytes, i) => { const step = first + i; path += `L${place(step)},${level(bytes)}L${place(step + 1)},${level(bytes)}`; });
  draw(svg, 'path', {d: `${path}L${place(used.length)},${bottom}Z`, fill: 'var(--accent)', opacity: 0.35});
  const lines = [[data.memory.peak, 'held at most', 'var(--accent)']];
  if (bound) lines.push([bound, 'bound', 'var(--hot)']);
  for (const [bytes, name, color] of lines) {
    draw(svg, 'line', {x1: LEFT, x2: width, y1: level(bytes), y2: level(bytes), stroke: color, 'stroke-dasharray': '5 4'});
  }
  // Below the lines; beside each other if these are near each other.
  const near = bound && Math.abs(level(bound) - level(data.memory.peak)) < 14;
  lines.forEach(([bytes, name], i) => draw(svg, 'text', {class: 'axis', x: LEFT + 4 + (near ? 170 * i : 0),
    y: (near ? level(data.memory.peak) : level(bytes)) + 13}, `${name} ${bytesText(bytes)}`));
  draw(svg, 'text', {class: 'axis', x: LEFT, y: height - 4}, `instructions ${first} to ${used.length}, from left to right`);
  tip(svg, (event) => {
    const share = (event.clientX - svg.getBoundingClientRect().left - LEFT) / (width - LEFT - 8);
    const step = first + Math.floor(share * (data.memory.steps - first));
    return step < first || step >= used.length ? null : `instruction ${step}: tensors take ${bytesText(used[step])}`;
  });
}

function drawBlocks(place) {
  const svg = byId('blocks');
  const height = 320;
  svg.setAttribute('height', height);
  svg.replaceChildren();
  const level = (bytes) => bytes / Math.max(1, data.memory.height) * (height - 2) + 1;
  const first = firstStep();
  data.memory.blocks.forEach(([offset, bytes, from, to, isStorage, name], index) => {
    if (to <= first) return;
    const look = isStorage ? {fill: 'var(--cool)', stroke: 'var(--edge)'} :
      {fill: COLORS[index % COLORS.length], 'fill-opacity': 0.75, stroke: 'var(--card)', 'stroke-width': 0.5};
    const left = place(Math.max(from, first));
    const shape = draw(svg, 'rect', {x: left, y: level(offset), width: Math.max(0.7, place(to) - left),
      height: Math.max(0.7, level(bytes) - 1), ...look});
    tip(shape, () => `${isStorage ? 'storage' : 'tensor'} ${name}\n${bytesText(bytes)} at offset ${bytesText(offset)}\n` +
        `instructions ${from} to ${to}`);
  });
}

function drawMemory() {
  const width = byId('blocks').clientWidth;
  const first = firstStep();
  const place = (step) => LEFT + (step - first) / Math.max(1, data.memory.steps - first) * (width - LEFT - 8);
  drawInUse(place);
  drawBlocks(place);
}

function startMemory() {
  const memory = data.memory;
  const parts = ['Above: the bytes that tensors of the program take, and below what lies where; a grey box is a storage, a colored one a tensor in it.',
    'Inputs, constants and parameters are not in it. The broken lines also count objects, registers and what kernels need beside their tensors.'];
  if (firstStep() > 0) parts.push(`The first ${firstStep()} instructions, which load constants and compute sizes, take nearly nothing and are not drawn.`);
  if (!memory.complete) parts.push(`Only the first ${memory.steps} instructions are shown.`);
  if (memory.left_out) parts.push(`${memory.left_out} small blocks are left out.`);
  if (memory.unbounded) parts.push(`There is no bound: ${memory.unbounded}.`);
  byId('memory-hint').textContent = parts.join(' ');
  drawMemory();
  return drawMemory;
}
