# SPDX-License-Identifier: Apache-2.0
"""A random model that is valid: ONNX's checker and strict inference take it, and ONNX Runtime or the reference runs it."""

import dataclasses

import numpy as np
import onnx
from onnx import helper

import contrib
import evaluate
import operators
import structures
from builder import Builder
from draws import NARROW, NUMBER_OF, Draws

# Opsets that models are written for: common ones, the newest, and old ones, whose attributes later became inputs.
OPSETS = {1: 1, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.7, 6: 1.5, 7: 2, 8: 1, 9: 2, 10: 1, 11: 4, 12: 2, 13: 6, 14: 3, 15: 3, 16: 2, 17: 6, 18: 5, 19: 3, 20: 5, 21: 4, 22: 3, 23: 4, 24: 2, 25: 2, 26: 2, 27: 2, 28: 2}
SIZES = {"small": 78, "medium": 18, "large": 4}
NODES = {"small": (1, 3), "medium": (4, 12), "large": (20, 80)}


@dataclasses.dataclass
class Input:
    array: np.ndarray
    recipe: tuple
    dims: tuple


@dataclasses.dataclass
class Model:
    seed: int
    proto: onnx.ModelProto
    inputs: dict  # Input by name
    symbols: dict  # size by symbol
    style: str

    @property
    def feeds(self):
        return {name: each.array for name, each in self.inputs.items()}

    def sized(self, sizes, seed):
        """Feeds for other sizes of the symbols, or None where an input cannot have them."""
        draws = Draws(seed)
        # Rules see to it that some operators get numbers alone, but only for the sizes that they drew.
        draws.style = self.style if self.style in ("quarters", "wide") else "normal"
        feeds = {}
        for name, each in self.inputs.items():
            shape = tuple(sizes.get(dim, size) if isinstance(dim, str) else size for dim, size in zip(each.dims, each.array.shape))
            if each.recipe[0] == "fixed":
                if shape != each.array.shape:
                    return None
                feeds[name] = each.array
            elif each.recipe[0] == "range":
                feeds[name] = draws.integers(each.recipe[1], shape, *each.recipe[2:])
            else:
                feeds[name] = draws.array(each.recipe[1], shape, each.recipe[2])
        return feeds


def _newest_ml(opset):
    return 1 if opset < 9 else 2 if opset < 13 else 3 if opset < 19 else 4 if opset < 22 else 5


def _input_info(value):
    return helper.make_tensor_value_info(value.name, NUMBER_OF[value.dtype], value.dims)


def _outputs(b):
    """Values that nothing reads, and some that others read."""
    read = {name for node in b.nodes for name in node.input}
    for node in b.nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= _reads(attribute.g)
    made = [value for value in b.values if value.source == "node" and not (value.is_tensor and value.dtype in NARROW)]
    chosen = [value for value in made if value.name not in read or b.draws.chance(0.12)]
    chosen = chosen[-12:] or made[-1:]
    # What goes through untouched.
    stored = {tensor.name for tensor in b.initializers}
    through = [value for value in b.values if value.is_tensor and value.dtype not in NARROW and (value.source == "input" or value.name in stored)]
    return chosen + ([b.draws.choose(through)] if through and b.draws.chance(0.06) else [])


def _reads(graph):
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= _reads(attribute.g)
    return found


def _output_info(b, value, known):
    info = helper.make_value_info(value.name, evaluate.type_of(value.array))
    if value.is_tensor:
        # As inference has it, or sizes left open.
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
        inferred = known.get(value.name)
        if inferred is not None and b.draws.chance(0.6):
            info.type.CopyFrom(inferred)
    return info


def _typed(value):
    """A value's type without its shape."""
    return helper.make_tensor_value_info(value.name, NUMBER_OF[value.dtype], None)


def _assemble(b, outputs, known, keep_types):
    graph = helper.make_graph(b.nodes, f"random_{b.draws.between(0, 9)}", [_input_info(v) for v in b.values if v.source == "input"],
                              [_output_info(b, value, known) for value in outputs], b.initializers)
    # Inference does not know what operators of other domains give, and the strict one wants types.
    graph.value_info.extend(_typed(value) for value in b.values if value.name in b.untyped and all(value is not each for each in outputs))
    if keep_types:
        graph.value_info.extend(helper.make_value_info(name, kind) for name, kind in known.items()
                                if name not in b.untyped and name not in {v.name for v in outputs})
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in b.opsets.items() if each[0] != "own" or b.functions], ir_version=evaluate.IR_VERSION,
                             functions=b.functions)


def draw(seed, only=None, size=None):
    """The model of a seed. `only` limits operators, as a list of (domain, name). Raises evaluate.Invalid where what came out
    is not valid."""
    draws = Draws(seed)
    opset = draws.weighted(OPSETS)
    b = Builder(draws, {"": opset, "ai.onnx.ml": _newest_ml(opset), contrib.DOMAIN: 1, "own": 1})
    operators.grow(b, draws.between(*NODES[size or draws.weighted(SIZES)]), only)
    return finish(seed, b)


def finish(seed, b):
    """The model of what a builder has. Raises evaluate.Invalid as draw() does."""
    draws = b.draws
    if not b.nodes:
        raise evaluate.Invalid("nothing was drawn")
    outputs = _outputs(b)
    if not outputs:
        raise evaluate.Invalid("it has no outputs")
    drop_unread(b, outputs)
    inferred = evaluate.check(_assemble(b, outputs, {}, False))
    known = {each.name: each.type for each in (*inferred.graph.value_info, *inferred.graph.output)
             if each.type.tensor_type.elem_type and each.type.tensor_type.HasField("shape")}
    proto = _assemble(b, outputs, known, draws.chance(0.3))
    structures.vary(draws, proto)
    evaluate.check(proto)
    inputs = {v.name: Input(v.array, v.recipe, v.dims) for v in b.values if v.source == "input"}
    symbols = {dim: size for each in inputs.values() for dim, size in zip(each.dims, each.array.shape) if isinstance(dim, str)}
    return Model(seed, proto, inputs, symbols, draws.style)


def drop_unread(b, outputs):
    """Drops constants and inputs that failed tries have left behind, but for some: models have those, too."""
    if b.draws.chance(0.1):
        return
    read = {value.name for value in outputs} | {name for node in b.nodes for name in node.input}
    for node in b.nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= _reads(attribute.g)
    b.initializers = [each for each in b.initializers if each.name in read]
    b.nodes = [node for node in b.nodes if node.op_type != "Constant" or any(name in read for name in node.output)]
    b.values = [value for value in b.values if value.name in read or value.source == "node"]
