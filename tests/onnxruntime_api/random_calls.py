#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes random calls of ONNX Runtime's C interface on its own library and on Rewire's, and compares what they give.

    random_calls.py --build BUILD [--seed 1] [--count 200]      in an environment that has onnxruntime 1.32 and onnx

A scenario is a model of one random node, a session with random options, runs with right and wrong inputs and outputs, and calls whose
arguments are drawn by their types in onnxruntime_api/slots.def. It compares codes, texts, values, types and names, but for what
random/allowed.txt lists. A crash of one library is a difference. CI runs the first scenarios; more are run by hand, to find what differs.
"""
import argparse
import importlib.util
import json
import pathlib
import random as randoms
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "random"))
BATCH = 100  # scenarios of one process


def library_of_onnxruntime():
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        sys.exit("random_calls.py: the package onnxruntime is not installed: run it by tests/support/environments.py")
    return sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))[0]


def work(library, seeds):
    import scenario

    made = scenario.Library(library)
    for seed in seeds:
        print(json.dumps([seed, "begins"]), flush=True)
        for row in scenario.run(made, randoms.Random(seed)):
            print(json.dumps(row), flush=True)
    return 0


def transcripts(library, seeds):
    """{seed: its rows}. A process that ends early ends the scenario that it was in, and the rest is made by another one."""
    found = {}
    left = list(seeds)
    while left:
        done = subprocess.run([sys.executable, __file__, "--library", str(library), "--seeds", f"{left[0]}:{left[-1] + 1}"], capture_output=True,
                              text=True, check=False, timeout=600)
        current = None
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if len(row) == 2 and row[1] == "begins":
                current = row[0]
                found[current] = []
            else:
                found[current].append(row)
        if done.returncode == 0:
            return found
        if current is None:
            sys.exit(f"random_calls.py: {library}: {done.stderr.strip()[-2000:]}")
        found[current].append(["process", [], ["ended", done.returncode, done.stderr.strip()[-300:]]])
        left = [seed for seed in left if seed > current]
    return found


def is_near(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-4 * (1 + abs(one))
    return type(one) is type(other) and one == other


def without_shapes(value):
    """The same without the shapes of tensors (calls.Library.describe_value)."""
    if not isinstance(value, list):
        return value
    if len(value) == 2 and isinstance(value[0], list) and len(value[0]) == 3 and isinstance(value[0][1], list):  # a tensor: its type and elements
        return [value[0][0], value[1]]
    return [without_shapes(each) for each in value]


class Allowed:
    """Rows "function | what | regular expression | reason" of random/allowed.txt. `what` says what may differ where the expression
    fits. It is searched in ONNX Runtime's text for "text", the texts of two failures, "code", their codes, too, and "result", the whole
    result. In the call's arguments as JSON it is searched for "shape", the shapes of equal elements, and "call", the whole result."""

    def __init__(self):
        lines = (HERE / "random" / "allowed.txt").read_text(encoding="utf-8").splitlines()
        self.rows = [[part.strip() for part in line.split(" | ")] for line in lines if line and not line.startswith("#")]

    def has(self, what, function, text):
        return any(row[1] == what and re.fullmatch(row[0], function) and re.search(row[2], text) for row in self.rows)


def compare(theirs, ours, allowed):
    """The first difference of two scenarios, as a sentence; None if there is none."""
    for one, other in zip(theirs, ours):
        if one[:2] == other[:2] and is_near(one[2], other[2]):
            continue
        failures = [isinstance(row[2], list) and row[2][:1] == ["failed"] for row in (one, other)]
        text = str(one[2][2]) if failures[0] else json.dumps(one[2])
        if one[:2] == other[:2] and allowed.has("result", one[0], text):
            return None
        said = json.dumps(one[1])
        if one[:2] == other[:2] and allowed.has("call", one[0], said):
            continue
        if one[:2] == other[:2] and allowed.has("shape", one[0], said) and is_near(without_shapes(one[2]), without_shapes(other[2])):
            continue
        alike = all(failures) and one[:2] == other[:2]
        if alike and allowed.has("code", one[0], text):
            continue
        if alike and one[2][1] == other[2][1] and allowed.has("text", one[0], text):
            continue
        return f"{one[0]} {json.dumps(one[1])[:300]}\n    ONNX Runtime: {json.dumps(one[2])[:600]}\n    Rewire:       {json.dumps(other[2])[:600]}" + (
            "" if one[:2] == other[:2] else f"\n    Rewire called {other[0]} {json.dumps(other[1])[:200]}")
    return None if len(theirs) == len(ours) else f"{len(theirs)} calls and {len(ours)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="the folder of a build")
    parser.add_argument("--seed", type=int, default=1, help="the first scenario (default: 1)")
    parser.add_argument("--count", type=int, default=200, help="scenarios (default: 200)")
    parser.add_argument("--library", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.library:
        return work(options.library, range(*map(int, options.seeds.split(":"))))
    allowed = Allowed()
    ours = (options.build / "lib/onnxruntime/libonnxruntime.so.1").resolve()
    failed = calls = 0
    for first in range(options.seed, options.seed + options.count, BATCH):
        seeds = range(first, min(first + BATCH, options.seed + options.count))
        one, other = transcripts(library_of_onnxruntime(), seeds), transcripts(ours, seeds)
        for seed in seeds:
            calls += len(one[seed])
            difference = compare(one[seed], other[seed], allowed)
            failed += difference is not None
            if difference:
                print(f"DIFFERENT scenario {seed}, {one[seed][0][1] if one[seed] else ''}: {difference}", flush=True)
    print(f"{options.count} scenarios of {calls} calls, {failed} different")
    return 1 if failed or not calls else 0


if __name__ == "__main__":
    sys.exit(main())
