# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools: windows that fit the image."""

import numpy as np

from builder import Rejected, numbers
from draws import F32, I8, U8
from rules import dtypes, given, has, rule
from rules.generic import float_of


class Windows:
    """Kernel sizes, strides, dilations and pads over spatial axes, no window larger than its padded image."""

    def __init__(self, b, spatial, dilate=True, same=True, least_pad=0):
        draws = b.draws
        self.kernel, self.strides, self.dilations, begins, ends = [], [], [], [], []
        for size in spatial:
            kernel = draws.choose(draws.kernels)
            dilation = draws.choose([1, 1, 1, 2]) if dilate else 1
            begin, end = draws.pads(kernel, least_pad)
            if size + begin + end < dilation * (kernel - 1) + 1:
                kernel, dilation, begin, end = 1, 1, 0, 0
            if size + begin + end < 1:
                raise Rejected("no window fits")
            self.kernel.append(kernel), self.dilations.append(dilation), begins.append(begin), ends.append(end)
            self.strides.append(draws.choose([1, 1, 2, 3]))
        if draws.chance(0.5):
            self.strides = [1] * len(spatial)
        if draws.chance(0.3):
            begins = ends = [0] * len(spatial)
            if any(size < d * (k - 1) + 1 for size, d, k in zip(spatial, self.dilations, self.kernel)):
                raise Rejected("no window fits")
        self.pads = begins + ends
        self.auto = draws.choose(["SAME_UPPER", "SAME_LOWER", "VALID"]) if same and draws.chance(0.15) else None
        if self.auto:
            self.dilations = [1] * len(spatial)
            if self.auto == "VALID" and any(size < k for size, k in zip(spatial, self.kernel)):
                raise Rejected("no window fits")

    def touch(self, spatial, ceil):
        """Whether each window has an element of the image under it."""
        if self.auto:
            return True
        for axis, size in enumerate(spatial):
            kernel, stride, dilation = self.kernel[axis], self.strides[axis], self.dilations[axis]
            begin, end = self.pads[axis], self.pads[axis + len(spatial)]
            room = size + begin + end - dilation * (kernel - 1) - 1
            count = (room + stride - 1 if ceil else room) // stride + 1
            if not all(any(0 <= i * stride - begin + k * dilation < size for k in range(kernel)) for i in range(count)):
                return False
        return True

    def attributes(self, b, schema, shape_needed=True):
        found = {"kernel_shape": self.kernel} if shape_needed or b.draws.chance(0.7) else {}
        if any(s != 1 for s in self.strides) or b.draws.chance(0.3):
            found["strides"] = self.strides
        if has(schema, "dilations") and (any(d != 1 for d in self.dilations) or b.draws.chance(0.2)):
            found["dilations"] = self.dilations
        if self.auto:
            found["auto_pad"] = self.auto
        elif any(self.pads) or b.draws.chance(0.2):
            found["pads"] = self.pads
        return found


def image(b, allowed, channels=None, ranks=(3, 5), fits=numbers):
    """An image of numbers: an infinity or NaN spreads in Winograd's form (docs/compiler.md), and pools differ on NaN."""
    rank = b.draws.choose([4, 4, 4, 3, 5])
    rank = min(max(rank, ranks[0]), ranks[1])
    channels = channels or b.draws.extent_of([1, 2, 3, 4, 6, 8, 16] + ([24, 32, 33, 64] if b.draws.roomy else []))
    spatial = [b.draws.extent(1, 9 if rank == 4 else 5) for _ in range(rank - 2)]
    return b.pick(allowed, ranks, lambda v: v.shape[1] > 0 and all(v.shape[2:]) and fits(v), shape=(b.draws.choose([1, 1, 2, 3]), channels, *spatial))


def _bias(b, dtype, size):
    """The reference takes one of another size: where it is an input, its size is not left open."""
    bias = b.like(dtype, (size,), "weight")
    return b.close(bias, 0) if bias.source == "input" else bias


