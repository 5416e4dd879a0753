#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build.py TOOLS OUT [--model FILE.onnx --dim NAME=SIZE --prefix NAME]: a model as a program in WebAssembly, for rewire.js.

Without --model it makes the page of this folder: OUT/digits.wasm beside digits.html and rewire.js, for a web server, and
OUT/digits-alone.html, one file with all in it, which a browser opens from the disk. TOOLS is the folder of vm-compile and vm-aot. Needs
clang-14, lld-14 and wasi-libc (third_party/install.sh processors).
"""
import argparse
import base64
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What makes kernels or constants that C source cannot have (docs/aot.md).
PASSES = ["--disable-pass", "pack-onednn", "--disable-pass", "winograd"]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:4]))} ...: exit {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout


def build_wasm(tools, executable, prefix, out):
    """Makes a WebAssembly module of an executable. It exports its memory and the table of its functions, and imports nothing."""
    kernels = sorted(ROOT.glob("kernels/embedded/*.c")) + sorted(ROOT.glob("kernels/embedded/*/*.c"))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"{prefix}.c"
        run(tools / "vm-aot", executable, "-o", source, "--prefix", prefix)
        run("clang-14", "--target=wasm32-wasi", "-std=c99", "-O2", "-mexec-model=reactor", "-nostartfiles", f"-D{prefix.upper()}_NO_STATIC_ARENA",
            "-ffunction-sections", "-fdata-sections", "-Wall", "-Werror", f"-I{ROOT}/include", f"-I{folder}", source, *kernels, "-lm",
            "-Wl,--no-entry", "-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--export-table", "-Wl,--export=__heap_base",
            f"-Wl,--export={prefix}_functions", "-o", out)


def compile_model(tools, onnx, dims, prefix, out):
    with tempfile.TemporaryDirectory() as folder:
        executable = pathlib.Path(folder) / "model.rwx"
        run(tools / "vm-compile", onnx, *[word for dim in dims for word in ("--dim", dim)], *PASSES, "-o", executable)
        build_wasm(tools, executable, prefix, out)


def build_page(tools, out):
    compile_model(tools, ROOT / "examples/digits/digits.onnx", ["N=1"], "digits", out / "digits.wasm")
    for name in ("digits.html", "rewire.js"):
        shutil.copy(HERE / name, out)
    page = (HERE / "digits.html").read_text()
    program = base64.b64encode((out / "digits.wasm").read_bytes()).decode()
    alone = {'fetch("digits.wasm")': f'fetch("data:application/wasm;base64,{program}")',
             '<script src="rewire.js"></script>': f"<script>\n{(HERE / 'rewire.js').read_text()}</script>"}
    for text, other in alone.items():
        if page.count(text) != 1:
            raise SystemExit(f"digits.html has {page.count(text)} times {text}, once expected")
        page = page.replace(text, other)
    (out / "digits-alone.html").write_text(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--prefix", default="model")
    arguments = parser.parse_args()
    tools, out = arguments.tools.resolve(), arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.model:
        compile_model(tools, arguments.model, arguments.dim, arguments.prefix, out / f"{arguments.prefix}.wasm")
    else:
        build_page(tools, out)
    for file in sorted(out.iterdir()):
        print(f"{file}: {file.stat().st_size:,} B")


if __name__ == "__main__":
    main()
