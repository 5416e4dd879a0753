# SPDX-License-Identifier: Apache-2.0
"""Models that no package carries, written with the onnx package: seeded random weights, real structure.

Each function gives an onnx.ModelProto of opset 17. Weights are scaled so that activations neither die nor grow.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Graph:
    """Collects nodes and weights; every method that makes a node gives the name of its (first) output."""

    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.random = np.random.default_rng(seed)

    def node(self, op, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"{op.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=f"{op}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, *shape):
        """Normal values with the variance that keeps a product's (fan-in: all dimensions but the last)."""
        scale = 1.0 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
        return self.constant(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, name, *values):
        return self.constant(name, np.array(values, np.int64))

    def model(self, name, inputs, outputs):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def layer_norm(g, x, prefix, width):
    """Spelled out, as exporters before opset 17 wrote it."""
    mean = g.node("ReduceMean", x, axes=[-1])
    centered = g.node("Sub", x, mean)
    variance = g.node("ReduceMean", g.node("Pow", centered, g.constant(f"{prefix}.two", np.float32(2.0))), axes=[-1])
    deviation = g.node("Sqrt", g.node("Add", variance, g.constant(f"{prefix}.eps", np.float32(1e-5))))
    scaled = g.node("Mul", g.node("Div", centered, deviation), g.constant(f"{prefix}.gamma", np.ones(width, np.float32)))
    return g.node("Add", scaled, g.constant(f"{prefix}.beta", np.zeros(width, np.float32)))


def bert_mini(layers=4, width=256, heads=4, vocabulary=1000, positions=512):
    """An encoder: token ids and an attention mask in, hidden states out."""
    g = Graph(1)
    head = width // heads
    length = g.node("Slice", g.node("Shape", "input_ids"), g.ints("one", 1), g.ints("two", 2))
    places = g.node("Slice", g.weight("positions", positions, width), g.ints("zero", 0), length)
    x = g.node("Add", g.node("Gather", g.weight("embedding", vocabulary, width), "input_ids"), places)
    x = layer_norm(g, x, "embedding_norm", width)
    mask = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.ints("mask_axes", 1, 2)), to=TensorProto.FLOAT)
    mask = g.node("Mul", g.node("Sub", g.constant("unit", np.float32(1)), mask), g.constant("far", np.float32(-1e4)))
    split, merge = g.ints("split_heads", 0, 0, heads, head), g.ints("merge_heads", 0, 0, width)
    scale = g.constant("scale", np.float32(np.sqrt(head)))

    def dense(x, name, rows, columns):
        return g.node("Add", g.node("MatMul", x, g.weight(name, rows, columns)), g.weight(f"{name}.bias", columns))

    for layer in range(layers):
        parts = {}
        for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            heads_apart = g.node("Reshape", dense(x, f"{layer}.{part}", width, width), split)
            parts[part] = g.node("Transpose", heads_apart, perm=order)
        scores = g.node("Add", g.node("Div", g.node("MatMul", parts["query"], parts["key"]), scale), mask)
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), parts["value"])
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        x = layer_norm(g, g.node("Add", dense(mixed, f"{layer}.out", width, width), x), f"{layer}.norm", width)
        inner = dense(x, f"{layer}.inner", width, 4 * width)
        root = g.constant(f"{layer}.root2", np.float32(np.sqrt(2)))
        erf = g.node("Erf", g.node("Div", inner, root))
        gate = g.node("Add", erf, g.constant(f"{layer}.one", np.float32(1)))
        gelu = g.node("Mul", g.node("Mul", inner, gate), g.constant(f"{layer}.half", np.float32(0.5)))
        x = layer_norm(g, g.node("Add", dense(gelu, f"{layer}.outer", 4 * width, width), x), f"{layer}.norm2", width)
    g.node("Identity", x, outputs=["hidden"])
    ids = [tensor(name, ["batch", "length"], TensorProto.INT64) for name in ("input_ids", "attention_mask")]
    return g.model("bert_mini", ids, [tensor("hidden", ["batch", "length", width])])


