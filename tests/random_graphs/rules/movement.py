# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements or make shapes."""

import numpy as np

from builder import Rejected, to_tensor
from draws import BOOL, F32, I32, I64, NUMBER_OF
from rules import any_axis, axes_of, dtypes, given, has, rule


def _factors(draws, elements, rank):
    """A shape of so many elements."""
    shape = []
    for _ in range(rank - 1):
        divisors = [d for d in range(1, elements + 1) if elements % d == 0] if elements else [0, 1, 2, 3]
        shape.append(draws.choose(divisors))
        elements = elements // shape[-1] if shape[-1] else 0
    shape.append(elements)
    return draws.shuffled(shape)


@rule("Reshape")
def reshape(b, schema):
    x = b.pick(dtypes(schema, 0))
    elements = int(np.prod(x.shape))
    if elements == 1 and b.draws.chance(0.3):
        target = []
    elif b.draws.chance(0.4) and x.rank:
        # Neighbors are joined: what exporters do with open sizes.
        at = b.draws.between(0, x.rank - 1)
        target = list(x.shape[:at]) + [int(np.prod(x.shape[at:at + 2]))] + list(x.shape[at + 2:])
    else:
        target = _factors(b.draws, elements, b.draws.between(1, 5))
    attributes = {}
    if 0 in target:
        if has(schema, "allowzero") and elements == 0:
            attributes["allowzero"] = 1
        elif any(size == 0 and (i >= x.rank or x.shape[i] != 0) for i, size in enumerate(target)):
            raise Rejected("0 would copy a size")
    else:
        for axis in range(min(len(target), x.rank)):
            if target[axis] == x.shape[axis] and b.draws.chance(0.4):
                target[axis] = 0
        if target and b.draws.chance(0.5):
            target[b.draws.between(0, len(target) - 1)] = -1
    if has(schema, "shape"):
        if not target:
            raise Rejected("a list without elements shows no type")
        return b.node("Reshape", [x], {"shape": target})
    return b.node("Reshape", [x, b.parameter(np.array(target, I64))], attributes)


@rule("Flatten")
def flatten(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 6))
    low = -x.rank if schema.since_version >= 11 else 0
    return b.node("Flatten", [x], given(b.draws, axis=b.draws.between(low, x.rank)))


@rule("Transpose")
def transpose(b, schema):
    x = b.pick(dtypes(schema, 0))
    usual = [p for p in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1), (0, 2, 1, 3), (0, 3, 2, 1), (1, 0)) if len(p) == x.rank]
    perm = b.draws.choose(usual) if usual and b.draws.chance(0.5) else b.draws.shuffled(range(x.rank))
    return b.node("Transpose", [x], {} if x.rank == 0 or b.draws.chance(0.15) else {"perm": list(perm)})


def _with_axes(b, schema, x, axes):
    if has(schema, "axes"):
        return b.node(schema.name, [x], {"axes": axes} if axes is not None else {})
    return b.node(schema.name, [x, b.parameter(np.array(axes, I64)) if axes is not None else None])


@rule("Squeeze")
def squeeze(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 6), lambda v: 1 in v.shape, shape=[1 if b.draws.chance(0.6) else b.draws.size() for _ in range(b.draws.between(1, 5))])
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    axes = b.draws.some(ones, b.draws.between(1, len(ones)))
    low = schema.since_version >= 11
    return _with_axes(b, schema, x, [a - x.rank if low and b.draws.chance(0.3) else a for a in axes] if b.draws.chance(0.85) else None)


@rule("Unsqueeze")
def unsqueeze(b, schema):
    x = b.pick(dtypes(schema, 0), (0, 4))
    count = b.draws.between(1, 2)
    axes = axes_of(b.draws, x.rank + count, count)
    return _with_axes(b, schema, x, [a % (x.rank + count) for a in axes] if schema.since_version < 11 else axes)


@rule("Expand")
def expand(b, schema):
    x = b.pick(dtypes(schema, 0), (0, 4))
    target = [b.draws.size() if size == 1 and b.draws.chance(0.6) else b.draws.choose([size, 1]) for size in x.shape]
    target = [b.draws.size() for _ in range(b.draws.between(0, 2))] + target
    if b.draws.chance(0.2) and len(target) > 1 and x.rank < len(target):
        target = target[1:]
    return b.node("Expand", [x, b.parameter(np.array(target, I64))])


