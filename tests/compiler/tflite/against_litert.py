#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""against_litert.py BUILD [--seed S] [--count N]: random .tflite models by Rewire's VM and as C source beside LiteRT.

Each operator has a function that draws a model of it: shapes, options, scales, weights. Bytes must be equal to the bit, also those of
the C source; floats within 1e-5. Runs in an environment of its own:

    tests/support/environments.py --run tests/compiler/tflite/requirements/litert.txt tests/compiler/tflite/against_litert.py build/release

Prints a line for each operator, and exits with 1 if a model differs or is refused.
"""
import argparse
import collections
import pathlib
import sys
import tempfile

import numpy as np

from models import Model
from running import C_OPTIONS, CSource, LiteRT, Machine, compile_kernels, compile_model

NONE, RELU, RELU_N1_TO_1, RELU6 = range(4)
SAME, VALID = range(2)
SAMPLES = 4
# Operators whose kernel has no plain C form: vm-aot refuses them.
NOT_IN_C = {"PAD"}


class Draw:
    """Draws one model. `bytes` says whether its tensors are i8."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.model = Model()
        self.inputs, self.bytes = [], bool(self.random.integers(4))

    def int(self, least, most):
        return int(self.random.integers(least, most + 1))

    def choice(self, *values):
        return values[self.int(0, len(values) - 1)]

    def scale(self):
        return float(np.float32(np.exp(self.random.uniform(-5, 0))))

    def quantized(self):
        """A scale and a zero point of a tensor, or none for floats."""
        return (self.scale(), self.int(-128, 127)) if self.bytes else (None, 0)

    def dtype(self):
        return np.int8 if self.bytes else np.float32

    def input(self, shape, quantized=None):
        scale, zero = quantized or self.quantized()
        self.inputs.append(self.model.tensor(f"x{len(self.inputs)}", shape, self.dtype(), scale, zero))
        return self.inputs[-1]

    def output(self, shape, quantized=None, dtype=None):
        scale, zero = quantized or self.quantized()
        return self.model.tensor(f"y{len(self.model.graph.tensors)}", shape, dtype or self.dtype(), scale, zero)

    def weights(self, shape, channel_axis, x_scale):
        """Weights and the scale of a bias beside an input of `x_scale`: one for each channel, or one."""
        if not self.bytes:
            return self.model.constant("w", self.random.standard_normal(shape).astype(np.float32)), None
        channels = shape[channel_axis] if self.int(0, 3) else 1
        scales = np.array([self.scale() for _ in range(channels)], np.float32)
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        return self.model.constant("w", data, scales, 0, channel_axis), np.float32(x_scale) * scales

    def bias(self, channels, scales):
        """A bias. LiteRT has no products of bytes without one."""
        if scales is None:
            return self.model.constant("b", self.random.standard_normal(channels).astype(np.float32))
        return self.model.constant("b", self.random.integers(-3000, 3000, channels).astype(np.int32), scales)

    def ints(self, *values):
        return self.model.constant(f"ints{len(self.model.graph.tensors)}", np.array(values, np.int32))

    def sums_scale(self, x_scale, depth):
        """A scale that puts sums of `depth` products into the range of bytes."""
        return (float(np.float32(x_scale * np.exp(self.random.uniform(0, 3)) * np.sqrt(depth))), self.int(-128, 127))


