#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles kernel libraries, each with a kernel that fails on a wrong argument.

    gen_kernels.py OUTPUT [CASE...]

A relay-* environment makes `classic` (the classic TVM ABI); the tvm-ffi environment makes `compiled` (by TVM) and
`cpp` (the example in the documentation of tvm_ffi.cpp.load_inline, unmodified). case.json lists, for each kernel, its
arguments in order (the last one is written) and what it gives.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import toolchain
import tvm
from tvm import te


def _write(output, name, abi, kernels):
    """`kernels` maps names to (input arrays, expected array)."""
    directory = pathlib.Path(output) / name
    content = {"name": name, "kind": "kernels", "tvm": tvm.__version__, "abi": abi, "files": {"library": "lib.so"}}
    content["kernels"] = []
    for kernel, (inputs, expected) in kernels.items():
        files = [f"{kernel}.{i}.npy" for i in range(len(inputs) + 1)]
        for file, value in zip(files, [*inputs, expected]):
            np.save(directory / file, value)
        content["kernels"].append({"name": kernel, "inputs": files[:-1], "expected": files[-1]})
    (directory / "case.json").write_text(json.dumps(content, indent=1) + "\n")


def _kernels():
    """Tensor expressions: a loop, a parallel loop, and one with a scratch buffer too large for the stack."""
    n = te.var("n")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    add = te.compute((n,), lambda i: x[i] + y[i], name="add")
    a = te.placeholder((64, 128), name="a")
    square = te.compute((64, 128), lambda i, j: a[i, j] * a[i, j], name="square")
    total = te.compute((64, 128), lambda i, j: square[i, j] + square[63 - i, j], name="total")
    return {"add": (x, y, add), "parallel_square": (a, square), "mirror_sum": (a, total)}


def _values():
    x, y = np.arange(10, dtype="float32"), np.linspace(-1, 1, 10).astype("float32")
    a = np.random.RandomState(1).standard_normal((64, 128)).astype("float32")
    return {
        "add": ([x, y], x + y),
        "parallel_square": ([a], a * a),
        "mirror_sum": ([a], a * a + (a * a)[::-1]),
    }


def classic(output):
    """Called with tensors of different lengths, `add` fails."""
    functions = []
    for name, tensors in _kernels().items():
        schedule = te.create_schedule(tensors[-1].op)
        if name == "parallel_square":
            schedule[tensors[-1]].parallel(tensors[-1].op.axis[0])
        functions.append(tvm.lower(schedule, tensors, name=name))
    module = functions[0]
    for other in functions[1:]:
        module.update(other)
    library = tvm.build(module, target=toolchain.TARGET)
    pathlib.Path(output, "classic").mkdir(parents=True, exist_ok=True)
    toolchain.export(library, str(pathlib.Path(output, "classic", "lib.so")))
    _write(output, "classic", "classic", _values())


def compiled(output):
    functions = {}
    for name, tensors in _kernels().items():
        functions[name] = te.create_prim_func(tensors).with_attr("global_symbol", name)
    library = tvm.compile(_parallel(tvm.IRModule(functions)), target=toolchain.TARGET)
    pathlib.Path(output, "compiled").mkdir(parents=True, exist_ok=True)
    library.export_library(str(pathlib.Path(output, "compiled", "lib.so")))
    _write(output, "compiled", "tvm-ffi", _values())


def _parallel(module):
    from tvm.s_tir import Schedule

    schedule = Schedule(module)
    schedule.work_on("parallel_square")
    schedule.parallel(schedule.get_loops(schedule.get_sblock("square"))[0])
    return schedule.mod


def cpp(output):
    import tvm_ffi.cpp

    documentation = tvm_ffi.cpp.load_inline.__doc__
    source = documentation.split("cpp_source = '''", 1)[1].split("'''", 1)[0]
    directory = pathlib.Path(output, "cpp")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "example.cc").write_text(source)
    built = tvm_ffi.cpp.build_inline(
        name="hello", cpp_sources=source, functions="add_one_cpu", build_directory=str(directory / "build")
    )
    shutil.copy(built, directory / "lib.so")
    x = np.array([1, 2, 3, 4, 5], "float32")
    _write(output, "cpp", "tvm-ffi", {"add_one_cpu": ([x], x + 1)})


if hasattr(te, "create_schedule"):
    CASES = {"classic": classic}
else:
    CASES = {"compiled": compiled, "cpp": cpp}


if __name__ == "__main__":
    sys.exit(toolchain.run_all(CASES, lambda output, name: CASES[name](output), sys.argv[1:]))
