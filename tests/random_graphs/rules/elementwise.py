# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators whose second input, or whose attributes, have limits of their own. Values that ONNX leaves open
(integers divided by 0, shifts beyond the width, casts out of range) are not drawn."""

import numpy as np

from builder import Rejected, finite
from draws import BOOL, DTYPES, NUMBER_OF, TEXT, is_float, is_integer
from rules import broadcast_to, dtypes, given, has, rule


@rule("Div", "Mod")
def divide(b, schema):
    x = b.pick(dtypes(schema, 0))
    shape = broadcast_to(b.draws, x.shape)
    attributes = {}
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
    shape = broadcast_to(b.draws, x.shape)
    if is_float(x.dtype):
        dtype = b.draws.choose([x.dtype, b.draws.dtype(exponents)])
        if dtype not in exponents:
            dtype = x.dtype
        y = b.constant(np.full(shape, b.draws.choose([2, 3, 1, 0, -1, 0.5]), dtype)) if b.draws.chance(0.6) and dtype.kind != "u" else b.like(dtype, shape)
        return b.node("Pow", [x, y])
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


@rule("Cast", "CastLike")
def cast(b, schema):
    x = b.pick(dtypes(schema, 0))
    allowed = [DTYPES[number][0] for number in DTYPES]
    dtype = b.draws.dtype([each for each in allowed if _can_cast(x, each)])
    if schema.name == "Cast":
        return b.node("Cast", [x], {"to": NUMBER_OF[dtype]})
    if dtype == TEXT or x.dtype == TEXT:
        raise Rejected("strings are for Cast")
    return b.node("CastLike", [x, b.like(dtype, b.draws.shape(0, 2))])


@rule("BitCast")
def bit_cast(b, schema):
    x = b.pick(dtypes(schema, 0))
    same = [dtype for dtype in dtypes(schema, 0) if dtype.itemsize == x.dtype.itemsize and dtype not in (TEXT, BOOL)]
    if x.dtype in (TEXT, BOOL) or not same:
        raise Rejected("no type of its width")
    if is_float(x.dtype) and x.source in ("node", "outer"):
        raise Rejected("the last bit of what is computed may differ")
    return b.node("BitCast", [x], {"to": NUMBER_OF[b.draws.choose(same)]})


@rule("PRelu")
def prelu(b, schema):
    x = b.pick(dtypes(schema, 0))
    if x.rank > 1 and b.draws.chance(0.5):
        slope = (x.shape[1],) + (1,) * (x.rank - 2)
    else:
        slope = broadcast_to(b.draws, x.shape)
    return b.node("PRelu", [x, b.like(x.dtype, slope, "weight")])


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
    if has(schema, "broadcast"):  # opset 6 and before: not drawn
        raise Rejected("broadcasts by attribute")
    x = b.pick(dtypes(schema, 0))
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
        return b.node("Dropout", [x], given(b.draws, ratio=0.5))
    from rules.generic import float_of

    ratio = b.constant(np.array(0.3, float_of(b, schema, 1))) if b.draws.chance(0.4) else None
    training = b.constant(np.array(False)) if ratio and b.draws.chance(0.5) and schema.since_version >= 12 else None
    return b.node("Dropout", [x, ratio, training], outputs=b.draws.choose([1, 2]))


