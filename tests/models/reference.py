#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the models and what ONNX Runtime answers. Runs in the environment of requirements/models.txt.

    reference.py OUTPUT [MODEL...]

Writes OUTPUT/<model>/model.onnx and, for each set of inputs, OUTPUT/<model>/<n>/in/<name>.npy and .../out/<i>.npy
(outputs by position, names in .../out/names.json). What is there already is kept.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime

import catalog
import generated
import trained


def session(path, threads=1, rounds_as_written=False):
    """ONNX Runtime with a model. `rounds_as_written`: products between DequantizeLinear and QuantizeLinear are computed as the
    floats that they say. As products of bytes, CPUs without instructions for these add them up in 16 bits and hold the sums there."""
    options = onnxruntime.SessionOptions()
    if rounds_as_written:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def write_model(name, path):
    if name in generated.ALL:
        onnx.save(generated.ALL[name](), path)
    elif name in trained.ALL:
        onnx.save(trained.ALL[name](), path)
    else:
        shutil.copyfile(catalog.PACKAGED[name][0](), path)


def inputs(name, seed):
    """The inputs of each run, of the same kinds and sizes for every seed."""
    sets = catalog.GENERATED.get(name) or catalog.TRAINED.get(name) or catalog.PACKAGED[name][1]
    return [make(np.random.default_rng(seed + number)) for number, make in enumerate(sets)]


def as_array(value):
    """Strings as numpy has them, and maps as the rows of a tensor, as Rewire has them."""
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], np.float32)
    return value.astype(str) if value.dtype == object else value


def write_case(case, runner, given):
    """Inputs, and what ONNX Runtime gives for them, as files."""
    # Strings are objects there.
    results = runner.run(None, {key: value.astype(object) if value.dtype.kind == "U" else value
                                for key, value in given.items()})
    for kind in ("in", "out"):
        (case / kind).mkdir(parents=True, exist_ok=True)
    for key, value in given.items():
        np.save(case / "in" / f"{key}.npy", value)
    for position, value in enumerate(results):
        np.save(case / "out" / f"{position}.npy", as_array(value))
    names = [value.name for value in runner.get_outputs()]
    (case / "out" / "names.json").write_text(json.dumps(names))


def collect(output, name):
    folder = output / name
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_model(name, folder / "model.onnx")
    runner = session(folder / "model.onnx")
    for number, given in enumerate(inputs(name, 1000)):
        write_case(folder / str(number), runner, given)
    (folder / "complete").touch()


def main():
    known = [*catalog.PACKAGED, *catalog.GENERATED, *catalog.TRAINED]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, help="the folder of the cases")
    parser.add_argument("models", nargs="*", metavar="model", help="all of them by default")
    options = parser.parse_args()
    if unknown := set(options.models) - set(known):
        parser.error(f"no model is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for name in options.models or known:
        collect(options.output, name)
        print(f"{name}: {options.output / name}", flush=True)


if __name__ == "__main__":
    main()
