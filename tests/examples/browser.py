#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""browser.py BUILD [--keep DIR]: examples/browser, in wasmtime and in headless Chromium.

Makes the page of examples/browser, and pulsevad (a detector of voices from the package of that name) as a second program. In Chromium,
through rewire.js, and in wasmtime, by the table of the program: all 382 images of examples/digits give the scores of expected.npy, and
pulsevad gives what vm-run gives. In Chromium digits are drawn with the mouse, and the page must see them. digits.wasm has at most
120,000 B. --keep writes the pages and a picture to a folder. What is missing is skipped by name. Needs
third_party/install.sh processors pages, and the environment of tests/compiler/aot/requirements/wasmtime.txt.
"""
import argparse
import array
import importlib.util
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/compiler/aot"), str(ROOT / "examples/browser")]

import build as browser  # noqa: E402  of examples/browser
import chromium  # noqa: E402
import digits  # noqa: E402

MOST_BYTES = 120_000
MOST_DIFFERENCE = 2e-6  # of scores from 0 to 1: exp differs between libraries

# What the page does when it is visited: the images, and digits drawn with the mouse on a square from 0 to 1.
VISIT = """
<script>
started.then(() => {
  const seen = {scores: [], drawn: [], refused: []};
  const images = %s;
  for (const image of images) seen.scores.push([...model.run({image}).probabilities]);
  for (const given of [{}, {image: [1]}, {image: images[0], other: images[0]}]) {
    try { model.run(given); } catch (error) { seen.refused.push(error.message); }
  }
  const box = drawing.getBoundingClientRect();
  const mouse = (name, [x, y]) => drawing.dispatchEvent(new PointerEvent(name, {clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
  for (const strokes of %s) {
    document.getElementById("clear").click();
    for (const stroke of strokes) {
      mouse("pointerdown", stroke[0]);
      for (const point of stroke.slice(1)) mouse("pointermove", point);
      mouse("pointerup", stroke[stroke.length - 1]);
    }
    seen.drawn.push(document.getElementById("digit").textContent);
  }
  document.body.insertAdjacentHTML("beforeend", `<pre id="told" hidden>${JSON.stringify(seen)}</pre>`);
});
</script>
"""
# A page that runs one program on inputs that are given.
PLAIN = """<!doctype html><body><script>%s</script><script>
Rewire.load(fetch("data:application/wasm;base64,%s"), "model").then((model) => {
  const given = %s, seen = [];
  for (const step of given) {
    const outputs = model.run(step);
    seen.push(Object.fromEntries(Object.entries(outputs).map(([name, values]) => [name, [...values]])));
  }
  document.body.insertAdjacentHTML("beforeend", `<pre id="told">${JSON.stringify(seen)}</pre>`);
});
</script></body>"""


def arc(x, y, width, height, begin, end, points=24):
    """Points of an ellipse, by angles in degrees, clockwise from the right."""
    import math

    angles = [math.radians(begin + (end - begin) * i / points) for i in range(points + 1)]
    return [[x + width * math.cos(angle), y + height * math.sin(angle)] for angle in angles]


# Digits as hands draw them.
STROKES = {
    "0": [arc(0.5, 0.5, 0.22, 0.36, -90, 270)],
    "1": [[[0.5, 0.12], [0.5, 0.5], [0.5, 0.88]]],
    "3": [arc(0.47, 0.31, 0.2, 0.19, -150, 90) + arc(0.47, 0.69, 0.22, 0.19, -90, 150)],
    "7": [[[0.25, 0.15], [0.5, 0.15], [0.75, 0.15], [0.6, 0.5], [0.45, 0.88]]],
}


def visit(what, *arguments):
    """What a page tells, and the lines of the console. Virtual time goes on while another thread compiles the program. On a busy machine it
    may be over before the page has run, so such a page is opened again."""
    for _ in range(8):
        dom, console = chromium.run(*arguments, "--dump-dom")
        found = re.findall(r'<pre id="told"[^>]*>([\[{].*?)</pre>', dom, re.S)  # the script that writes it has other text there
        if found or console:
            break
    if not found:
        raise SystemExit(f"browser.py: {what}: the page did not run; the console says: {console}")
    return json.loads(found[-1]), console


class Wasm:
    """A program in wasmtime, called through its table (compiler/aot/function_info.h), as rewire.js does."""

    def __init__(self, path, prefix):
        import wasmtime

        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        exports = wasmtime.Instance(self.store, wasmtime.Module.from_file(engine, str(path)), []).exports(self.store)
        self.memory = exports["memory"]
        self.end = exports["__heap_base"].value(self.store)
        row = self.words(exports[f"{prefix}_functions"].value(self.store), 14)
        self.run_at = exports["__indirect_function_table"].get(self.store, row[13])
        self.arena = self.take(row[4])
        self.inputs, self.outputs = self.tensors(row[6], row[7]), self.tensors(row[8], row[9])

    def words(self, at, count):
        return struct.unpack(f"<{count}I", bytes(self.memory.read(self.store, at, at + 4 * count)))

    def text(self, at):
        return bytes(self.memory.read(self.store, at, at + 200)).split(b"\0")[0].decode()

    def take(self, count):
        at = self.end + 15 & ~15
        self.end = at + count
        missing = self.end - self.memory.data_len(self.store)
        if missing > 0:
            self.memory.grow(self.store, (missing + 65535) // 65536)
        return at

    def tensors(self, at, count):
        rows = [self.words(at + 24 * i, 6) for i in range(count)]
        return [(self.text(row[0]), row[4], self.take(row[4])) for row in rows]

    def run(self, given):
        for name, size, at in self.inputs:
            values = array.array("f", given[name])
            assert len(values) * 4 == size, name
            self.memory.write(self.store, values.tobytes(), at)
        lists = []
        for tensors in (self.inputs, self.outputs):
            lists.append(self.take(4 * len(tensors)))
            self.memory.write(self.store, struct.pack(f"<{len(tensors)}I", *[at for _, _, at in tensors]), lists[-1])
        code = self.run_at(self.store, 0, self.arena, 0, 0, *lists)
        if code:
            raise SystemExit(f"browser.py: the program fails with {code} in wasmtime")
        return {name: list(array.array("f", bytes(self.memory.read(self.store, at, at + size)))) for name, size, at in self.outputs}


def distance(a, b):
    return max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)


def check_digits(folder, options, faults):
    (count, classes), flat = digits.read_floats(ROOT / "examples/digits/expected.npy")
    expected = [list(flat[i * classes:(i + 1) * classes]) for i in range(count)]
    _, pixels = digits.read_floats(ROOT / "examples/digits/images.npy")
    images = [list(pixels[64 * i:64 * (i + 1)]) for i in range(count)]
    size = (folder / "digits.wasm").stat().st_size
    if size > MOST_BYTES:
        faults.append(f"digits.wasm has {size:,} B, at most {MOST_BYTES:,} expected")
    figures = {}
    if options.wasmtime:
        program = Wasm(folder / "digits.wasm", "digits")
        figures["wasmtime"] = max(distance(program.run({"image": image})["probabilities"], scores) for image, scores in zip(images, expected))
    if options.chromium:
        page = (folder / "digits-alone.html").read_text()
        visited = folder / "visited.html"
        visited.write_text(page.replace("</body>", VISIT % (json.dumps(images), json.dumps(list(STROKES.values()))) + "</body>"))
        seen, console = visit("digits", "--window-size=900,760", visited.as_uri())
        figures["chromium"] = max(distance(given, scores) for given, scores in zip(seen["scores"], expected, strict=True))
        faults += [f"the console says: {line}" for line in console]
        if seen["drawn"] != list(STROKES):
            faults.append(f"drawn: {list(STROKES)}, seen: {seen['drawn']}")
        if [text.split(";")[0] for text in seen["refused"]] != ["main: input image is not given", "main: input image has 64 elements [1,1,8,8], 1 given",
                                                                  "main has no input other"]:
            faults.append(f"refused: {seen['refused']}")
        for scheme, setting in {"light": 1, "dark": 0}.items() if options.keep else ():
            chromium.run("--window-size=900,560", f"--blink-settings=preferredColorScheme={setting}", f"--screenshot={folder}/digits-{scheme}.png",
                         visited.as_uri())
    print(f"digits: {size:,} B; " + ", ".join(f"{where}: {count} images, difference {figure:.1e}" for where, figure in figures.items()), flush=True)
    faults += [f"digits in {where}: difference {figure:.1e}" for where, figure in figures.items() if not figure <= MOST_DIFFERENCE]


def check_pulsevad(tools, folder, options, faults):
    spec = importlib.util.find_spec("pulsevad")
    if spec is None or spec.origin is None:
        print("pulsevad: SKIPPED: the package pulsevad is not installed")
        return
    model = pathlib.Path(spec.origin).parent / "data/pulsevad_2.1k.onnx"
    browser.run(tools / "vm-compile", model, "--dim", "batch=1", *browser.PASSES, "-o", folder / "model.rwx")
    browser.build_wasm(tools, folder / "model.rwx", "model", folder / "model.wasm")
    listed = json.loads(browser.run(tools / "vm-run", folder / "model.rwx", "--list", "--json"))["functions"][0]
    names = {kind: [each["name"] for each in listed[f"{kind}s"]] for kind in ("input", "output")}
    steps, expected = [], []
    for seed in range(20):
        done = subprocess.run([tools / "vm-run", folder / "model.rwx", "--random", "--seed", str(seed), "--record", folder / f"call{seed}", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"browser.py: vm-run: {done.stderr}")
        for kind, rows in (("input", steps), ("output", expected)):
            rows.append({name: list(digits.read_floats(folder / f"call{seed}/{kind}-{i}.npy")[1]) for i, name in enumerate(names[kind])})
    figures = {}
    if options.wasmtime:
        program = Wasm(folder / "model.wasm", "model")
        figures["wasmtime"] = max(distance(given[name], values[name]) for given, values in zip(map(program.run, steps), expected) for name in values)
    if options.chromium:
        import base64

        page = folder / "pulsevad.html"
        page.write_text(PLAIN % ((ROOT / "examples/browser/rewire.js").read_text(), base64.b64encode((folder / "model.wasm").read_bytes()).decode(),
                                 json.dumps(steps)))
        seen, console = visit("pulsevad", page.as_uri())
        faults += [f"the console says: {line}" for line in console]
        figures["chromium"] = max(distance(given[name], values[name]) for given, values in zip(seen, expected, strict=True) for name in values)
    size = (folder / "model.wasm").stat().st_size
    print(f"pulsevad: {size:,} B; " + ", ".join(f"{where}: {len(steps)} calls, difference {figure:.1e}" for where, figure in figures.items()), flush=True)
    faults += [f"pulsevad in {where}: difference {figure:.1e}" for where, figure in figures.items() if not figure <= MOST_DIFFERENCE]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    options.wasmtime = importlib.util.find_spec("wasmtime") is not None
    why = chromium.why_not()
    options.chromium = not why
    if not options.wasmtime:
        print("wasmtime: SKIPPED: the Python package wasmtime is not there")
    if why:
        print(f"chromium: SKIPPED: {why}")
    faults = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        tools = options.build.resolve() / "bin"
        browser.build_page(tools, folder)
        check_digits(folder, options, faults)
        check_pulsevad(tools, folder, options, faults)
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
