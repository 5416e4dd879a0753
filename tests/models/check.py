#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each model, runs it by vm-run as a user would, and compares with ONNX Runtime's answer.

    check.py --bin build/release/bin --cases CASES [--model NAME]... [--passes all|each] [--threads 1,2] [--device opencl]

CASES is what reference.py wrote. Values agree when |a - b| <= 1e-4 (max|b| + |b|) and NaNs are at the same places;
integers and booleans must be equal; outputs of quantized models may be one quantization step off. Prints a line a
run, exits with 1 when any differs, failed, or when there was nothing to compare.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import catalog


def compare(given, expected, step, parts=1e-4):
    """None, or what is wrong. `parts` of the largest and of the own value may be missing."""
    if given.shape != expected.shape or given.dtype != expected.dtype:
        return f"is {given.dtype}{list(given.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind != "f":
        wrong = int((given != expected).sum())
        return f"{wrong} of {expected.size} elements differ" if wrong else None
    if not np.array_equal(np.isnan(given), np.isnan(expected)):
        return "NaN at other places"
    given, expected = np.nan_to_num(given.astype(np.float64)), np.nan_to_num(expected.astype(np.float64))
    largest = np.abs(expected).max(initial=0.0)
    excess = np.abs(given - expected) - np.maximum(parts * (largest + np.abs(expected)), step * 1.001)
    if (excess > 0).any():
        worst = np.unravel_index(np.argmax(excess), excess.shape)
        where = tuple(int(i) for i in worst)
        return f"at {where}: {given[worst]:.7g}, expected {expected[worst]:.7g} (largest {largest:.4g})"
    return None


def call(command, environment=None):
    """Output of a command; RuntimeError with its last lines when it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        tail = "\n      ".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise RuntimeError(f"{pathlib.Path(command[0]).name} exited with {done.returncode}:\n      {tail}")
    return done.stdout


def compile_model(tools, folder, executable, options=()):
    """Compiles the model of a folder of cases, as the catalog says. Gives what vm-compile printed."""
    return call([tools / "vm-compile", folder / "model.onnx", "-o", executable, *catalog.OPTIONS.get(folder.name, []), *options])


def lists_of_strings(tools, executable):
    """By the positions of outputs: what their elements are positions in."""
    metadata = json.loads(call([tools / "vm-inspect", "--json", executable]))["metadata"]
    return {key.removeprefix("strings main."): json.loads(value) for key, value in metadata.items()
            if key.startswith("strings main.")}


def run_one(tools, executable, case, threads, scratch, options=()):
    """Runs one set of inputs; gives a list of what is wrong."""
    results = scratch / "results.npz"
    command = [tools / "vm-run", executable, "--threads", threads, "--output", f"@{results}", *options]
    for path in sorted((case / "in").glob("*.npy")):
        command += ["--input", f"{path.stem}=@{path}"]
    call(command)
    given = np.load(results)
    wrong = []
    strings = lists_of_strings(tools, executable)
    for position, name in enumerate(json.loads((case / "out" / "names.json").read_text())):
        if name not in given:
            wrong.append(f"no output {name} (there are: {', '.join(given.files)})")
            continue
        step = catalog.QUANTIZED_STEP.get(case.parent.name, 0.0)
        expected, found = np.load(case / "out" / f"{position}.npy"), given[name]
        if str(position) in strings:
            found, expected = np.array(strings[str(position)], object)[found], expected.astype(object)
        problem = compare(found, expected, step)
        if problem:
            wrong.append(f"{name}: {problem}")
    return wrong


def check_outputs(tools, executable, folder, case):
    """Every output of the model is told of: made in the host's memory, or copied for the reason in the catalog."""
    model = folder.name
    lines = call([tools / "vm-run", executable, "--explain-outputs"]).splitlines()
    outputs = json.loads((case / "out" / "names.json").read_text())
    # A name may hold a colon itself.
    told = {name: line.removeprefix(f"{name}: ") for name in outputs for line in lines if line.startswith(f"{name}: ")}
    expected = {name: f"copied: {reason}" for name, reason in catalog.COPIED.get(model, {}).items()}
    wrong = [f"{name}: {text}" for name, text in told.items() if text != expected.get(name, "rewired")]
    wrong += [f"{name}: not told of" for name in outputs if name not in told]
    wrong += [f"{name}: no such output" for name in {*expected, *told} if name not in outputs]
    return f"outputs: {len(told) - len(expected)} rewired, {len(expected)} copied", "\n      ".join(wrong) or None