@rule("Tile")
def tile(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4))
    return b.node("Tile", [x, b.parameter(np.array([b.draws.choose([1, 1, 2, 3, 0] if b.draws.chance(0.2) else [1, 2, 3]) for _ in range(x.rank)], I64))])


@rule("Concat")
def concat(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 6))
    axis = any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)
    parts = [x]
    for _ in range(b.draws.between(0, 3)):
        shape = list(x.shape)
        if b.draws.chance(0.5):
            shape[axis] = b.draws.size()
        parts.append(x if b.draws.chance(0.1) else b.like(x.dtype, shape))
    by_default = not schema.attributes["axis"].required and axis == 1
    return b.node("Concat", b.draws.shuffled(parts), {} if by_default and b.draws.chance(0.5) else {"axis": axis})


@rule("Split")
def split(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 6))
    axis = any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)
    size = x.shape[axis]
    attributes = given(b.draws, axis=axis)
    size = x.shape[attributes.get("axis", 0)]
    count = b.draws.between(1, 4)
    cuts = sorted(b.draws.between(0, size) for _ in range(count - 1))
    lengths = [high - low for low, high in zip([0, *cuts], [*cuts, size])]
    even = [each for each in (2, 3, 4, 1) if size and size % each == 0]
    if b.draws.chance(0.4) and even:
        count = b.draws.choose(even)
        if "num_outputs" in schema.attributes:
            attributes["num_outputs"] = count
        return b.node("Split", [x], attributes, count)
    if has(schema, "split"):
        return b.node("Split", [x], {**attributes, "split": lengths}, count)
    return b.node("Split", [x, b.parameter(np.array(lengths, I64))], attributes, count)


@rule("Slice")
def slices(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 6))
    axes = axes_of(b.draws, x.rank)
    starts, ends, steps = [], [], []
    for axis in axes:
        size, step = x.shape[axis], b.draws.choose([1, 1, 1, 2, 3, -1, -2]) if schema.since_version >= 10 else 1
        start, end = b.draws.between(0, max(size - 1, 0)), b.draws.between(0, size + 2)
        if step < 0:
            end = b.draws.choose([-size - 1, start - b.draws.between(0, 3) if start > 3 else -size - 1])
        elif b.draws.chance(0.3):
            start, end = start - size, b.draws.choose([2**31 - 1, 2**63 - 1, size])
        starts.append(start), ends.append(end), steps.append(step)
    if has(schema, "axes"):
        natural = [axis % x.rank for axis in axes]
        return b.node("Slice", [x], {"starts": starts, "ends": ends, "axes": natural})
    dtype = b.draws.choose([I64, I64, I32])
    ends = [max(min(end, np.iinfo(dtype).max), np.iinfo(dtype).min) for end in ends]
    parameters = [b.parameter(each, dtype) for each in (starts, ends, axes)]
    if any(step != 1 for step in steps) or b.draws.chance(0.3):
        parameters.append(b.parameter(steps, dtype))
    return b.node("Slice", [x, *parameters])


@rule("Pad")
def pad(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5))
    mode = b.draws.choose(["constant", "constant", "edge", "reflect"] + (["wrap"] if schema.since_version >= 19 else []))
    axes = axes_of(b.draws, x.rank) if len(schema.inputs) > 3 and b.draws.chance(0.3) else None
    wide = range(x.rank) if axes is None else axes
    most = {"constant": lambda size: 3, "edge": lambda size: 3 if size else 0, "reflect": lambda size: max(size - 1, 0), "wrap": lambda size: size}[mode]
    pads = [b.draws.between(0, min(2, most(x.shape[axis]))) for _ in (0, 1) for axis in wide]
    if mode == "constant" and b.draws.chance(0.2):
        pads = [-1 if x.shape[list(wide)[i % len(wide)]] > 2 and b.draws.chance(0.3) else each for i, each in enumerate(pads)]
    attributes = given(b.draws, mode=mode) if mode == "constant" else {"mode": mode}
    named = next((name for name in ("pads", "paddings") if has(schema, name)), None)
    if named:
        return b.node("Pad", [x], {**attributes, named: pads, **given(b.draws, value=1.5)})
    fill = b.fresh(b.draws.array(x.dtype, ()), role="parameter") if mode == "constant" and b.draws.chance(0.5) else None
    inputs = [x, b.parameter(pads), fill]
    return b.node("Pad", inputs + ([b.parameter(axes)] if axes is not None else []), attributes)


