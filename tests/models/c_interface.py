#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each model through Rewire's library with ONNX Runtime's C interface, and compares with ONNX Runtime's answer.

    c_interface.py --library build/release/lib/onnxruntime/libonnxruntime.so.1 --cases CASES [--model NAME]...

CASES is what reference.py wrote, and values agree as check.py says. The library is opened by ctypes and called by its table, as a
program in C calls it, so nothing of Rewire's Python package takes part. Prints a line for each set of inputs, and exits with 1 when
any differs, failed, or when there was nothing to compare.
"""
import argparse
import ctypes
import json
import pathlib
import re
import sys

import numpy as np

import catalog
import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = 28
# Numbers of ONNXTensorElementDataType.
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
          11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}
STRING = 8
# Numbers of ONNXType.
TENSOR, SEQUENCE = 1, 2
Pointer = ctypes.c_void_p


class Table:
    """The functions of the library by their names. A failure is a RuntimeError with the library's words."""

    def __init__(self, library):
        class Base(ctypes.Structure):
            _fields_ = [("table", ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]

        rows = (ROOT / "onnxruntime_api" / "slots.def").read_text(encoding="utf-8")
        self.places = {name: i for i, name in enumerate(
            re.findall(r"^(?:SERVED\([^,]+, |STATUS\(|RELEASE\(|REFUSED\(|ABSENT\(|EMPTY\()(\w+)", rows, re.MULTILINE))}
        handle = ctypes.CDLL(str(library))
        handle.OrtGetApiBase.restype = ctypes.POINTER(Base)
        address = handle.OrtGetApiBase().contents.table(VERSION)
        self.slots = ctypes.cast(address, ctypes.POINTER(Pointer))

    def function(self, name, result=Pointer):
        return ctypes.CFUNCTYPE(result)(self.slots[self.places[name]])

    def call(self, name, *arguments):
        function = self.function(name)
        failed = function(*[ctypes.c_size_t(each) if isinstance(each, int) else each for each in arguments])
        if failed:
            message = self.function("GetErrorMessage", ctypes.c_char_p)(Pointer(failed)).decode()
            self.function("ReleaseStatus", None)(Pointer(failed))
            raise RuntimeError(f"{name}: {message}")

    def make(self, name, *arguments, kind=Pointer):
        """What a function writes to its last argument."""
        out = kind()
        self.call(name, *arguments, ctypes.byref(out))
        return out


class Session:
    def __init__(self, table, model):
        self.table = table
        self.env = table.make("CreateEnv", 3, b"models")
        self.options = table.make("CreateSessionOptions")
        table.call("SetIntraOpNumThreads", self.options, 1)
        self.session = table.make("CreateSession", self.env, str(model).encode(), self.options)
        self.allocator = table.make("GetAllocatorWithDefaultOptions")
        self.memory = table.make("CreateCpuMemoryInfo", 0, 0)
        count = table.make("SessionGetOutputCount", self.session, kind=ctypes.c_size_t).value
        self.outputs = [table.make("SessionGetOutputName", self.session, i, self.allocator, kind=ctypes.c_char_p).value for i in range(count)]

    def close(self):
        for name, value in (("Session", self.session), ("SessionOptions", self.options), ("MemoryInfo", self.memory), ("Env", self.env)):
            self.table.function(f"Release{name}", None)(value)

    def value_of(self, array):
        """A value over the array's memory, which must live as long; strings are copied."""
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        if array.dtype.kind != "U":
            return self.table.make("CreateTensorWithDataAsOrtValue", self.memory, Pointer(array.ctypes.data), array.nbytes, shape, array.ndim,
                                   NUMBERS[array.dtype])
        value = self.table.make("CreateTensorAsOrtValue", self.allocator, shape, array.ndim, STRING)
        texts = (ctypes.c_char_p * array.size)(*[text.encode() for text in array.ravel().tolist()])
        self.table.call("FillStringTensor", value, texts, array.size)
        return value

    def array_of(self, value):
        """A value as an array; a sequence of maps as a row of their values for each, as reference.py has it."""
        kind = self.table.make("GetValueType", value, kind=ctypes.c_int).value
        if kind != TENSOR:
            count = self.table.make("GetValueCount", value, kind=ctypes.c_size_t).value
            parts = [self.part_of(value, i) for i in range(count)]
            return np.array(parts) if kind == SEQUENCE else parts[1]  # a map is its keys and its values
        info = self.table.make("GetTensorTypeAndShape", value)
        number = self.table.make("GetTensorElementType", info, kind=ctypes.c_int).value
        rank = self.table.make("GetDimensionsCount", info, kind=ctypes.c_size_t).value
        dims = (ctypes.c_int64 * rank)()
        self.table.call("GetDimensions", info, dims, rank)
        self.table.function("ReleaseTensorTypeAndShapeInfo", None)(info)
        shape = tuple(dims)
        if number == STRING:
            return self.strings_of(value, shape)
        data = self.table.make("GetTensorMutableData", value)
        array = np.empty(shape, DTYPES[number])
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, data, array.nbytes)
        return array

    def part_of(self, value, index):
        part = self.table.make("GetValue", value, index, self.allocator)
        try:
            return self.array_of(part)
        finally:
            self.table.function("ReleaseValue", None)(part)

    def strings_of(self, value, shape):
        count = int(np.prod(shape, dtype=np.int64))
        size = self.table.make("GetStringTensorDataLength", value, kind=ctypes.c_size_t).value
        text, offsets = ctypes.create_string_buffer(size + 1), (ctypes.c_size_t * (count + 1))()
        self.table.call("GetStringTensorContent", value, text, size, offsets, count)
        offsets[count] = size
        return np.array([text.raw[offsets[i]:offsets[i + 1]].decode() for i in range(count)], object).reshape(shape)

    def run(self, inputs):
        arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in inputs.items()}
        values = [self.value_of(array) for array in arrays.values()]
        names = (ctypes.c_char_p * len(arrays))(*[name.encode() for name in arrays])
        wanted = (ctypes.c_char_p * len(self.outputs))(*self.outputs)
        made = (Pointer * len(self.outputs))()
        try:
            self.table.call("Run", self.session, None, names, (Pointer * len(values))(*[value.value for value in values]), len(values), wanted,
                            len(self.outputs), made)
            return {name.decode(): self.array_of(Pointer(value)) for name, value in zip(self.outputs, made)}
        finally:
            for value in [*values, *[Pointer(each) for each in made if each]]:
                self.table.function("ReleaseValue", None)(value)


