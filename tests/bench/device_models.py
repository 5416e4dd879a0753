#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the models of tests/models on a device, beside ONNX Runtime's provider for it, in turn.

    device_models.py --bin build/release/bin --cases CASES [--device cuda] [--provider CUDAExecutionProvider]
                     [--model NAME]... [--runs 30] [--seconds 300] [--json FILE]

CASES is what tests/models/reference.py wrote; a model runs with its first inputs. On both sides inputs and results lie
in the host's memory, so that copies count. Ours is compiled for the device and run by vm-run, whose VM records itself
where it can (--record-device). ONNX Runtime runs through an I/O binding, after it has tuned itself in the first runs:
with memory of the host bound, for the model's open sizes and for the given ones, and as a CUDA graph with memory of the
device, to and from which it copies. The fastest counts. It multiplies f32 as f32 in one column, as we do, and, by the
same of these ways, in fewer bits (TF32), its default, in the other. Its Python adds some microseconds to a call. Figures are medians of --runs runs
after three others. A model whose results differ from the reference is not measured. Where ONNX Runtime lacks the
provider, our figures stand alone, and that is said. No further model is begun after --seconds.
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


def timed(step, runs):
    """Median microseconds of a call."""
    times = []
    for i in range(WARMUP + runs):
        begin = time.perf_counter_ns()
        step()
        if i >= WARMUP:
            times.append(time.perf_counter_ns() - begin)
    return statistics.median(times) / 1e3


def fixed_dimensions(model, case):
    """The size of each named dimension of the inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return {name: size for given in session.get_inputs()
            for name, size in zip(given.shape, np.load(case / "in" / f"{given.name}.npy").shape) if isinstance(name, str)}


def peer_session(model, provider, sizes, **settings):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    return onnxruntime.InferenceSession(str(model), options, providers=[(provider, settings), "CPUExecutionProvider"])


def peer_inputs(session, case):
    inputs = {given.name: np.ascontiguousarray(np.load(case / "in" / f"{given.name}.npy")) for given in session.get_inputs()}
    if any(value.dtype.kind == "U" for value in inputs.values()):
        raise RuntimeError("has strings, which no device takes")
    return inputs


def with_host_memory(model, case, runs, provider, sizes, settings):
    """Microseconds of a run of ONNX Runtime that copies by itself."""
    session = peer_session(model, provider, sizes, **settings)
    binding = session.io_binding()
    for name, value in peer_inputs(session, case).items():
        binding.bind_cpu_input(name, value)
    for result in session.get_outputs():
        binding.bind_output(result.name, "cpu")
    return timed(lambda: session.run_with_iobinding(binding), runs)


def as_graph(model, case, runs, provider, sizes, settings):
    """The same of a CUDA graph, with copies from and to the host."""
    import onnxruntime

    session = peer_session(model, provider, sizes, **settings, enable_cuda_graph="1")
    inputs = peer_inputs(session, case)
    places = json.loads((case / "out" / "names.json").read_text())
    expected = [np.load(case / "out" / f"{places.index(result.name)}.npy") for result in session.get_outputs()]
    binding = session.io_binding()
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0) for name, value in inputs.items()}
    results = [onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0) for value in expected]
    for name, value in given.items():
        binding.bind_ortvalue_input(name, value)
    for result, value in zip(session.get_outputs(), results):
        binding.bind_ortvalue_output(result.name, value)

    def step():
        for name, value in inputs.items():
            given[name].update_inplace(value)
        session.run_with_iobinding(binding)
        for value in results:
            value.numpy()

    return timed(step, runs)


def theirs(model, case, runs, provider, tf32, only=None):
    """Microseconds of ONNX Runtime at its fastest setting, or at the one given; which it is, and why there is no graph."""
    sizes = fixed_dimensions(model, case)
    settings = {"use_tf32": tf32} if provider == "CUDAExecutionProvider" else {}
    found, no_graph = [], ""
    ways = [("plain", with_host_memory, {}), ("fixed sizes", with_host_memory, sizes), ("graph", as_graph, sizes)]
    for way, run, fixed in ways:
        if way == "graph" and provider != "CUDAExecutionProvider" or only not in (None, way):
            continue
        if way == "fixed sizes" and not sizes:
            continue
        try:
            found.append((run(model, case, runs, provider, fixed, settings), way))
        except Exception as error:  # ONNX Runtime's own kinds: a graph has no nodes on the CPU, for one
            no_graph = str(error).splitlines()[0]
    if not found:
        raise RuntimeError(f"ONNX Runtime runs it in no way: {no_graph}")
    return *min(found), no_graph


def measure(options, folder, scratch, has_provider):
    """A line of the table, and its figures or None."""
    case = min(path for path in folder.iterdir() if path.is_dir())
    executable = scratch / f"{folder.name}.rwx"
    report = json.loads(check.compile_model(options.bin, folder, executable, ["--device", options.device, "--json"]))
    on_device, on_host = report["device_calls"], sum(host["calls"] for host in report["host_calls"])
    if on_device == 0:
        return f"| {folder.name} | nothing pays on the device | | | |", None
    wrong = check.run_one(options.bin, executable, case, 1, scratch)
    if wrong:
        raise RuntimeError(wrong[0])
    mine = ours(options.bin, executable, case, options.runs)
    where = f"{on_device} of {on_device + on_host}"
    if not has_provider:
        return f"| {folder.name} | {where} | {mine:,.0f} us | | |", None
    model = folder / "model.onnx"
    peer, way, no_graph = theirs(model, case, options.runs, options.provider, "0")
    fewer_bits, _, _ = theirs(model, case, options.runs, options.provider, "1", way)
    figures = {"model": folder.name, "calls": [on_device, on_host], "ours_us": mine, "f32_us": peer, "tf32_us": fewer_bits,
               "way": way, "no_graph": no_graph}
    return f"| {folder.name} | {where} | {mine:,.0f} us | {mine / peer:.2f} ({way}) | {mine / fewer_bits:.2f} |", figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--provider", default="CUDAExecutionProvider", help="of ONNX Runtime")
    parser.add_argument("--model", action="append")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    options = parser.parse_args()
    try:
        import onnxruntime

        has_provider = options.provider in onnxruntime.get_available_providers()
    except ImportError:
        has_provider = False
    if not has_provider:
        print(f"ONNX Runtime with {options.provider} is not installed here: our figures stand alone")
    print("| model | calls on the device | latency | by ONNX Runtime | by its TF32 |\n|---|---|---:|---:|---:|")
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    figures, failed, end = [], 0, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as scratch:
        for position, model in enumerate(models):
            if time.monotonic() > end:
                print(f"out of time: {len(models) - position} models are left out, the first is {model}")
                break
            try:
                row, measured = measure(options, options.cases / model, pathlib.Path(scratch), has_provider)
                figures += [measured] if measured else []
            except Exception as error:  # also ONNX Runtime's own kinds; one model must not end the table
                failed += 1
                row = f"| {model} | FAILED: {str(error).splitlines()[0]} | | | |"
            print(row, flush=True)
    for peer in ("f32", "tf32"):
        ratios = [each["ours_us"] / each[f"{peer}_us"] for each in figures]
        if ratios:
            print(f"{peer}: geometric mean {statistics.geometric_mean(ratios):.3f} of {len(ratios)}, slowest {max(ratios):.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
