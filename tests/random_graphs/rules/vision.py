# SPDX-License-Identifier: Apache-2.0
"""Resizing, sampling, boxes, and signals."""

import numpy as np

from builder import Rejected, numbers
from draws import F32, FLOATS, HALVES, I32, I64, NUMBER_OF, is_float
from rules import dtypes, given, has, rule
from rules.convolution import image
from rules.generic import float_of


@rule("Resize", "Upsample")
def resize(b, schema):
    x = image(b, dtypes(schema, 0))
    mode = b.draws.choose(["nearest", "nearest", "linear", "cubic"]) if x.rank == 4 else "nearest"
    if schema.name == "Upsample":
        scales = b.parameter([1.0, 1.0, *(float(b.draws.choose([1, 2, 3])) for _ in x.shape[2:])], F32)
        if has(schema, "scales"):
            raise Rejected("with sizes as attributes: not drawn")
        return b.node("Upsample", [x, scales], {"mode": "nearest"})
    if schema.since_version < 11:
        scales = b.parameter([1.0, 1.0, *(float(b.draws.choose([1, 2, 3])) for _ in x.shape[2:])], F32)
        return b.node("Resize", [x, scales], {"mode": "nearest"})
    attributes = {"mode": mode}
    attributes.update(given(b.draws, coordinate_transformation_mode=b.draws.choose(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])))
    if mode == "nearest":
        attributes.update(given(b.draws, nearest_mode=b.draws.choose(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])))
    if mode == "cubic":
        attributes.update(given(b.draws, cubic_coeff_a=-0.5))
    if schema.since_version >= 18 and mode != "nearest":
        attributes.update(given(b.draws, antialias=b.draws.between(0, 1)))
    if mode == "cubic":
        attributes.update(given(b.draws, exclude_outside=b.draws.between(0, 1)))
    empty = b.constant(np.zeros((0,), np.float32)) if schema.since_version < 13 else None
    roi = empty
    exact = mode == "nearest" or is_float(x.dtype)
    if mode != "cubic" and exact and b.draws.chance(0.1):
        attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
        attributes.update(given(b.draws, extrapolation_value=0.5))
        roi = b.parameter([0.0, 0.0, *(0.25 for _ in x.shape[2:]), 1.0, 1.0, *(b.draws.choose([0.75, 1.25]) for _ in x.shape[2:])], F32)
    # Factors in quarters are exact. Which scale a size that is no multiple means differs between versions.
    # What integers are rounded from is exact for the first two alone, and where the corners do not count.
    if not exact and attributes.get("coordinate_transformation_mode") == "align_corners":
        del attributes["coordinate_transformation_mode"]
    factors = [b.draws.choose([1, 2, 3, 0.5, 1.5, 1.25] if exact else [1, 2]) for _ in x.shape[2:]]
    if any(int(size * factor) < 1 for size, factor in zip(x.shape[2:], factors)):
        raise Rejected("nothing would be left")
    axes = list(range(2, x.rank)) if schema.since_version >= 18 and b.draws.chance(0.2) and roi is empty else None
    lead = [1.0, 1.0]
    if axes:
        attributes["axes"], lead = b.draws.choose([axes, [axis - x.rank for axis in axes]]), []
    # To the reference, the axis whose ends count may be a fraction long. ONNX Runtime lacks types, but for float16 as float32 (oracles.py).
    part = any(size * factor != int(size * factor) for size, factor in zip(x.shape[2:], factors))
    cropped = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if part and (cropped or attributes.get("coordinate_transformation_mode") == "align_corners" and x.dtype not in (F32, *HALVES)):
        raise Rejected("how long the axis is counts otherwise elsewhere")
    if b.draws.chance(0.5):
        return b.node("Resize", [x, roi, b.parameter([*lead, *map(float, factors)], F32)], attributes)
    sizes = [int(size * factor) for size, factor in zip(x.shape[2:], factors)]
    if any(size * factor != made for size, factor, made in zip(x.shape[2:], factors, sizes)):
        raise Rejected("which scale a size means is open")
    if schema.since_version >= 18 and axes and b.draws.chance(0.4):
        attributes["keep_aspect_ratio_policy"] = b.draws.choose(["stretch", "not_larger", "not_smaller"])
    return b.node("Resize", [x, roi, empty, b.parameter(([] if axes else list(x.shape[:2])) + sizes)], attributes)


@rule("GridSample")
def grid_sample(b, schema):
    x = image(b, [dtype for dtype in dtypes(schema, 0) if dtype in (F32, np.dtype(np.float64))], ranks=(4, 4))
    modes = ["bilinear", "nearest", "bicubic"] if schema.since_version < 20 else ["linear", "nearest", "cubic"]
    grid = b.fresh(b.draws.array(F32, (x.shape[0], b.draws.extent(1, 4), b.draws.extent(1, 4), 2), "normal"), role="data")
    if x.dtype != F32:
        grid = b.cast(grid, x.dtype)
    return b.node("GridSample", [x, grid], given(b.draws, mode=b.draws.choose(modes[:2]), padding_mode=b.draws.choose(["zeros", "border", "reflection"]), align_corners=b.draws.between(0, 1)))


