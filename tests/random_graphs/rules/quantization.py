# SPDX-License-Identifier: Apache-2.0
"""Operators of quantized models."""

import numpy as np

from builder import Rejected, numbers
from draws import E8M0, F32, I8, NARROW, NARROW_INTEGER_TYPES, NUMBER_OF, U8, is_float
from rules import dtypes, given, has, rule

INTEGERS = (U8, I8)
I16, U16, I32 = (np.dtype(kind) for kind in ("int16", "uint16", "int32"))


def scale_of(b, dtype=F32, shape=()):
    return b.constant(b.draws.positive(dtype, shape, 0.02, 0.5))


def zero_of(b, dtype, shape=()):
    if dtype in NARROW:  # of floats it is 0
        return b.constant(b.draws.array(dtype, shape) if dtype in NARROW_INTEGER_TYPES else np.zeros(shape, dtype))
    return b.constant(b.draws.integers(dtype, shape, 0 if dtype.kind == "u" else -3, 7))


def _narrow(b, schema, place):
    """A type of few bits that the schema has, now and then."""
    found = [dtype for dtype in dtypes(schema, place) if dtype in NARROW and dtype != E8M0]
    return b.draws.choose(found) if found and b.draws.chance(0.25) else None


def _parts(b, schema, x):
    """The shape of scales and zeros, and the attributes that say so: one, one for each row of an axis, or one for each block."""
    if x.rank < 1 or not has(schema, "axis") or b.draws.chance(0.6):
        return (), {}
    axis = b.draws.between(-x.rank, x.rank - 1)
    size = x.shape[axis]
    blocks = [each for each in (1, 2, 3, 4) if size and size % each == 0]
    if not has(schema, "block_size") or not blocks or b.draws.chance(0.6):
        return (size,), {"axis": axis}
    block = b.draws.choose(blocks)
    shape = list(x.shape)
    shape[axis] = size // block
    return tuple(shape), {"axis": axis, "block_size": block}


@rule("QuantizeLinear")
def quantize(b, schema):
    narrow = _narrow(b, schema, 2)
    # What is computed may lie on either side of a border between few steps.
    x = b.pick([dtype for dtype in dtypes(schema, 0) if is_float(dtype)], (0, 5), lambda v: numbers(v) and (not narrow or v.source in ("input", "constant")))
    shape, attributes = _parts(b, schema, x)
    dtype = narrow or b.draws.choose(INTEGERS + ((I16, U16) if schema.since_version >= 21 else ()))
    with_zero = b.draws.chance(0.85) or bool(narrow)
    if narrow and narrow not in NARROW_INTEGER_TYPES:
        attributes.update(given(b.draws, saturate=b.draws.between(0, 1)))
    if not with_zero and has(schema, "output_dtype"):
        attributes.update(given(b.draws, output_dtype=NUMBER_OF[dtype]))
    return b.node("QuantizeLinear", [x, scale_of(b, x.dtype, shape), zero_of(b, dtype, shape) if with_zero else None], attributes)


@rule("DequantizeLinear")
def dequantize(b, schema):
    narrow = _narrow(b, schema, 0)
    x = b.data(narrow, b.draws.shape(0, 4)) if narrow else b.pick(INTEGERS + (I32,) + ((I16, U16) if schema.since_version >= 21 else ()), (0, 5))
    shape, attributes = _parts(b, schema, x)
    dtype = b.draws.choose([F32, F32, np.dtype(np.float16)]) if schema.since_version >= 19 else F32
    # Those of 32 bits are sums, which have no zero point.
    return b.node("DequantizeLinear", [x, scale_of(b, dtype, shape), zero_of(b, x.dtype, shape) if b.draws.chance(0.85) and x.dtype != I32 else None], attributes)


def few_bits(b):
    """Stored numbers as a type of few bits, moved, and back."""
    if b.opset() < 19:
        raise Rejected("types of few bits are newer")
    made = b.draws.choose([quantize_few, cast_few])(b)
    kind = b.draws.choose(["Transpose", "Reshape", "Identity", "Unsqueeze", "none"])
    if kind == "Transpose" and made.rank:
        made = b.node("Transpose", [made], {"perm": b.draws.shuffled(range(made.rank))})[0]
    elif kind == "Reshape":
        made = b.node("Reshape", [made, b.constant(np.array([-1] if made.array.size else [0], np.int64))])[0]
    elif kind == "Unsqueeze":
        made = b.node("Unsqueeze", [made, b.constant(np.array([0], np.int64))])[0]
    elif kind == "Identity":
        made = b.identity(made)
    if b.draws.chance(0.5):
        return b.node("Cast", [made], {"to": NUMBER_OF[b.draws.choose([F32, F32, np.dtype(np.float16)])]})
    return b.node("DequantizeLinear", [made, scale_of(b), zero_of(b, made.dtype) if b.draws.chance(0.5) else None])


def _stored(b):
    return b.pick([F32, np.dtype(np.float16)], (0, 4), lambda v: numbers(v) and v.source in ("input", "constant"))


def quantize_few(b):
    x, dtype = _stored(b), b.draws.choose(sorted(NARROW - {E8M0}, key=str))
    saturate = given(b.draws, saturate=b.draws.between(0, 1)) if dtype not in NARROW_INTEGER_TYPES else {}
    return b.node("QuantizeLinear", [x, scale_of(b, x.dtype), zero_of(b, dtype)], saturate)[0]


def cast_few(b):
    x, dtype = _stored(b), b.draws.choose(sorted(NARROW - {E8M0} - NARROW_INTEGER_TYPES, key=str))
    return b.node("Cast", [x], {"to": NUMBER_OF[dtype], **given(b.draws, saturate=b.draws.between(0, 1))})[0]


@rule("DynamicQuantizeLinear")
def dynamic(b, schema):
    return b.node("DynamicQuantizeLinear", [b.pick([F32], (0, 4), lambda v: v.array.size > 0 and numbers(v))], outputs=3)


@rule("QLinearMatMul")
def qlinear_matmul(b, schema):
    x = b.pick(INTEGERS, (2, 4))
    w = b.like(b.draws.choose(INTEGERS), (x.shape[-1], b.draws.size()), "weight")
    out = x.dtype
    inputs = [x, scale_of(b), zero_of(b, x.dtype), w, scale_of(b), zero_of(b, w.dtype), scale_of(b), zero_of(b, out)]
    return b.node("QLinearMatMul", inputs)


def fake_quantize(b, x, dtype=None):
    """A pair of QuantizeLinear and DequantizeLinear, as QDQ models have them around each tensor."""
    if not numbers(x):
        raise Rejected("what NaN becomes is open")
    scale, zero = scale_of(b, x.dtype), zero_of(b, dtype or b.draws.choose(INTEGERS))
    return b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, scale, zero])[0], scale, zero])[0]
