// SPDX-License-Identifier: Apache-2.0
// The model as a graph that can be moved, zoomed and searched.

const graphView = {shown: null, nodes: [], edges: [], x: 0, y: 0, scale: 1, layer: null, found: [], at: 0};
const HOT_FROM = 0.6;  // from this share of the hottest node on, texts are white

const lineOf = (edge, nodes) => {
  const p = edge.p;
  if (!p || p.length < 4) {
    const [a, b] = [nodes[edge.f], nodes[edge.t]];
    return `M${a.x},${a.y + a.h / 2}L${b.x},${b.y - b.h / 2}`;
  }
  let path = `M${p[0]},${p[1]}`;
  for (let i = 2; i + 5 < p.length; i += 6) path += `C${p.slice(i, i + 6).join(',')}`;
  return path;
};

// Shares of the time by function with all that it calls, and the places that call it.
const functionShares = data.graph.map(() => null);
const callersOf = data.graph.map((_, which) =>
  data.graph.reduce((sum, graph) => sum + graph.nodes.filter((node) => node.calls === which).length, 0));

function shareOfFunction(which) {
  if (functionShares[which] !== null) return functionShares[which];
  functionShares[which] = 0;  // a function that calls itself counts once
  const own = data.sites.reduce((sum, site) => sum + (site.function === data.graph[which].name ? site.share : 0), 0);
  const called = data.graph[which].nodes.reduce((sum, node) => sum + (node.calls === undefined ? 0 : shareOf(node)), 0);
  functionShares[which] = own + called;
  return functionShares[which];
}

// Of the time; a call has an equal part of what its function takes, as the times of a function's places are of all its calls.
function shareOf(node) {
  if (node.calls !== undefined) return shareOfFunction(node.calls) / callersOf[node.calls];
  return data.sites[node.site] ? data.sites[node.site].share : 0;
}

// From 0 to 1, beside the node of all functions that takes most time.
const mostShare = data.graph.reduce((most, graph) => graph.nodes.reduce((more, node) => Math.max(more, shareOf(node)), most), 0);
const heatOf = (node) => (mostShare > 0 ? Math.sqrt(shareOf(node) / mostShare) : 0);

function drawNode(node, index) {
  const group = draw(graphView.layer, 'g', {class: 'node', transform: `translate(${node.x},${node.y})`});
  const site = data.sites[node.site];
  const heat = heatOf(node);
  if (heat > HOT_FROM) group.classList.add('hot');
  const fill = `color-mix(in srgb, var(--hot) ${Math.round(100 * heat)}%, var(--cool))`;
  if (node.kind === 'kernel' || node.kind === 'instruction') {
    draw(group, 'rect', {x: -node.w / 2, y: -node.h / 2, width: node.w, height: node.h, rx: node.kind === 'kernel' ? 5 : 0, fill});
  } else {
    draw(group, 'ellipse', {rx: node.w / 2, ry: node.h / 2, fill});
  }
  draw(group, 'text', {y: node.small ? -2 : 4}, node.title);
  if (node.small) draw(group, 'text', {y: 10, class: 'small'}, node.small);
  group.addEventListener('click', () => chooseNode(index));
  tip(group, () => (site ? siteText(site) : [node.title, ...node.lines].join('\n')));
  graphView.nodes.push(group);
}

function moveView() {
  const {x, y, scale} = graphView;
  graphView.layer.setAttribute('transform', `translate(${x},${y}) scale(${scale})`);
}

function fitView() {
  const box = byId('graph').getBoundingClientRect();
  const {width, height} = graphView.shown;
  const scale = Math.min(box.width / (width + 40), box.height / (height + 40), 1.5);
  Object.assign(graphView, {scale, x: (box.width - width * scale) / 2, y: (box.height - height * scale) / 2});
  moveView();
}

// The top of a model that is too high to be read whole.
function startView() {
  fitView();
  const readable = 0.75;
  if (graphView.scale >= readable) return;
  const box = byId('graph').getBoundingClientRect();
  const first = graphView.shown.nodes.reduce((a, b) => (b.y < a.y ? b : a));
  Object.assign(graphView, {scale: readable, x: box.width / 2 - first.x * readable, y: 30 - (first.y - first.h) * readable});
  moveView();
}

function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.005, graphView.scale * factor));
  const change = scale / graphView.scale;
  graphView.x = x - (x - graphView.x) * change;
  graphView.y = y - (y - graphView.y) * change;
  graphView.scale = scale;
  moveView();
}

function centeron(node) {
  const box = byId('graph').getBoundingClientRect();
  graphView.scale = Math.max(graphView.scale, 0.8);
  graphView.x = box.width / 2 - node.x * graphView.scale;
  graphView.y = box.height / 2 - node.y * graphView.scale;
  moveView();
}

