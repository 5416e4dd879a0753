# SPDX-License-Identifier: Apache-2.0
"""The table of functions, called by ctypes: by hand where arrays are passed, and else by the types in onnxruntime_api/slots.def."""
import ctypes
import pathlib
import re

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
VERSION = 28
Pointer = ctypes.c_void_p
Size = ctypes.c_size_t
# Numbers of ONNXTensorElementDataType.
DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 11: "float64",
          12: "uint32", 13: "uint64"}
NUMBERS = {name: number for number, name in DTYPES.items()}
STRING = 8
TENSOR, SEQUENCE, MAP, OPTIONAL = 1, 2, 3, 6  # of ONNXType

TEXTS = (b"", b"x", b"y", b"Cpu", b"no such", b"n0")
SIZES = (0, 1, 2, 3, 5, 1 << 40)
INTEGERS = (-2, -1, 0, 1, 2, 3, 5, 100)

# Functions that generated calls leave out: they write files, change the process, need functions of the host, or give what differs
# between any two processes.
LEFT_OUT = re.compile(
    r"Env|Telemetry|Profil|OptimizedModel|CustomOp|Register|Kernel|Logg|Run\b|RunAsync|RunWithBinding|Allocator(Alloc|Free|GetStats)|EpDevice|Provider|"
    r"Release|Prepacked|CreateSession$|CreateSessionFrom|SharedAllocator|Delegate|CancellationFlag|GetTensorMutableData|GetTensorData|"
    r"GetResizedString|Affinity|GlobalSpin|Ep[A-Z]|BuildInfo|CreateAllocator|DynamicOptions|ModelCompilation|EpSelection")
HANDLE = re.compile(r"^(const )?(Ort\w+)\*$")
ENUMS = {"ONNXTensorElementDataType": 24, "GraphOptimizationLevel": 6, "ExecutionMode": 2, "OrtAllocatorType": 3, "OrtMemType": 3,
         "ONNXType": 8}
OUT = {"size_t": Size, "int": ctypes.c_int, "int64_t": ctypes.c_int64, "float": ctypes.c_float, "uint64_t": ctypes.c_uint64,
       "ONNXType": ctypes.c_int, "ONNXTensorElementDataType": ctypes.c_int, "OrtMemType": ctypes.c_int, "OrtAllocatorType": ctypes.c_int}


