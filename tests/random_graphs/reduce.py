# SPDX-License-Identifier: Apache-2.0
"""Makes a failing model smaller for as long as it fails in the same way: fewer outputs, nodes, attributes and sizes."""

import copy
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import evaluate
import kept
from builder import to_tensor
from draws import NUMBER_OF
from model import Input, Model, _reads

BAD = ("refused", "failed", "wrong", "crashed", "hung")


class Reducer:
    def __init__(self, worker, form, status, device):
        self._worker, self._form, self._status, self._device = worker, form, status, device
        self._folder = tempfile.TemporaryDirectory()
        self.tries = 0

    def fails(self, drawn):
        """Whether the model is valid and fails in the same way."""
        self.tries += 1
        try:
            evaluate.check(drawn.proto)
        except evaluate.Invalid:
            return False
        kept.write(self._folder.name, drawn, self._form, "")
        rows = self._worker.ask({"folder": self._folder.name, "forms": self._form, "device": self._device})
        return any(status == self._status and form == self._form for form, status, _ in rows)

    def reduce(self, drawn, most=400):
        """The smallest model that it finds."""
        changed = True
        while changed and self.tries < most:
            changed = False
            for step in (fewer_outputs, cut_inputs, bypassed, fewer_attributes, closed, smaller):
                for candidate in step(drawn):
                    if self.tries >= most:
                        return drawn
                    if candidate is not None and self.fails(candidate):
                        drawn, changed = candidate, True
                        break
                if changed:
                    break
        return drawn


def _copy(drawn):
    proto = onnx.ModelProto()
    proto.CopyFrom(drawn.proto)
    return Model(drawn.seed, proto, dict(drawn.inputs), dict(drawn.symbols), drawn.style)


def _without_shapes(graph):
    """Values within keep their types, which inference may not know."""
    for info in graph.value_info:
        info.type.tensor_type.ClearField("shape")


def pruned(drawn):
    """Without what no output needs."""
    graph = drawn.proto.graph
    _without_shapes(graph)
    needed = {each.name for each in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed.update(node.input)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    needed |= _reads(attribute.g)
    nodes = [copy.deepcopy(node) for node in reversed(nodes)]
    del graph.node[:]
    graph.node.extend(nodes)
    made = {name for node in nodes for name in node.output}
    left = [copy.deepcopy(each) for each in graph.value_info if each.name in made]
    del graph.value_info[:]
    graph.value_info.extend(left)
    for field in (graph.initializer, graph.input):
        left = [copy.deepcopy(each) for each in field if each.name in needed]
        del field[:]
        field.extend(left)
    drawn.inputs = {name: each for name, each in drawn.inputs.items() if name in needed}
    used = {(node.domain, node.op_type) for node in nodes}
    left = [copy.deepcopy(each) for each in drawn.proto.functions if (each.domain, each.name) in used]
    del drawn.proto.functions[:]
    drawn.proto.functions.extend(left)
    return drawn


def fewer_outputs(drawn):
    outputs = list(drawn.proto.graph.output)
    for output in outputs if len(outputs) > 1 else []:
        made = _copy(drawn)
        del made.proto.graph.output[:]
        made.proto.graph.output.append(output)
        yield pruned(made)


def _values(drawn):
    """The arrays of all values that nodes of the outermost graph make."""
    proto = onnx.ModelProto()
    proto.CopyFrom(drawn.proto)
    names = [name for node in proto.graph.node for name in node.output if name]
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_value_info(name, onnx.TypeProto()) for name in names)
    try:
        return dict(zip(names, evaluate.by_reference(proto, drawn.feeds)))
    except evaluate.Invalid:
        pass
    try:
        inferred = {each.name: each.type for each in evaluate.check(drawn.proto).graph.value_info}
        for output in proto.graph.output:
            if output.name in inferred:
                output.type.CopyFrom(inferred[output.name])
        return dict(zip(names, evaluate.by_onnxruntime(proto, drawn.feeds)))
    except evaluate.Invalid:
        return {}


