# SPDX-License-Identifier: Apache-2.0
"""Operators with positions, orders and reductions."""

import numpy as np

from builder import Rejected, numbers
from draws import BOOL, I32, I64, TEXT, is_float
from rules import any_axis, axes_of, dtypes, given, has, rule


@rule("Gather")
def gather(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5))
    attributes = given(b.draws, axis=any_axis(b.draws, x.rank))
    size = x.shape[attributes.get("axis", 0)]
    low = -size if schema.since_version >= 11 else 0
    return b.node("Gather", [x, b.indices(b.draws.shape(0, 3), low, size, b.draws.choose([I64, I64, I32]))], attributes)


@rule("GatherElements")
def gather_elements(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5))
    attributes = given(b.draws, axis=any_axis(b.draws, x.rank))
    axis = attributes.get("axis", 0) % x.rank
    shape = [b.draws.size() if i == axis else b.draws.between(min(1, size), size) for i, size in enumerate(x.shape)]
    return b.node("GatherElements", [x, b.indices(shape, -x.shape[axis], x.shape[axis], b.draws.choose([I64, I32]))], attributes)


@rule("GatherND")
def gather_nd(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5), lambda v: v.array.size > 0)
    batch = b.draws.between(0, min(2, x.rank - 1)) if has(schema, "batch_dims") else 0
    for axis in range(batch):  # ONNX Runtime takes indices of another batch
        b.close(x, axis)
    depth = b.draws.between(1, x.rank - batch)
    shape = x.shape[:batch] + b.draws.shape(0, 2) + (depth,)
    columns = [b.draws.integers(I64, shape[:-1], -x.shape[batch + i] if schema.since_version >= 11 else 0, x.shape[batch + i]) for i in range(depth)]
    attributes = {"batch_dims": batch} if batch else {}
    return b.node("GatherND", [x, b.fresh(np.stack(columns, -1), role="parameter")], attributes)


def _reduction(b, schema, x):
    names = [name for name in ("none", "add", "mul", "max", "min") if name in ("none", "add", "mul") or schema.since_version >= 18]
    if not has(schema, "reduction") or x.dtype == TEXT or not numbers(x):  # which of a number and NaN is less is open
        return {}
    return given(b.draws, reduction=b.draws.choose(names))


@rule("ScatterElements", "Scatter")
def scatter_elements(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4))
    attributes = {**given(b.draws, axis=any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)), **_reduction(b, schema, x)}
    axis = attributes.get("axis", 0) % x.rank
    shape = [b.draws.between(min(1, size), size) for size in x.shape]
    if x.shape[axis] == 0:
        raise Rejected("there is nowhere to scatter to")
    indices = b.draws.integers(I64, shape, 0, x.shape[axis])
    if attributes.get("reduction", "none") == "none":  # which of two wins is left open
        indices = np.argsort(b.draws.array(np.dtype(np.float64), x.shape, "normal"), axis).astype(I64)[tuple(map(slice, shape))]
    if schema.since_version >= 11 and b.draws.chance(0.3):
        indices = np.where(indices % 2 == 0, indices, indices - x.shape[axis])
    updates = b.like(x.dtype, shape, fits=numbers if "reduction" in attributes else lambda v: True)
    for axis in range(x.rank if updates.source == "input" else 0):  # the reference takes updates of other sizes
        b.close(updates, axis)
    return b.node(schema.name, [x, b.fresh(indices, role="parameter"), updates], attributes)


@rule("ScatterND")
def scatter_nd(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4), lambda v: v.array.size > 0)
    depth = b.draws.between(1, x.rank)
    places = int(np.prod(x.shape[:depth]))
    attributes = _reduction(b, schema, x)
    count = b.draws.extent(0, min(places, 5))
    flat = b.draws.some(range(places), count) if attributes.get("reduction", "none") == "none" else [b.draws.between(0, places - 1) for _ in range(count)]
    indices = np.stack(np.unravel_index(np.array(flat, I64), x.shape[:depth]), -1).astype(I64).reshape(count, depth)
    return b.node("ScatterND", [x, b.fresh(indices, role="parameter"), b.like(x.dtype, (count, *x.shape[depth:]), fits=numbers if attributes else lambda v: True)], attributes)


@rule("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
      "ReduceLogSumExp", "ReduceSumSquare")
