# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators whose second input, or whose attributes, have limits of their own. Values that ONNX leaves open
(integers divided by 0, shifts beyond the width, casts out of range) are not drawn."""

import ml_dtypes
import numpy as np

from builder import Rejected, finite, numbers
from draws import BOOL, E8M0, F32, NARROW, NARROW_INTEGER_TYPES, NUMBER_OF, TEXT, is_float, is_integer
from rules import broadcast_to, dtypes, given, has, rule, second, types_of


@rule("Div", "Mod")
def divide(b, schema):
    x = b.pick(dtypes(schema, 0))
    shape, attributes = second(b, schema, x.shape)
    if schema.name == "Mod" and (is_float(x.dtype) or b.draws.chance(0.4)):
        attributes["fmod"] = 1
    if is_float(x.dtype):
        y = b.like(x.dtype, shape)
    else:
        # -1 is left out too: the lowest integer by -1 is no integer.
        y = b.fresh(b.draws.integers(x.dtype, shape, 1, 7), ("range", x.dtype, 1, 7), "weight")
    return b.node(schema.name, [x, y], attributes)


@rule("Pow")
def power(b, schema):
    x = b.pick([dtype for dtype in dtypes(schema, 0)])
    exponents = dtypes(schema, 1)
    shape, attributes = second(b, schema, x.shape)
    if is_float(x.dtype):
        dtype = b.draws.choose([x.dtype, b.draws.dtype(exponents)])
        if dtype not in exponents:
            dtype = x.dtype
        y = b.constant(np.full(shape, b.draws.choose([2, 3, 1, 0, -1, 0.5]), dtype)) if b.draws.chance(0.6) and dtype.kind != "u" else b.like(dtype, shape)
        return b.node("Pow", [x, y], attributes)
    if np.abs(x.array.astype(np.float64)).max(initial=0) > 7:
        raise Rejected("the result could be out of range")
    dtype = x.dtype if x.dtype in exponents else exponents[0]
    if not is_integer(dtype):
        raise Rejected("no exponent that is an integer")
    return b.node("Pow", [x, b.fresh(b.draws.integers(dtype, shape, 0, 3), ("range", dtype, 0, 3), "weight")])


@rule("BitShift")
def shift(b, schema):
    x = b.pick(dtypes(schema, 0))
    bits = x.dtype.itemsize * 8
    y = b.fresh(b.draws.integers(x.dtype, broadcast_to(b.draws, x.shape), 0, bits), ("range", x.dtype, 0, bits), "weight")
    return b.node("BitShift", [x, y], {"direction": b.draws.choose(["LEFT", "RIGHT"])})


@rule("Clip")
def clip(b, schema):
    x = b.pick(dtypes(schema, 0))
    low, high = sorted(b.draws.integers(np.dtype(np.int64), (2,), 0 if x.dtype.kind == "u" else -4, 6))
    if schema.since_version < 11:
        return b.node("Clip", [x], given(b.draws, min=float(low), max=float(high)))
    bounds = [b.fresh(np.array(limit, x.dtype), role="parameter") if b.draws.chance(0.7) else None for limit in (low, high)]
    return b.node("Clip", [x, *bounds])


@rule("Where")
def where(b, schema):
    x = b.pick(dtypes(schema, 1))
    condition = b.like(BOOL, broadcast_to(b.draws, x.shape))
    y = b.like(x.dtype, broadcast_to(b.draws, x.shape))
    x, y = b.draws.shuffled([x, y])
    return b.node("Where", [condition, x, y])


def _can_cast(x, dtype):
    if x.dtype in NARROW or dtype in NARROW:
        return _can_narrow(x, dtype)
    if dtype == TEXT:
        return not is_float(x.dtype) and x.dtype != TEXT
    if x.dtype == TEXT:
        return False
    if not is_float(x.dtype) or is_float(dtype) or dtype == BOOL:
        return True
    # A float that the integer does not hold has no defined result, and one that is whole cannot become another by rounding.
    info = np.iinfo(dtype)
    array = x.array.astype(np.float64)
    return finite(x) and bool(np.all((array >= max(info.min, -(2**30))) & (array <= min(info.max, 2**30))))


def _can_narrow(x, dtype):
    """Whether a cast from or to a type of few bits is defined. What is computed may lie on either side of a border, so that only
    stored values become narrow."""
    if x.dtype in NARROW:
        return is_float(dtype) or dtype in (np.dtype(np.int32), np.dtype(np.int64)) and x.dtype in NARROW_INTEGER_TYPES
    if x.source not in ("input", "constant") or x.dtype in (TEXT, BOOL):
        return False
    array = x.array.astype(np.float64)
    if dtype in NARROW_INTEGER_TYPES:
        info = ml_dtypes.iinfo(dtype)
        return bool(np.all((array >= int(info.min)) & (array <= int(info.max))))
    if dtype == E8M0:
        return bool(np.all((array > 1e-30) & (array < 1e30)))
    return x.dtype in (F32, np.dtype(np.float16)) and bool(np.isfinite(array).all())


@rule("Cast", "CastLike")
def cast(b, schema):
    x = b.pick(dtypes(schema, 0))
    allowed = types_of(schema.outputs[0].types if schema.name == "Cast" else schema.inputs[1].types)
    allowed = [each for each in allowed if _can_cast(x, each)]
    few_bits = [each for each in allowed if each in NARROW]
    dtype = b.draws.dtype(few_bits if few_bits and b.draws.chance(0.2) else allowed)
    saturate = given(b.draws, saturate=b.draws.between(0, 1)) if has(schema, "saturate") and dtype in NARROW and dtype not in NARROW_INTEGER_TYPES else {}
    if schema.name == "Cast":
        return b.node("Cast", [x], {"to": NUMBER_OF[dtype], **saturate})
    if dtype == TEXT or x.dtype == TEXT:
        raise Rejected("strings are for Cast")
    return b.node("CastLike", [x, b.like(dtype, b.draws.shape(0, 2))], saturate)


@rule("BitCast")
def bit_cast(b, schema):
    x = b.pick(dtypes(schema, 0))
    same = [dtype for dtype in dtypes(schema, 0) if dtype.itemsize == x.dtype.itemsize and dtype not in (TEXT, BOOL) and dtype not in NARROW]
    if x.dtype in (TEXT, BOOL) or x.dtype in NARROW or not same:
        raise Rejected("no type of its width")
    if is_float(x.dtype) and x.source in ("node", "outer"):
        raise Rejected("the last bit of what is computed may differ")
    return b.node("BitCast", [x], {"to": NUMBER_OF[b.draws.choose(same)]})


@rule("PRelu")
def prelu(b, schema):
    x = b.pick(dtypes(schema, 0))
    if schema.since_version < 7:  # one slope, or one for each channel
        slope = (x.shape[1],) if x.rank > 1 and b.draws.chance(0.7) else (1,)
    elif x.rank > 1 and b.draws.chance(0.5):
        slope = (x.shape[1],) + (1,) * (x.rank - 2)
    else:
        slope = broadcast_to(b.draws, x.shape)
    # What 0 by an infinite slope is differs: the text has 0, sums of two sides have NaN.
    return b.node("PRelu", [x, b.like(x.dtype, slope, "weight", numbers)])


@rule("HardSigmoid", "Elu", "LeakyRelu", "Selu", "ThresholdedRelu", "Shrink", "Celu", "Swish")
def with_slopes(b, schema):
    x = b.pick(dtypes(schema, 0))
    draw = {"alpha": [0.2, 0.01, 1.0, 0.5, 1.702], "beta": [0.5, 0.0, 1.0], "gamma": [1.05, 1.0, 0.5], "lambd": [0.5, 0.0, 1.5], "bias": [0.0, 0.5]}
    return b.node(schema.name, [x], given(b.draws, **{name: b.draws.choose(draw[name]) for name in sorted(schema.attributes) if name in draw}))


@rule("Gelu")
def gelu(b, schema):
    return b.node("Gelu", [b.pick(dtypes(schema, 0))], given(b.draws, approximate=b.draws.choose(["none", "tanh"])))


@rule("IsInf")
def is_infinite(b, schema):
    return b.node("IsInf", [b.pick(dtypes(schema, 0))], given(b.draws, detect_negative=b.draws.between(0, 1), detect_positive=b.draws.between(0, 1)))


@rule("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less")
def broadcast(b, schema):
    x = b.pick(dtypes(schema, 0))
    if has(schema, "broadcast"):
        shape, attributes = second(b, schema, x.shape)
        return b.node(schema.name, [x, b.like(x.dtype, shape, b.draws.choose(["data", "weight"]))], attributes)
    # Two sides that both are broadcast, now and then.
    if x.rank and b.draws.chance(0.2):
        shape = [size if size != 1 else b.draws.size() for size in x.shape]
        y = b.like(x.dtype, [1 if size != 1 and b.draws.chance(0.4) else size for size in shape], b.draws.choose(["data", "weight"]))
    else:
        y = b.like(x.dtype, broadcast_to(b.draws, x.shape), b.draws.choose(["data", "weight"]))
    return b.node(schema.name, b.draws.shuffled([x, y]))


@rule("Dropout")
def dropout(b, schema):
    x = b.pick(dtypes(schema, 0))
    if has(schema, "ratio"):
        return b.node("Dropout", [x], {**given(b.draws, ratio=0.5), **({"is_test": 1} if has(schema, "is_test") else {})})
    from rules.generic import float_of

    ratio = b.constant(np.array(0.3, float_of(b, schema, 1))) if b.draws.chance(0.4) else None
    training = b.constant(np.array(False)) if ratio and b.draws.chance(0.5) and schema.since_version >= 12 else None
    return b.node("Dropout", [x, ratio, training], outputs=b.draws.choose([1, 2]))