def kv_decode(width=64, vocabulary=96):
    """Greedy decoding in a Loop: the key and value caches are carried and grow by a row a step."""
    g = Graph(2)
    body = Graph(3)
    row = body.node("Gather", g.weight("embedding", vocabulary, width), "token")
    query = body.node("MatMul", row, g.weight("query", width, width))
    caches = []
    for part in ("key", "value"):
        new = body.node("MatMul", row, g.weight(part, width, width))
        caches.append(body.node("Concat", f"{part}s", new, outputs=[f"{part}s_out"], axis=0))
    scores = body.node("MatMul", query, body.node("Transpose", caches[0], perm=[1, 0]))
    scaled = body.node("Mul", scores, g.constant("scale", np.float32(3.0 / np.sqrt(width))))
    mixed = body.node("MatMul", body.node("Softmax", scaled, axis=-1), caches[1])
    hidden = body.node("Tanh", body.node("Add", mixed, row))
    logits = body.node("MatMul", hidden, g.weight("output", width, vocabulary))
    body.node("ArgMax", logits, outputs=["next_token"], axis=-1, keepdims=0)
    body.node("Identity", "next_token", outputs=["emitted"])
    body.node("Not", body.node("Equal", "next_token", g.ints("stop", 0)), outputs=["differs"])
    body.node("Squeeze", "differs", outputs=["go_on"])
    loop = helper.make_graph(
        body.nodes,
        "step",
        [tensor("i", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL),
         tensor("token", [1], TensorProto.INT64), tensor("keys", ["past", width]), tensor("values", ["past", width])],
        [tensor("go_on", [], TensorProto.BOOL), tensor("next_token", [1], TensorProto.INT64),
         tensor("keys_out", ["now", width]), tensor("values_out", ["now", width]),
         tensor("emitted", [1], TensorProto.INT64)],
    )
    g.node("Loop", "steps", g.constant("yes", np.bool_(True)), "first", "past_keys", "past_values",
           outputs=["last", "new_keys", "new_values", "tokens"], body=loop)
    return g.model(
        "kv_decode",
        [tensor("steps", [], TensorProto.INT64), tensor("first", [1], TensorProto.INT64),
         tensor("past_keys", ["past", width]), tensor("past_values", ["past", width])],
        [tensor("tokens", ["count", 1], TensorProto.INT64), tensor("new_keys", ["after", width]),
         tensor("new_values", ["after", width])],
    )


def scan_filter(width=24):
    """A Scan with two states and a reversed input: what Scan has beyond Loop."""
    g = Graph(4)
    body = Graph(5)
    mixed = body.node("Add", body.node("MatMul", "x", g.weight("forward", width, width)),
                      body.node("MatMul", "h", g.weight("back", width, width)))
    body.node("Tanh", body.node("Add", mixed, "r"), outputs=["h_out"])
    body.node("Max", "peak", "h_out", outputs=["peak_out"])
    body.node("Mul", "h_out", "x", outputs=["y"])
    loop = helper.make_graph(
        body.nodes, "cell",
        [tensor(name, ["batch", width]) for name in ("h", "peak", "x", "r")],
        [tensor(name, ["batch", width]) for name in ("h_out", "peak_out", "y")],
    )
    g.node("Scan", "h0", "peak0", "sequence", "sequence", outputs=["h_end", "peak_end", "track"], body=loop,
           num_scan_inputs=2, scan_input_directions=[0, 1], scan_output_directions=[1])
    return g.model(
        "scan_filter",
        [tensor("h0", ["batch", width]), tensor("peak0", ["batch", width]), tensor("sequence", ["time", "batch", width])],
        [tensor("h_end", ["batch", width]), tensor("peak_end", ["batch", width]),
         tensor("track", ["time", "batch", width])],
    )


