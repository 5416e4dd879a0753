# SPDX-License-Identifier: Apache-2.0
"""What is drawn at random: element types, sizes and values. All draws follow one seed."""

import random

import ml_dtypes
import numpy as np
from onnx import TensorProto

BF16 = np.dtype(ml_dtypes.bfloat16)
TEXT = np.dtype(object)

# By ONNX's number: numpy's type, and how often it is drawn where a schema allows it.
DTYPES = {
    TensorProto.FLOAT: (np.dtype(np.float32), 40),
    TensorProto.FLOAT16: (np.dtype(np.float16), 4),
    TensorProto.BFLOAT16: (BF16, 3),
    TensorProto.DOUBLE: (np.dtype(np.float64), 4),
    TensorProto.INT64: (np.dtype(np.int64), 6),
    TensorProto.INT32: (np.dtype(np.int32), 5),
    TensorProto.INT16: (np.dtype(np.int16), 2),
    TensorProto.INT8: (np.dtype(np.int8), 3),
    TensorProto.UINT64: (np.dtype(np.uint64), 2),
    TensorProto.UINT32: (np.dtype(np.uint32), 2),
    TensorProto.UINT16: (np.dtype(np.uint16), 2),
    TensorProto.UINT8: (np.dtype(np.uint8), 4),
    TensorProto.BOOL: (np.dtype(bool), 3),
    TensorProto.STRING: (TEXT, 1),
}
# Types of few bits. They stand within models alone: numpy and ONNX Runtime have no arrays of most of them.
NARROW_FLOATS = {
    "float8e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn), "float8e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2), "float8e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    "float4e2m1": (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn), "float8e8m0": (TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu),
}
NARROW_INTEGERS = {
    "int4": (TensorProto.INT4, ml_dtypes.int4), "uint4": (TensorProto.UINT4, ml_dtypes.uint4), "int2": (TensorProto.INT2, ml_dtypes.int2), "uint2": (TensorProto.UINT2, ml_dtypes.uint2),
}
NARROW_INTEGER_TYPES = {np.dtype(dtype) for _, dtype in NARROW_INTEGERS.values()}
NARROW = {np.dtype(dtype) for _, dtype in (NARROW_FLOATS | NARROW_INTEGERS).values()}
DTYPES.update((number, (np.dtype(dtype), 0.7)) for number, dtype in (NARROW_FLOATS | NARROW_INTEGERS).values())
NUMBER_OF = {dtype: number for number, (dtype, _) in DTYPES.items()}
FLOATS = (np.dtype(np.float32), np.dtype(np.float16), BF16, np.dtype(np.float64))
HALVES = (np.dtype(np.float16), BF16)
F32, I64, I32, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32), np.dtype(bool)
U8, I8 = np.dtype(np.uint8), np.dtype(np.int8)
# One model in eight is mostly of one of these, so that its inputs and outputs are, too.
SHORT = (np.dtype(np.float16), BF16, I8, U8, np.dtype(np.int16))

# As schemas spell them.
NAMES = {
    "float": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16,
    "double": TensorProto.DOUBLE, "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int16": TensorProto.INT16,
    "int8": TensorProto.INT8, "uint64": TensorProto.UINT64, "uint32": TensorProto.UINT32, "uint16": TensorProto.UINT16,
    "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL, "string": TensorProto.STRING,
    **{name: number for name, (number, _) in (NARROW_FLOATS | NARROW_INTEGERS).items()},
}
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)  # powers of two

# Values that products and sums take. Those of "extremes" overflow in sums, whose order is open.
STYLES = {"quarters": 4, "normal": 10, "wide": 2, "edges": 4, "extremes": 2}
_WORDS = ("", "a", "B", "zz", "Ab c", "0", "-1.5", "ß", "日本", "the", "of")


def is_float(dtype):
    return dtype in FLOATS


def is_integer(dtype):
    return dtype.kind in "iu"


def edges(dtype, extreme):
    """The values at the edges of a type; `extreme`: also its largest ones."""
    if is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        found = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(info.tiny), float(info.smallest_subnormal), 1.0, -1.0]
        return found + [float(info.max), float(info.min), -float(info.smallest_subnormal)] if extreme else found
    info = np.iinfo(dtype)
    return [info.min, info.max, info.max - 1, info.min + 1] if extreme else [0, 1, 2]


