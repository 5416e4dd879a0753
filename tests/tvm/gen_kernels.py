#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles kernel libraries, each with a kernel that fails on a wrong argument.

    gen_kernels.py OUTPUT [CASE...]

A relay-* environment makes `classic` (the classic TVM ABI), tvm-0.25 `compiled` (the tvm-ffi ABI, by TVM), and tvm-ffi
makes `compiled`, `opencl` (the same for a device, as tvm-0.25 does), `relax` (a whole model, of which the kernel is wanted), `cpp` (the example in the documentation of tvm_ffi.cpp.load_inline, unmodified) and `documented` (the
same, built with metadata and a text of documentation). Names of compiled kernels end in TVM's version, so that one
program may call those of all libraries. case.json lists, for each kernel, its arguments in order (the last one is
written) and what it gives.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import toolchain
import tvm
from tvm import te


def _write(output, name, abi, kernels, device="cpu"):
    """`kernels` maps names to (input arrays, expected array)."""
    directory = pathlib.Path(output) / name
    content = {"name": name, "kind": "kernels", "tvm": tvm.__version__, "abi": abi, "files": {"library": "lib.so"}}
    content["device"] = device
    content["kernels"] = []
    for kernel, (inputs, expected) in kernels.items():
        files = [f"{kernel}.{i}.npy" for i in range(len(inputs) + 1)]
        for file, value in zip(files, [*inputs, expected]):
            np.save(directory / file, value)
        shapes = [value.shape for value in (*inputs, expected)]
        content["kernels"].append({"name": kernel, "inputs": files[:-1], "expected": files[-1], "shapes": shapes})
    (directory / "case.json").write_text(json.dumps(content, indent=1) + "\n")


# "_tvm_0_9"
SUFFIX = "_tvm_" + "_".join(tvm.__version__.split(".")[:2])


def _suffixed(kernels):
    return {name + SUFFIX: content for name, content in kernels.items()}


def _kernels():
    """Tensor expressions: a loop, a parallel loop, one with a scratch buffer too large for the stack, and one that calls
    the first by its name."""
    n = te.var("n")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    add = te.compute((n,), lambda i: x[i] + y[i], name="add")
    a = te.placeholder((64, 128), name="a")
    square = te.compute((64, 128), lambda i, j: a[i, j] * a[i, j], name="square")
    total = te.compute((64, 128), lambda i, j: square[i, j] + square[63 - i, j], name="total")
    tir = tvm.tir if hasattr(tvm, "tir") else tvm.tirx
    call = lambda ins, outs: tir.call_packed("add" + SUFFIX, ins[0], ins[1], outs[0])
    by_name = te.extern((n,), [x, y], call, name="by_name", dtype="float32")
    kernels = {"add": (x, y, add), "parallel_square": (a, square), "mirror_sum": (a, total), "by_name": (x, y, by_name)}
    return _suffixed(kernels)


def _values():
    x, y = np.arange(10, dtype="float32"), np.linspace(-1, 1, 10).astype("float32")
    a = np.random.RandomState(1).standard_normal((64, 128)).astype("float32")
    sums = {"add": ([x, y], x + y), "by_name": ([x, y], x + y)}
    return _suffixed({**sums, "parallel_square": ([a], a * a), "mirror_sum": ([a], a * a + (a * a)[::-1])})


def classic(output):
    """Called with tensors of different lengths, `add` fails."""
    functions = []
    for name, tensors in _kernels().items():
        schedule = te.create_schedule(tensors[-1].op)
        if name.startswith("parallel"):
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