def lm_body(width=128, vocabulary=2000):
    """The recurrent half of a language model: embedding and LSTM, its state in and out."""
    g = Graph(6)
    x = g.node("Gather", g.weight("embedding", vocabulary, width), "ids")
    g.node("LSTM", x, g.weight("lstm.w", 1, 4 * width, width), g.weight("lstm.r", 1, 4 * width, width),
           g.weight("lstm.b", 1, 8 * width), "", "h0", "c0", outputs=["raw", "h1", "c1"], hidden_size=width)
    g.node("Squeeze", "raw", g.ints("direction", 1), outputs=["hidden"])
    state = [1, "batch", width]
    return g.model("lm_body",
                   [tensor("ids", ["time", "batch"], TensorProto.INT64), tensor("h0", state), tensor("c0", state)],
                   [tensor("hidden", ["time", "batch", width]), tensor("h1", state), tensor("c1", state)])


def lm_output(width=128, vocabulary=2000):
    """The other half: the output layer, tied to the same embedding (same seed, same first draw)."""
    g = Graph(6)
    logits = g.node("MatMul", "hidden", g.node("Transpose", g.weight("embedding", vocabulary, width), perm=[1, 0]))
    g.node("LogSoftmax", logits, outputs=["scores"], axis=-1)
    return g.model("lm_output", [tensor("hidden", ["time", "batch", width])],
                   [tensor("scores", ["time", "batch", vocabulary])])


def qdq_cnn(channels=16, classes=10):
    """An int8 network as quantizers write it: QuantizeLinear and DequantizeLinear around float operators."""
    g = Graph(7)
    count = 0

    def quantized(x, scale):
        nonlocal count
        count += 1
        s, z = g.constant(f"s{count}", np.float32(scale)), g.constant(f"z{count}", np.int8(0))
        return g.node("DequantizeLinear", g.node("QuantizeLinear", x, s, z), s, z)

    def weights(name, *shape):
        raw = g.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        scale = (np.abs(raw).reshape(shape[0], -1).max(axis=1) / 127).astype(np.float32)
        steps = np.round(raw / scale.reshape(-1, *[1] * (len(shape) - 1))).astype(np.int8)
        s = g.constant(f"{name}.scale", scale)
        return g.node("DequantizeLinear", g.constant(name, steps), s,
                      g.constant(f"{name}.zero", np.zeros(shape[0], np.int8)), axis=0)

    def conv(x, name, inputs, outputs, stride=1):
        bias = g.weight(f"{name}.bias", outputs)
        return g.node("Conv", x, weights(name, outputs, inputs, 3, 3), bias, pads=[1, 1, 1, 1], strides=[stride] * 2)

    x = quantized("image", 0.03)
    x = quantized(g.node("Relu", conv(x, "stem", 3, channels, 2)), 0.02)
    branch = quantized(g.node("Relu", conv(x, "block.a", channels, channels)), 0.02)
    branch = quantized(conv(branch, "block.b", channels, channels), 0.02)
    x = quantized(g.node("Relu", g.node("Add", branch, x)), 0.03)
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = quantized(g.node("GlobalAveragePool", x), 0.02)
    x = g.node("Flatten", x)
    g.node("Gemm", x, weights("head", classes, channels), g.weight("head.bias", classes), outputs=["scores"], transB=1)
    return g.model("qdq_cnn", [tensor("image", ["batch", 3, "height", "width"])], [tensor("scores", ["batch", classes])])


def quantized_weights(g, shape, channel):
    """Random weights in int8 with a scale for each position of axis `channel`: the integers and their scales.

    The integers have 7 bits. On CPUs without integer dot products ONNX Runtime adds two products of u8 and i8 in 16 bits, which
    saturates with 8 (its `reduce_range` is for that), and then its outputs are no reference."""
    others = tuple(axis for axis in range(len(shape)) if axis != channel)
    raw = g.random.standard_normal(shape) / np.sqrt(np.prod(shape) / shape[channel])
    scale = (np.abs(raw).max(axis=others, keepdims=True) / 63).astype(np.float32)
    return np.round(raw / scale).astype(np.int8), scale.reshape(-1)


