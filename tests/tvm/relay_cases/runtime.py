# SPDX-License-Identifier: Apache-2.0
"""Kernels that call functions of TVM's runtime by name: sorting, and detectors that sort their boxes."""

import numpy as np
import tvm
from tvm import relay

from . import Call, Program, case, normal


def _program(x, body, *inputs):
    module = tvm.IRModule.from_expr(relay.Function(x, body))
    return Program(module, [Call("main", each) for each in inputs])


def _sorts(dtype):
    """Every order along both axes, as places and as values, and the largest."""
    x = relay.var("x", shape=(5, 7), dtype=dtype)
    fields = []
    for axis, up in ((0, True), (1, False), (-1, True)):
        fields += [relay.argsort(x, axis=axis, is_ascend=up, dtype="int32"), relay.sort(x, axis=axis, is_ascend=up)]
    for up, index in ((True, "int64"), (False, "float32")):
        fields += list(relay.topk(x, 3, axis=1, ret_type="both", is_ascend=up, dtype=index))
    # Few values, so that many are equal.
    return _program([x], relay.Tuple(fields), *({"x": np.round(normal(5, 7, seed=s) * 2).astype(dtype)} for s in "ab"))


@case("sort", "tuple_out")
def sort_float32():
    return _sorts("float32")


@case("sort", "tuple_out")
def sort_float64():
    return _sorts("float64")


@case("sort", "tuple_out", "float16", "since 0.9")
def sort_float16():
    return _sorts("float16")


@case("sort", "tuple_out")
def sort_int32():
    return _sorts("int32")


@case("sort", "tuple_out", "int64")
def sort_int64():
    return _sorts("int64")


@case("sort", "dynamic")
def sort_dynamic():
    x = relay.var("x", shape=(relay.Any(), 4), dtype="float32")
    return _program([x], relay.argsort(x, axis=0, dtype="int32"), *({"x": normal(n, 4)} for n in (6, 1, 9)))


def _boxes(seed):
    """(1, 9, 6): class, score, two corners; some boxes nearly the same."""
    corners = np.abs(normal(1, 9, 2, seed=seed))
    corners[0, 5:] = corners[0, :4] + 0.01
    scores = np.abs(normal(1, 9, 1, seed=seed + "s"))
    classes = np.zeros((1, 9, 1), "float32")
    return np.concatenate([classes, scores, corners, corners + 1], axis=2).astype("float32")


@case("sort", "detector")
def non_max_suppression():
    data = relay.var("data", shape=(1, 9, 6), dtype="float32")
    valid = relay.vision.get_valid_counts(data, 0.2, 0, 1)
    kept = relay.vision.non_max_suppression(
        valid[1], valid[0], valid[2], relay.const(-1), relay.const(0.5), force_suppress=False, top_k=-1, coord_start=2,
        score_index=1, id_index=0, return_indices=False)
    return _program([data], kept, *({"data": _boxes(seed)} for seed in "ab"))


@case("sort", "detector")
def multibox_detection():
    scores = relay.var("scores", shape=(1, 3, 8), dtype="float32")
    places = relay.var("places", shape=(1, 32), dtype="float32")
    anchors = relay.var("anchors", shape=(1, 8, 4), dtype="float32")
    boxes = relay.vision.multibox_transform_loc(scores, places, anchors)
    kept = relay.vision.non_max_suppression(
        boxes[0], boxes[1], relay.const(np.arange(8).reshape(1, 8).astype("int32")), relay.const(-1), relay.const(0.5),
        return_indices=False)
    inputs = {"scores": np.abs(normal(1, 3, 8)), "places": normal(1, 32) / 10, "anchors": np.abs(normal(1, 8, 4))}
    return _program([scores, places, anchors], kept, inputs)
