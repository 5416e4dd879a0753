// SPDX-License-Identifier: Apache-2.0
// The head of the page, the advice and the tables.

// A path as a folder, small, and below it the name, which breaks behind its separators before it breaks anywhere.
function showFile() {
  const name = data.file.slice(data.file.lastIndexOf('/') + 1);
  const parts = (text, behind) => text.split(behind).flatMap((part, i) => i ? [document.createElement('wbr'), part] : [part]);
  byId('folder').replaceChildren(...parts(data.file.slice(0, data.file.length - name.length), /(?<=\/)/));
  byId('title').replaceChildren(...parts(name, /(?<=[-_])|(?=\.)/));
}

function showHead() {
  showFile();
  const cpu = data.cpu.name ? ` on ${data.cpu.name}` : '';
  const threads = data.cpu.threads === 1 ? '1 thread' : `${data.cpu.threads} threads`;
  byId('subtitle').textContent = `Function ${data.function}, ${data.runs.count} ` +
      `${data.runs.count === 1 ? 'run' : 'runs'}, ${threads}${cpu}`;
  const inPlace = data.outputs.filter((output) => output.rewired).length;
  const figures = [
    [durationText(data.runs.median), data.runs.count > 1 ?
      `median; fastest ${durationText(data.runs.fastest)}, p90 ${durationText(data.runs.p90)}` : 'the run'],
    [percentText(Math.max(0, 1 - data.outside)), 'of the time in kernels'],
    [bytesText(data.memory.peak), data.memory.bound === undefined ? 'most memory at once; no bound' :
      `most memory at once; bound ${bytesText(data.memory.bound)}`],
    [`${inPlace} of ${data.outputs.length}`, 'outputs can be written in the caller\u2019s memory'],
  ];
  if (data.cpu.operations) {
    figures.push([`${(data.cpu.operations / 1e9).toPrecision(3)} GFLOP/s`,
      `the best of a large product and these calls; ${(data.cpu.bytes / 1e9).toPrecision(3)} GB/s`]);
  }
  for (const [figure, meaning] of figures) {
    byId('figures').append(make('div', {class: 'card'}, make('b', {}, figure), make('span', {}, meaning)));
  }
}

function showAdvice() {
  for (const {text, action} of data.advice) {
    const item = make('li', {}, text);
    if (action) item.append(make('span', {class: 'action'}, action));
    byId('advice').append(item);
  }
  if (data.advice.length === 0) byId('advice').append(make('li', {}, 'Nothing.'));
}

function showOutputs() {
  const table = byId('outputs');
  table.append(make('tr', {}, ...['output', 'in the caller\u2019s memory', 'made by'].map((name) => make('th', {}, name))));
  for (const output of data.outputs) {
    const how = output.rewired ? make('td', {class: 'good'}, 'yes, a kernel writes it there') :
      make('td', {class: 'bad'}, `no, copied: ${output.reason}`);
    const makers = make('td');
    for (const [pc, instruction, inPlace, reason] of output.makers) {
      makers.append(make('div', {}, `${pc}: ${instruction}${inPlace || !reason ? '' : ` (${reason})`}`));
    }
    table.append(make('tr', {}, make('td', {}, output.name), how, makers));
  }
}

const COLUMNS = [
  ['node', (site) => placeOf(site), (site) => placeOf(site)],
  ['kernel', (site) => site.kernel, (site) => site.kernel],
  ['arguments', (site) => site.arguments, (site) => site.arguments],
  ['share', (site) => site.share, null],
  ['calls', (site) => site.calls, (site) => String(site.calls)],
  ['a run', (site) => site.run, (site) => durationText(site.run)],
  ['fastest to slowest', (site) => site.slowest - site.fastest,
    (site) => (data.runs.count > 1 ? `${durationText(site.fastest)} to ${durationText(site.slowest)}` : '')],
  ['a call', (site) => site.median, (site) => durationText(site.median)],
  ['GFLOP/s', (site) => (site.operations || 0) / site.median,
    (site) => (site.operations ? (site.operations / site.median).toPrecision(3) : '')],
  ['GB/s', (site) => site.bytes / site.median, (site) => (site.bytes ? (site.bytes / site.median).toPrecision(3) : '')],
  ['of this CPU', (site) => reached(site) || 0, (site) => (reached(site) === undefined ? '' : percentText(reached(site)))],
];
const ROWS_SHOWN = 200;
let sortedBy = 3;
let descending = true;

function shareCell(share) {
  const bar = make('i');
  bar.style.width = `${100 * share}%`;
  return make('td', {class: 'share number'}, bar, percentText(share));
}

function showSites() {
  const table = byId('sites');
  table.replaceChildren();
  const head = make('tr');
  COLUMNS.forEach(([name], column) => {
    const cell = make('th', column > 2 ? {class: 'number'} : {},
        name + (column === sortedBy ? (descending ? ' \u25be' : ' \u25b4') : ''));
    cell.addEventListener('click', () => {
      descending = column === sortedBy ? !descending : column > 2;
      sortedBy = column;
      showSites();
    });
    head.append(cell);
  });
  table.append(head);
  const wanted = byId('filter').value.toLowerCase();
  const value = COLUMNS[sortedBy][1];
  const rows = data.sites
      .map((site, index) => [site, index])
      .filter(([site]) => siteText(site).toLowerCase().includes(wanted))
      .sort(([a], [b]) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (descending ? -1 : 1));
  for (const [site, index] of rows.slice(0, ROWS_SHOWN)) {
    const row = make('tr', {class: 'link'});
    COLUMNS.forEach(([, , text], column) => {
      row.append(text === null ? shareCell(site.share) : make('td', column > 2 ? {class: 'number'} : {}, text(site)));
    });
    row.addEventListener('click', () => chooseSite(index));
    table.append(row);
  }
  byId('more').textContent = rows.length > ROWS_SHOWN ?
    `${rows.length - ROWS_SHOWN} more rows; the filter finds them.` : '';
}
