# SPDX-License-Identifier: Apache-2.0
"""The same model with another type in place of float32, or of all narrower floats."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from builder import to_tensor
from draws import BF16, NUMBER_OF
from versions import all_nodes


# The types that float64 stands for where all is computed in it.
WIDENED = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclasses.dataclass
class _Change:
    """The types that are changed, and into which one, as ONNX and as numpy have it."""

    types: tuple
    number: int
    dtype: np.dtype

    def tensor(self, tensor):
        if tensor.data_type in self.types:
            tensor.CopyFrom(to_tensor(numpy_helper.to_array(tensor).astype(self.dtype), tensor.name))

    def type(self, kind):
        if kind.HasField("tensor_type") and kind.tensor_type.elem_type in self.types:
            kind.tensor_type.elem_type = self.number
        if kind.HasField("sequence_type"):
            self.type(kind.sequence_type.elem_type)
        if kind.HasField("optional_type"):
            self.type(kind.optional_type.elem_type)

    def nodes(self, nodes):
        for node in nodes:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype", "output_dtype") and attribute.i in self.types and attribute.type == onnx.AttributeProto.INT:
                    attribute.i = self.number
                if attribute.HasField("t"):
                    self.tensor(attribute.t)
                if attribute.HasField("g"):
                    self.graph(attribute.g)
                if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                    values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, self.dtype)
                    attribute.CopyFrom(onnx.helper.make_attribute("value", to_tensor(values)))
            if node.op_type == "ConstantOfShape" and not node.attribute:
                node.attribute.append(onnx.helper.make_attribute("value", to_tensor(np.zeros(1, self.dtype))))

    def graph(self, graph):
        for info in (*graph.input, *graph.output, *graph.value_info):
            self.type(info.type)
        for tensor in graph.initializer:
            self.tensor(tensor)
        self.nodes(graph.node)


def model(proto, number, dtype, types=(TensorProto.FLOAT,)):
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    change = _Change(types, number, dtype)
    change.graph(made.graph)
    for function in made.functions:
        change.nodes(function.node)
    return made


def feeds(arrays, dtype, types=(TensorProto.FLOAT,)):
    return {name: array.astype(dtype) if NUMBER_OF.get(array.dtype) in types else array for name, array in arrays.items()}


def has_floats(proto):
    """Whether any input, initializer or output is float32."""
    tensors = [info.type.tensor_type.elem_type for info in (*proto.graph.input, *proto.graph.output)]
    return TensorProto.FLOAT in tensors + [tensor.data_type for tensor in proto.graph.initializer]


def upstream(proto, names):
    """The names of all values that these follow from, and the nodes, functions' nodes included."""
    functions = {(each.domain, each.name): each for each in proto.functions}
    found, nodes = set(names), []
    for node in reversed(proto.graph.node):
        if found.isdisjoint(node.output):
            continue
        part = list(all_nodes([node]))
        for each in part:
            found.update(each.input)
            if (each.domain, each.op_type) in functions:
                part += all_nodes(functions[each.domain, each.op_type].node)
            for attribute in each.attribute:
                found.update(output.name for output in attribute.g.output)
        nodes += part
    return found, nodes


def narrowest(proto, within):
    """The roughest float type, of those with 16 bits, that the values and nodes `within` have (upstream()); None without one."""
    names, nodes = within
    numbers = {info.type.tensor_type.elem_type for info in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info) if info.name in names}
    numbers |= {tensor.data_type for tensor in proto.graph.initializer if tensor.name in names}
    numbers |= {attribute.i for node in nodes for attribute in node.attribute if attribute.name in ("to", "dtype")}
    numbers |= {attribute.t.data_type for node in nodes for attribute in node.attribute if attribute.HasField("t")}
    numbers |= {tensor.data_type for node in nodes for attribute in node.attribute for tensor in attribute.g.initializer}
    if TensorProto.BFLOAT16 in numbers:
        return BF16
    return np.dtype(np.float16) if TensorProto.FLOAT16 in numbers else None