def opencl(output):
    """Kernels for OpenCL, and host functions that launch them: sizes from the shape, two dimensions of groups, and two
    launches with memory of the device between them."""
    from tvm.s_tir import Schedule

    n = te.var("n")
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    add = te.compute((n,), lambda i: x[i] + y[i], name="add")
    a = te.placeholder((64, 128), name="a")
    square = te.compute((64, 128), lambda i, j: a[i, j] * a[i, j], name="square")
    total = te.compute((64, 128), lambda i, j: square[i, j] + square[63 - i, j], name="total")
    kernels = {"cl_add": (x, y, add), "cl_square": (a, square), "cl_mirror_sum": (a, total)}
    kernels = _suffixed(kernels)
    functions = {}
    for name, tensors in kernels.items():
        functions[name] = te.create_prim_func(tensors).with_attr("global_symbol", name)
    schedule = Schedule(tvm.IRModule(functions))
    for name, blocks in zip(kernels, (["add"], ["square"], ["square", "total"])):
        schedule.work_on(name)
        for block in blocks:
            loops = schedule.get_loops(schedule.get_sblock(block))
            inner = schedule.split(loops[-1], [None, 32])
            schedule.bind(inner[0], "blockIdx.x")
            schedule.bind(inner[1], "threadIdx.x")
            if len(loops) == 2:
                schedule.bind(loops[0], "blockIdx.y")
    library = tvm.compile(schedule.mod, target=tvm.target.Target("opencl", host=toolchain.TARGET))
    pathlib.Path(output, "opencl").mkdir(parents=True, exist_ok=True)
    library.export_library(str(pathlib.Path(output, "opencl", "lib.so")))
    values = _values()
    same = {"cl_add": "add", "cl_square": "parallel_square", "cl_mirror_sum": "mirror_sum"}
    values = {name + SUFFIX: values[other + SUFFIX] for name, other in same.items()}
    _write(output, "opencl", "tvm-ffi", values, "opencl:0")


def _parallel(module):
    from tvm.s_tir import Schedule

    schedule = Schedule(module)
    schedule.work_on("parallel_square" + SUFFIX)
    schedule.parallel(schedule.get_loops(schedule.get_sblock("square"))[0])
    return schedule.mod


def relax(output):
    """A Relax executable in one file with its kernel, which is called as any other."""
    from tvm import relax
    from tvm.script import relax as R

    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    with builder.function("model" + SUFFIX, [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.emit(relax.op.multiply(x, x)))
        builder.emit_func_output(y)
    pathlib.Path(output, "relax").mkdir(parents=True, exist_ok=True)
    tvm.compile(builder.get(), target=toolchain.TARGET).export_library(str(pathlib.Path(output, "relax", "lib.so")))
    value = np.arange(6, dtype="float32").reshape(2, 3)
    _write(output, "relax", "tvm-ffi", {"multiply": ([value, value], value * value)})


def _build_example(output, name, functions, flags):
    import tvm_ffi.cpp

    documentation = tvm_ffi.cpp.load_inline.__doc__
    source = documentation.split("cpp_source = '''", 1)[1].split("'''", 1)[0]
    directory = pathlib.Path(output, name)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "example.cc").write_text(source)
    build = str(directory / "build")
    built = tvm_ffi.cpp.build_inline(
        name="hello", cpp_sources=source, functions=functions, extra_cflags=flags, build_directory=build
    )
    shutil.copy(built, directory / "lib.so")
    x = np.array([1, 2, 3, 4, 5], "float32")
    _write(output, name, "tvm-ffi", {"add_one_cpu": ([x], x + 1)})


def cpp(output):
    _build_example(output, "cpp", "add_one_cpu", [])


def documented(output):
    flags = ["-DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"]
    _build_example(output, "documented", {"add_one_cpu": "Adds one to every element of x."}, flags)


if hasattr(te, "create_schedule"):
    CASES = {"classic": classic}
elif tvm.__version__.startswith("0.25"):
    CASES = {"compiled": compiled, "opencl": opencl}
else:
    CASES = {"compiled": compiled, "opencl": opencl, "relax": relax, "cpp": cpp, "documented": documented}


if __name__ == "__main__":
    sys.exit(toolchain.run_all(CASES, lambda output, name: CASES[name](output), sys.argv[1:]))
