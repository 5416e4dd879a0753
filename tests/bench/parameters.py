#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures models whose weights lie apart (vm-compile --parameters all) against the same models with constants, and ONNX Runtime.

    parameters.py --bin BUILD/bin --bench BUILD/tests/bin --cases CASES [--model NAME]... [--rounds 5] [--json FILE]

Runs in the environment of tests/models/requirements/models.txt; CASES is what tests/models/reference.py wrote. One thread. A round is
one process of each, in turn, pinned to the same core. Models without weights that may lie apart are named and left out.

results: "equal" if the outputs of both programs are the same to the bit.
time: the median latency with parameters by that with constants, as the median over the rounds, with the smallest and the largest.
load: opening, packing and linking with parameters, by ONNX Runtime's load of the same model; the smallest of the rounds of each.
second: opening the files again and linking a second program over the same weights, by ONNX Runtime's load; and by the first load.
memory: what the process writes beyond files, in MB: for the first program, for the second one, and for a third with other weights,
beside the size of the weights. The other weights are a file of Python's, with every float a little larger.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import models
from models import check

LIMITS = {"time": 1.01, "load": 1.0, "second": 0.1}


def read_safetensors(path):
    """Names with dtype, shape and bytes, in the file's order."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (each["dtype"], each["shape"], data[8 + size + each["data_offsets"][0]:8 + size + each["data_offsets"][1]])
            for name, each in header.items()}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64 + 56)  # the data begins at a multiple of 64
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, _, data in tensors.values()))


def tuned(tensors):
    """The same with every float32 a little larger."""
    return {name: (dtype, shape, (np.frombuffer(data, np.float32) * np.float32(1.0625)).tobytes() if dtype == "F32" else data)
            for name, (dtype, shape, data) in tensors.items()}


def equal_results(one, other):
    with np.load(one) as a, np.load(other) as b:
        return sorted(a.files) == sorted(b.files) and all(a[name].tobytes() == b[name].tobytes() for name in a.files)


def their_load(options, model, case):
    """Nanoseconds of ONNX Runtime's load: by its C interface, or by Python's for a model with results that are no tensors."""
    try:
        return models.theirs(options, "onnxruntime", model, case, 1, "all")["load"]
    except RuntimeError:
        timed = "import sys, time, reference; start = time.perf_counter_ns(); reference.session(sys.argv[1]); print(time.perf_counter_ns() - start)"
        return int(check.call([*models.pinned(1), sys.executable, "-c", timed, model], {"PYTHONPATH": str(models.HERE.parent / "models")}))


def measure(options, folder, scratch):
    """The row of a model, or None if nothing of it may lie apart."""
    plain, apart, weights, other = (scratch / f"{folder.name}{end}" for end in (".rwx", ".apart.rwx", ".safetensors", ".tuned.safetensors"))
    check.compile_model(options.bin, folder, plain)
    check.compile_model(options.bin, folder, apart, ("--parameters", "all", "--weights", weights))
    tensors = read_safetensors(weights)
    if not tensors:
        return None
    write_safetensors(weights, tensors)  # by Python: the names alone bind them
    write_safetensors(other, tuned(tensors))
    case = models.cases_of(folder)[0]
    bound = ("--params", weights)
    mine = models.ours(options.bin, plain, case, 1, 3)
    runs = min(100000, max(3, int(options.seconds * 1e9 / max(1, mine["latency"]))))
    times, loads, theirs, equal = [], [], [], True
    for number in range(options.rounds):
        # In turn, so that neither always comes first.
        pair = [(plain, ()), (apart, bound)]
        latency = {file: models.ours(options.bin, file, case, 1, runs, options=extra)["latency"]
                   for file, extra in (pair if number % 2 else pair[::-1])}
        times.append(latency[apart] / latency[plain])
        equal = equal and equal_results(f"{plain}.npz", f"{apart}.npz")
        loads.append(json.loads(check.call([*models.pinned(1), options.bench / "bench-parameters", apart, weights, other])))
        theirs.append(their_load(options, folder / "model.onnx", case))
    first, second = (min(each[name] for each in loads) for name in ("load", "second"))
    memory = {name: statistics.median(each[name] for each in loads)
              for name in ("first_memory", "second_memory", "tuned_memory", "weights")}
    return {"model": folder.name, "equal": equal, "time": models.spread(times), "latency_ns": mine["latency"],
            "load": first / min(theirs), "load_ns": first, "theirs_load_ns": min(theirs),
            "second": second / min(theirs), "second_by_first": second / first, **memory}


def beyond(row):
    """What of a row is beyond its limit."""
    figures = {"time": row["time"]["median"], "load": row["load"], "second": row["second"]}
    return [*(() if row["equal"] else ["results"]), *(name for name, limit in LIMITS.items() if figures[name] > limit)]


def row_text(row):
    time, megabytes = row["time"], [f"{row[name] / 1e6:.1f}" for name in ("first_memory", "second_memory", "tuned_memory", "weights")]
    return (f"| {row['model']} | {'equal' if row['equal'] else 'DIFFERENT'} | {time['median']:.3f} ({time['low']:.3f} to {time['high']:.3f})"
            f" | {row['load']:.2f} | {row['load_ns'] / 1e6:.1f} ms | {row['second']:.3f} | {row['second_by_first']:.2f} | {' | '.join(megabytes)} | {' '.join(beyond(row))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--bench", type=pathlib.Path, required=True, help="folder of bench-parameters and bench-peer")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=models.SECONDS, help="of measured runs, a process")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.peer = options.bench / "bench-peer"
    names = options.model or sorted(path.parent.name for path in options.cases.glob("*/model.onnx"))
    columns = ["model", "results", "time", "load", "ours", "second", "by the first", "memory", "of the second", "of other weights", "weights", "beyond"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            try:
                row = measure(options, options.cases / name, pathlib.Path(scratch))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"| {name} | FAILED: {str(error).splitlines()[-1].strip()} |", flush=True)
                continue
            print(row_text(row) if row else f"| {name} | no weights that may lie apart |", flush=True)
            rows += [row] if row else []
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    print(f"\n{len(rows)} models, {sum(1 for row in rows if beyond(row))} beyond a limit ({', '.join(f'{name} {limit}' for name, limit in LIMITS.items())})")
    return 1 if failed or any(not row["equal"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
