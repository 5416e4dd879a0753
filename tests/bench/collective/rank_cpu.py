#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of a rank for the part of a model that is split, beside one process's for all of it.

    rank_cpu.py BUILD [--ranks 2] [--rounds 9] [--repeat 20] [--width 768] [--realtime]

An encoder, a decoder with a cache and a mixture of experts are compiled whole and by --shards. Each process has one thread.
What a kernel takes is measured by vm-run's timeline, in which a process that waits for a CPU counts as one that works. So each
rank needs a CPU, and beside other load real-time priority (--realtime, by chrt). The exchanges are shown apart. Medians over
rounds, which take turns.
"""

import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

import numpy
import onnx
from onnx import helper, numpy_helper

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


class Graph:
    """A graph of tokens x [1, length, width] to y, with weights of random numbers."""

    def __init__(self, width, heads):
        self.width, self.heads, self.size = width, heads, width // heads
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.random = numpy.random.default_rng(1)
        self.value(self.inputs, "x", [1, "length", width])
        self.value(self.outputs, "y", [1, "length", width])

    def value(self, to, name, shape):
        to.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))

    def node(self, kind, inputs, output, **attributes):
        outputs = output if isinstance(output, list) else [output]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name, *shape):
        scale = 1 / math.sqrt(shape[-2]) if len(shape) > 1 else 1
        return self.constant(name, (self.random.standard_normal(shape) * scale).astype(numpy.float32))

    def ints(self, name, *values):
        return self.constant(name, numpy.array(values, numpy.int64))

    def linear(self, x, to, output, within=None):
        product = self.node("MatMul", [x, self.weight(output + ".weight", within or self.width, to)], output + ".product")
        return self.node("Add", [product, self.weight(output + ".bias", to)], output)

    def norm(self, x, output):
        return self.node("LayerNormalization", [x, self.weight(output + ".scale", self.width), self.weight(output + ".bias", self.width)],
                         output, axis=-1)

    def split_heads(self, x, output):
        apart = self.node("Reshape", [x, self.ints(output + ".dims", 0, 0, self.heads, self.size)], output + ".apart")
        return self.node("Transpose", [apart], output, perm=[0, 2, 1, 3])

    def layer(self, x, i, cached, output):
        inside = self.norm(x, f"norm_{i}")
        heads = {each: self.split_heads(self.linear(inside, self.width, f"{each}_{i}"), f"{each}_heads_{i}")
                 for each in ("query", "key", "value")}
        for each in ("key", "value") if cached else ():
            self.value(self.inputs, f"past_{each}_{i}", [1, self.heads, "past", self.size])
            self.value(self.outputs, f"all_{each}_{i}", [1, self.heads, "all", self.size])
            heads[each] = self.node("Concat", [f"past_{each}_{i}", heads[each]], f"all_{each}_{i}", axis=2)
        keys = self.node("Transpose", [heads["key"]], f"turned_{i}", perm=[0, 1, 3, 2])
        scores = self.node("MatMul", [heads["query"], keys], f"scores_{i}")
        scale = self.constant(f"scale_{i}", numpy.float32(1 / math.sqrt(self.size)))
        scaled = self.node("Mul", [scores, scale], f"scaled_{i}")
        weighted = self.node("MatMul", [self.node("Softmax", [scaled], f"softmax_{i}", axis=-1), heads["value"]], f"weighted_{i}")
        back = self.node("Transpose", [weighted], f"back_{i}", perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [back, self.ints(f"joined_{i}.dims", 0, 0, self.width)], f"joined_{i}")
        x = self.node("Add", [x, self.linear(joined, self.width, f"out_{i}")], f"residual_{i}")
        up = self.node("Relu", [self.linear(self.norm(x, f"second_norm_{i}"), 4 * self.width, f"up_{i}")], f"relu_{i}")
        return self.node("Add", [x, self.linear(up, self.width, f"down_{i}", 4 * self.width)], output)

    def experts(self, count):
        inside = self.norm("x", "norm")
        routes = self.node("MatMul", [inside, self.weight("router", self.width, count)], "routes")
        gates = self.node("Transpose", [self.node("Softmax", [routes], "gates", axis=-1)], "of_experts", perm=[2, 1, 0])
        hidden = self.node("MatMul", [inside, self.weight("first", count, self.width, 2 * self.width)], "hidden")
        outputs = self.node("MatMul", [self.node("Relu", [hidden], "relu"), self.weight("second", count, 2 * self.width, self.width)],
                            "outputs")
        weighted = self.node("Mul", [outputs, gates], "weighted")
        self.node("Add", ["x", self.node("ReduceSum", [weighted, self.ints("axes", 0)], "sum", keepdims=1)], "y")

    def save(self, path):
        graph = helper.make_graph(self.nodes, "model", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def stack(width, cached):
    graph = Graph(width, 12)
    x = "x"
    for i in range(2):
        x = graph.layer(x, i, cached, "y" if i == 1 else f"layer_{i}")
    return graph


def mixture(width):
    graph = Graph(width, 12)
    graph.experts(8)
    return graph


# What makes the graph, and the sizes of its dimensions.
MODELS = {"encoder": (lambda width: stack(width, False), {"length": 64}),
          "decoder": (lambda width: stack(width, True), {"length": 1, "past": 256}),
          "experts": (mixture, {"length": 16})}


def run(command, folder):
    done = subprocess.run([str(each) for each in command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def times(path, repeat):
    """Milliseconds of a run by kernel, from a timeline of `repeat` runs."""
    events = json.loads(path.read_text())
    by_name = collections.Counter()
    for event in events["traceEvents"] if isinstance(events, dict) else events:
        if event.get("ph") == "X" and event["name"].startswith("rewire."):
            by_name[event["name"]] += event["dur"] / 1000 / repeat
    return by_name


def split(by_name):
    exchanges = sum(each for name, each in by_name.items() if name.startswith("rewire.collective."))
    return sum(by_name.values()) - exchanges, exchanges


def measure(name, options, folder):
    make, sizes = MODELS[name]
    tools = options.build / "bin"
    make(options.width).save(folder / "model.onnx")
    run([tools / "vm-compile", "model.onnx", "-o", "whole.rwx"], folder)
    run([tools / "vm-compile", "model.onnx", "--shards", options.ranks, "--shard-for", "memory", "-o", "part.rwx"], folder)
    dims = [word for symbol, size in sizes.items() for word in ("--dim", f"{symbol}={size}")]
    measured = ["--random", "--seed", "3", "--threads", "1", "-q", "--warmup", "3", "--repeat", options.repeat, *dims]
    start = ["chrt", "-f", "1"] if options.realtime else []
    one, rank, exchange = [], [], []
    for _ in range(options.rounds):
        run([*start, tools / "vm-run", "whole.rwx", *measured, "--profile-trace", "whole.json"], folder)
        one.append(split(times(folder / "whole.json", options.repeat))[0])
        command = f"exec {' '.join(start)} " + '"$0" part.$OMPI_COMM_WORLD_RANK.rwx "$@" --profile-trace part.$OMPI_COMM_WORLD_RANK.json'
        run([*MPIRUN, "-n", options.ranks, "sh", "-c", command, tools / "vm-run", *measured], folder)
        parts = [split(times(folder / f"part.{i}.json", options.repeat)) for i in range(options.ranks)]
        rank.append(max(own for own, _ in parts))
        exchange.append(max(waits for _, waits in parts))
    ratios = [mine / whole for mine, whole in zip(rank, one)]
    print(f"| {name} | {statistics.median(one):.3f} | {statistics.median(rank):.3f} | {statistics.median(ratios):.2f} | "
          f"{min(ratios):.2f} to {max(ratios):.2f} | {statistics.median(exchange):.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    print(f"| model | one process, ms | the busiest of {options.ranks} ranks, ms | ratio | least to most | its exchanges, ms |\n|---|---:|---:|---:|---|---:|")
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