function showDetails(node) {
  const site = data.sites[node.site];
  const rows = [['node', node.title]];
  if (site) {
    rows.length = 0;
    rows.push(['node', placeOf(site)], ['kernel', site.kernel], ['arguments', site.arguments],
        ['time', `${percentText(site.share)}, ${durationText(site.median)} a call, ${site.calls} calls`]);
    if (site.operations) rows.push(['operations', `${site.operations.toExponential(2)}, ${rateText(site.operations, site.median, 'FLOP')}`]);
    if (site.bytes) rows.push(['bytes', `${bytesText(site.bytes)}, ${rateText(site.bytes, site.median, 'B')}`]);
    if (reached(site) !== undefined) {
      rows.push(['of what this CPU can do', `${percentText(reached(site))} of ${site.operations ? 'its products and copies' : 'its copies'}`]);
    }
    rows.push(['place', `${site.function}, pc ${site.pc}`]);
  }
  if (node.calls !== undefined) {
    const places = callersOf[node.calls];
    rows.push(['time', `${percentText(shareOf(node))}${places > 1 ? `, if each of its ${places} places takes the same` : ''}`]);
  }
  const list = make('dl');
  for (const [name, text] of rows) list.append(make('dt', {}, name), make('dd', {}, text));
  for (const line of node.lines) list.append(make('dd', {}, line));
  byId('details').replaceChildren(list);
}

function chooseNode(index) {
  const node = graphView.shown.nodes[index];
  graphView.nodes.forEach((group, i) => group.classList.toggle('chosen', i === index));
  graphView.shown.edges.forEach((edge, i) => graphView.edges[i].classList.toggle('chosen', edge.f === index || edge.t === index));
  showDetails(node);
}

function chooseSite(site) {
  for (const [which, graph] of data.graph.entries()) {
    const index = graph.nodes.findIndex((node) => node.site === site);
    if (index < 0) continue;
    if (graphView.shown !== graph) showGraph(which);
    chooseNode(index);
    centeron(graph.nodes[index]);
    byId('graph').scrollIntoView({block: 'nearest'});
    return;
  }
}

function find(next) {
  const wanted = byId('find').value.toLowerCase();
  const matches = (node) => wanted && [node.title, ...node.lines, data.sites[node.site] ? siteText(data.sites[node.site]) : '']
      .join('\n').toLowerCase().includes(wanted);
  graphView.found = graphView.shown.nodes.map((node, index) => (matches(node) ? index : -1)).filter((index) => index >= 0);
  graphView.nodes.forEach((group, index) => group.classList.toggle('found', graphView.found.includes(index)));
  graphView.at = next ? (graphView.at + 1) % Math.max(1, graphView.found.length) : 0;
  byId('found').textContent = wanted ? `${graphView.found.length === 0 ? 0 : graphView.at + 1} of ${graphView.found.length}` : '';
  if (graphView.found.length > 0) centeron(graphView.shown.nodes[graphView.found[graphView.at]]);
}

function showGraph(which) {
  const graph = data.graph[which];
  const svg = byId('graph');
  svg.replaceChildren();
  Object.assign(graphView, {shown: graph, nodes: [], edges: [], layer: draw(svg, 'g', {})});
  for (const edge of graph.edges) {
    const path = draw(graphView.layer, 'path', {class: 'edge', d: lineOf(edge, graph.nodes)});
    if (edge.label) tip(path, () => edge.label);
    graphView.edges.push(path);
  }
  graph.nodes.forEach((node, index) => drawNode(node, index));
  byId('which').value = String(which);
  byId('graph-note').textContent = graph.note || '';
  startView();
  chooseNode(graph.nodes.reduce((best, node, index) => (shareOf(node) > shareOf(graph.nodes[best]) ? index : best), 0));
}

function startGraph() {
  const svg = byId('graph');
  data.graph.forEach((graph, index) => byId('which').append(make('option', {value: String(index)}, graph.name)));
  byId('which').hidden = data.graph.length < 2;
  byId('which').addEventListener('change', (event) => showGraph(Number(event.target.value)));
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, {passive: false});
  let drag = null;
  svg.addEventListener('pointerdown', (event) => { drag = [event.clientX - graphView.x, event.clientY - graphView.y]; });
  addEventListener('pointermove', (event) => {
    if (drag === null) return;
    graphView.x = event.clientX - drag[0];
    graphView.y = event.clientY - drag[1];
    moveView();
  });
  addEventListener('pointerup', () => { drag = null; });
  const middle = () => { const box = svg.getBoundingClientRect(); return [box.width / 2, box.height / 2]; };
  byId('zoom-in').addEventListener('click', () => zoom(1.4, ...middle()));
  byId('zoom-out').addEventListener('click', () => zoom(1 / 1.4, ...middle()));
  byId('fit').addEventListener('click', fitView);
  byId('hottest').addEventListener('click', () => chooseSite(0));
  byId('find').addEventListener('input', () => find(false));
  byId('find').addEventListener('keydown', (event) => { if (event.key === 'Enter') find(true); });
  showGraph(0);
}
