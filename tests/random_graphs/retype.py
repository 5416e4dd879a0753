# SPDX-License-Identifier: Apache-2.0
"""The same model with another type in place of float32."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from builder import to_tensor
from draws import BF16, F32


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


def narrowest(proto):
    """The roughest float type that the model computes in, of those with 16 bits; None without one."""
    numbers = {info.type.tensor_type.elem_type for info in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info)}
    numbers |= {tensor.data_type for tensor in proto.graph.initializer}
    numbers |= {attribute.i for node in proto.graph.node for attribute in node.attribute if attribute.name in ("to", "dtype")}
    numbers |= {attribute.t.data_type for node in proto.graph.node for attribute in node.attribute if attribute.HasField("t")}
    if TensorProto.BFLOAT16 in numbers:
        return BF16
    return np.dtype(np.float16) if TensorProto.FLOAT16 in numbers else None
