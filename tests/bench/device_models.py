#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the models of tests/models on a device, beside ONNX Runtime's provider for it, in turn.

    device_models.py --bin build/release/bin --cases CASES [--device cuda] [--provider CUDAExecutionProvider]
                     [--model NAME]... [--runs 30] [--seconds 300]

CASES is what tests/models/reference.py wrote; a model runs with its first inputs. On both sides inputs and results lie
in the host's memory, so that copies count. Ours is compiled for the device and run by vm-run, whose VM records itself
where it can (--record-device). ONNX Runtime runs through an I/O binding, after it has tuned itself in the first runs.
Its Python adds some microseconds to a call. Figures are medians of --runs runs after three others. A model whose results
differ from the reference is not measured. Where ONNX Runtime lacks the provider, our figures stand alone, and that is
said. No further model is begun after --seconds.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "models")]
import check  # noqa: E402  (after the path is set)

WARMUP = 3


def ours(tools, executable, case, runs):
    """Microseconds of a run."""
    command = [tools / "vm-run", executable, "--record-device", "--json", "--warmup", WARMUP, "--repeat", runs]
    for path in sorted((case / "in").glob("*.npy")):
        command += ["--input", f"{path.stem}=@{path}"]
    return json.loads(check.call(command))["timing"]["median_ns"] / 1e3


def theirs(model, case, runs, provider):
    """The same of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=[provider, "CPUExecutionProvider"])
    binding = session.io_binding()
    for given in session.get_inputs():
        value = np.load(case / "in" / f"{given.name}.npy")
        if value.dtype.kind == "U":
            raise RuntimeError("has strings, which no device takes")
        binding.bind_cpu_input(given.name, np.ascontiguousarray(value))
    for result in session.get_outputs():
        binding.bind_output(result.name, "cpu")
    times = []
    for i in range(WARMUP + runs):
        begin = time.perf_counter_ns()
        session.run_with_iobinding(binding)
        if i >= WARMUP:
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times) / 1e3


def measure(options, folder, scratch, has_provider):
    """A line of the table, and the ratio or None."""
    case = min(path for path in folder.iterdir() if path.is_dir())
    executable = scratch / f"{folder.name}.rwx"
    report = json.loads(check.compile_model(options.bin, folder, executable, ["--device", options.device, "--json"]))
    on_device, on_host = report["device_calls"], sum(host["calls"] for host in report["host_calls"])
    if on_device == 0:
        return f"| {folder.name} | nothing pays on the device | | |", None
    wrong = check.run_one(options.bin, executable, case, 1, scratch)
    if wrong:
        raise RuntimeError(wrong[0])
    mine = ours(options.bin, executable, case, options.runs)
    where = f"{on_device} of {on_device + on_host}"
    if not has_provider:
        return f"| {folder.name} | {where} | {mine:,.0f} us | |", None
    peer = theirs(folder / "model.onnx", case, options.runs, options.provider)
    return f"| {folder.name} | {where} | {mine:,.0f} us | {mine / peer:.2f} |", mine / peer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--provider", default="CUDAExecutionProvider", help="of ONNX Runtime")
    parser.add_argument("--model", action="append")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    try:
        import onnxruntime

        has_provider = options.provider in onnxruntime.get_available_providers()
    except ImportError:
        has_provider = False
    if not has_provider:
        print(f"ONNX Runtime with {options.provider} is not installed here: our figures stand alone")
    print("| model | calls on the device | latency | by ONNX Runtime |\n|---|---|---:|---:|")
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    ratios, failed, end = [], 0, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as scratch:
        for position, model in enumerate(models):
            if time.monotonic() > end:
                print(f"out of time: {len(models) - position} models are left out, the first is {model}")
                break
            try:
                row, ratio = measure(options, options.cases / model, pathlib.Path(scratch), has_provider)
                ratios += [ratio] if ratio else []
            except Exception as error:  # also ONNX Runtime's own kinds; one model must not end the table
                failed += 1
                row = f"| {model} | FAILED: {str(error).splitlines()[0]} | | |"
            print(row, flush=True)
    if ratios:
        print(f"\ngeometric mean {statistics.geometric_mean(ratios):.3f} of {len(ratios)}, slowest {max(ratios):.3f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
