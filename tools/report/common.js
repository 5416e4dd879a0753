// SPDX-License-Identifier: Apache-2.0
// What the parts of the page share: the data, how figures are written, small drawings.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// "1.23 ms": nanoseconds with three digits.
function durationText(ns) {
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];
  for (const [size, unit] of units) {
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

function bytesText(bytes) {
  const units = [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
  for (const [size, unit] of units) {
    if (bytes >= size) return `${(bytes / size).toPrecision(3)} ${unit}`;
  }
  return `${bytes} B`;
}

const percentText = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
// Per second, from operations or bytes and nanoseconds.
const rateText = (amount, ns, unit) => `${(amount / ns).toPrecision(3)} G${unit}/s`;

// An element with attributes and children; texts are texts, never markup.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(parent, name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// Shows `text()` beside the pointer while it is over the element; null shows nothing.
function tip(element, text) {
  const box = byId('tip');
  element.addEventListener('pointermove', (event) => {
    const said = text(event);
    box.style.display = said === null ? 'none' : 'block';
    if (said === null) return;
    box.textContent = said;
    const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
    const above = event.clientY + 18 + box.offsetHeight > innerHeight;
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${above ? event.clientY - box.offsetHeight - 10 : event.clientY + 18}px`;
  });
  element.addEventListener('pointerleave', () => { box.style.display = 'none'; });
}

// Round steps of an axis up to `end`: at most `most`, by 1, 2 or 5 times a power of ten (of two for bytes).
function ticks(end, most, isBytes) {
  let step = isBytes ? 1 : 10 ** Math.floor(Math.log10(end / most));
  const factors = isBytes ? [2] : [2, 2.5, 2];
  for (let i = 0; end / step > most; ++i) step *= factors[i % factors.length];
  const found = [];
  for (let at = 0; at <= end; at += step) found.push(at);
  return found;
}

const placeOf = (site) => site.node || site.name;
const kindOf = (site) => site.kernel.replace(/^rewire\./, '');

function siteText(site) {
  const lines = [placeOf(site), site.kernel, site.arguments,
    `${durationText(site.median)} a call, ${site.calls} calls, ${percentText(site.share)} of the time`];
  if (site.operations) lines.push(rateText(site.operations, site.median, 'FLOP'));
  if (site.bytes) lines.push(rateText(site.bytes, site.median, 'B'));
  return lines.filter((line) => line).join('\n');
}

// How near a call comes to what the CPU could do, 0 to 1; undefined if that is not known.
const reached = (site) => (site.attainable ? site.attainable / site.median : undefined);
