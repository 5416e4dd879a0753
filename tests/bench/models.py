#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Rewire against ONNX Runtime and OpenVINO on the models of tests/models, in turn in one run.

    models.py --bin build/release/bin --peer build/release/tests/bin/bench-peer --cases CASES [--openvino]
              [--bf16 | --int8] [--model NAME]... [--rounds 5] [--threads 1,2] [--json FILE]
    models.py --bin build/release/bin --before OTHER/build/release/bin --cases CASES ...

Runs in the environment of tests/models/requirements/models.txt; CASES is what tests/models/reference.py wrote. A round
is one process of each, pinned to the same cores; a process loads, warms up and runs for about half a second. Figures
are medians over the rounds, with the smallest and largest ratio; only ratios mean anything on a shared machine. Every
Rewire result is compared with the reference before anything is measured.

Peers are called through their C APIs (tests/bench/peers.cc), with inputs and outputs bound. OpenVINO runs in float32 with
the hint for latency, in the faster of two settings: with the shapes of the inputs fixed, or as the model has them. It
is left out of a row where it cannot run a model; the row then says so. With it, "faster" is our time by that of the
faster peer.
With --bf16, Rewire and OpenVINO compute products in bf16; ONNX Runtime has no such mode and stays in float32. Models none of
whose products become bf16 are left out. Results must be right within the tolerance that variants.py has for bf16.
With --int8, all three run the model as ONNX Runtime's tools quantize it with their defaults: QuantizeLinear and DequantizeLinear
around operators, weights and activations of 8 bits ("static" in variants.py). Models without floats to quantize are left out,
and so are those that come quantized: they are in the table without it. Results must be as near to ONNX Runtime's of the
same model as variants.py asks.
start: loading and the first run together, since memory that loading only maps is paid for when it is first touched.
Ours from .rwx (open, verify, link); theirs from ONNX, and from the optimized model that they saved, which is not
optimized again.
memory: the peak resident size of the process, less what it had before the model was loaded. Theirs has its library
loaded by then, ours loads its kernels with the model.
With --before, the peer is another build of Rewire, an older one for example. Only latencies are then compared, and each
build runs what it has compiled itself.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "models"), str(HERE.parent / "support")]
import check  # noqa: E402  (after the path is set)
import environments  # noqa: E402
import reference  # noqa: E402
import variants  # noqa: E402

SECONDS = 0.5  # of measured runs, a process


@dataclasses.dataclass(frozen=True)
class Mode:
    """What the models are run in."""

    variant: str | None  # of variants.py, whose tolerance holds
    compile_options: tuple
    openvino: str  # its setting
    # How far OpenVINO may be from the expected values, in parts of the largest: a peer that computes something else is no peer.
    # With less than 32 bits it may be far, and is a peer all the same.
    most_apart: float


F32 = Mode(None, (), "f32", 0.02)
BF16 = Mode(variants.BF16, ("--precision", "bf16", "--json"), "bf16", 0.5)
INT8 = Mode(variants.STATIC, (), "f32", 0.5)


def pinned(threads):
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:threads])
    return ["taskset", "--cpu-list", cores]


def theirs(options, peer, model, case, threads, setting):
    """A peer through its C API, in a process of its own: Python would add some microseconds to every call."""
    library = onnxruntime_library() if peer == "onnxruntime" else openvino_library()
    command = [*pinned(threads), options.peer, peer, library, model, case, threads, SECONDS, setting]
    return json.loads(check.call(command))


