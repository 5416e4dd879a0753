# SPDX-License-Identifier: Apache-2.0
"""The same model with another type in place of float32."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from builder import to_tensor
from draws import BF16, F32
from versions import all_nodes


def _tensor(tensor, number, dtype):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(to_tensor(numpy_helper.to_array(tensor).astype(dtype), tensor.name))


def _type(kind, number):
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type == TensorProto.FLOAT:
        kind.tensor_type.elem_type = number
    if kind.HasField("sequence_type"):
        _type(kind.sequence_type.elem_type, number)
    if kind.HasField("optional_type"):
        _type(kind.optional_type.elem_type, number)


def _nodes(nodes, number, dtype):
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "output_dtype") and attribute.i == TensorProto.FLOAT and attribute.type == onnx.AttributeProto.INT:
                attribute.i = number
            if attribute.HasField("t"):
                _tensor(attribute.t, number, dtype)
            if attribute.HasField("g"):
                _graph(attribute.g, number, dtype)
            if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, dtype)
                attribute.CopyFrom(onnx.helper.make_attribute("value", to_tensor(values)))
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("value", to_tensor(np.zeros(1, dtype))))


def _graph(graph, number, dtype):
    for info in (*graph.input, *graph.output, *graph.value_info):
        _type(info.type, number)
    for tensor in graph.initializer:
        _tensor(tensor, number, dtype)
    _nodes(graph.node, number, dtype)


def model(proto, number, dtype):
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    _graph(made.graph, number, dtype)
    for function in made.functions:
        _nodes(function.node, number, dtype)
    return made


def feeds(arrays, dtype):
    return {name: array.astype(dtype) if array.dtype == F32 else array for name, array in arrays.items()}


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