def split_texts(case, scratch):
    """The case with the three inputs that a program has for each one of strings, where it has any (docs/format.md)."""
    folder = scratch / "split" / case.parent.name / case.name / "in"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (case / "in").glob("*.npy"):
        value = np.load(path, mmap_mode="r")
        if value.dtype.kind != "U":
            shutil.copyfile(path, folder / path.name)
            continue
        texts = [text.encode() for text in value.ravel().tolist()]
        np.save(folder / path.name, np.arange(value.size).reshape(value.shape))
        np.save(folder / f"{path.stem}.offsets.npy", np.cumsum([0, *map(len, texts)]))
        np.save(folder / f"{path.stem}.bytes.npy", np.frombuffer(b"".join(texts), np.uint8))
    return folder.parent


def check_memory(tools, executable, cases):
    """Once all sizes of the inputs have been seen, runs of them in turn allocate nothing."""
    program = tools.parent / "tests" / "bin" / "seen_shapes"
    library = {"REWIRE_LIBRARY_PATH": str(tools.parent / "lib" / "rewire")}
    try:
        call([program, executable, *(case / "in" for case in cases)], library)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None


def largest_sizes(tools, executable, cases):
    """Of each dimension of the inputs that has a name, by the cases' inputs."""
    [main] = [f for f in json.loads(call([tools / "vm-run", executable, "--list", "--json"]))["functions"]
              if f["name"] == "main"]
    largest = {}
    for given in main["inputs"]:
        names = re.search(r"\[(.*)\]", given["type"]).group(1).split(", ")
        for case in cases:
            shape = np.load(case / "in" / f"{given['name']}.npy", mmap_mode="r").shape
            for name, size in zip(names, shape):
                if not name.isdecimal():
                    largest[name] = max(size, largest.get(name, 0))
    return largest


def check_bounded(tools, folder, executable, cases, scratch):
    """Compiled for at most these sizes, a model takes no more memory than was said, and gives the same."""
    largest = largest_sizes(tools, executable, [split_texts(case, scratch) for case in cases])
    if not largest:
        return
    bounded = scratch / f"{folder.name}.bounded.rwx"
    options = [part for name, size in largest.items() for part in ("--max-dim", f"{name}={size}")]
    compile_model(tools, folder, bounded, options)
    memory = json.loads(call([tools / "vm-inspect", "--memory", "--json", bounded]))["memory"][0]["outputs_unbound"]
    for case in cases:
        wrong = run_one(tools, bounded, case, 1, scratch)
        inputs = [part for path in sorted((case / "in").glob("*.npy")) for part in ("--input", f"{path.stem}=@{path}")]
        report = call([tools / "vm-run", bounded, "--json", "--repeat", 1, "--warmup", 0, "--threads", 1, *inputs])
        peak = json.loads(report)["timing"]["peak_bytes"]
        if "bytes" in memory and peak > memory["bytes"]:
            wrong.append(f"{peak} bytes taken, at most {memory['bytes']} said")
        said = f"of at most {memory['bytes']:,} bytes" if "bytes" in memory else "without a bound"
        yield f"{folder.name}: sizes limited, inputs {case.name}: {peak:,} {said}", "\n      ".join(wrong) or None


def check_parameters(tools, folder, constants, cases, scratch):
    """Compiled with its weights as parameters, a model gives the same by the same number of kernel calls. `constants` is the
    report of compiling it with constants."""
    executable, weights = scratch / f"{folder.name}.parameters.rwx", scratch / f"{folder.name}.safetensors"
    report = json.loads(compile_model(tools, folder, executable, ["--parameters", "all", "--weights", weights, "--json"]))
    calls = None
    if report["kernel_calls"] != constants["kernel_calls"]:
        calls = f"{report['kernel_calls']} kernel calls, with constants {constants['kernel_calls']}"
    yield f"{folder.name}: {report['parameters']} parameters with {report['parameter_bytes']:,} bytes", calls
    for case in cases:
        wrong = run_one(tools, executable, case, 1, scratch, ["--params", weights]) if report["parameters"] else []
        yield f"{folder.name}: weights as parameters, inputs {case.name}", "\n      ".join(wrong) or None