def reduce(b, schema):
    x = b.pick(dtypes(schema, 0))
    attributes = given(b.draws, keepdims=b.draws.between(0, 1))
    axes = axes_of(b.draws, x.rank) if b.draws.chance(0.8) and x.rank else None
    if axes and schema.since_version < 11:
        axes = [axis % x.rank for axis in axes]
    if x.dtype.kind in "iu" and schema.name not in ("ReduceMax", "ReduceMin"):
        total = np.square(x.array.astype(np.float64)).sum()
        if schema.name == "ReduceProd":
            total = np.prod(np.maximum(np.abs(x.array.astype(np.float64)), 1))
        if total > np.iinfo(x.dtype).max:
            raise Rejected("where on the way an integer overflows is open")
    if axes and 0 in x.shape:  # ONNX Runtime forgets axes that count from the back
        axes = [axis % x.rank for axis in axes]
    if has(schema, "axes"):
        return b.node(schema.name, [x], {**attributes, **({"axes": axes} if axes else {})})
    if axes is None:
        attributes.update(given(b.draws, noop_with_empty_axes=b.draws.between(0, 1)))
    return b.node(schema.name, [x, b.parameter(axes) if axes else None], attributes)


@rule("ArgMax", "ArgMin")
def arg(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5), lambda v: v.array.size > 0 and not (is_float(v.dtype) and np.isnan(v.array.astype(np.float64)).any()))
    axis = any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)
    last = {"select_last_index": b.draws.between(0, 1)} if has(schema, "select_last_index") else {}
    return b.node(schema.name, [x], given(b.draws, axis=axis, keepdims=b.draws.between(0, 1), **last))


def _orderable(value):
    """Without NaN and without equal elements, whose order ONNX leaves open."""
    flat = value.array.ravel()
    return not (is_float(value.dtype) and np.isnan(flat.astype(np.float64)).any())


@rule("TopK")
def top(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4), _orderable)
    axis = any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)
    attributes = given(b.draws, axis=axis)
    k = b.draws.between(0 if b.draws.chance(0.1) else 1, max(x.shape[attributes.get("axis", -1)], 1))
    if k > x.shape[attributes.get("axis", -1)]:
        raise Rejected("there are fewer elements")
    if has(schema, "largest"):
        attributes.update(given(b.draws, largest=b.draws.between(0, 1), sorted=1))
    if has(schema, "k"):
        return b.node("TopK", [x], {**attributes, "k": k}, 2)
    return b.node("TopK", [x, b.parameter([k])], attributes, 2)


@rule("CumSum", "CumProd")
def cumulate(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4))
    axis = b.parameter(np.array(any_axis(b.draws, x.rank)), b.draws.choose([I64, I32]))
    return b.node(schema.name, [x, axis], given(b.draws, exclusive=b.draws.between(0, 1), reverse=b.draws.between(0, 1)))


@rule("OneHot")
def one_hot(b, schema):
    depth = b.draws.extent(1, 5)
    index_type = b.draws.choose([dtype for dtype in (I64, I32, np.dtype(np.float32)) if dtype in dtypes(schema, 0)])
    indices = b.indices(b.draws.shape(0, 3), -depth, depth + 1, index_type)
    values = b.like(b.draws.dtype(dtypes(schema, 2)), (2,), "weight")
    axis = b.draws.between(-indices.rank - 1, indices.rank)
    size = b.parameter(np.array(depth) if b.draws.chance(0.5) else [depth])
    return b.node("OneHot", [indices, size, values], given(b.draws, axis=axis))


@rule("NonZero")
def non_zero(b, schema):
    # How near to 0 a function's least results are is open.
    return b.node("NonZero", [b.pick(dtypes(schema, 0), (1, 4), lambda v: v.source != "node" or not is_float(v.dtype) or not np.any((v.array != 0) & (np.abs(v.array) < 1e-12)))])


@rule("Compress")
def compress(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4))
    attributes = given(b.draws, axis=any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1))
    size = x.shape[attributes["axis"]] if attributes else x.array.size
    for axis in range(x.rank):  # others take conditions that are longer
        b.close(x, axis)
    condition = b.fresh(b.draws.array(BOOL, (b.draws.between(0, size) if b.draws.chance(0.3) else size,)), role="parameter")
    return b.node("Compress", [x, condition], attributes)


@rule("Unique")
def unique(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 3), lambda v: _orderable(v) and v.array.size > 0)
    attributes = given(b.draws, axis=any_axis(b.draws, x.rank), sorted=b.draws.between(0, 1))
    return b.node("Unique", [x], attributes, b.draws.between(1, 4))


@rule("TensorScatter")
def tensor_scatter(b, schema):
    batch, length, more = b.draws.between(1, 3), b.draws.between(2, 5), b.draws.shape(1, 2)
    x = b.data(b.draws.dtype(dtypes(schema, 0)), (batch, length, *more))
    if x.array.size == 0:
        raise Rejected("there is nothing to write")
    count = b.draws.between(1, length)
    mode = b.draws.choose(["linear", "circular"])
    where = b.indices((batch,), 0, length if mode == "circular" else length - count + 1) if b.draws.chance(0.7) else None
    return b.node("TensorScatter", [x, b.like(x.dtype, (batch, count, *more)), where], {"axis": 1, "mode": mode})