class Draws:
    """A source of random choices for one model: what it draws has the model's style. Rules ask `extent` and `extent_of` for the
    sizes of axes, and `between` and `choose` for all other numbers, so that another source (tests/bench/operators) makes the same
    operators larger."""

    kernels = (1, 2, 3, 3, 4, 5)  # sizes of windows
    boxes = 1  # how large boxes are

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._arrays = np.random.Generator(np.random.PCG64(seed & (2**63 - 1)))
        self.style = self.weighted(STYLES)
        # Few sizes for one model, so that shapes fit each other.
        usual = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17]
        self.sizes = self._random.sample(usual, 3) + ([1] if self.chance(0.5) else []) + ([0] if self.chance(0.06) else [])
        # Kernels have blocks and vectors: a roomy model has sizes around theirs.
        self.roomy = self.chance(0.06)
        if self.roomy:
            self.sizes += self._random.sample([24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 256, 257, 300], 2)

        self.usual = self.choose(SHORT) if self.chance(0.125) else None

    def chance(self, probability):
        return self._random.random() < probability

    def choose(self, options):
        return self._random.choice(tuple(options))

    def weighted(self, weights):
        return self._random.choices(tuple(weights), tuple(weights.values()))[0]

    def between(self, low, high):
        """Both inclusive."""
        return self._random.randint(low, high)

    def extent(self, low, high):
        """The size of an axis."""
        return self.between(low, high)

    def extent_of(self, options):
        """The size of an axis that usually is one of a few, such as channels."""
        return self.choose(options)

    def pads(self, kernel, least):
        """How far a window reaches over the two ends of an axis."""
        return self.between(least, max(kernel - 1, least)), self.between(0, kernel - 1)

    def real(self, low, high):
        return self._random.uniform(low, high)

    def some(self, options, count):
        return self._random.sample(list(options), count)

    def shuffled(self, options):
        return self.some(options, len(options))

    @property
    def most_elements(self):
        """How many elements a tensor has at most."""
        return 40_000 if self.roomy else 3000

    def size(self):
        return self._random.choice(self.sizes)

    def shape(self, least=0, most=6):
        weights = {0: 6, 1: 14, 2: 24, 3: 24, 4: 20, 5: 6, 6: 3}
        return tuple(self.size() for _ in range(self.weighted({r: weights[r] for r in range(least, min(most, 6) + 1)})))

    def dtype(self, allowed):
        """One of these, the usual ones more often."""
        weights = dict(DTYPES.values())
        return self.weighted({dtype: weights[dtype] + (100 if dtype is self.usual else 0) for dtype in allowed})

    def array(self, dtype, shape, style=None):
        style = style or self.style
        if dtype == TEXT:
            return np.array([self.choose(_WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        if dtype == BOOL:
            return self._arrays.integers(0, 2, shape).astype(bool)
        if dtype in NARROW:
            return self._narrow(dtype, shape)
        if is_integer(dtype):
            low = 0 if dtype.kind == "u" else -6
            array = self._arrays.integers(low, 7, shape).astype(dtype)
        elif style == "quarters":
            array = (self._arrays.integers(-12, 13, shape) / 4).astype(dtype)
        else:
            array = self._arrays.standard_normal(shape)
            if style == "wide":
                array = array * 10.0 ** self._arrays.integers(-3, 4, shape)
            array = np.asarray(array).astype(dtype)
        if style in ("edges", "extremes") and array.size:
            with np.errstate(all="ignore"):
                special = np.array(edges(dtype, style == "extremes")).astype(dtype)
            array = np.array(array)
            here = self._arrays.random(shape) < 0.2
            array[here] = special[self._arrays.integers(0, special.size, int(np.count_nonzero(here)))]
        return np.asarray(array)

    def _narrow(self, dtype, shape):
        """Numbers that the type holds."""
        if dtype in NARROW_INTEGER_TYPES:
            info = ml_dtypes.iinfo(dtype)
            return np.asarray(self._arrays.integers(int(info.min), int(info.max) + 1, shape)).astype(np.int8).astype(dtype)
        array = np.asarray(self._arrays.standard_normal(shape))
        return (np.abs(array) if dtype == E8M0 else array).astype(np.float32).astype(dtype)

    def integers(self, dtype, shape, low, high):
        """low to high - 1."""
        return np.asarray(self._arrays.integers(low, max(high, low + 1), shape)).astype(dtype)

    def positive(self, dtype, shape, low=0.25, high=2.0):
        return np.asarray(self._arrays.uniform(low, high, shape)).astype(dtype)