class Places:
    """Kernel calls of all models that were compiled for a device, by where they run."""

    def __init__(self):
        self.on_device = 0
        self.on_host = collections.Counter()

    def add(self, report):
        self.on_device += report["device_calls"]
        for host in report["host_calls"]:
            self.on_host[host["reason"]] += host["calls"]

    def text(self):
        everything = self.on_device + sum(self.on_host.values())
        lines = [f"{self.on_device} of {everything} kernel calls run on the device ({self.on_device / max(everything, 1):.0%})"]
        lines += [f"  {calls} stay on the CPU: {reason}" for reason, calls in self.on_host.most_common()]
        return "\n".join(lines)


def check_on_device(tools, folder, device, places, scratch):
    """Yields (what was run, problem or None): with all that the device has kernels for on it, and then with as much as
    pays, which leaves part of the work of one model on the CPU."""
    compiled = []
    for work in (["--device-work", 0], []):
        executable = scratch / f"{folder.name}.{len(compiled)}.rwx"
        label = f"{folder.name} on {device}, {'as much as pays' if compiled else 'all that can be'}"
        try:
            report = json.loads(compile_model(tools, folder, executable, ["--device", device, *work, "--json"]))
            counts = report["device_calls"], sum(host["calls"] for host in report["host_calls"])
            if not compiled:
                places.add(report)
            if counts in compiled or counts[0] == 0:
                continue
            compiled.append(counts)
            for case in sorted(path for path in folder.iterdir() if path.is_dir()):
                wrong = run_one(tools, executable, case, 1, scratch)
                yield f"{label}: {counts[0]} calls there, {counts[1]} here, inputs {case.name}", "\n      ".join(wrong) or None
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            yield label, str(error)


def check_model(tools, folder, switched_off, threads, scratch):
    """Yields (what was run, problem or None)."""
    executable = scratch / f"{folder.name}.rwx"
    options = ["--disable-pass", switched_off] if switched_off else []
    label = f"{folder.name}{f' without {switched_off}' if switched_off else ''}"
    try:
        report = json.loads(compile_model(tools, folder, executable, [*options, "--json"]))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        yield f"{label}: compiling", str(error)
        return
    cases = sorted(path for path in folder.iterdir() if path.is_dir())
    if not switched_off:
        found, problem = check_outputs(tools, executable, folder, cases[0])
        yield f"{label}: {found}", problem
    if not switched_off and len(cases) > 1:
        yield f"{label}: nothing is allocated for {len(cases)} sizes in turn", check_memory(
            tools, executable, [split_texts(case, scratch) for case in cases])
    if not switched_off:
        try:
            yield from check_bounded(tools, folder, executable, cases, scratch)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            yield f"{label}: sizes limited", str(error)
        try:
            yield from check_parameters(tools, folder, report, cases, scratch)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            yield f"{label}: weights as parameters", str(error)
    for case in cases:
        for count in threads:
            run = f"{label}, inputs {case.name}, threads {count}"
            try:
                wrong = run_one(tools, executable, case, count, scratch)
                yield run, "\n      ".join(wrong) or None
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                yield run, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--passes", choices=["all", "each"], default="all", help="each: also with each one switched off, those in catalog.EACH_PASS")
    parser.add_argument("--device", help="compile for this device, such as opencl, and compare what runs there")
    parser.add_argument("--threads", default="1,2", type=lambda text: text.split(","))
    options = parser.parse_args()
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    switches = [""]
    if options.passes == "each":
        # Any model will do: the summary names all passes.
        with tempfile.TemporaryDirectory() as scratch:
            summary = call([options.bin / "vm-compile", options.cases / "lm_output" / "model.onnx",
                            "-o", pathlib.Path(scratch) / "any.rwx", "--json"])
        switches += json.loads(summary)["passes"]
    runs = failures = 0
    places = Places()

    def checks(scratch):
        """Yields what check_model yields, of all models."""
        for model in models:
            for switched_off in switches if model in catalog.EACH_PASS else switches[:1]:
                yield from check_model(options.bin, options.cases / model, switched_off, options.threads, scratch)

    def checks_on_device(scratch):
        # Two models at a time: a run on a device leaves a core idle.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            def on_device(model):
                room = scratch / model
                room.mkdir()
                return list(check_on_device(options.bin, options.cases / model, options.device, places, room))

            for done in pool.map(on_device, models):
                yield from done

    with tempfile.TemporaryDirectory() as scratch:
        for run, problem in (checks_on_device if options.device else checks)(pathlib.Path(scratch)):
            runs += 1
            failures += problem is not None
            print(f"{'FAILED' if problem else 'ok    '} {run}", flush=True)
            if problem:
                print(f"      {problem}", flush=True)
    if options.device:
        print(places.text())
    print(f"{len(models)} models, {runs} runs, {failures} failed")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