def cut_inputs(drawn):
    """In place of a node its results, as inputs; or an output within the model in place of all outputs."""
    values = _values(drawn)
    nodes = list(drawn.proto.graph.node)
    for node in nodes if len(nodes) > 1 else []:
        # An output in the middle: what lies behind goes.
        for name in node.output:
            if isinstance(values.get(name), np.ndarray) and name not in {each.name for each in drawn.proto.graph.output}:
                made = _copy(drawn)
                del made.proto.graph.output[:]
                made.proto.graph.output.append(_info(name, values[name], True))
                yield pruned(made)
    for node in nodes if len(nodes) > 1 else []:
        if node.op_type == "Constant" or not all(isinstance(values.get(name), np.ndarray) for name in node.output if name):
            continue
        if set(node.output) & {each.name for each in drawn.proto.graph.output}:
            continue
        made = _copy(drawn)
        made.proto.graph.node.remove(node)
        for name in node.output:
            if name:
                made.proto.graph.input.append(_info(name, values[name], False))
                made.inputs[name] = Input(values[name], ("fixed",), tuple(values[name].shape))
        yield pruned(made)


def _info(name, array, is_open):
    return helper.make_tensor_value_info(name, NUMBER_OF[array.dtype], [None] * array.ndim if is_open else array.shape)


def bypassed(drawn):
    """A node's first input in place of its output."""
    for place, node in enumerate(drawn.proto.graph.node):
        if not node.input or len(drawn.proto.graph.node) < 2 or node.output[0] in {each.name for each in drawn.proto.graph.output}:
            continue
        made = _copy(drawn)
        for later in made.proto.graph.node:
            for i, name in enumerate(later.input):
                if name == node.output[0]:
                    later.input[i] = node.input[0]
        del made.proto.graph.node[place]
        yield pruned(made)


def fewer_attributes(drawn):
    for place, node in enumerate(drawn.proto.graph.node):
        for i in range(len(node.attribute)):
            made = _copy(drawn)
            del made.proto.graph.node[place].attribute[i]
            yield made


def closed(drawn):
    """Sizes in place of symbols."""
    for symbol in sorted(drawn.symbols):
        made = _copy(drawn)
        for info in made.proto.graph.input:
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param == symbol:
                    dim.dim_value = drawn.symbols[symbol]
        made.symbols.pop(symbol)
        for name, each in drawn.inputs.items():
            made.inputs[name] = Input(each.array, each.recipe, tuple(drawn.symbols[d] if d == symbol else d for d in each.dims))
        yield made


def smaller(drawn):
    """Another size in place of one, in all inputs and initializers; and simpler elements."""
    sizes = {size for each in drawn.inputs.values() for size in each.array.shape}
    sizes |= {size for each in drawn.proto.graph.initializer for size in each.dims}
    for size in sorted(sizes, reverse=True):
        for less in (1, 2, 3):
            if less < size:
                yield _resized(drawn, size, less)


def _cut(array, size, less):
    return array[tuple(slice(0, less) if each == size else slice(None) for each in array.shape)]


def _resized(drawn, size, less):
    made = _copy(drawn)
    graph = made.proto.graph
    made.symbols = {name: less if each == size else each for name, each in drawn.symbols.items()}
    for name, each in drawn.inputs.items():
        dims = tuple(less if dim == size else dim for dim in each.dims)
        made.inputs[name] = Input(np.ascontiguousarray(_cut(each.array, size, less)), each.recipe, dims)
    for info in graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value == size:
                dim.dim_value = less
    for tensor in graph.initializer:
        if size in tensor.dims and tensor.data_type != onnx.TensorProto.STRING:
            tensor.CopyFrom(to_tensor(_cut(numpy_helper.to_array(tensor), size, less), tensor.name))
    for output in graph.output:
        for dim in output.type.tensor_type.shape.dim:
            dim.Clear()
    _without_shapes(graph)
    return made


def to_folder(folder, drawn, form, status, detail, device, limit_s):
    """Reduces a model and writes it."""
    from worker import Worker

    worker = Worker(limit_s)
    try:
        reducer = Reducer(worker, form, status, device)
        small = reducer.reduce(drawn) if reducer.fails(drawn) else drawn
        kept.write(pathlib.Path(folder), small, form, f"{status}: {detail}")
    finally:
        worker.stop()
    return small
