// SPDX-License-Identifier: Apache-2.0

showHead();
showAdvice();
showOutputs();
byId('filter').addEventListener('input', showSites);
showSites();
startGraph();
const redraw = [startTimeline(), startMemory(), startRuns()];
startComparison();
addEventListener('resize', () => redraw.forEach((again) => again()));