def qlinear_cnn(channels=24, classes=10):
    """An int8 network of quantized operators: depthwise and pointwise QLinearConv, QLinearMatMul."""
    g = Graph(8)

    def quantization(name, scale, zero):
        return g.constant(f"{name}.scale", np.float32(scale)), g.constant(f"{name}.zero", np.uint8(zero))

    def conv(x, given, name, inputs, outputs, kernel, made, group=1, stride=1):
        steps, scales = quantized_weights(g, (outputs, inputs // group, kernel, kernel), 0)
        bias = np.round(g.random.standard_normal(outputs) * 2000).astype(np.int32)
        return g.node("QLinearConv", x, *given, g.constant(name, steps), g.constant(f"{name}.scale", scales),
                      g.constant(f"{name}.zero", np.zeros(outputs, np.int8)), *made, g.constant(f"{name}.bias", bias),
                      group=group, pads=[kernel // 2] * 4, strides=[stride] * 2)

    image, wide, narrow = quantization("image", 0.01, 128), quantization("wide", 0.02, 0), quantization("narrow", 0.03, 100)
    x = g.node("QuantizeLinear", "image", *image)
    x = conv(x, image, "stem", 3, channels, 3, wide, stride=2)
    x = conv(x, wide, "depthwise", channels, channels, 3, narrow, group=channels)
    x = conv(x, narrow, "pointwise", channels, 2 * channels, 1, wide)
    x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.node("GlobalAveragePool", g.node("DequantizeLinear", x, *wide))
    x = g.node("Flatten", g.node("QuantizeLinear", x, *wide))
    steps, scales = quantized_weights(g, (2 * channels, classes), 1)
    logits = quantization("logits", 0.02, 120)
    x = g.node("QLinearMatMul", x, *wide, g.constant("head", steps), g.constant("head.scale", scales),
               g.constant("head.zero", np.zeros(classes, np.int8)), *logits)
    g.node("DequantizeLinear", x, *logits, outputs=["scores"])
    return g.model("qlinear_cnn", [tensor("image", ["batch", 3, "height", "width"])], [tensor("scores", ["batch", classes])])


def mlp_dynamic(width=256, hidden=768):
    """Two layers quantized as they run: DynamicQuantizeLinear, MatMulInteger and the scale behind it."""
    g = Graph(9)

    def dense(x, name, rows, columns, unsigned):
        steps, scales = quantized_weights(g, (rows, columns), 1)
        if unsigned:  # one scale, and a zero
            scales, steps = np.float32(scales.max()), (steps.astype(np.int16) + 128).astype(np.uint8)
        zero = g.constant(f"{name}.zero", np.uint8(128) if unsigned else np.zeros(columns, np.int8))
        stored, scale, point = (f"{name}.{part}" for part in ("x", "x.scale", "x.zero"))
        g.node("DynamicQuantizeLinear", x, outputs=[stored, scale, point])
        sums = g.node("Cast", g.node("MatMulInteger", stored, g.constant(name, steps), point, zero), to=TensorProto.FLOAT)
        scaled = g.node("Mul", sums, g.node("Mul", scale, g.constant(f"{name}.scale", scales)))
        return g.node("Add", scaled, g.weight(f"{name}.bias", columns))

    x = g.node("Relu", dense("x", "up", width, hidden, False))
    g.node("Identity", dense(x, "down", hidden, width, True), outputs=["y"])
    shape = ["batch", "length", width]
    return g.model("mlp_dynamic", [tensor("x", shape)], [tensor("y", shape)])


ALL = {make.__name__: make for make in (bert_mini, kv_decode, scan_filter, lm_body, lm_output, qdq_cnn, qlinear_cnn,
                                         mlp_dynamic)}
