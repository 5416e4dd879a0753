#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Rewire against ONNX Runtime and OpenVINO operator by operator, in turns in one process.

    main.py --bin build/release/tests/bin [--seed 1] [--only MaxPool,Cast] [--json FILE] [--forms FOLDER]

Runs in the environment of tests/models/requirements/models.txt; OpenVINO's must be there. forms.py draws the models: every
operator of ONNX's schemas that the random graphs know, in float32 and another usual type, at three sizes. Another seed gives
other forms. --forms keeps them for the next run. The table is sorted by our time by that of the faster peer; only these
ratios mean anything on a shared machine. A peer whose values are far from the expected ones is left out of the row.
"""

import argparse
import json
import math
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support"), str(HERE)]
import models  # noqa: E402  (after the path is set)

PEERS = ("onnxruntime", "openvino")
# How far values may be, in parts of the largest element: sums of float16 and steps of 8 bits round in many ways.
FAR = {"rewire": 0.02, "onnxruntime": 0.02, "openvino": 0.02}
FORMS_PER_PROCESS = 40
MOST_SECONDS = 20  # of a form
PROGRESS_FORMS = 50  # between two lines of progress
SLICES = (1.25, 2.0)


def pinned(core):
    """Before a command: one CPU. Slices of a form run in real time where this user may (operators.cc)."""
    return ["taskset", "--cpu-list", str(core)]


class Runner:
    """bench-operators, started again when it ends."""

    def __init__(self, options):
        self._options, self._process, self._done = options, None, 0

    def _start(self):
        libraries = [models.onnxruntime_library(), models.openvino_library()]
        command = [*pinned(self._options.core), self._options.bin / "bench-operators", *libraries]
        environment = {**os.environ, "REWIRE_LIBRARY_PATH": str(self._options.bin.parents[1] / "lib" / "rewire")}
        self._process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, env=environment)
        self._done = 0

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _lines(self):
        """Lines of the answer until the process ends, or a form takes too long."""
        rest, end = b"", time.monotonic() + MOST_SECONDS
        while select.select([self._process.stdout], [], [], max(0, end - time.monotonic()))[0]:
            more = self._process.stdout.read1(1 << 16)
            if not more:
                return
            *lines, rest = (rest + more).split(b"\n")
            yield from lines

    def measure(self, folder, without=()):
        """The answer for a folder. A peer that ends the process, or does not end, is left out of the next try."""
        if self._process is None or self._done >= FORMS_PER_PROCESS:
            self.stop()
            self._start()
        self._done += 1
        step = "start"
        try:
            self._process.stdin.write(("\t".join([str(folder), *without]) + "\n").encode())
            self._process.stdin.flush()
            for line in self._lines():
                said = json.loads(line)
                if "at" not in said:
                    return said
                step = said["at"]
        except BrokenPipeError:
            pass
        self.stop()
        if step not in PEERS or step in without:
            return {"error": f"the process ended at {step}"}
        return {**self.measure(folder, (*without, step)), step: {"error": "it ends the process, or does not end"}}


def row_of(form, answer):
    row = {"name": form["name"], "operator": form["operator"], "dtype": form["dtype"], "scale": form["scale"], "text": form["text"]}
    ours = answer.get("rewire", {})
    if "ns" not in ours:
        return {**row, "failed": answer.get("error") or ours.get("error", "it has no time")}
    row["rewire"] = ours["ns"]
    if not _near(ours["apart"], FAR["rewire"]):
        row["wrong"] = ours["apart"]
    for peer in PEERS:
        theirs = answer.get(peer, {})
        if "ns" in theirs and _near(theirs["apart"], FAR[peer]):
            row[peer] = theirs["ns"]
    times = [row[peer] for peer in PEERS if peer in row]
    if times:
        row["ratio"] = row["rewire"] / min(times)
    return row


def _near(apart, most):
    """JSON has null for an infinite difference."""
    return apart is not None and apart < most


def summary(rows):
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    lines = [f"{len(rows)} forms, {len(ratios)} beside a peer, {sum('failed' in row for row in rows)} failed, {sum('wrong' in row for row in rows)} with other values"]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"geometric mean {mean:.3f} of the faster peer; " + ", ".join(f"{sum(ratio > limit for ratio in ratios)} above {limit} ({sum(ratio > limit for ratio in ratios) / len(ratios):.1%})" for limit in SLICES))
    return lines


def table(rows):
    yield "| operator | size | ours us | ONNX Runtime | OpenVINO | by the faster | form |"
    yield "|---|---|---:|---:|---:|---:|---|"
    time = lambda row, name: f"{row[name] / 1e3:.1f}" if name in row else "-"
    for row in sorted(rows, key=lambda row: -row.get("ratio", math.inf if "failed" in row else 0)):
        ratio = "failed" if "failed" in row else f"{row['ratio']:.2f}" if "ratio" in row else "-"
        note = f" **{row['failed'][:120]}**" if "failed" in row else f" **values {row['wrong']} apart**" if "wrong" in row else ""
        yield f"| {row['operator']} | {row['scale']} | {time(row, 'rewire')} | {time(row, 'onnxruntime')} | {time(row, 'openvino')} | {ratio} | {row['text']}{note} |"


def drawn(options, folder):
    """(form, folder) of each form, drawn where it is not there from a run before."""
    import forms

    only = set(options.only.split(",")) if options.only else None
    for domain, kind in forms.kinds():
        if only and kind not in only:
            continue
        for scale in forms.SCALES:
            if options.scale and scale not in options.scale.split(","):
                continue
            for place in range(options.places):
                at = folder / str(options.seed) / f"{domain or 'onnx'}.{kind}-{scale}-{place}"
                if not (at / "form.json").exists():
                    form = forms.draw(options.seed, domain, kind, scale, place)
                    at.mkdir(parents=True, exist_ok=True)
                    if form:
                        form.write(at)
                    said = {key: getattr(form, key) for key in ("name", "operator", "dtype", "scale", "text")} if form else None
                    (at / "form.json").write_text(json.dumps(said))
                said = json.loads((at / "form.json").read_text())
                if said:
                    yield said, at


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of bench-operators")
    parser.add_argument("--seed", type=int, default=1, help="which forms are drawn")
    parser.add_argument("--only", help="these operators alone")
    parser.add_argument("--scale", help="L1, L2 or memory alone")
    parser.add_argument("--places", type=int, default=2, help="forms of an operator and size: the first in float32, others in another type")
    parser.add_argument("--forms", type=pathlib.Path, help="folder that keeps the models; else they are drawn again")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the CPU that all run on")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows, runner = [], Runner(options)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for form, folder in drawn(options, options.forms or pathlib.Path(scratch)):
                rows.append(row_of(form, runner.measure(folder)))
                if len(rows) % PROGRESS_FORMS == 0:
                    print(f"{len(rows)} forms measured, the last one of {form['operator']}", file=sys.stderr, flush=True)
        finally:
            runner.stop()
    print("\n".join([*table(rows), "", *summary(rows)]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if not rows or any("failed" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
