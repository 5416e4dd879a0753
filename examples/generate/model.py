#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small language model as exporters write them today, with seeded random weights, in two forms.

    model.py FOLDER [--size small] [--top-k 0] [--accuracy-level 4] [--batch texts]

FOLDER/generate.onnx is the whole generation: the prompt, then a Loop whose steps sample a token, give it to the host
and run the decoder. FOLDER/step.onnx is the decoder alone, as other runtimes are called: tokens in, logits out.

The decoder has weights of 4 bits in blocks of 32 (MatMulNBits), attention of grouped heads with a cache and rotary
positions (GroupQueryAttention), RMS norms and SwiGLU. The scales are numbers of float16, as of a model that was float16
before it was quantized. The cache is a buffer: past and present have one shape.
"""

import argparse
import dataclasses
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
BLOCK = 32


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    positions: int

    @property
    def head(self):
        return self.width // self.heads


SIZES = {
    "tiny": Size(2, 64, 4, 2, 160, 128, 256),
    "small": Size(4, 256, 8, 2, 704, 512, 512),
    "large": Size(12, 1024, 16, 4, 2816, 16000, 2048),  # 170 million weights
}


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


class Graph:
    """Collects nodes. `weights` may be those of a graph around it."""

    def __init__(self, weights):
        self.nodes, self.values, self.weights = [], [], weights

    def node(self, op, *inputs, outputs=1, domain="", names=None, **attributes):
        names = names or [f"{op}_{id(self)}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def constant(self, name, array):
        return self.weights.add(name, np.asarray(array))


class Weights:
    """Initializers by name; each is made once."""

    def __init__(self, size, seed, accuracy_level):
        self.size, self.accuracy_level, self.tensors = size, accuracy_level, {}
        self.random = np.random.default_rng(seed)
        self.made = {}

    def add(self, name, array):
        if name not in self.tensors:
            self.tensors[name] = numpy_helper.from_array(array, name)
        return name

    def dense(self, name, rows, columns):
        """Weights of 4 bits of a product: the codes, two in a byte, and the scales of their blocks."""
        if name not in self.made:
            raw = self.random.standard_normal((columns, rows // BLOCK, BLOCK), dtype=np.float32) / np.sqrt(rows)
            scales = (np.abs(raw).max(axis=2, keepdims=True) / 7).astype(np.float16).astype(np.float32)
            codes = np.clip(np.round(raw / scales) + 8, 0, 15).astype(np.uint8)
            packed = codes[..., 0::2] | codes[..., 1::2] << 4
            self.made[name] = (self.add(f"{name}.codes", packed), self.add(f"{name}.scales", scales.reshape(-1)))
        return self.made[name]

    def norm(self, name):
        return self.add(name, (1 + 0.1 * self.random.standard_normal(self.size.width)).astype(np.float32)) \
            if name not in self.tensors else name

    def embedding(self):
        if "embedding" not in self.tensors:
            shape = (self.size.vocabulary, self.size.width)
            self.add("embedding", self.random.standard_normal(shape, dtype=np.float32))
        return "embedding"

    def rotary(self):
        half = self.size.head // 2
        angles = np.arange(self.size.positions)[:, None] / 10000 ** (np.arange(half) / half)
        return (self.add("cos", np.cos(angles).astype(np.float32)), self.add("sin", np.sin(angles).astype(np.float32)))


def decoder(g, weights, tokens, lengths, total, pasts, presents):
    """Logits [1, vocabulary] behind the last of `tokens` [1, length]. `lengths` [1] is the index of the last position
    with these tokens, `total` how many positions there are then. The caches go from `pasts` to `presents`."""
    size = weights.size
    cosines, sines = weights.rotary()

    def dense(x, name, rows, columns):
        return g.node("MatMulNBits", x, *weights.dense(name, rows, columns), domain=MS, K=rows, N=columns, bits=4,
                      block_size=BLOCK, accuracy_level=weights.accuracy_level)

    def skip_norm(x, residual, name):
        normed, _, _, total = g.node("SkipSimplifiedLayerNormalization", x, residual, weights.norm(name), domain=MS,
                                     names=[f"{name}_{id(g)}", "", "", f"{name}_sum_{id(g)}"], epsilon=1e-6)
        return normed, total

    residual = g.node("Gather", weights.embedding(), tokens)
    x = g.node("SimplifiedLayerNormalization", residual, weights.norm("0.norm"), axis=-1, epsilon=1e-6)
    of_keys = size.kv_heads * size.head
    for layer in range(size.layers):
        qkv = dense(x, f"{layer}.qkv", size.width, size.width + 2 * of_keys)
        past_key, past_value = pasts[2 * layer:2 * layer + 2]
        mixed = f"{layer}.mixed_{id(g)}"
        g.node("GroupQueryAttention", qkv, "", "", past_key, past_value, lengths, total, cosines, sines, domain=MS,
               names=[mixed, *presents[2 * layer:2 * layer + 2]], num_heads=size.heads, kv_num_heads=size.kv_heads,
               do_rotary=1)
        x, residual = skip_norm(dense(mixed, f"{layer}.out", size.width, size.width), residual, f"{layer}.norm2")
        gate = dense(x, f"{layer}.gate", size.width, size.inner)
        up = dense(x, f"{layer}.up", size.width, size.inner)
        gated = g.node("Mul", g.node("Mul", gate, g.node("Sigmoid", gate)), up)
        x, residual = skip_norm(dense(gated, f"{layer}.down", size.inner, size.width), residual, f"{layer + 1}.norm")
    last = g.node("Gather", x, g.constant("minus_one", np.int64(-1)), axis=1)
    return dense(last, "vocabulary", size.width, size.vocabulary)


def sampler(g, logits, number, top_k, temperature):
    """The next token [1] for logits [1, vocabulary]: the likeliest one, or, with top_k, one of the top_k likeliest, by
    `number` [1] from 0 to 1."""
    if not top_k:
        return g.node("ArgMax", logits, axis=-1, keepdims=0)
    scores, tokens = g.node("TopK", logits, g.constant("top_k", np.array([top_k])), outputs=2, axis=-1)
    scaled = g.node("Div", scores, g.constant("temperature", np.float32(temperature)))
    sums = g.node("CumSum", g.node("Softmax", scaled, axis=-1), g.constant("last_axis", np.int64(1)))
    below = g.node("Cast", g.node("Less", sums, number), to=TensorProto.INT64)
    count = g.node("ReduceSum", below, g.constant("axis_one", np.array([1])), keepdims=1)
    chosen = g.node("Min", count, g.constant("last_of_k", np.int64(top_k - 1)))
    return g.node("Squeeze", g.node("GatherElements", tokens, chosen, axis=1), g.constant("axis_one", np.array([1])))


def cache_names(size, when):
    return [f"{when}_{part}.{layer}" for layer in range(size.layers) for part in ("key", "value")]


def caches(size, names, batch=1):
    return [tensor(name, [batch, size.kv_heads, "capacity", size.head]) for name in names]


def finished(g, name, inputs, outputs, weights=(), host=False):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    if host:
        opsets.append(helper.make_opsetid("rewire.host", 1))
    graph = helper.make_graph(g.nodes, name, inputs, outputs, list(weights), value_info=g.values)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def step_model(weights, batch=1):
    """`batch` is a number of texts, or the name of that dimension. Of several texts, `lengths` has a row each, and `total` is
    the most positions that one has."""
    size = weights.size
    g = Graph(weights)
    pasts, presents = cache_names(size, "past"), cache_names(size, "present")
    logits = decoder(g, weights, "tokens", "lengths", "total", pasts, presents)
    g.node("Identity", logits, names=["logits"])
    inputs = [tensor("tokens", [batch, "length"], TensorProto.INT64), tensor("lengths", [batch], TensorProto.INT32),
              tensor("total", [], TensorProto.INT32), *caches(size, pasts, batch)]
    return finished(g, "step", inputs, [tensor("logits", [batch, size.vocabulary]), *caches(size, presents, batch)],
                    weights.tensors.values())


def generate_model(weights, top_k, temperature):
    """Inputs: the prompt [1, length]; the most tokens to make; the token that ends a text (-1: none); for top_k a number
    from 0 to 1 for each token; the empty caches. The first token comes from the prompt, each other one from a turn of
    the loop. The host's function `token` is called with each of them as it is made. Outputs: the tokens [most], with -1
    behind the last one, and the caches."""
    size = weights.size
    pasts, presents = cache_names(size, "past"), cache_names(size, "present")
    filled = cache_names(size, "filled")  # behind the prompt
    one = {"one": np.int64(1), "one32": np.int32(1), "axis_zero": np.array([0]), "zero": np.int64(0)}
    g = Graph(weights)
    for name, value in one.items():
        g.constant(name, value)
    g.values += caches(size, filled)

    def number_at(graph, index):
        return graph.node("Gather", "numbers", index, axis=0) if top_k else ""

    def emit(graph, token, name):
        return graph.node("token", token, domain="rewire.host", names=[name])

    def goes_on(graph, token, name=None):
        same = graph.node("Squeeze", graph.node("Equal", token, "stop"))
        return graph.node("Not", same, names=[name] if name else None)

    turns = g.node("Sub", "most", "one")
    none = g.node("Expand", g.constant("minus_ones", np.array([-1])), g.node("Unsqueeze", "most", "axis_zero"))
    length = g.node("Cast", g.node("Squeeze", g.node("Slice", g.node("Shape", "prompt"), g.constant("slice_one", np.array([1])),
                                                     g.constant("slice_two", np.array([2])))), to=TensorProto.INT32)
    lengths = g.node("Unsqueeze", g.node("Sub", length, "one32"), "axis_zero")
    logits = decoder(g, weights, "prompt", lengths, length, pasts, filled)
    first = emit(g, sampler(g, logits, number_at(g, "zero"), top_k, temperature), "first")

    body = Graph(weights)
    now = cache_names(size, "now")
    after = cache_names(size, "after")
    total = body.node("Add", "count", "one32", names=["total"])
    logits = decoder(body, weights, body.node("Unsqueeze", "token", "axis_zero"), body.node("Unsqueeze", "count", "axis_zero"),
                     total, now, after)
    number = number_at(body, body.node("Add", "turn", "one")) if top_k else ""
    emit(body, sampler(body, logits, number, top_k, temperature), "next")
    body.node("ScatterElements", "made", body.node("Unsqueeze", "turn", "axis_zero"), "token", axis=0, names=["more"])
    goes_on(body, "next", "goes_on")
    loop = helper.make_graph(
        body.nodes, "turn",
        [tensor("turn", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL), tensor("token", [1], TensorProto.INT64),
         tensor("count", [], TensorProto.INT32), tensor("made", ["most"], TensorProto.INT64), *caches(size, now)],
        [tensor("goes_on", [], TensorProto.BOOL), tensor("next", [1], TensorProto.INT64), tensor("total", [], TensorProto.INT32),
         tensor("more", ["most"], TensorProto.INT64), *caches(size, after)])
    g.node("Loop", turns, goes_on(g, first), first, length, none, *filled, body=loop,
           names=["last", "positions", "all_but_last", *presents])
    made = g.node("Cast", g.node("Sub", "positions", length), to=TensorProto.INT64)
    g.node("ScatterElements", "all_but_last", g.node("Unsqueeze", made, "axis_zero"), "last", axis=0, names=["tokens"])
    inputs = [tensor("prompt", [1, "length"], TensorProto.INT64), tensor("most", [], TensorProto.INT64),
              tensor("stop", [1], TensorProto.INT64), *([tensor("numbers", ["numbers"])] if top_k else []),
              *caches(size, pasts)]
    return finished(g, "generate", inputs, [tensor("tokens", ["most"], TensorProto.INT64), *caches(size, presents)],
                    weights.tensors.values(), host=True)


def write(folder, size, top_k=0, temperature=1.0, accuracy_level=0, seed=7, batch=1):
    """Writes both models, with the same weights. `batch` is that of the decoder alone."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = Weights(SIZES[size], seed, accuracy_level)
    step = step_model(weights, batch)
    onnx.save(step, folder / "step.onnx")
    onnx.save(generate_model(weights, top_k, temperature), folder / "generate.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--top-k", type=int, default=0, help="sample from so many tokens; 0 takes the likeliest")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--accuracy-level", type=int, default=0, help="4: products round activations to 8 bits")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--batch", help="the name of a dimension: the decoder alone takes any number of texts")
    options = parser.parse_args()
    write(options.folder, options.size, options.top_k, options.temperature, options.accuracy_level, options.seed,
          options.batch or 1)


if __name__ == "__main__":
    main()
