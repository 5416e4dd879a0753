#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures models in float16 beside the same models in float32: the file, what the weights take in memory, and the time of a run.

    halves.py --bin BUILD/bin --cases CASES [--model NAME]... [--rounds 5] [--json FILE]

Runs in the environment of tests/models/requirements/models.txt; CASES is what tests/models/reference.py wrote. One thread. The
float16 model is the variant of tests/models/variants.py. A round is one process of each, in turn, pinned to the same core.

file: the executable of the float16 model by its ONNX file.
weights: constants that the file holds and constants that are computed when it is linked, in bytes, by those of the float32 model.
time: the median latency by that of the float32 model, as the median over the rounds, with the smallest and the largest.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import tempfile

import models
from models import check

LIMITS = {"file": 1.05, "weights": 0.55, "time": 1.02}


def weight_bytes(tools, executable):
    constants = json.loads(check.call([tools / "vm-inspect", "--json", executable]))["constants"]
    return sum(constant["bytes"] for constant in constants)


def measure(options, folder, scratch):
    """The row of a model; None if it has no variant."""
    halved = models.varied(folder, scratch, "float16")
    if halved is None:
        return None
    both = {each: scratch / f"{folder.name}.{each.parent.name}.rwx" for each in (folder, halved)}
    for each, executable in both.items():
        check.compile_model(options.bin, each, executable)
    cases = {each: models.cases_of(each)[0] for each in both}
    latency = models.ours(options.bin, both[folder], cases[folder], 1, 3)["latency"]
    runs = min(100000, max(3, int(options.seconds * 1e9 / max(1, latency))))
    times = []
    for number in range(options.rounds):
        order = list(both) if number % 2 else list(both)[::-1]
        taken = {each: models.ours(options.bin, both[each], cases[each], 1, runs)["latency"] for each in order}
        times.append(taken[halved] / taken[folder])
    bytes_of = {each: weight_bytes(options.bin, executable) for each, executable in both.items()}
    return {"model": folder.name, "file": both[halved].stat().st_size / (halved / "model.onnx").stat().st_size,
            "weights": bytes_of[halved] / bytes_of[folder], "bytes": bytes_of[folder], "time": models.spread(times)}


def beyond(row):
    figures = {**row, "time": row["time"]["median"]}
    return [name for name, limit in LIMITS.items() if figures[name] > limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile, vm-inspect and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=models.SECONDS, help="of measured runs, a process")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = options.model or sorted(path.parent.name for path in options.cases.glob("*/model.onnx"))
    columns = ["model", "file", "weights", "MB in float32", "time", "beyond"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            try:
                row = measure(options, options.cases / name, pathlib.Path(scratch))
            except (RuntimeError, OSError) as error:
                failed += 1
                print(f"| {name} | FAILED: {str(error).splitlines()[-1].strip()} |", flush=True)
                continue
            if row is None:
                continue
            rows.append(row)
            time = row["time"]
            print(f"| {name} | {row['file']:.3f} | {row['weights']:.3f} | {row['bytes'] / 1e6:.1f} | "
                  f"{time['median']:.3f} ({time['low']:.3f} to {time['high']:.3f}) | {' '.join(beyond(row))} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if rows:
        mean = math.exp(statistics.mean(math.log(row["time"]["median"]) for row in rows))
        print(f"\n{len(rows)} models, time's geometric mean {mean:.3f}, "
              f"{sum(1 for row in rows if beyond(row))} beyond a limit ({', '.join(f'{name} {limit}' for name, limit in LIMITS.items())})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
