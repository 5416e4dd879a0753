#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ds_cnn.py BUILD: one depthwise separable network as QDQ ONNX and as .tflite, as C source beside TensorFlow Lite Micro.

The network is the keyword spotter of MLPerf Tiny without softmax: 49 x 10 features, a convolution of 10 x 4, four depthwise ones of 3 x 3
with 1 x 1 behind each, a mean, and 12 classes. Both files are written here from one set of weights. Their programs must give the same
bytes, in the VM and as C source, and those that LiteRT gives for the .tflite file. An arena must be at most LIMIT of what TensorFlow Lite
Micro, which runs the .tflite file here, takes in all. Its total has input and output in it, so both are counted beside our arena, too.
Runs in an environment of its own:

    tests/support/environments.py --run tests/compiler/tflite/requirements/ds_cnn.txt tests/compiler/tflite/ds_cnn.py build/release
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tflite_micro.python.tflite_micro import runtime

from models import Model
from running import C_OPTIONS, CSource, LiteRT, Machine, compile_kernels, compile_model

LIMIT = 0.6
SAMPLES = 40
FEATURES, CHANNELS, CLASSES, BLOCKS = (49, 10), 64, 12, 4
MICRO_ROOM = 200_000
# How far a byte of TensorFlow Lite Micro may lie from ours: it rounds the results of each layer otherwise.
MICRO_STEPS = 4


