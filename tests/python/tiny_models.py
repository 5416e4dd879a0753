# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models that the tests run."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(nodes, inputs, outputs, initializers=(), opset=17):
    """A model of these nodes; values are (name, dtype, shape)."""
    infos = [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in inputs]
    results = [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in initializers]
    graph = helper.make_graph(nodes, "g", infos, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def add(shape=("N", 4), dtype=TensorProto.FLOAT):
    """sum = a + b."""
    node = helper.make_node("Add", ["a", "b"], ["sum"])
    return model([node], [("a", dtype, shape), ("b", dtype, shape)], [("sum", dtype, shape)])


def linear(columns=4):
    """y = relu(x @ w), where w is 8 by 4, or has so many columns."""
    w = numpy.linspace(-1, 1, 8 * columns, dtype=numpy.float32).reshape(8, columns)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"], name="the relu")]
    return model(nodes, [("x", TensorProto.FLOAT, ("N", 8))], [("y", TensorProto.FLOAT, ("N", columns))], [("w", w)]), w


def identity():
    """y = x: what comes in goes out."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return model([node], [("x", TensorProto.FLOAT, (4,))], [("y", TensorProto.FLOAT, (4,))])


def slow(steps=100000, size=512):
    """A loop of products of matrices, which takes far longer than any test waits."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "state"], ["product"]), helper.make_node("Tanh", ["product"], ["next"]),
         helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ()), helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
         helper.make_tensor_value_info("state", TensorProto.FLOAT, (size, size))],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, ()),
         helper.make_tensor_value_info("next", TensorProto.FLOAT, (size, size))])
    nodes = [helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)]
    return model(nodes, [("x", TensorProto.FLOAT, (size, size))], [("y", TensorProto.FLOAT, (size, size))],
                 [("steps", numpy.array(steps, numpy.int64))])


def unknown_operators():
    """Two nodes that nobody knows."""
    nodes = [helper.make_node("Relo", ["x"], ["h"], name="first"),
             helper.make_node("Frob", ["h"], ["y"], domain="mine", name="second")]
    made = model(nodes, [("x", TensorProto.FLOAT, (4,))], [("y", TensorProto.FLOAT, (4,))])
    made.opset_import.append(helper.make_opsetid("mine", 1))
    return made


def data_of(proto):
    """The bytes of the file."""
    return proto.SerializeToString()


__all__ = ["add", "data_of", "identity", "linear", "model", "onnx", "slow", "unknown_operators"]