@rule("Conv", "ConvInteger")
def conv(b, schema):
    x = image(b, dtypes(schema, 0))
    windows = Windows(b, x.shape[2:])
    channels = x.shape[1]
    groups = b.draws.choose([1, 1, 1, channels, *[g for g in (2, 3, 4) if channels % g == 0]])
    out = groups * (b.draws.choose([1, 2, 3]) if groups > 1 else b.draws.extent_of([1, 2, 4, 8, 16, 3] + ([24, 32, 33, 64] if b.draws.roomy else [])))
    shape = (out, channels // groups, *windows.kernel)
    if np.prod(shape) > b.most_elements:
        raise Rejected("too many weights")
    attributes = {**windows.attributes(b, schema, False), **({"group": groups} if groups > 1 or b.draws.chance(0.2) else {})}
    if schema.name == "Conv":
        bias = _bias(b, x.dtype, out) if b.draws.chance(0.6) else None
        return b.node("Conv", [x, b.like(x.dtype, shape, "weight"), bias], attributes)
    w = b.like(b.draws.dtype(dtypes(schema, 1)), shape, "weight")
    zeros = [b.fresh(b.draws.array(v.dtype, ()), role="parameter") if b.draws.chance(0.6) else None for v in (x, w)]
    return b.node("ConvInteger", [x, w, *zeros], attributes)


@rule("ConvTranspose")
def conv_transpose(b, schema):
    x = image(b, dtypes(schema, 0))
    channels = x.shape[1]
    groups = b.draws.choose([1, 1, channels, *[g for g in (2, 4) if channels % g == 0]])
    per_group = b.draws.extent_of([1, 2, 3, 4]) if groups == 1 else b.draws.choose([1, 2, 3, 4])
    kernel = [b.draws.choose([1, 2, 3, 4]) for _ in x.shape[2:]]
    strides = kernel if b.draws.chance(0.3) else [b.draws.choose([1, 2, 3]) for _ in kernel]
    dilations = [1 if b.draws.chance(0.8) else 2 for _ in kernel]
    pads = [b.draws.between(0, k - 1) if b.draws.chance(0.5) else 0 for k in kernel + kernel]
    extra = [b.draws.between(0, s - 1) if b.draws.chance(0.3) else 0 for s in strides]
    for i, size in enumerate(x.shape[2:]):
        if strides[i] * (size - 1) + extra[i] + dilations[i] * (kernel[i] - 1) + 1 - pads[i] - pads[i + len(kernel)] < 1:
            raise Rejected("nothing would be left")
    attributes = {"strides": strides, "dilations": dilations}
    if b.draws.chance(0.1):
        # Sizes first, pads from them: what is left over is behind, or before with SAME_UPPER.
        reach = [s * (size - 1) + d * (k - 1) + 1 for s, size, d, k in zip(strides, x.shape[2:], dilations, kernel)]
        attributes["output_shape"] = [b.draws.between(max(1, each - 2), each) for each in reach]
        attributes.update(given(b.draws, auto_pad=b.draws.choose(["SAME_UPPER", "SAME_LOWER", "NOTSET"])))
    elif b.draws.chance(0.1) and all(d * (k - 1) + 1 >= s for d, k, s in zip(dilations, kernel, strides)):
        # Where windows leave gaps, what is missing at the ends is open.
        attributes["auto_pad"] = b.draws.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attributes["pads"] = pads
        if any(extra):
            attributes["output_padding"] = extra
    if groups > 1:
        attributes["group"] = groups
    if b.draws.chance(0.5):
        attributes["kernel_shape"] = kernel
    bias = _bias(b, x.dtype, groups * per_group) if b.draws.chance(0.5) else None
    return b.node("ConvTranspose", [x, b.like(x.dtype, (channels, per_group, *kernel), "weight"), bias], attributes)


@rule("MaxPool", "AveragePool", "LpPool")
def pool(b, schema):
    x = image(b, dtypes(schema, 0))
    windows = Windows(b, x.shape[2:], dilate=has(schema, "dilations"))
    attributes = windows.attributes(b, schema)
    if has(schema, "ceil_mode"):
        attributes.update(given(b.draws, ceil_mode=b.draws.between(0, 1)))
    if has(schema, "count_include_pad"):
        attributes.update(given(b.draws, count_include_pad=b.draws.between(0, 1)))
    if schema.name == "LpPool":
        attributes.update(given(b.draws, p=b.draws.choose([1, 2, 3])))
    if has(schema, "storage_order"):
        attributes.update(given(b.draws, storage_order=0))
    if not windows.touch(x.shape[2:], attributes.get("ceil_mode", 0)):
        raise Rejected("a window in the padding has no defined value")
    return b.node(schema.name, [x], attributes, len(schema.outputs) if b.draws.chance(0.15) else 1)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(b, schema):
    x = image(b, dtypes(schema, 0))
    power = b.draws.choose([1, 2, 3])
    return b.node(schema.name, [x], given(b.draws, p=float(power) if schema.since_version < 2 else power) if has(schema, "p") else {})


@rule("MaxUnpool")
def unpool(b, schema):
    x = image(b, [F32], ranks=(4, 4))
    if any(size % 2 for size in x.shape[2:]):
        raise Rejected("windows must cover the image")
    pooled, places = b.node("MaxPool", [x], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2, keep_outputs=[True, True])
    size = b.parameter(x.shape) if b.draws.chance(0.4) else None
    return b.node("MaxUnpool", [pooled, places, size], {"kernel_shape": [2, 2], "strides": [2, 2], **given(b.draws, pads=[0] * 4)})


@rule("DeformConv")
def deform(b, schema):
    dtype = float_of(b, schema)
    n, group, h, w = b.draws.between(1, 2), b.draws.choose([1, 1, 2]), b.draws.extent(3, 6), b.draws.extent(3, 6)
    c, out, k = group * b.draws.extent_of([1, 2, 4]), group * b.draws.extent(1, 3), b.draws.choose([1, 2, 3])
    pad, stride, dilation = b.draws.choose([0, 0, 1]), b.draws.choose([1, 1, 2]), b.draws.choose([1, 1, 2])
    oh, ow = ((size + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for size in (h, w))
    if min(oh, ow) < 1:
        raise Rejected("no window fits")
    offsets = b.draws.choose([1, c])
    x = b.like(dtype, (n, c, h, w), fits=numbers)
    inputs = [x, b.like(dtype, (out, c // group, k, k), "weight"), b.like(dtype, (n, offsets * 2 * k * k, oh, ow), fits=numbers)]
    inputs.append(b.like(dtype, (out,), "weight") if b.draws.chance(0.5) else None)
    inputs.append(b.like(dtype, (n, offsets * k * k, oh, ow)) if b.draws.chance(0.5) else None)
    return b.node("DeformConv", inputs, {"kernel_shape": [k, k], "pads": [pad] * 4, "strides": [stride] * 2, "dilations": [dilation] * 2,
                                         "group": group, "offset_group": offsets})


@rule("Col2Im")
def col2im(b, schema):
    spatial = b.draws.choose([2, 2, 1, 3])
    image_shape, block, strides, dilations, pads = [], [], [], [], []
    for _ in range(spatial):
        image_shape.append(b.draws.extent(2, 5)), block.append(b.draws.between(1, 2))
        strides.append(b.draws.choose([1, 1, 2])), dilations.append(b.draws.choose([1, 1, 2])), pads.append(b.draws.choose([0, 0, 1]))
    counts = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, d, p in zip(image_shape, block, strides, dilations, pads)]
    if min(counts) < 1:
        raise Rejected("no block fits")
    x = b.like(float_of(b, schema), (b.draws.between(1, 2), b.draws.extent(1, 3) * int(np.prod(block)), int(np.prod(counts))))
    listed = {"strides": (strides, [1]), "dilations": (dilations, [1]), "pads": (pads * 2, [0])}
    attributes = {name: values for name, (values, usual) in listed.items() if values != usual * len(values) or b.draws.chance(0.3)}
    return b.node("Col2Im", [x, b.parameter(image_shape), b.parameter(block)], attributes)


@rule("QLinearConv")
def qlinear_conv(b, schema):
    x = image(b, [U8, I8], ranks=(4, 4))
    windows = Windows(b, x.shape[2:])
    channels, out = x.shape[1], b.draws.extent_of([1, 2, 4, 8])
    groups = channels if out % channels == 0 and b.draws.chance(0.3) else 1
    w = b.like(x.dtype if x.dtype == I8 else b.draws.choose([U8, I8]), (out, channels // groups, *windows.kernel), "weight")
    per_channel = b.draws.chance(0.3)
    scale = lambda shape=(): b.constant(b.draws.positive(F32, shape, 0.01, 0.1))
    zero = lambda dtype, shape=(): b.constant(b.draws.integers(dtype, shape, 0, 5))
    shape = (out,) if per_channel else ()
    w_zero = b.constant(np.zeros(shape, w.dtype)) if per_channel else zero(w.dtype)
    bias = b.constant(b.draws.integers(np.dtype(np.int32), (out,), -50, 50)) if b.draws.chance(0.5) else None
    attributes = {**windows.attributes(b, schema, False), **({"group": groups} if groups > 1 else {})}
    return b.node("QLinearConv", [x, scale(), zero(x.dtype), w, scale(shape), w_zero, scale(), zero(x.dtype), bias], attributes)


