#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Splits each model over two ranks, runs both by mpirun, and compares with the model in one process.

    sharded.py --bin build/release/bin --cases CASES [--model NAME]...

CASES is what reference.py wrote. All that can be split is. Values agree as in check.py within twice its tolerance, and each rank has half of the split weights.
Prints a line for each set of inputs, with how the layers are split, and for a model of which nothing is, why. Exits with 1
when any differs or failed, or when there was nothing to compare, and with 77 if there is no mpirun.
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import catalog
import check

RANKS = 2
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Of the largest value, in place of check.py's: both results may be that far from the exact one.
PARTS = 2e-4
# Of its part of the split weights: panels of packed products are padded. Constants begin at multiples of 64 bytes.
MOST_BYTES, ALIGNMENT = 1.05, 64
# Tables of waves that the compiler computes when the whole program is linked lie in the files of ranks.
STORED_TABLES = {"swift_f0"}


def results(path):
    with np.load(path) as values:
        return {name: values[name] for name in values.files}


def input_dims(tools, executable):
    """The dimensions of the inputs by name, as texts."""
    [main] = [f for f in json.loads(check.call([tools / "vm-run", executable, "--list", "--json"]))["functions"]
              if f["name"] == "main"]
    return {given["name"]: given["type"].partition("[")[2].rstrip("]").split(", ") for given in main["inputs"]}


def part_of(value, rank, axis):
    size = value.shape[axis] // RANKS
    return np.take(value, range(rank * size, (rank + 1) * size), axis)


def arguments_of_rank(tools, executable, case, rank, scratch):
    """Inputs of one rank: of caches it has the heads that are its own."""
    arguments = []
    dims = input_dims(tools, executable)
    for path in sorted((case / "in").glob("*.npy")):
        value = np.load(path)
        for axis, size in enumerate(dims[path.stem] if value.ndim else []):
            if size.isdecimal() and int(size) * RANKS == value.shape[axis]:
                path = scratch / f"{path.stem}.{rank}.npy"
                np.save(path, part_of(value, rank, axis))
                break
        arguments += ["--input", f"{path.stem.removesuffix(f'.{rank}')}=@{path}"]
    return arguments


def run_ranks(tools, parts, case, scratch):
    """The outputs of each rank, by name."""
    command = list(MPIRUN)
    for rank, part in enumerate(parts):
        command += [":"] if rank else []
        command += ["-n", 1, tools / "vm-run", part, "--threads", 1, "--output", f"@{scratch / f'{rank}.npz'}",
                    *arguments_of_rank(tools, part, case, rank, scratch)]
    check.call(command)
    return [results(scratch / f"{rank}.npz") for rank in range(RANKS)]


def differences(model, whole, ranks):
    """What is wrong, and whether all values are equal to the bit."""
    wrong, same = [], True
    for rank, given in enumerate(ranks):
        if given.keys() != whole.keys():
            wrong.append(f"rank {rank} has outputs {sorted(given)}, expected {sorted(whole)}")
            continue
        for name, expected in whole.items():
            found = given[name]
            if found.ndim == expected.ndim and found.shape != expected.shape:
                axis = next(i for i in range(found.ndim) if found.shape[i] != expected.shape[i])
                expected = part_of(expected, rank, axis)
            same = same and found.tobytes() == expected.tobytes()
            problem = check.compare(found, expected, catalog.QUANTIZED_STEP.get(model, 0.0), PARTS)
            if problem:
                wrong.append(f"rank {rank}: {name}: {problem}")
    return wrong, same


def layers_text(sharding):
    """How the layers are split, or why none is."""
    forms = collections.Counter(layer["split"] or "whole" for layer in sharding["layers"])
    if sharding["split_bytes"]:
        exchanges = f"{sharding['all_reduces']} all-reduces and {sharding['all_gathers']} all-gathers"
        return ", ".join(f"{count} {form}" for form, count in forms.most_common()) + f", {exchanges}"
    reasons = collections.Counter(layer["reason"] for layer in sharding["layers"])
    return "nothing is split: " + (", ".join(reasons) or "it has no weights of two axes and more")


def data_bytes(tools, executable):
    """The bytes of constants in the file."""
    sections = json.loads(check.call([tools / "vm-inspect", "--json", executable]))["sections"]
    return sum(section["bytes"] for section in sections if section["name"] == "data")


def compare_model(tools, folder, scratch):
    """Yields (what was compared, problem or None)."""
    one, parts = scratch / "one.rwx", [scratch / f"part.{rank}.rwx" for rank in range(RANKS)]
    check.compile_model(tools, folder, one)
    whole_bytes = data_bytes(tools, one)
    split = ["--shards", RANKS, "--shard-for", "memory", "--json"]
    report = json.loads(check.compile_model(tools, folder, scratch / "part.rwx", split))["ranks"]
    for rank, part in zip(report, parts):
        sharding, own_bytes = rank["sharding"], data_bytes(tools, part)
        most = whole_bytes - sharding["split_bytes"] + MOST_BYTES * sharding["split_bytes"] / RANKS + ALIGNMENT * len(sharding["layers"])
        problem = None
        if sharding["rank_bytes"] * RANKS > sharding["split_bytes"]:
            problem = f"it has {sharding['rank_bytes']} bytes of {sharding['split_bytes']} that are split"
        elif own_bytes <= most and folder.name in STORED_TABLES:
            problem = f"its file has {own_bytes} bytes of constants, at most {most:.0f}: take the model out of STORED_TABLES"
        elif sharding["split_bytes"] and own_bytes > most and folder.name not in STORED_TABLES:
            problem = f"its file has {own_bytes} bytes of constants, expected at most {most:.0f} of {whole_bytes}"
        yield f"{folder.name}: rank {rank['rank']} has {own_bytes} of {whole_bytes} bytes", problem
    sharding = report[0]["sharding"]
    if not sharding["split_bytes"]:
        yield f"{folder.name}: {layers_text(sharding)}", None
        return
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        given = check.split_texts(case, scratch)
        inputs = [part for path in sorted((given / "in").glob("*.npy")) for part in ("--input", f"{path.stem}=@{path}")]
        check.call([tools / "vm-run", one, "--threads", 1, "--output", f"@{scratch / 'one.npz'}", *inputs])
        wrong, same = differences(folder.name, results(scratch / "one.npz"), run_ranks(tools, parts, given, scratch))
        text = f"{folder.name}, inputs {case.name}: {layers_text(sharding)}{', equal to the bit' if same else ''}"
        yield text, "\n      ".join(wrong) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    options = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("sharded: SKIPPED: there is no mpirun: third_party/install.sh mpi")
        return 77
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    failures = checks = 0
    compared, whole = set(), set()
    for model in models:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                for label, problem in compare_model(options.bin, options.cases / model, pathlib.Path(scratch)):
                    checks += 1
                    failures += problem is not None
                    (whole if "nothing is split" in label else compared if "inputs" in label else set()).add(model)
                    print(f"{'FAILED' if problem else 'ok    '} {label}{f': {problem}' if problem else ''}", flush=True)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                failures += 1
                print(f"FAILED {model}: {error}", flush=True)
    print(f"{len(models)} models, {len(compared)} split, {len(whole)} whole, {checks} checks, {failures} failed")
    return 1 if failures or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
