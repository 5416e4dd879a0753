#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the rule of oracles.py notices wrong results: plants faults in what ONNX Runtime answers, and in models that it runs, and asks
the oracles about the results as if Rewire had given them. Rewire runs nothing here. Also plants models that never end and that end the process.

    planted.py --count 200 --seed 1

A fault counts where it changes an element by more than CLEARLY times what oracles.py lets float types differ. Prints how many of each were
caught, and those that were not. Exits with 1 where more of a fault than MOST_MISSED are not caught, or than MOST_OPEN not judged.
"""

import argparse
import collections
import sys

import numpy as np
import onnx
from onnx import AttributeProto, helper

import evaluate
import model
from draws import TEXT, Draws, is_float
from oracles import TOLERANCES, Open, Oracles
from worker import Worker

CLEARLY = 4
# Of a model that magnifies what it is given, some elements say nothing (oracles.py).
MOST_MISSED = 0.05
# Some results follow from what ONNX leaves open (left_open.py).
MOST_OPEN = 0.15

RESULTS, NODES = {}, {}


def of_result(function):
    RESULTS[function.__name__.replace("_", " ")] = function
    return function


def of_node(function):
    NODES[function.__name__.replace("_", " ")] = function
    return function


# Faults of results: functions of draws and an array with elements. None: it does not apply.


@of_result
def two_axes_swapped(draws, array):
    pairs = [(i, j) for i in range(array.ndim) for j in range(i) if array.shape[i] == array.shape[j] > 1]
    return np.swapaxes(array, *draws.choose(pairs)).copy() if pairs else None


@of_result
def shifted_by_one(draws, array):
    return np.roll(array, 1, -1) if array.ndim and array.shape[-1] > 1 else None


@of_result
def nan_dropped(draws, array):
    return np.where(np.isnan(array), 0, array).astype(array.dtype) if is_float(array.dtype) and np.isnan(array).any() else None


@of_result
def infinity_for_nan(draws, array):
    return np.where(np.isnan(array), np.inf, array).astype(array.dtype) if is_float(array.dtype) and np.isnan(array).any() else None


def _one_changed(draws, array, change):
    made = array.copy()
    place = np.unravel_index(draws.between(0, array.size - 1), array.shape)
    made[place] = change(made[place])
    return made


@of_result
def one_is_nan(draws, array):
    return _one_changed(draws, array, lambda x: np.nan) if is_float(array.dtype) else None


@of_result
def one_is_negated(draws, array):
    return _one_changed(draws, array, lambda x: -x) if is_float(array.dtype) else None


@of_result
def last_is_not_written(draws, array):
    made = array.copy()
    made[(-1,) * array.ndim] = 0
    return made if array.dtype != bool else None


@of_result
def one_step_off(draws, array):
    return _one_changed(draws, array, lambda x: x + 1 if x < np.iinfo(array.dtype).max else x - 1) if array.dtype.kind in "iu" else None


@of_result
def one_flipped(draws, array):
    return _one_changed(draws, array, lambda x: not x) if array.dtype == bool else None


@of_result
def scaled(draws, array):
    return (array * 1.002).astype(array.dtype) if array.dtype in (np.float32, np.float64) else None


@of_result
def rounded_to_float16(draws, array):
    return array.astype(np.float16).astype(array.dtype) if array.dtype == np.float32 and np.abs(array).max() < 60000 else None


@of_result
def one_of_its_neighbor(draws, array):
    return _one_changed(draws, array, lambda x: array.ravel()[draws.between(0, array.size - 1)])


# Faults of operators: functions of draws and a node, which they change. False: it does not apply.


def _attribute(node, name):
    return next((each for each in node.attribute if each.name == name), None)


@of_node
def inputs_swapped(draws, node):
    if node.op_type not in ("Sub", "Div", "Pow", "Less", "Greater", "Mod", "MatMul", "BitShift"):
        return False
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


_OTHER = {"Floor": "Ceil", "Ceil": "Floor", "Round": "Floor", "MaxPool": "AveragePool", "AveragePool": "MaxPool", "ReduceMean": "ReduceSum",
          "ReduceMax": "ReduceMin", "ReduceL1": "ReduceL2", "Max": "Min", "And": "Or", "Greater": "GreaterOrEqual", "Less": "LessOrEqual", "Sinh": "Sin",
          "Erf": "Tanh", "Relu": "Abs", "Sigmoid": "HardSigmoid", "Softplus": "Relu", "Softmax": "LogSoftmax", "ArgMax": "ArgMin", "Mish": "HardSwish",
          "GlobalMaxPool": "GlobalAveragePool", "CumSum": "CumProd", "Gelu": "Relu", "Elu": "Selu", "IsInf": "IsNaN"}


@of_node
def another_operator(draws, node):
    if node.op_type not in _OTHER or node.domain:
        return False
    node.op_type = _OTHER[node.op_type]
    return True


@of_node
def a_number_off(draws, node):
    """An integer or a list of integers that is another one: an axis, a pad, a stride, a flag."""
    found = [each for each in node.attribute if each.type in (AttributeProto.INT, AttributeProto.INTS) and each.name not in ("to", "dtype", "group", "output_dtype", "block_size")]
    if not found:
        return False
    attribute = draws.choose(found)
    if attribute.type == AttributeProto.INT:
        attribute.i = 1 - attribute.i if attribute.i in (0, 1) else attribute.i - 1
    elif attribute.name == "perm":
        attribute.ints[:] = attribute.ints[::-1]
    elif attribute.ints:
        place = draws.between(0, len(attribute.ints) - 1)
        attribute.ints[place] += 1
    return True


@of_node
def a_slope_off(draws, node):
    found = [each for each in node.attribute if each.type == AttributeProto.FLOAT]
    if not found:
        return False
    draws.choose(found).f += 0.125
    return True


@of_node
def a_mode_off(draws, node):
    """Another rounding, padding or kind of coordinates."""
    attribute = _attribute(node, draws.choose(["mode", "nearest_mode", "coordinate_transformation_mode", "padding_mode", "auto_pad", "reduction", "direction", "norm"]))
    others = {b"floor": b"ceil", b"round_prefer_floor": b"ceil", b"ceil": b"floor", b"asymmetric": b"half_pixel", b"half_pixel": b"asymmetric", b"constant": b"edge",
              b"reflect": b"edge", b"edge": b"reflect", b"SAME_UPPER": b"SAME_LOWER", b"SAME_LOWER": b"SAME_UPPER", b"add": b"max", b"mean": b"sum", b"forward": b"reverse",
              b"LEFT": b"RIGHT", b"DCR": b"CRD", b"CRD": b"DCR", b"L1": b"L2", b"zeros": b"border", b"linear": b"nearest", b"nearest": b"linear"}
    if attribute is None or attribute.s not in others:
        return False
    attribute.s = others[attribute.s]
    return True


@of_node
def an_input_forgotten(draws, node):
    """A bias, a slope of a window or a mask that is not read."""
    if node.op_type not in ("Conv", "Gemm", "ConvTranspose", "LayerNormalization", "Clip", "LSTM", "GRU", "RNN", "Attention") or len(node.input) < 3 or not node.input[-1]:
        return False
    del node.input[-1]
    return True


def clearly(given, right):
    """Whether two results differ by more than rounding."""
    if given.shape != right.shape or given.dtype != right.dtype:
        return True
    if right.dtype == TEXT or not is_float(right.dtype):
        return bool((given != right).any())
    relative, absolute = TOLERANCES[right.dtype]
    wide, exact = given.astype(np.float64), right.astype(np.float64)
    largest = np.abs(exact[np.isfinite(exact)]).max(initial=0)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact)) | (np.abs(wide - exact) <= CLEARLY * (relative * np.abs(exact) + absolute * largest) + 1e-9)
    return not same.all()


def wrong_results(drawn, right, draws):
    """(fault, place of the output, result) of faults that change something."""
    for place, array in enumerate(right):
        if isinstance(array, np.ndarray) and array.size and array.dtype != TEXT:
            for name, change in RESULTS.items():
                with np.errstate(all="ignore"):
                    given = change(draws, array)
                if given is not None and clearly(given, array):
                    yield name, place, given
    for name, change in NODES.items():
        proto = onnx.ModelProto()
        proto.CopyFrom(drawn.proto)
        nodes = list(proto.graph.node)
        node = next((each for each in draws.shuffled(nodes) if change(draws, each)), None)
        if node is None:
            continue
        for output in proto.graph.output:
            output.type.tensor_type.ClearField("shape")
        try:
            given = evaluate.by_onnxruntime(evaluate.lowered(proto), drawn.feeds)
        except evaluate.Invalid:
            continue
        for place, (each, array) in enumerate(zip(given, right)):
            if isinstance(array, np.ndarray) and isinstance(each, np.ndarray) and clearly(each, array):
                yield f"{name}: {node.op_type}", place, each


def unnoticed_ends():
    """What worker.py plants and Worker calls something else."""
    unnoticed = 0
    for kind, status in (("spins", "hung"), ("waits", "hung"), ("crashes", "crashed")):
        worker = Worker(limit_s=0.5)
        rows = worker.ask({"planted": kind})
        worker.stop()
        noticed = [row[:2] for row in rows] == [["planted", status]] and "worker.py" in rows[0][2]
        unnoticed += not noticed
        print(f"{kind:24} {rows}")
    return unnoticed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many models")
    parser.add_argument("--seed", type=int, default=1, help="the first model's seed")
    options = parser.parse_args()
    caught, missed, left_open = collections.Counter(), collections.Counter(), collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        try:
            drawn = model.draw(seed)
        except evaluate.Invalid:
            continue
        oracles = Oracles(drawn.proto, drawn.feeds)
        if not oracles.runtime:
            continue
        for name, place, given in wrong_results(drawn, oracles.runtime, Draws(seed)):
            kind = name.partition(":")[0]
            try:
                noticed = oracles.problem(place, given)
            except Open:  # nobody says what is right
                left_open[kind] += 1
                continue
            if noticed:
                caught[kind] += 1
            else:
                missed[kind] += 1
                print(f"MISSED {seed} output {place}: {name}; operators {' '.join(sorted({node.op_type for node in drawn.proto.graph.node}))[:200]}", flush=True)
    bad = unnoticed_ends()
    for kind in sorted(caught | missed):
        total = caught[kind] + missed[kind]
        bad += missed[kind] > MOST_MISSED * total + 1 or left_open[kind] > MOST_OPEN * total + 1
        print(f"{kind:24} {caught[kind]} of {total} caught, {left_open[kind]} where ONNX leaves the result open")
    return 1 if bad or not caught else 0


if __name__ == "__main__":
    sys.exit(main())