@rule("AffineGrid")
def affine_grid(b, schema):
    n = b.draws.between(1, 2)
    spatial = b.draws.choose([2, 2, 3])
    theta = b.like(float_of(b, schema), (n, spatial, spatial + 1))
    # Where the corners of a single element are is open.
    return b.node("AffineGrid", [theta, b.parameter([n, 2, *(b.draws.extent(2, 4) for _ in range(spatial))])], given(b.draws, align_corners=b.draws.between(0, 1)))


def _boxes(b, count):
    low = b.draws.positive(F32, (count, 2), 0, 3 * b.draws.boxes)
    return np.concatenate([low, low + b.draws.positive(F32, (count, 2), 0.5, 4 * b.draws.boxes)], 1)


@rule("RoiAlign")
def roi_align(b, schema):
    x = image(b, [F32], ranks=(4, 4))
    count = b.draws.extent(1, 3)
    attributes = given(b.draws, mode=b.draws.choose(["avg", "max"]), output_height=2, output_width=3, sampling_ratio=b.draws.choose([0, 1, 2]), spatial_scale=0.5)
    if has(schema, "coordinate_transformation_mode"):
        attributes.update(given(b.draws, coordinate_transformation_mode=b.draws.choose(["half_pixel", "output_half_pixel"])))
    return b.node("RoiAlign", [x, b.fresh(_boxes(b, count), role="parameter"), b.indices((count,), 0, x.shape[0])], attributes)


@rule("MaxRoiPool")
def roi_pool(b, schema):
    x = image(b, [F32], ranks=(4, 4))
    count = b.draws.extent(1, 3)
    boxes = np.concatenate([b.draws.integers(F32, (count, 1), 0, x.shape[0]), np.round(_boxes(b, count))], 1).astype(np.float32)
    return b.node("MaxRoiPool", [x, b.fresh(boxes, role="parameter")], {"pooled_shape": [b.draws.between(1, 2), b.draws.between(1, 2)], **given(b.draws, spatial_scale=0.5)})


@rule("NonMaxSuppression")
def suppression(b, schema):
    batch, classes, count = b.draws.between(1, 2), b.draws.between(1, 2), b.draws.extent(1, 5)
    boxes = np.stack([_boxes(b, count) for _ in range(batch)])
    scores = b.fresh(b.draws.positive(F32, (batch, classes, count), 0, 1), role="parameter")
    limits = [b.parameter(np.array([b.draws.between(1, 4)])), b.parameter(np.array([0.4]), F32), b.parameter(np.array([0.2]), F32)]
    return b.node("NonMaxSuppression", [b.fresh(boxes, role="parameter"), scores, *limits[:b.draws.between(1, 3)]], given(b.draws, center_point_box=b.draws.between(0, 1)))


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def window(b, schema):
    return b.node(schema.name, [b.parameter(np.array(b.draws.between(2, 9)), b.draws.choose([I64, I32]))], given(b.draws, periodic=b.draws.between(0, 1), **_made(b, schema)))


def _made(b, schema):
    """The type of what is made, where it may be named."""
    return {"output_datatype": NUMBER_OF[b.draws.dtype(FLOATS)]}


@rule("MelWeightMatrix")
def mel(b, schema):
    values = [b.parameter(np.array(each)) for each in (b.draws.between(2, 5), 16, 8000)] + [b.parameter(np.array(each), F32) for each in (20.0, 4000.0)]
    return b.node("MelWeightMatrix", values, given(b.draws, **_made(b, schema)))


@rule("DFT")
def dft(b, schema):
    length = b.draws.extent(2, 8)
    inverse = b.draws.between(0, 1)
    x = b.like(float_of(b, schema), (b.draws.extent(1, 2), length, 2 if inverse or b.draws.chance(0.3) else 1), fits=numbers)
    x = b.close(x, 1)
    attributes = {"inverse": inverse}
    attributes.update(given(b.draws, onesided=0))
    if has(schema, "axis"):
        return b.node("DFT", [x], {**attributes, "axis": 1})
    return b.node("DFT", [x, None, b.parameter(np.array(1))], attributes)


@rule("STFT")
def stft(b, schema):
    frame = b.draws.extent_of([4, 8])
    x = b.like(F32, (b.draws.between(1, 2), frame + b.draws.extent(0, 9), 1), fits=numbers)
    w = b.constant(b.draws.positive(F32, (frame,))) if b.draws.chance(0.5) else None
    return b.node("STFT", [x, b.parameter(np.array(b.draws.between(1, 4))), w, b.parameter(np.array(frame))], given(b.draws, onesided=b.draws.between(0, 1)))
