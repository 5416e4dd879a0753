// SPDX-License-Identifier: Apache-2.0
// How the times of the runs are spread, and a comparison with the page of another run.

function drawHistogram() {
  const svg = byId('histogram');
  const rows = data.runs.histogram;
  const width = svg.clientWidth, height = 120, bottom = height - 16;
  svg.setAttribute('height', height);
  svg.replaceChildren();
  const most = Math.max(...rows.map((row) => row.count));
  const wide = (width - LEFT - 8) / rows.length;
  const every = Math.ceil(80 / wide);  // a label needs that much room
  rows.forEach(({from, to, count}, i) => {
    const tall = count === 0 ? 0 : Math.max(2, count / most * (bottom - 14));
    const left = LEFT + i * wide;
    const bar = draw(svg, 'rect', {class: 'run', x: left, y: bottom - tall, width: Math.max(1, wide - 2), height: tall,
      fill: from >= data.runs.disturbed_from ? 'var(--hot)' : 'var(--accent)'});
    tip(bar, () => `${count} ${count === 1 ? 'run' : 'runs'} of ${durationText(from)} to ${durationText(to)}`);
    if (i % every === 0) draw(svg, 'text', {class: 'axis', x: left, y: height - 4}, durationText(from));
  });
}

function startRuns() {
  if (data.runs.count < 2) {
    byId('runs').hidden = true;
    return () => {};
  }
  const disturbed = data.runs.disturbed.length;
  byId('runs-hint').textContent = `${data.runs.count} runs from ${durationText(data.runs.fastest)} to ` +
      `${durationText(data.runs.slowest)}, median ${durationText(data.runs.median)}. ` +
      (disturbed ? `${disturbed} took more than 1.5 times the median: something else disturbed them, and ranks and shares do not count it. ` : '') +
      'The last bar also has all slower runs.';
  drawHistogram();
  return drawHistogram;
}

// What a place took in a run there, by its node and kernel, or by its name without a node.
function timesByPlace(sites) {
  const times = new Map();
  for (const site of sites) {
    const key = `${placeOf(site)}\n${kindOf(site)}`;
    times.set(key, (times.get(key) || 0) + site.run);
  }
  return times;
}

const ratioText = (ratio) => (Number.isFinite(ratio) ? `${ratio.toPrecision(3)} times` : '');

function showComparison(name, other) {
  const table = byId('comparison');
  table.replaceChildren(make('tr', {}, ...['node', 'kernel', name, 'here', 'here / there'].map((title, column) =>
    make('th', column > 1 ? {class: 'number'} : {}, title))));
  const there = timesByPlace(other.sites), here = timesByPlace(data.sites);
  const rows = [...new Set([...here.keys(), ...there.keys()])].map((key) => [key, there.get(key), here.get(key)]);
  // What has changed most first, by time and not by ratio.
  const change = ([, before, now]) => Math.abs((now || 0) - (before || 0));
  rows.sort((a, b) => change(b) - change(a));
  rows.unshift(['all of a run\n', other.runs.median, data.runs.median]);
  for (const [key, before, now] of rows.slice(0, ROWS_SHOWN)) {
    const [place, kernel] = key.split('\n');
    const ratio = now / before;
    table.append(make('tr', {}, make('td', {}, place), make('td', {}, kernel),
        ...[before, now].map((time) => make('td', {class: 'number'}, time === undefined ? 'not there' : durationText(time))),
        make('td', {class: `number ${ratio > 1.1 ? 'bad' : ratio < 0.9 ? 'good' : ''}`}, ratioText(ratio))));
  }
  const quiet = other.runs.disturbed.length + data.runs.disturbed.length === 0;
  byId('comparison-hint').textContent = (other.cpu.name !== data.cpu.name || other.cpu.threads !== data.cpu.threads ?
    `${name} was measured on ${other.cpu.name || 'another machine'} with ${other.cpu.threads} threads. ` : '') +
      `Medians of a run${quiet ? '' : '; some runs were disturbed'}. What has changed most is first.`;
}

// The data of a page of vm-run --report, from its text; null for any other file.
function dataOfPage(text) {
  const found = text.match(/<script type="application\/json" id="data">([\s\S]*?)<\/script>/);
  try {
    const other = found && JSON.parse(found[1]);
    return other && other.runs.disturbed && other.sites.every((site) => site.run !== undefined) ? other : null;
  } catch (error) {
    return null;
  }
}

function startComparison() {
  byId('other').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const other = dataOfPage(await file.text());
    if (other === null) {
      byId('comparison').replaceChildren();
      byId('comparison-hint').textContent = `${file.name} is no page that this version of vm-run --report has written; write it again.`;
      return;
    }
    showComparison(file.name, other);
  });
}