def wrong_of(session, case):
    """Sentences of what is wrong with the outputs for one set of inputs."""
    found = session.run({path.stem: np.load(path) for path in sorted((case / "in").glob("*.npy"))})
    step = catalog.QUANTIZED_STEP.get(case.parent.name, 0.0)
    wrong = []
    for position, name in enumerate(json.loads((case / "out" / "names.json").read_text())):
        if name not in found:
            wrong.append(f"no output {name} (there are: {', '.join(found)})")
            continue
        expected = np.load(case / "out" / f"{position}.npy")
        if found[name].dtype == object:
            expected = expected.astype(object)
        problem = check.compare(found[name], expected, step)
        if problem:
            wrong.append(f"{name}: {problem}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--cases", type=pathlib.Path, required=True, help="what reference.py wrote")
    parser.add_argument("--model", action="append", help="one model; may be repeated")
    options = parser.parse_args()
    table = Table(options.library.resolve())
    runs = failures = 0
    for folder in sorted(path.parent for path in options.cases.glob("*/complete")):
        if options.model and folder.name not in options.model:
            continue
        session = None
        for case in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                session = session or Session(table, folder / "model.onnx")
                wrong = wrong_of(session, case)
            except (RuntimeError, KeyError) as error:
                wrong = [str(error)]
            runs += 1
            failures += bool(wrong)
            print(f"{'WRONG' if wrong else 'ok'} {folder.name}, inputs {case.name}" + "".join(f"\n      {each}" for each in wrong), flush=True)
        if session:
            session.close()
    print(f"{runs} runs through the C interface, {failures} not right")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