def windows(draw):
    """Options of a window over an image, and the image's size."""
    kernel = draw.int(1, 4), draw.int(1, 4)
    dilation = (1, 1) if draw.int(0, 2) else (draw.int(1, 2), draw.int(1, 2))
    stride = (1, 1) if dilation != (1, 1) else (draw.int(1, 3), draw.int(1, 3))
    size = [draw.int((k - 1) * d + 1, (k - 1) * d + 8) for k, d in zip(kernel, dilation)]
    padding = draw.choice(SAME, VALID)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    out = [-(-n // s) if padding == SAME else (n - r) // s + 1 for n, r, s in zip(size, reach, stride)]
    options = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
    return kernel, size, out, options, {"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]}


def conv_2d(draw):
    kernel, size, out, options, dilation = windows(draw)
    channels, depth = draw.int(1, 20), draw.int(1, 10)
    quantized = draw.quantized()
    x = draw.input([1, *size, depth], quantized)
    w, scales = draw.weights([channels, *kernel, depth], 0, quantized[0])
    of_sums = draw.sums_scale(quantized[0], depth * kernel[0] * kernel[1]) if draw.bytes else None
    y = draw.output([1, *out, channels], of_sums)
    draw.model.operator("CONV_2D", [x, w, draw.bias(channels, scales)], [y], "Conv2DOptions", **options, **dilation,
                        fusedActivationFunction=draw.choice(NONE, RELU, RELU6))
    return [y]


def depthwise_conv_2d(draw):
    kernel, size, out, options, dilation = windows(draw)
    if options["strideH"] != options["strideW"]:  # LiteRT has equal strides alone
        options["strideW"] = options["strideH"]
        reach = (kernel[1] - 1) * dilation["dilationWFactor"] + 1
        out[1] = -(-size[1] // options["strideW"]) if options["padding"] == SAME else (size[1] - reach) // options["strideW"] + 1
    depth, multiplier = draw.int(1, 20), draw.choice(1, 1, 2)
    quantized = draw.quantized()
    x = draw.input([1, *size, depth], quantized)
    w, scales = draw.weights([1, *kernel, depth * multiplier], 3, quantized[0])
    y = draw.output([1, *out, depth * multiplier], draw.sums_scale(quantized[0], kernel[0] * kernel[1]) if draw.bytes else None)
    draw.model.operator("DEPTHWISE_CONV_2D", [x, w, draw.bias(depth * multiplier, scales)], [y], "DepthwiseConv2DOptions", **options,
                        **dilation, depthMultiplier=multiplier, fusedActivationFunction=draw.choice(NONE, RELU, RELU6))
    return [y]


def fully_connected(draw):
    rows, depth, columns = draw.int(1, 4), draw.int(1, 70), draw.int(1, 20)
    quantized = draw.quantized()
    x = draw.input([rows, depth], quantized)
    w, scales = draw.weights([columns, depth], 0, quantized[0])
    y = draw.output([rows, columns], draw.sums_scale(quantized[0], depth) if draw.bytes else None)
    draw.model.operator("FULLY_CONNECTED", [x, w, draw.bias(columns, scales)], [y], "FullyConnectedOptions",
                        fusedActivationFunction=draw.choice(NONE, RELU, RELU6), keepNumDims=bool(draw.int(0, 1)))
    return [y]


def shape(draw, rank=None):
    return [draw.int(1, 6) for _ in range(rank or draw.int(1, 4))]


def reshape(draw):
    dims, quantized = shape(draw), draw.quantized()
    target = [int(np.prod(dims)), 1] if draw.int(0, 1) else dims[::-1]
    y = draw.output(target, quantized)
    draw.model.operator("RESHAPE", [draw.input(dims, quantized), draw.ints(*target)], [y], "ReshapeOptions", newShape=target)
    return [y]


def softmax(draw):
    dims = shape(draw)
    y = draw.output(dims, (1 / 256, -128) if draw.bytes else None)
    draw.model.operator("SOFTMAX", [draw.input(dims)], [y], "SoftmaxOptions", beta=draw.choice(1.0, 1.0, 0.5))
    return [y]


def function(name, quantized, kind=None):
    def make(draw):
        dims = shape(draw)
        y = draw.output(dims, quantized if draw.bytes and quantized else None)
        draw.model.operator(name, [draw.input(dims)], [y], kind)
        return [y]
    return make


def quantize(draw):
    draw.bytes = bool(draw.int(0, 1))
    dims, given = shape(draw), draw.quantized()
    x = draw.input(dims, given)
    # Between bytes of both kinds the scale stays.
    y = draw.output(dims, (given[0], given[1] + 128), np.uint8) if draw.bytes else draw.output(dims, (draw.scale(), draw.int(-9, 9)), np.int8)
    draw.model.operator("QUANTIZE", [x], [y], "QuantizeOptions")
    return [y]


def dequantize(draw):
    draw.bytes = True
    dims = shape(draw)
    y = draw.output(dims, (None, 0), np.float32)
    draw.model.operator("DEQUANTIZE", [draw.input(dims)], [y], "DequantizeOptions")
    return [y]


def concatenation(draw):
    dims, quantized = shape(draw), draw.quantized()
    axis = draw.int(0, len(dims) - 1)
    sizes = [draw.int(1, 4) for _ in range(draw.int(1, 4))]
    parts = [draw.input(dims[:axis] + [size] + dims[axis + 1:], quantized) for size in sizes]
    y = draw.output(dims[:axis] + [sum(sizes)] + dims[axis + 1:], quantized)
    draw.model.operator("CONCATENATION", parts, [y], "ConcatenationOptions", axis=draw.choice(axis, axis - len(dims)))
    return [y]


def split(draw):
    dims, quantized = shape(draw), draw.quantized()
    axis, count = draw.int(0, len(dims) - 1), draw.int(1, 3)
    parts = [draw.output(dims, quantized) for _ in range(count)]
    whole = dims[:axis] + [dims[axis] * count] + dims[axis + 1:]
    draw.model.operator("SPLIT", [draw.model.constant("axis", np.array(axis, np.int32)), draw.input(whole, quantized)], parts, "SplitOptions",
                        numSplits=count)
    return parts


def split_v(draw):
    dims, quantized = shape(draw), draw.quantized()
    axis = draw.int(0, len(dims) - 1)
    sizes = [draw.int(1, 4) for _ in range(draw.int(2, 3))]
    parts = [draw.output(dims[:axis] + [size] + dims[axis + 1:], quantized) for size in sizes]
    told = sizes[:-1] + [draw.choice(-1, sizes[-1])]
    x = draw.input(dims[:axis] + [sum(sizes)] + dims[axis + 1:], quantized)
    draw.model.operator("SPLIT_V", [x, draw.ints(*told), draw.model.constant("axis", np.array(axis, np.int32))], parts, "SplitVOptions",
                        numSplits=len(sizes))
    return parts


def strided_slice(draw):
    dims, quantized = shape(draw), draw.quantized()
    begin, end, strides, out, masks = [], [], [], [], collections.Counter()
    for axis, size in enumerate(dims):
        first, last = sorted((draw.int(0, size - 1), draw.int(0, size - 1)))
        step = draw.int(1, 2)
        if draw.int(0, 3) == 0:
            masks["shrinkAxisMask"] |= 1 << axis
            begin, end, strides = begin + [first], end + [first + 1], strides + [1]
            continue
        masks["beginMask"] |= (first == 0) * draw.int(0, 1) << axis
        masks["endMask"] |= (last == size - 1) * draw.int(0, 1) << axis
        begin, end, strides = begin + [first], end + [draw.choice(last + 1, last + 1 - size if last + 1 < size else last + 1)], strides + [step]
        out.append(-(-(last + 1 - first) // step))
    y = draw.output(out, quantized)
    draw.model.operator("STRIDED_SLICE", [draw.input(dims, quantized), draw.ints(*begin), draw.ints(*end), draw.ints(*strides)], [y],
                        "StridedSliceOptions", **masks)
    return [y]


def pool(name):
    def make(draw):
        kernel, size, out, options, _ = windows(draw)
        channels, quantized = draw.int(1, 9), draw.quantized()
        y = draw.output([1, *out, channels], quantized)
        draw.model.operator(name, [draw.input([1, *size, channels], quantized)], [y], "Pool2DOptions", **options, filterHeight=kernel[0],
                            filterWidth=kernel[1], fusedActivationFunction=draw.choice(NONE, RELU, RELU6))
        return [y]
    return make


def mean(draw):
    dims, quantized = [1, draw.int(1, 6), draw.int(1, 6), draw.int(1, 9)], draw.quantized()
    keep = bool(draw.int(0, 1))
    y = draw.output([1, 1, 1, dims[3]] if keep else [1, dims[3]], (quantized[0] * draw.choice(1, 0.5), draw.int(-128, 127)) if draw.bytes else None)
    draw.model.operator("MEAN", [draw.input(dims, quantized), draw.ints(1, 2)], [y], "ReducerOptions", keepDims=keep)
    return [y]


def arithmetic(name, kind):
    def make(draw):
        dims = shape(draw)
        # One of the two may be broadcast.
        other = [draw.choice(size, size, 1) for size in dims]
        a, b = draw.quantized(), draw.quantized()
        scale = (a[0] * b[0] * 60 if name == "MUL" else max(a[0], b[0]) * draw.choice(1, 1.7)) if draw.bytes else None
        y = draw.output(dims, (scale, draw.int(-128, 127)) if draw.bytes else None)
        draw.model.operator(name, [draw.input(dims, a), draw.input(other, b)], [y], kind, fusedActivationFunction=draw.choice(NONE, RELU, RELU6))
        return [y]
    return make


def pad(draw):
    dims, quantized = shape(draw), draw.quantized()
    pads = np.array([[draw.int(0, 2), draw.int(0, 2)] for _ in dims], np.int32)
    y = draw.output([size + before + after for size, (before, after) in zip(dims, pads.tolist())], quantized)
    draw.model.operator("PAD", [draw.input(dims, quantized), draw.model.constant("pads", pads)], [y], "PadOptions")
    return [y]


def transpose(draw):
    dims, quantized = shape(draw), draw.quantized()
    perm = draw.random.permutation(len(dims)).tolist()
    y = draw.output([dims[i] for i in perm], quantized)
    draw.model.operator("TRANSPOSE", [draw.input(dims, quantized), draw.ints(*perm)], [y], "TransposeOptions")
    return [y]


OPERATORS = {
    "CONV_2D": conv_2d, "DEPTHWISE_CONV_2D": depthwise_conv_2d, "FULLY_CONNECTED": fully_connected, "RESHAPE": reshape, "SOFTMAX": softmax,
    "LOGISTIC": function("LOGISTIC", (1 / 256, -128)), "TANH": function("TANH", (1 / 128, 0)), "RELU": function("RELU", None),
    "RELU6": function("RELU6", None), "QUANTIZE": quantize, "DEQUANTIZE": dequantize, "CONCATENATION": concatenation, "SPLIT": split,
    "SPLIT_V": split_v, "STRIDED_SLICE": strided_slice, "PAD": pad, "TRANSPOSE": transpose,
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D"), "MAX_POOL_2D": pool("MAX_POOL_2D"), "MEAN": mean, "ADD": arithmetic("ADD", "AddOptions"),
    "SUB": arithmetic("SUB", "SubOptions"), "MUL": arithmetic("MUL", "MulOptions"),
}


def sample(random, detail):
    if detail["dtype"] == np.float32:
        return random.standard_normal(detail["shape"]).astype(np.float32) * 4
    limits = np.iinfo(detail["dtype"])
    return random.integers(limits.min, limits.max + 1, detail["shape"]).astype(detail["dtype"])


def agree(given, expected):
    """Empty, or how the two differ."""
    if given.dtype != expected.dtype or list(given.shape) != list(expected.shape):
        return f"{given.dtype}{list(given.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype != np.float32:
        different = np.flatnonzero(given.ravel() != expected.ravel())
        return f"{different.size} of {given.size} bytes differ, first at {different[0]}: {given.ravel()[different[0]]}, " \
               f"expected {expected.ravel()[different[0]]}" if different.size else ""
    worst = np.max(np.abs(given - expected) / np.maximum(1, np.abs(expected)), initial=0)
    return f"floats differ by {worst:.3g}" if worst > 1e-5 else ""


def compare(name, seed, build, folder, objects):
    """Empty, or what is wrong with the model of this seed."""
    draw = Draw(seed)
    outputs = OPERATORS[name](draw)
    content = draw.model.write(draw.inputs, outputs)
    model = folder / f"{name}-{seed}.tflite"
    model.write_bytes(content)
    peer = LiteRT(content)
    random = np.random.default_rng(seed)
    machine = Machine(build, compile_model(build, model))
    source = CSource(build, compile_model(build, model, *C_OPTIONS), objects) if objects else None
    for _ in range(SAMPLES):
        arrays = [sample(random, detail) for detail in peer.inputs]
        expected = peer.call(arrays)
        for which, given in (("VM", machine.call(arrays, len(outputs))), ("C", source.call(arrays) if source else expected)):
            for i, (array, reference) in enumerate(zip(given, expected)):
                if wrong := agree(array, reference):
                    return f"{which}, output {i}: {wrong}"
    machine.close()
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="models of each operator")
    parser.add_argument("--c", type=int, default=4, help="so many of them as C source, too")
    parser.add_argument("--only", help="this operator alone")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the models here")
    arguments = parser.parse_args()
    build, faults = arguments.build.resolve(), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        objects = compile_kernels(pathlib.Path(temporary) / "kernels")
        for name in OPERATORS:
            if arguments.only not in (None, name):
                continue
            wrong = 0
            for i in range(arguments.count):
                seed = arguments.seed * 1000 + i
                try:
                    reason = compare(name, seed, build, folder, objects if i < arguments.c and name not in NOT_IN_C else None)
                except (RuntimeError, ValueError) as error:
                    reason = str(error)
                if reason:
                    wrong += 1
                    print(f"{name}, seed {seed}: {reason}", flush=True)
            print(f"{name}: {arguments.count - wrong} of {arguments.count} models as LiteRT", flush=True)
            faults += wrong
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