class Layer:
    """A layer of floats, and its integers: weights [out, rows, columns, in], those of a depthwise one [1, rows, columns, channels]."""

    def __init__(self, random, kind, shape, stride=1):
        self.kind, self.stride = kind, stride
        self.axis = 3 if kind == "depthwise" else 0
        fan_in = np.prod(shape) // shape[self.axis]
        self.weights = (random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        self.bias = (random.standard_normal(shape[self.axis]) * 0.1).astype(np.float32)

    def pads(self, size):
        """In front and behind, as padding SAME has it."""
        pads = []
        for n, k in zip(size, self.weights.shape[1:3]):
            total = max((-(-n // self.stride) - 1) * self.stride + k - n, 0)
            pads.append((total // 2, total - total // 2))
        return pads

    def run(self, x):
        """Of images [n, rows, columns, channels], in floats."""
        if self.kind == "dense":
            return x.reshape(len(x), -1) @ self.weights.reshape(len(self.bias), -1).T + self.bias
        padded = np.pad(x, ((0, 0), *self.pads(x.shape[1:3]), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.weights.shape[1:3], (1, 2))[:, ::self.stride, ::self.stride]
        rule = "nyxckl,oklc->nyxc" if self.kind == "depthwise" else "nyxckl,oklc->nyxo"
        return np.maximum(np.einsum(rule, windows, self.weights) + self.bias, 0)

    def quantize(self, x_scale, most):
        """Takes the input's scale and the largest output; a scale for each channel, but one for a dense layer."""
        axes = tuple(i for i in range(4) if i != self.axis) if self.kind != "dense" else None
        largest = np.max(np.abs(self.weights), axes, keepdims=True)
        self.scales = (largest / 127).astype(np.float32)
        self.integers = np.clip(np.round(self.weights / self.scales), -127, 127).astype(np.int8)
        self.scales = self.scales.ravel()
        self.bias_scales = np.float32(x_scale) * self.scales
        self.terms = np.round(self.bias / self.bias_scales).astype(np.int32)
        # Behind an activation a byte counts from -128 on.
        self.out = (np.float32(2 * most / 255), 0) if self.kind == "dense" else (np.float32(most / 255), -128)


class Network:
    INPUT = (np.float32(6 / 255), 0)

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.layers = [Layer(random, "conv", (CHANNELS, 10, 4, 1), 2)]
        for _ in range(BLOCKS):
            self.layers += [Layer(random, "depthwise", (1, 3, 3, CHANNELS)), Layer(random, "conv", (CHANNELS, 1, 1, CHANNELS))]
        x = random.standard_normal((20, *FEATURES, 1)).astype(np.float32)
        scale = self.INPUT[0]
        for layer in self.layers:
            x = layer.run(x)
            layer.quantize(scale, np.max(x))
            scale = layer.out[0]
        self.image = x.shape[1:3]
        self.last = Layer(random, "dense", (CLASSES, 1, 1, CHANNELS))
        self.last.quantize(scale, np.max(np.abs(self.last.run(np.mean(x, (1, 2))))))

    def tflite(self):
        model = Model()
        first = at = model.tensor("x", [1, *FEATURES, 1], np.int8, *self.INPUT)
        for i, layer in enumerate(self.layers):
            w = model.constant(f"w{i}", layer.integers, layer.scales, 0, layer.axis)
            b = model.constant(f"b{i}", layer.terms, layer.bias_scales)
            rest = {"padding": 0, "strideH": layer.stride, "strideW": layer.stride, "fusedActivationFunction": 1, "dilationHFactor": 1,
                    "dilationWFactor": 1}
            y = model.tensor(f"y{i}", [1, *self.image, CHANNELS], np.int8, *layer.out)
            if layer.kind == "depthwise":
                model.operator("DEPTHWISE_CONV_2D", [at, w, b], [y], "DepthwiseConv2DOptions", depthMultiplier=1, **rest)
            else:
                model.operator("CONV_2D", [at, w, b], [y], "Conv2DOptions", **rest)
            at = y
        mean = model.tensor("mean", [1, 1, 1, CHANNELS], np.int8, *self.layers[-1].out)
        model.operator("AVERAGE_POOL_2D", [at], [mean], "Pool2DOptions", padding=1, strideH=1, strideW=1, filterHeight=self.image[0],
                       filterWidth=self.image[1])
        w = model.constant("w", self.last.integers.reshape(CLASSES, CHANNELS), self.last.scales[:1])
        b = model.constant("b", self.last.terms, self.last.bias_scales[:1])
        scores = model.tensor("scores", [1, CLASSES], np.int8, *self.last.out)
        model.operator("FULLY_CONNECTED", [mean, w, b], [scores], "FullyConnectedOptions")
        return model.write([first], [scores])

    def onnx(self):
        nodes, constants = [], []

        def constant(name, array):
            constants.append(numpy_helper.from_array(np.asarray(array), name))
            return name

        def node(kind, inputs, output, **attributes):
            nodes.append(helper.make_node(kind, inputs, [output], **attributes))
            return output

        def dequantized(name, stored, scales, zeros, axis=None):
            inputs = [constant(name, stored) if isinstance(stored, np.ndarray) else stored, constant(f"{name}.scale", scales),
                      constant(f"{name}.zero", zeros)]
            return node("DequantizeLinear", inputs, f"{name}.floats", **({} if axis is None else {"axis": axis}))

        def between(name, floats, scale, zero):
            node("QuantizeLinear", [floats, constant(f"{name}.to", scale), constant(f"{name}.from", np.int8(zero))], name)
            return dequantized(name, name, scale, np.int8(zero))

        at, size = dequantized("x", "x", self.INPUT[0], np.int8(self.INPUT[1])), FEATURES
        for i, layer in enumerate(self.layers):
            stored = layer.integers.transpose((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2))
            w = dequantized(f"w{i}", np.ascontiguousarray(stored), layer.scales, np.zeros(CHANNELS, np.int8), 0)
            b = dequantized(f"b{i}", layer.terms, layer.bias_scales, np.zeros(CHANNELS, np.int32), 0)
            (top, bottom), (left, right) = layer.pads(size)
            size = [-(-n // layer.stride) for n in size]
            conv = node("Conv", [at, w, b], f"conv{i}", pads=[top, left, bottom, right], strides=[layer.stride] * 2,
                        group=CHANNELS if layer.kind == "depthwise" else 1)
            at = between(f"y{i}", node("Relu", [conv], f"relu{i}"), *layer.out)
        at = between("mean", node("GlobalAveragePool", [at], "mean.of"), *self.layers[-1].out)
        w = dequantized("w", self.last.integers.reshape(CLASSES, CHANNELS), self.last.scales[0], np.int8(0))
        b = dequantized("b", self.last.terms, self.last.bias_scales[0], np.int32(0))
        product = node("Gemm", [node("Flatten", [at], "flat"), w, b], "product", transB=1)
        node("QuantizeLinear", [product, constant("scores.to", self.last.out[0]), constant("scores.from", np.int8(self.last.out[1]))], "scores")
        graph = helper.make_graph(nodes, "ds_cnn", [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 1, *FEATURES])],
                                  [helper.make_tensor_value_info("scores", TensorProto.INT8, [1, CLASSES])], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


class Micro:
    """TensorFlow Lite Micro."""

    def __init__(self, path):
        self.interpreter = runtime.Interpreter.from_file(str(path), arena_size=MICRO_ROOM)
        # What it takes is printed by C++, so another process is asked.
        program = "import sys; from tflite_micro.python.tflite_micro import runtime; " \
                  f"runtime.Interpreter.from_file(sys.argv[1], arena_size={MICRO_ROOM}).print_allocations()"
        told = subprocess.run([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        found = re.search(r"Arena allocation total (\d+) bytes", told.stdout)
        if found is None:
            raise SystemExit(f"TensorFlow Lite Micro does not say what it takes:\n{told.stdout}")
        self.bytes = int(found.group(1))

    def call(self, array):
        self.interpreter.set_input(array, 0)
        self.interpreter.invoke()
        return self.interpreter.get_output(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=36)
    arguments = parser.parse_args()
    build, network, faults = arguments.build.resolve(), Network(arguments.seed), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        objects = compile_kernels(folder / "kernels")
        paths = {"QDQ ONNX": folder / "qdq.onnx", ".tflite": folder / "ds_cnn.tflite"}
        paths["QDQ ONNX"].write_bytes(network.onnx())
        paths[".tflite"].write_bytes(network.tflite())
        peer, micro = LiteRT(paths[".tflite"].read_bytes()), Micro(paths[".tflite"])
        machines = {name: Machine(build, compile_model(build, path)) for name, path in paths.items()}
        sources = {name: CSource(build, compile_model(build, path, *C_OPTIONS), objects) for name, path in paths.items()}
        random, seen, furthest, same = np.random.default_rng(arguments.seed), set(), 0, 0
        for sample in range(SAMPLES):
            image = random.integers(-128, 128, [1, *FEATURES, 1]).astype(np.int8)
            expected = peer.call([image])[0]
            seen.add(expected.tobytes())
            furthest = max(furthest, int(np.max(np.abs(micro.call(image).astype(int) - expected))))
            for name in paths:
                x = image if name == ".tflite" else image.reshape(1, 1, *FEATURES)
                for form, given in (("VM", machines[name].call([x], 1)[0]), ("C", sources[name].call([x])[0])):
                    same += given.tobytes() == expected.tobytes()
                    if given.tobytes() != expected.tobytes():
                        faults.append(f"sample {sample}, {name}, {form}: {given.ravel()}, LiteRT has {expected.ravel()}")
    if len(seen) < SAMPLES or furthest > MICRO_STEPS:
        faults.append(f"{len(seen)} different results of {SAMPLES}, TensorFlow Lite Micro at most {furthest} steps away")
    print(f"{same} of {4 * SAMPLES} results, of both files in the VM and as C source, are LiteRT's bytes; "
          f"those of TensorFlow Lite Micro lie at most {furthest} steps away", flush=True)
    for name, source in sources.items():
        arena = source.function.arena_bytes
        whole = arena + np.prod(FEATURES) + CLASSES
        print(f"{name}: arena {arena} B, {arena / micro.bytes:.3f} of TensorFlow Lite Micro's {micro.bytes} B; with input and output "
              f"{whole} B, {whole / micro.bytes:.3f}", flush=True)
        if whole > LIMIT * micro.bytes:
            faults.append(f"{name}: {whole} B with input and output, at most {LIMIT * micro.bytes:.0f} are allowed")
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