@rule("DepthToSpace", "SpaceToDepth")
def blocks(b, schema):
    block = b.draws.choose([1, 2, 3])
    n, c, h, w = (b.draws.choose([0, 1, 2, 3]) if b.draws.chance(0.05) else b.draws.between(1, 3) for _ in range(4))
    deep = schema.name == "DepthToSpace"
    shape = (n, c * block * block, h, w) if deep else (n, c, h * block, w * block)
    fits = (lambda v: v.shape[1] % (block * block) == 0) if deep else (lambda v: v.shape[2] % block == 0 and v.shape[3] % block == 0)
    x = b.pick(dtypes(schema, 0), (4, 4), fits, shape=shape)
    mode = given(b.draws, mode=b.draws.choose(["DCR", "CRD"])) if has(schema, "mode") else {}
    return b.node(schema.name, [x], {"blocksize": block, **mode})


@rule("Trilu")
def trilu(b, schema):
    x = b.pick(dtypes(schema, 0), (2, 5))
    k = b.parameter(np.array(b.draws.between(-4, 4), I64)) if b.draws.chance(0.6) else None
    return b.node("Trilu", [x, k], given(b.draws, upper=b.draws.between(0, 1)))


@rule("EyeLike")
def eye(b, schema):
    x = b.pick(dtypes(schema, 0), (2, 2))
    dtype = b.draws.dtype([each for each in dtypes(schema, 0)])
    return b.node("EyeLike", [x], given(b.draws, k=b.draws.between(-2, 2), dtype=NUMBER_OF[dtype]))


@rule("ConstantOfShape")
def fill(b, schema):
    attributes = {}
    if b.draws.chance(0.7):
        dtype = b.draws.dtype([F32, I64, I32, BOOL])
        # In quarters the mean of equal elements is exact: what one ulp is of their differences, no oracle can say.
        attributes["value"] = to_tensor(b.draws.array(dtype, (1,), "quarters"))
    return b.node("ConstantOfShape", [b.parameter(np.array(b.draws.shape(0, 4), I64))], attributes)


@rule("Constant")
def constant(b, schema):
    form = b.draws.choose([name for name in sorted(schema.attributes) if name != "sparse_value"])
    value = {
        "value": lambda: to_tensor(b.draws.array(b.draws.dtype([F32, I64, BOOL]), b.draws.shape(0, 4))),
        "value_float": lambda: 1.5, "value_floats": lambda: [0.5, -1.0], "value_int": lambda: 3, "value_ints": lambda: [1, 2, -1],
        "value_string": lambda: "a", "value_strings": lambda: ["a", "b"],
    }[form]()
    return b.node("Constant", [], {form: value})


@rule("Shape")
def shape_of(b, schema):
    x = b.pick(dtypes(schema, 0))
    return b.node("Shape", [x], given(b.draws, start=b.draws.between(-3, 3), end=b.draws.between(-3, 3)) if has(schema, "start") else {})


@rule("Range")
def ranges(b, schema):
    dtype = b.draws.dtype(dtypes(schema, 0))
    low, step = b.draws.between(-3, 3), b.draws.choose([1, 2, 3, -1, -2])
    limit = low + step * b.draws.between(0, 6) + b.draws.choose([0, 0, 1])
    return b.node("Range", [b.fresh(np.array(each, dtype), role="parameter") for each in (low, limit, step)])


@rule("CenterCropPad")
def crop(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4))
    axes = axes_of(b.draws, x.rank) if b.draws.chance(0.6) else None
    target = [b.draws.between(1, 6) for _ in range(x.rank if axes is None else len(axes))]
    return b.node("CenterCropPad", [x, b.parameter(target, b.draws.choose([I64, I32]))], {} if axes is None else {"axes": axes})


@rule("ReverseSequence")
def reverse(b, schema):
    x = b.pick(dtypes(schema, 0), (2, 4), lambda v: v.shape[0] > 0 and v.shape[1] > 0)
    batch = b.draws.between(0, 1)
    lengths = b.indices((x.shape[batch],), 1, x.shape[1 - batch] + 1)
    return b.node("ReverseSequence", [x, lengths], {"batch_axis": batch, "time_axis": 1 - batch})


@rule("Identity")
def identity(b, schema):
    return b.node("Identity", [b.pick(dtypes(schema, 0))])


