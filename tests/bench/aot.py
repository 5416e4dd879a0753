#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures calls of C source of vm-aot beside the same executables in the VM, and beside the C of emx-onnx-cgen.

    aot.py --build BUILD [--only NAME] [--rounds 40] [--json FILE]     by tests/support/environments.py, with requirements/aot.txt

A figure is the CPU time of a call on one thread, the median of rounds in which all forms take turns (bench-aot). `ratio` is that of
the C source by the VM's, `to other` by that of emx-onnx-cgen at -O3 -march=native. Both are printed beside what issue 36 of the
project asks for. The VM has the stock kernels, and so has
the C source but in the chain of tiny kernels, which is measured with those of kernels/embedded, too.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NATIVE = ["-O3", "-march=native"]
STEPS = 1000  # of a chain


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} ...: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def empty_calls():
    """A function that calls a kernel that does nothing, on the same three tensors."""
    calls = "  invoke_packed empty(%x, %x, %y), outputs=1\n" * STEPS
    return (".kernel empty = \"empty\"\n.func main(x: f32[16]) -> y: f32[16]\n"
            f"  %s = alloc_storage _, alignment=64, f32[16], cpu\n  %y = alloc_tensor %s, _, f32[16]\n{calls}  ret %y\n.end\n")


def tiny_kernels():
    """A chain of additions of 16 floats, each into a tensor of its own."""
    lines, last = "", "x"
    for i in range(STEPS):
        place = i % 2
        lines += f"  %t{place} = alloc_tensor %s{place}, _, f32[16]\n  invoke_packed add(%{last}, %x, %t{place}), outputs=1\n"
        last = f"t{place}"
    return (".kernel add = \"rewire.add\"\n.func main(x: f32[16]) -> y: f32[16]\n"
            "  %s0 = alloc_storage _, alignment=64, f32[16], cpu\n  %s1 = alloc_storage _, alignment=64, f32[16], cpu\n"
            f"{lines}  ret %{last}\n.end\n")


def package_file(package, name):
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"aot.py: the package {package} is not installed: run this by tests/support/environments.py")
    return pathlib.Path(spec.origin).parent / name


def source_library(build, folder, kernels):
    """model.so of model.rwx: its C source, and the host of packed functions or the embedded kernels."""
    run(build / "bin/vm-aot", folder / "model.rwx", "-o", folder / "model.c", "--prefix", "model", "--kernels", kernels)
    if kernels == "embedded":
        sources = [*ROOT.glob("kernels/embedded/*.c"), *ROOT.glob("kernels/embedded/*/*.c")]
        run("cc", "-std=gnu99", "-O2", "-fPIC", "-shared", "-ffp-contract=off", f"-I{ROOT}/include", folder / "model.c", *sources,
            "-o", folder / "model.so", "-lm")
        return folder / "model.so"
    (folder / "count.c").write_text('#include "model.h"\n#include "rewire/compiler/aot/packed_host.h"\n'
                                    "extern const int model_kernel_count;\nconst int model_kernel_count = MODEL_KERNELS;\n")
    # Variables of threads as in a program that links the source.
    run("cc", "-std=gnu99", "-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", f"-I{ROOT}/include", f"-I{folder}", folder / "model.c", folder / "count.c",
         ROOT / "compiler/aot/packed_host.c", "-o", folder / "model.so", "-lm")
    return folder / "model.so"


def other_library(onnx, folder, symbols):
    """other.so: the C that emx-onnx-cgen makes of the model, without memory from the heap."""
    command = [pathlib.Path(sys.executable).parent / "emx-onnx-cgen", "compile", onnx, folder / "other.c", "--large-temp-threshold", "0",
               "--large-weight-threshold", "0", "--model-name", "other"]
    run(*command, *[word for symbol in symbols for word in ("--input-dim", symbol)])
    text = (folder / "other.c").read_text()
    begin = text.index("void other(")
    parameters = text[begin:text.index(")", begin)].count(",") + 1
    if parameters != 2:
        sys.exit(f"aot.py: {onnx} has {parameters} inputs and outputs in the C of emx-onnx-cgen, expected 2")
    (folder / "wrap.c").write_text('#include "other.c"\nvoid other_run(const void *const *inputs, void *const *outputs);\n'
                                   "void other_run(const void *const *inputs, void *const *outputs) {\n"
                                   "  other((void *)inputs[0], (void *)outputs[0]);\n}\n")
    run("cc", "-std=gnu99", *NATIVE, "-w", "-fPIC", "-shared", f"-I{folder}", folder / "wrap.c", "-o", folder / "other.so", "-lm")
    return folder / "other.so"


def measure(build, name, case, rounds):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        other = "-"
        if "text" in case:
            (folder / "model.asm").write_text(case["text"]())
            run(build / "bin/vm-as", folder / "model.asm", "-o", folder / "model.rwx")
        else:
            onnx = case["onnx"]()
            dims = [word for symbol in case["symbols"] for word in ("--dim", symbol)]
            run(build / "bin/vm-compile", onnx, *dims, "--disable-pass", "pack-onednn", "-o", folder / "model.rwx")
            other = other_library(onnx, folder, case["symbols"])
        model = source_library(build, folder, case.get("kernels", "packed"))
        figures = json.loads(run(build / "tests/bin/bench-aot", folder / "model.rwx", model,
                                 build / "lib/rewire/librewire_kernels_cpu.so" if case.get("kernels", "packed") == "packed" else "-", other, rounds,
                                 env={**os.environ, "REWIRE_LIBRARY_PATH": str(build / "lib/rewire")}))
    row = {"name": name, "vm": figures["vm"] / case.get("calls", 1), "c": figures["c"] / case.get("calls", 1)}
    row["ratio"] = row["c"] / row["vm"]
    row["asked"] = case["ratio"]
    row["difference"] = figures["difference"]
    if "other" in figures:
        row.update({"other": figures["other"], "to other": row["c"] / figures["other"], "asked of other": case["to other"],
                    "difference of other": figures["difference of other"]})
    return row


CASES = {
    "a kernel call": {"text": empty_calls, "calls": STEPS, "ratio": 0.5},
    "a chain of tiny kernels": {"text": tiny_kernels, "calls": STEPS, "ratio": 0.6, "kernels": "embedded"},
    "the chain with stock kernels": {"text": tiny_kernels, "calls": STEPS, "ratio": 0.6},
    "digits": {"onnx": lambda: ROOT / "examples/digits/digits.onnx", "symbols": ["N=1"], "ratio": 0.97, "to other": 0.15},
    "pulsevad": {"onnx": lambda: package_file("pulsevad", "data/pulsevad_2.1k.onnx"), "symbols": ["batch=1"], "ratio": None, "to other": 0.8},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="take the cases whose names contain this")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=pathlib.Path, help="keep the figures")
    arguments = parser.parse_args()
    build, rows = arguments.build.resolve(), []
    for name, case in CASES.items():
        if arguments.only and arguments.only not in name:
            continue
        row = measure(build, name, case, arguments.rounds)
        rows.append(row)
        text = f"{name}: VM {row['vm']:,.1f} ns, C {row['c']:,.1f} ns, ratio {row['ratio']:.2f}"
        text += f" (asked {row['asked']})" if row["asked"] else ""
        text += f", difference {row['difference']:.1e}"
        if "other" in row:
            text += f"; emx-onnx-cgen {row['other']:,.1f} ns, {row['to other']:.2f} of it (asked {row['asked of other']})"
            text += f", difference {row['difference of other']:.1e}"
        print(text, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