class Failed(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def signatures():
    """{function: [(type, name)]} of the functions that give a status, and the place of each function."""
    rows = (ROOT / "onnxruntime_api" / "slots.def").read_text(encoding="utf-8")
    found = re.findall(r"^(?:SERVED\([^,]+, |STATUS\(|RELEASE\(|REFUSED\(|ABSENT\(|EMPTY\()(\w+)", rows, re.MULTILINE)
    places = {name: i for i, name in enumerate(found)}
    served = {}
    for name, parameters in re.findall(r"^STATUS\((\w+), \((.*)\)\)$", rows, re.MULTILINE):
        served[name] = [tuple(each.strip().rsplit(" ", 1)) for each in parameters.split(",")]
    return places, served


class Library:
    def __init__(self, path):
        class Base(ctypes.Structure):
            _fields_ = [("table", ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]

        self.places, self.served = signatures()
        handle = ctypes.CDLL(str(path))
        handle.OrtGetApiBase.restype = ctypes.POINTER(Base)
        self.slots = ctypes.cast(handle.OrtGetApiBase().contents.table(VERSION), ctypes.POINTER(Pointer))
        self.env = self.make("CreateEnv", ctypes.c_int(4), b"random")
        self.allocator = self.make("GetAllocatorWithDefaultOptions")
        self.memory = self.make("CreateCpuMemoryInfo", ctypes.c_int(0), ctypes.c_int(0))

    def function(self, name, result=Pointer):
        return ctypes.CFUNCTYPE(result)(self.slots[self.places[name]])

    def call(self, name, *arguments):
        """Raises Failed with the status that the function gives."""
        status = self.function(name)(*arguments)
        if status:
            text = self.function("GetErrorMessage", ctypes.c_char_p)(Pointer(status)).decode(errors="replace")
            code = self.function("GetErrorCode", ctypes.c_int)(Pointer(status))
            self.function("ReleaseStatus", None)(Pointer(status))
            raise Failed(code, text)

    def make(self, name, *arguments, kind=Pointer):
        out = kind()
        self.call(name, *arguments, ctypes.byref(out))
        return out

    def release(self, what, handle):
        self.function(f"Release{what}", None)(handle)

    def text(self, pointer):
        """A text that the allocator has made; frees it."""
        value = ctypes.string_at(pointer).decode(errors="replace")
        self.call("AllocatorFree", self.allocator, pointer)
        return value

    # Values.

    def tensor(self, array):
        """A value with the array's elements, and what must live as long."""
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        rank = Size(array.ndim)
        if array.dtype == object:
            value = self.make("CreateTensorAsOrtValue", self.allocator, shape, rank, ctypes.c_int(STRING))
            texts = (ctypes.c_char_p * array.size)(*[each.encode() for each in array.ravel().tolist()])
            self.call("FillStringTensor", value, texts, Size(array.size))
            return value, None
        kept = np.ascontiguousarray(array).reshape(array.shape)
        return self.make("CreateTensorWithDataAsOrtValue", self.memory, Pointer(kept.ctypes.data), Size(kept.nbytes), shape, rank,
                         ctypes.c_int(NUMBERS[array.dtype.name])), kept

    def value_of(self, given):
        """The value of an array, or of a list of arrays as a sequence."""
        if not isinstance(given, list):
            return self.tensor(given)
        parts = [self.tensor(each) for each in given]
        handles = (Pointer * len(parts))(*[part[0].value for part in parts])
        return self.make("CreateValue", handles, Size(len(parts)), ctypes.c_int(SEQUENCE)), parts

    def describe_value(self, value):
        """What a value holds, as lists and numbers."""
        if not self.make("HasValue", value, kind=ctypes.c_int).value:
            return "no value"
        kind = self.make("GetValueType", value, kind=ctypes.c_int).value
        if kind != TENSOR:
            count = self.make("GetValueCount", value, kind=Size).value
            parts = []
            for i in range(min(count, 20)):
                part = self.make("GetValue", value, ctypes.c_int(i), self.allocator)
                parts.append(self.describe_value(part))
                self.release("Value", part)
            return [kind, count, parts]
        info = self.make("GetTensorTypeAndShape", value)
        described = self.describe_shape(info)
        self.release("TensorTypeAndShapeInfo", info)
        return [described, self.elements_of(value, described[0], described[1])]

    def elements_of(self, value, number, shape):
        count = int(np.prod(shape, dtype=np.int64))
        if number == STRING:
            size = self.make("GetStringTensorDataLength", value, kind=Size).value
            text, offsets = ctypes.create_string_buffer(size + 1), (Size * (count + 1))()
            self.call("GetStringTensorContent", value, text, Size(size), offsets, Size(count))
            offsets[count] = size
            return [text.raw[offsets[i]:offsets[i + 1]].decode(errors="replace") for i in range(count)]
        if number not in DTYPES:
            return []
        array = np.empty(shape, DTYPES[number])
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, self.make("GetTensorMutableData", value), array.nbytes)
        return [str(each) if each != each or abs(each) == float("inf") else each for each in array.ravel().tolist()]

    # Types.

    def describe_shape(self, info):
        number = self.make("GetTensorElementType", info, kind=ctypes.c_int).value
        rank = self.make("GetDimensionsCount", info, kind=Size).value
        dims, names = (ctypes.c_int64 * rank)(), (ctypes.c_char_p * rank)()
        self.call("GetDimensions", info, dims, Size(rank))
        self.call("GetSymbolicDimensions", info, names, Size(rank))
        return [number, list(dims), [each.decode() for each in names]]

    def describe_type(self, info):
        kind = self.make("GetOnnxTypeFromTypeInfo", info, kind=ctypes.c_int).value
        if kind == TENSOR:
            return [kind, self.describe_shape(self.make("CastTypeInfoToTensorInfo", info))]
        if kind == SEQUENCE:
            inner = self.make("GetSequenceElementType", self.make("CastTypeInfoToSequenceTypeInfo", info))
        elif kind == OPTIONAL:
            inner = self.make("GetOptionalContainedTypeInfo", self.make("CastTypeInfoToOptionalTypeInfo", info))
        elif kind == MAP:
            of = self.make("CastTypeInfoToMapTypeInfo", info)
            inner = self.make("GetMapValueType", of)
            kind = [kind, self.make("GetMapKeyType", of, kind=ctypes.c_int).value]
        else:
            return [kind]
        described = self.describe_type(inner)
        self.release("TypeInfo", inner)
        return [kind, described]


class Generated:
    """Calls whose arguments are drawn by their types. Objects that calls make are arguments of later ones."""

    def __init__(self, library, random):
        self.library, self.random = library, random
        self.pools = {"OrtAllocator": [library.allocator], "OrtMemoryInfo": [library.memory]}
        self.owned = []
        self.functions = sorted(name for name, parameters in library.served.items() if not LEFT_OUT.search(name) and self.can(parameters))

    @staticmethod
    def can(parameters):
        return all(HANDLE.match(kind) or kind in ENUMS or kind in OUT or kind in ("const char*", "char**", "const int64_t*", "bool", "const char**")
                   or re.match(r"^(const )?Ort\w+\*\*$", kind) or kind.removesuffix("*") in OUT for kind, _ in parameters)

    def add(self, kind, handle, owned=True):
        self.pools.setdefault(kind, []).append(handle)
        if owned:
            self.owned.append((kind, handle))

    def argument(self, kind, name):
        """(the argument, what it says in a transcript); None if there is no object of the type."""
        random = self.random
        handle = HANDLE.match(kind)
        if handle:
            pool = self.pools.get(handle[2])
            if not pool:
                return None
            index = random.randrange(len(pool))
            return pool[index], f"{handle[2]} {index}"
        if kind == "const char*":
            text = random.choice(TEXTS)
            return text, repr(text)
        if kind in ENUMS:
            number = random.randint(0, ENUMS[kind])
            return ctypes.c_int(number), number
        if kind in ("size_t", "uint64_t"):
            number = random.choice(SIZES)
            return Size(number), number
        if kind == "bool":
            number = random.randint(0, 1)
            return ctypes.c_bool(number), number
        number = random.choice(INTEGERS)
        return (ctypes.c_int64 if kind == "int64_t" else ctypes.c_int)(number), number

    def step(self):
        """[function, arguments, result] of one call, or None if it has no objects yet."""
        name = self.random.choice(self.functions)
        arguments, said, outs = [], [], []
        parameters = self.library.served[name]
        dims = None
        for kind, parameter in parameters:
            if kind == "const int64_t*":
                dims = [self.random.choice((0, 1, 2, 3, -1, 1 << 62)) for _ in range(self.random.randint(0, 3))]
                arguments.append((ctypes.c_int64 * len(dims))(*dims))
                said.append(dims)
            elif dims is not None and kind == "size_t" and parameter in ("rank", "count"):
                arguments.append(Size(len(dims)))
                dims = None
            elif kind in ("char**", "const char**") or kind.endswith("**"):
                outs.append((kind, Pointer()))
                arguments.append(ctypes.byref(outs[-1][1]))
            elif kind.endswith("*") and kind[:-1] in OUT:
                outs.append((kind, OUT[kind[:-1]]()))
                arguments.append(ctypes.byref(outs[-1][1]))
            else:
                drawn = self.argument(kind, parameter)
                if drawn is None:
                    return None
                arguments.append(drawn[0])
                said.append(drawn[1])
        if name in ("GetDimensions", "GetSymbolicDimensions", "SetSymbolicDimensions", "SessionGetMemoryInfoForInputs", "SessionGetMemoryInfoForOutputs",
                    "GetStringTensorContent", "FillStringTensor", "GetStringTensorElement", "CreateValue"):
            return None  # arrays, which the scenario passes
        try:
            self.library.call(name, *arguments)
        except Failed as failed:
            return [name, said, ["failed", failed.code, str(failed)]]
        return [name, said, [self.result(kind, out) for kind, out in outs]]

    def result(self, kind, out):
        if kind == "char**":
            return None if not out.value else self.library.text(out)
        if kind == "const char**":
            return None if not out.value else ctypes.string_at(out).decode(errors="replace")
        if isinstance(out, Pointer):
            of = re.match(r"^(const )?(Ort\w+)\*\*$", kind)
            if of and out.value:
                self.add(of[2], Pointer(out.value), owned=not of[1] and of[2] != "OrtAllocator")
            return bool(out.value)
        return out.value
