#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens pages of vm-run --report in headless Chromium and looks at what it drew.

usage: pages.py BIN [--keep DIR]

BIN is the folder of vm-run. --keep writes pages and pictures of them, on a light and a dark screen and on a phone, to a folder. The models: the
digit classifier of the examples (functions, symbolic sizes), a loop with a branch, and 2,000 kernel calls with branches. For
each page: no message on the console, every node of the graph and every call of the timeline drawn, each block of memory,
a search that finds a node, a click that shows it, a bar for each time of the histogram, no empty part beside the memory, no call above
what the machine can do, a comparison with the page itself that finds no difference, nodes of the model that have all of the time, and at most 3 MB.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import chromium  # noqa: E402
MOST_BYTES = 3_000_000
LARGE = 2000  # kernel calls

LOOP = """
.kernel add = "rewire.add"
.kernel less = "rewire.less"
.kernel cast = "rewire.cast"
.const one: f32[] = {1}
.const most: f32[] = {5}
.func main(x: f32[]) -> y: f32[]
  %one = load_const one
  %most = load_const most
  %true = load_consti 1
again:
  %s = alloc_storage _, alignment=64, f32[], cpu
  %y = alloc_tensor %s, _, f32[]
  invoke_packed add(%x, %one, %y), outputs=1  @ "Add 'step'"
  %b = alloc_storage _, alignment=64, bool[], cpu
  %small = alloc_tensor %b, _, bool[]
  invoke_packed less(%y, %most, %small), outputs=1
  %i = alloc_storage _, alignment=64, i64[], cpu
  %test = alloc_tensor %i, _, i64[]
  invoke_packed cast(%small, %test), outputs=1
  %x = move %y
  if %test == %true goto again else done
done:
  ret %y
.end
"""


def large_model():
    """Residual blocks of three branches, until there are LARGE calls; every fifth call has an input from far above."""
    lines = ['.kernel add = "rewire.add"', '.kernel mul = "rewire.mul"', ".func main(x: f32[64]) -> y: f32[64]"]
    values = ["%x"]
    for call in range(LARGE):
        a, b = values[-1], values[max(0, len(values) - (40 if call % 5 == 0 else 3))]
        kernel = "mul" if call % 7 == 0 else "add"
        lines += [
            f"  %s{call} = alloc_storage _, alignment=64, f32[64], cpu",
            f"  %v{call} = alloc_tensor %s{call}, _, f32[64]",
            f"  invoke_packed {kernel}({a}, {b}, %v{call}), outputs=1  @ \"{kernel.title()} 'node_{call}'\"",
        ]
        values.append(f"%v{call}")
        if call >= 60:
            lines += [f"  kill %v{call - 60}", f"  kill %s{call - 60}"]
    return "\n".join(lines + [f"  ret {values[-1]}", ".end", ""])


# What a user does, after the page has drawn itself. The result is what the checks below read.
VISIT = """
<script>
addEventListener('error', (event) => { document.title = 'ERROR ' + event.message; });
addEventListener('load', () => {
  const seen = {nodes: document.querySelectorAll('#graph .node').length, edges: document.querySelectorAll('#graph .edge').length,
    calls: document.querySelectorAll('#timeline rect').length, blocks: document.querySelectorAll('#blocks rect').length,
    rows: document.querySelectorAll('#sites tr').length, outputs: document.querySelectorAll('#outputs tr').length,
    placed: [...document.querySelectorAll('#graph .node')].every((node) => !/NaN|undefined/.test(node.getAttribute('transform'))),
    cards: document.querySelectorAll('.card').length, advice: document.querySelectorAll('#advice li').length};
  seen.file = byId('folder').textContent + byId('title').textContent === data.file && !byId('title').textContent.includes('/');
  const wanted = data.sites[0].name;
  byId('find').value = wanted;
  byId('find').dispatchEvent(new Event('input'));
  seen.found = document.querySelectorAll('#graph .node.found').length + data.graph.filter((g) => g !== graphView.shown).length;
  byId('hottest').click();
  seen.details = byId('details').textContent.includes(data.sites[0].kernel);
  byId('filter').value = wanted;
  byId('filter').dispatchEvent(new Event('input'));
  seen.filtered = document.querySelectorAll('#sites tr').length;
  byId('graph').dispatchEvent(new WheelEvent('wheel', {deltaY: -200, clientX: 300, clientY: 300, cancelable: true}));
  seen.scale = graphView.scale;
  seen.bars = document.querySelectorAll('#histogram rect').length;
  seen.hidden = data.memory.blocks.filter(([, , , to]) => to <= firstStep()).length;
  // The memory begins at the left edge, and with a twentieth of the most.
  seen.empty = Math.min(...[...document.querySelectorAll('#blocks rect')].map((block) => Number(block.getAttribute('x')))) - LEFT;
  seen.low = bytesInUse().slice(firstStep(), firstStep() + 1).every((bytes) => bytes * 20 >= Math.max(1, ...bytesInUse()));
  // Beside itself, through the text of a page; and a file that is no page.
  showComparison('other.html', dataOfPage(document.documentElement.outerHTML));
  seen.compared = document.querySelectorAll('#comparison tr').length;
  seen.same = [...document.querySelectorAll('#comparison tr td:last-child')].every((cell) => ['1.00 times', ''].includes(cell.textContent));
  seen.refused = dataOfPage('<html></html>') === null && dataOfPage('<script type="application/json" id="data">{}</' + 'script>') === null;
  // Each node of the model has its time, also one that calls a function; only what computes sizes is not drawn.
  const whole = data.sites.reduce((sum, site) => sum + site.share, 0);
  seen.told = data.graph[0].nodes.reduce((sum, node) => sum + shareOf(node), 0) / whole;
  seen.above = data.sites.filter((site) => site.attainable > site.median * 1.000001).length;
  const result = document.createElement('pre');
  result.id = 'seen';
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
});
</script>
"""