def onnxruntime_library():
    """The library inside the Python package."""
    import onnxruntime

    [library] = (pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    return library


def openvino_library():
    """That of OpenVINO's C API, in the environment of its own that `make bench-models` and `make bench-operators` make."""
    requirements = HERE.parent / "models" / "requirements" / "openvino.txt"
    folder = environments.environment(requirements)
    libraries = list(folder.glob("lib/python*/site-packages/openvino/libs/libopenvino_c.so.*"))
    if len(libraries) != 1:
        sys.exit(f"error: {len(libraries)} libraries of OpenVINO's C API in {folder}, expected 1; make the environment by tests/support/environments.py {requirements}")
    return libraries[0]


def openvino_setting(options, model, case, threads):
    """The faster one of those that work, or why none does."""
    times, reasons = {}, []
    mode = options.mode
    for setting in (mode.openvino, f"{mode.openvino}-dynamic"):
        try:
            run = theirs(options, "openvino", model, case, threads, setting)
            if run["apart"] < mode.most_apart:
                times[setting] = run["latency"]
            else:
                reasons.append(f"its values are {run['apart']:.2g} apart")
        except RuntimeError as error:
            words = [line.strip() for line in str(error).splitlines() if line.strip()]
            reasons.append(words[-1].replace("|", "/")[:80])
    return (min(times, key=times.get), None) if times else (None, reasons[0])


def ours(tools, executable, case, threads, runs, warmup=3, options=()):
    command = [*pinned(threads), tools / "vm-run", executable, "--threads", threads, "--json", "--warmup", warmup,
               "--repeat", runs, "--output", f"@{executable}.npz", *options]
    for path in sorted((case / "in").glob("*.npy")):
        command += ["--input", f"{path.stem}=@{path}"]
    report = json.loads(check.call(command))
    timing, resident = report["timing"], report["resident"]
    return {"load": timing["load_ns"], "latency": timing["median_ns"],
            "memory": resident["peak_bytes"] - resident["before_load_bytes"]}


def our_start(tools, executable, case, threads):
    """Loading and the first run together, in a process that runs once."""
    once = ours(tools, executable, case, threads, 1, warmup=0)
    return once["load"] + once["latency"]


def save_optimized(model, path):
    """What their users keep to load faster."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def start_of_saved(options, optimized, case, threads):
    """None if ONNX Runtime cannot load what it saved, as happens with quantized models."""
    try:
        saved = theirs(options, "onnxruntime", optimized, case, threads, "none")
    except RuntimeError:
        return None
    return saved["load"] + saved["first"]


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def varied(folder, scratch, variant):
    """A folder like that of a model, of a variant of it and with ONNX Runtime's answers of that; None if there is no such."""
    made, cases = scratch / variant / folder.name, cases_of(folder)
    if (made / "complete").exists():
        return made
    made.mkdir(parents=True, exist_ok=True)
    if not variants.has_variants(folder) or variants.make(variant, folder, cases, made / "model.onnx"):
        return None
    session = reference.session(made / "model.onnx")
    for case in cases:
        reference.write_case(made / case.name, session, variants.as_asked(variants.inputs_of(case), session))
    (made / "complete").touch()
    return made


def cases_of(folder):
    return sorted(path for path in folder.iterdir() if path.is_dir())


def wrong_results(options, executable, case, original, threads, scratch):
    """What is wrong with a program, compared as its mode asks; `original` is the case of the float model."""
    if not options.mode.variant:
        return check.run_one(options.bin, executable, case, threads, scratch)
    return variants.wrong_in(options.mode.variant, options.bin, executable, case, original, scratch)


def measure(options, original, scratch, threads):
    """One row of the table for each set of inputs."""
    mode = options.mode
    folder = varied(original, scratch, variants.STATIC) if mode is INT8 else original
    if folder is None:
        return
    model, executable = folder / "model.onnx", scratch / f"{folder.name}.rwx"
    told = check.compile_model(options.bin, folder, executable, mode.compile_options)
    if mode is BF16 and json.loads(told)["quantized"] == 0:
        return
    optimized = scratch / f"{folder.name}.optimized.onnx"
    save_optimized(model, optimized)
    for case in cases_of(folder):
        wrong = wrong_results(options, executable, case, original / case.name, threads, scratch)
        if wrong:
            raise RuntimeError(f"wrong results, not measured: {'; '.join(wrong)}")
        rounds, second, reason = [], None, None
        if options.openvino:
            second, reason = openvino_setting(options, model, case, threads)
        runs = max(3, int(SECONDS * 1e9 / max(1, ours(options.bin, executable, case, threads, 3)["latency"])))
        for _ in range(options.rounds):
            mine = ours(options.bin, executable, case, threads, min(runs, 100000))
            mine["memory"] = ours(options.bin, executable, case, threads, 3)["memory"]  # without a long list of times
            mine["start"] = our_start(options.bin, executable, case, threads)
            other = theirs(options, "onnxruntime", model, case, threads, "all")
            saved = start_of_saved(options, optimized, case, threads)
            other["start"] = other["load"] + other["first"]
            if second:
                other["openvino"] = theirs(options, "openvino", model, case, threads, second)["latency"]
            rounds.append((mine, other, saved))
        ratio = {
            "latency": spread([mine["latency"] / other["latency"] for mine, other, _ in rounds]),
            "start": spread([mine["start"] / other["start"] for mine, other, _ in rounds]),
            "memory": spread([mine["memory"] / other["memory"] for mine, other, _ in rounds]),
        }
        if all(start for _, _, start in rounds):
            ratio["start_optimized"] = spread([mine["start"] / start for mine, _, start in rounds])
        if second:
            ratio["openvino"] = spread([mine["latency"] / other["openvino"] for mine, other, _ in rounds])
        if options.openvino:
            peers = [min(other["latency"], other.get("openvino", math.inf)) for _, other, _ in rounds]
            ratio["faster"] = spread([mine["latency"] / peer for (mine, _, _), peer in zip(rounds, peers)])
        yield {"model": folder.name, "inputs": case.name, "threads": threads, "ratio": ratio, "openvino": second or reason,
               "ours": {key: statistics.median(mine[key] for mine, _, _ in rounds) for key in rounds[0][0]},
               "theirs": {key: statistics.median(other[key] for _, other, _ in rounds) for key in rounds[0][0]}}


def measure_before(options, folder, scratch, threads):
    """One row for each set of inputs: this build's latency by that of another."""
    builds = {"now": options.bin, "before": options.before}
    for name, tools in builds.items():
        check.compile_model(tools, folder, scratch / f"{folder.name}.{name}.rwx")
    for case in cases_of(folder):
        def latency(name, runs):
            return ours(builds[name], scratch / f"{folder.name}.{name}.rwx", case, threads, runs)["latency"]
        runs = min(100000, max(3, int(SECONDS * 1e9 / max(1, latency("now", 3)))))
        rounds = [{name: latency(name, runs) for name in builds} for _ in range(options.rounds)]
        yield {"model": folder.name, "inputs": case.name, "threads": threads,
               "ratio": {"latency": spread([each["now"] / each["before"] for each in rounds])},
               "ours": {"latency": statistics.median(each["now"] for each in rounds)},
               "theirs": {"latency": statistics.median(each["before"] for each in rounds)}}


def row_text(row):
    latency = row["ratio"]["latency"]
    names = ["start", "start_optimized", "memory"] if "start" in row["ratio"] else []
    if "faster" in row["ratio"]:
        names += ["openvino", "faster"]
    others = "".join(f" {row['ratio'][name]['median']:.2f} |" if name in row["ratio"] else " |" for name in names)
    if "faster" in row["ratio"]:
        others += f" {row['openvino']} |"
    return (f"| {row['model']} #{row['inputs']} | {row['threads']} | {row['theirs']['latency'] / 1e3:.1f} us"
            f" | {latency['median']:.3f} ({latency['low']:.3f} to {latency['high']:.3f}) |{others}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of vm-compile and vm-run")
    peers = parser.add_mutually_exclusive_group(required=True)
    peers.add_argument("--peer", type=pathlib.Path, help="bench-peer")
    peers.add_argument("--before", type=pathlib.Path, help="folder of another build's vm-compile and vm-run")
    parser.add_argument("--openvino", action="store_true", help="also beside OpenVINO, whose environment must be there")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--bf16", dest="mode", action="store_const", const=BF16, default=F32,
                       help="compute products in bf16, and so OpenVINO")
    modes.add_argument("--int8", dest="mode", action="store_const", const=INT8,
                       help="run models that ONNX Runtime's tools have quantized")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    models = options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir())
    rows, failed = [], 0
    columns = ["model", "threads", "ONNX Runtime", "latency", "start", "start, optimized", "memory"]
    if options.openvino:
        columns += ["by OpenVINO", "by the faster", "OpenVINO's setting"]
    one_row = measure
    if options.before:
        columns = ["model", "threads", "before", "latency"]
        one_row = measure_before
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with tempfile.TemporaryDirectory() as scratch:
        for threads in options.threads:
            for model in models:
                try:
                    for row in one_row(options, options.cases / model, pathlib.Path(scratch), threads):
                        rows.append(row)
                        print(row_text(row), flush=True)
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    failed += 1
                    print(f"| {model} | {threads} | FAILED: {str(error).splitlines()[0]} |", flush=True)
    for threads in options.threads:
        of_threads = [row["ratio"] for row in rows if row["threads"] == threads]
        for what in ("latency", "openvino", "faster"):
            ratios = [ratio[what]["median"] for ratio in of_threads if what in ratio]
            if ratios:
                print(f"\n{threads} thread{'s' if threads > 1 else ''}, {what}: geometric mean"
                      f" {statistics.geometric_mean(ratios):.3f} of {len(ratios)}, slowest {max(ratios):.3f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
