# SPDX-License-Identifier: Apache-2.0
"""Runs a .tflite file by LiteRT, by Rewire's VM and as C source, all inside this process."""
import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/compiler/aot"))
from c_table import Function, empty  # noqa: E402
from digits import KERNELS, PASSES  # noqa: E402

# Codes of DLPack's dtypes.
CODES = {"i": 0, "u": 1, "f": 2}
KINDS = {code: kind for kind, code in CODES.items()}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: {done.stderr.strip()[-2000:]}{done.stdout.strip()[-1000:]}")
    return done.stdout


class LiteRT:
    """LiteRT as a program gets it, with what it runs models by on its own: XNNPACK."""

    def __init__(self, content):
        self.interpreter = Interpreter(model_content=content, num_threads=1)
        self.interpreter.allocate_tensors()
        self.inputs, self.outputs = self.interpreter.get_input_details(), self.interpreter.get_output_details()

    def call(self, arrays):
        for detail, array in zip(self.inputs, arrays):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(detail["index"]) for detail in self.outputs]


class Machine:
    """A VM over an executable, by the C interface of librewire."""

    def __init__(self, build, executable):
        os.environ["REWIRE_LIBRARY_PATH"] = str(build / "lib/rewire")
        self.library = ctypes.CDLL(str(next(build.glob("lib/librewire.so"))))
        self.library.rewire_last_error_message.restype = ctypes.c_char_p
        opened, program, self.vm = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.library.rewire_executable_open(str(executable).encode(), None, ctypes.byref(opened)))
        self.check(self.library.rewire_program_link(opened, None, ctypes.byref(program)))
        self.check(self.library.rewire_vm_make(program, None, ctypes.byref(self.vm)))
        self.library.rewire_program_destroy(program)
        self.library.rewire_executable_destroy(opened)

    def check(self, status):
        if status:
            raise RuntimeError(self.library.rewire_last_error_message().decode())

    def call(self, arrays, outputs):
        """The first `outputs` results, as copies."""
        for i, array in enumerate(arrays):
            tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, CODES[array.dtype.kind], array.dtype.itemsize * 8, 1,
                              (ctypes.c_int64 * max(array.ndim, 1))(*array.shape), None, 0)
            self.check(self.library.rewire_vm_set_input_by_index(self.vm, ctypes.c_uint32(i), ctypes.byref(tensor), 1))
        self.check(self.library.rewire_vm_invoke(self.vm, None))
        return [self.output(i) for i in range(outputs)]

    def output(self, index):
        tensor = DLTensor()
        self.check(self.library.rewire_vm_output_tensor(self.vm, ctypes.c_uint32(index), ctypes.byref(tensor)))
        array = np.empty([tensor.shape[i] for i in range(tensor.ndim)], np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}"))
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, tensor.data + tensor.byte_offset, array.nbytes)
        return array

    def close(self):
        self.library.rewire_vm_destroy(self.vm)


def compile_model(build, model, *options):
    """The executable beside a model."""
    executable = model.with_suffix(".rwx")
    run(build / "bin/vm-compile", model, "-o", executable, *options)
    return executable


def compile_kernels(folder):
    """The kernels of kernels/embedded as objects."""
    folder.mkdir()
    subprocess.run(["cc", "-std=c99", "-O1", "-fPIC", "-ffp-contract=off", "-DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD",
                    f"-I{ROOT}/include", "-c", *KERNELS], cwd=folder, check=True)
    return sorted(folder.glob("*.o"))


class CSource:
    """The C source of an executable, compiled and loaded."""

    def __init__(self, build, executable, objects):
        source, library = executable.with_suffix(".c"), executable.with_suffix(".so")
        run(build / "bin/vm-aot", executable, "-o", source)
        run("cc", "-std=c99", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{ROOT}/include",
            "-DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD", source, *objects, "-o", library, "-lm")
        self.handle = ctypes.CDLL(str(library))
        self.function = Function.in_dll(self.handle, "model_functions")

    def call(self, arrays):
        outputs = [empty(self.function.outputs[i]) for i in range(self.function.output_count)]
        code = self.function.call(arrays, outputs)
        if code:
            raise RuntimeError(f"the C source gave code {code}")
        return outputs


C_OPTIONS = [word for name in PASSES for word in ("--disable-pass", name)]