def check(name, page):
    """The faults of a page, as lines."""
    text = page.read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))
    visited = page.with_suffix(".visit.html")
    visited.write_text(text.replace("</body>", VISIT + "</body>"))
    dom, console = chromium.run("--window-size=1400,1200", "--dump-dom", visited.as_uri())
    visited.unlink()
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
    if console or not found:
        return [f"the console says: {line}" for line in console] + ([] if found else ["the page did not run"])
    seen = json.loads(found.group(1))
    main = data["graph"][0]
    expected = {
        "nodes": len(main["nodes"]), "edges": len(main["edges"]), "blocks": len(data["memory"]["blocks"]) - seen["hidden"],
        "file": True, "rows": 1 + min(200, len(data["sites"])), "outputs": 1 + len(data["outputs"]), "placed": True, "details": True,
        "advice": max(1, len(data["advice"])), "bars": len(data["runs"]["histogram"]), "empty": 0, "low": True, "same": True, "refused": True,
        "compared": 2 + min(199, len({(site["node"] or site["name"], site["kernel"]) for site in data["sites"]})), "above": 0,
    }
    faults = [f"{key}: {seen[key]}, expected {value}" for key, value in expected.items() if seen[key] != value]
    if not 0.8 < seen["told"] < 1.000001:
        faults.append(f"told: the nodes of the model have {seen['told']:.3f} of the time of all calls, expected nearly all")
    # Calls that would share a third of a pixel are one.
    calls = len(data["timeline"]["calls"])
    if not min(calls, 300) <= seen["calls"] <= calls:
        faults.append(f"calls: {seen['calls']} drawn of {calls}")
    for key, least in {"cards": 4, "found": 1, "filtered": 2, "edges": 1, "scale": 0.01}.items():
        if seen[key] < least:
            faults.append(f"{key}: {seen[key]}, at least {least} expected")
    if page.stat().st_size > MOST_BYTES:
        faults.append(f"{page.stat().st_size} bytes, at most {MOST_BYTES} expected")
    print(f"{'FAILED' if faults else 'ok'}  {name}: {seen['nodes']} nodes, {seen['edges']} edges, {seen['calls']} calls, "
          f"{seen['blocks']} blocks, {page.stat().st_size:,} bytes; {main['note'] or 'placed by Graphviz'}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if why := chromium.why_not():
        print(f"pages.py: SKIPPED: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "loop.asm").write_text(LOOP)
        (folder / "large.asm").write_text(large_model())
        models = {"digits": [ROOT / "examples/digits/digits.asm", "--dim", "N=4"], "loop": [folder / "loop.asm"],
                  "large": [folder / "large.asm"]}
        failed = 0
        for name, arguments in models.items():
            page = folder / f"{name}.html"
            subprocess.run([options.bin / "vm-run", *arguments, "--random", "--repeat", "5", "--quiet", "--report", page], check=True,
                           stdout=subprocess.DEVNULL)
            faults = check(name, page)
            for fault in faults:
                print(f"  {name}: {fault}")
            failed += bool(faults)
            if options.keep:
                for scheme, setting in {"light": 1, "dark": 0}.items():
                    chromium.run("--window-size=1400,2800", f"--blink-settings=preferredColorScheme={setting}",
                             f"--screenshot={folder / name}-{scheme}.png", page.as_uri())
                    # As wide as a phone; a window of the browser is wider.
                    narrow = folder / f"{name}-phone.html"
                    narrow.write_text(f'<iframe src="{page.name}" style="width: 390px; height: 4200px; border: 0"></iframe>')
                    chromium.run("--window-size=500,4300", f"--blink-settings=preferredColorScheme={setting}",
                             f"--screenshot={folder / name}-phone-{scheme}.png", narrow.as_uri())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
