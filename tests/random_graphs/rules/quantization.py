# SPDX-License-Identifier: Apache-2.0
"""Operators of quantized models."""

from builder import Rejected, numbers
from draws import F32, I8, U8, is_float
from rules import dtypes, has, rule

INTEGERS = (U8, I8)


def scale_of(b, dtype=F32, shape=()):
    return b.constant(b.draws.positive(dtype, shape, 0.02, 0.5))


def zero_of(b, dtype, shape=()):
    return b.constant(b.draws.integers(dtype, shape, 0 if dtype.kind == "u" else -3, 7))


@rule("QuantizeLinear")
def quantize(b, schema):
    x = b.pick([dtype for dtype in dtypes(schema, 0) if is_float(dtype)], (0, 5), numbers)
    shape, attributes = (), {}
    if x.rank > 1 and has(schema, "axis") and b.draws.chance(0.35):
        axis = b.draws.between(-x.rank, x.rank - 1)
        shape, attributes = (x.shape[axis],), {"axis": axis}
    dtype = b.draws.choose(INTEGERS)
    return b.node("QuantizeLinear", [x, scale_of(b, x.dtype, shape), zero_of(b, dtype, shape) if b.draws.chance(0.85) else None], attributes)


@rule("DequantizeLinear")
def dequantize(b, schema):
    x = b.pick(INTEGERS, (0, 5))
    shape, attributes = (), {}
    if x.rank > 1 and has(schema, "axis") and b.draws.chance(0.35):
        axis = b.draws.between(-x.rank, x.rank - 1)
        shape, attributes = (x.shape[axis],), {"axis": axis}
    return b.node("DequantizeLinear", [x, scale_of(b, F32, shape), zero_of(b, x.dtype, shape) if b.draws.chance(0.85) else None], attributes)


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
