# SPDX-License-Identifier: Apache-2.0
"""Operators as what they stand for, in other operators of ONNX. Of some of them ONNX Runtime rounds in ways of its own, or ends a
function early, and the reference lacks others. Written out, the formula itself is run, also in float64."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import contrib
from versions import all_nodes, of

# Of quantized operators: where the quantized inputs begin, each followed by its scale and zero, and where the result's scale is.
_ONE, _TWO = ((0,), 3), ((0, 3), 6)
_QUANTIZED = {"QLinearSigmoid": _ONE, "QLinearLeakyRelu": _ONE, "QLinearSoftmax": _ONE, "QLinearAveragePool": _ONE, "QLinearGlobalAveragePool": _ONE,
              "QLinearReduceMean": _ONE, "QLinearAdd": _TWO, "QLinearMul": _TWO, "QLinearWhere": ((1, 4), 7)}
_TO_THE_END = 2**31 - 1


def expanded(model):
    """The same model with such nodes written out, those of bodies, too; the model itself if none of its nodes is one."""
    opset = of(model)
    if not any(_expand(node, opset) for node in all_nodes(model.graph.node)):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _write_out(made.graph, opset)
    return made


def _write_out(graph, opset):
    nodes = []
    for node in graph.node:
        for body in (each.g for each in node.attribute if each.HasField("g")):
            _write_out(body, opset)
        nodes += _expand(node, opset) or [onnx.NodeProto.FromString(node.SerializeToString())]
    del graph.node[:]
    graph.node.extend(nodes)


class _Nodes:
    """The nodes that stand for one, as they are made."""

    def __init__(self, node, opset):
        self._node, self._opset, self.made = node, opset, []

    def add(self, kind, given, **attributes):
        name = f"{self._node.output[0]}/expanded{len(self.made)}"
        while given and not given[-1]:
            given = given[:-1]
        self.made.append(helper.make_node(kind, given, [name], **attributes))
        return name

    def ints(self, *values):
        return self._constant(np.array(values, np.int64))

    def number(self, value, like):
        """A number in the type of a value. Before set 15 it is float32: what has others is not run."""
        made = self._constant(np.array(value, np.float32))
        return self.add("CastLike", [made, like]) if self._opset >= 15 else made

    def _constant(self, array):
        return self.add("Constant", [], value=numpy_helper.from_array(array))

    def pad(self, x, pads):
        return self.add("Pad", [x, self.ints(*pads)]) if self._opset >= 11 else self.add("Pad", [x], pads=pads)

    def cut(self, x, axis, start, end):
        if self._opset < 10:
            return self.add("Slice", [x], axes=[axis], starts=[start], ends=[end])
        return self.add("Slice", [x, self.ints(start), self.ints(end), self.ints(axis)])

    def upright(self, x):
        """One for each direction, along two more axes."""
        return self.add("Unsqueeze", [x, self.ints(1, 2)]) if self._opset >= 13 else self.add("Unsqueeze", [x], axes=[1, 2])

    def end(self):
        self.made[-1].output[0] = self._node.output[0]
        return self.made


def _expand(node, opset):
    """The nodes that stand for one; None for others."""
    if any(each.ref_attr_name for each in node.attribute):
        return None
    nodes, attributes = _Nodes(node, opset), {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if (node.domain, node.op_type) == ("", "LRN"):
        return _lrn(nodes, node.input[0], **attributes)
    if (node.domain, node.op_type) == (contrib.DOMAIN, "QuickGelu"):
        return _quick_gelu(nodes, node.input[0], **attributes)
    if (node.domain, node.op_type) == (contrib.DOMAIN, "DynamicQuantizeLSTM"):
        return _lstm(nodes, node, attributes)
    return _quantized(nodes, node, opset, attributes) if node.domain == contrib.DOMAIN and contrib.OLDEST <= opset <= contrib.NEWEST else None


def _quick_gelu(nodes, x, alpha=1.702):
    nodes.add("Mul", [x, nodes.add("Sigmoid", [nodes.add("Mul", [x, nodes.number(alpha, x)])])])
    return nodes.end()


def _lrn(nodes, x, size, alpha=1e-4, beta=0.75, bias=1.0):
    """x / (bias + alpha / size * the sum of the squares of `size` channels around)^beta."""
    squares = nodes.pad(nodes.add("Mul", [x, x]), [0, (size - 1) // 2, 0, 0, 0, size // 2, 0, 0])
    parts = [nodes.cut(squares, 1, i, i + 1 - size if i + 1 < size else _TO_THE_END) for i in range(size)]
    scaled = nodes.add("Mul", [nodes.add("Sum", parts), nodes.number(alpha / size, x)])
    nodes.add("Div", [x, nodes.add("Pow", [nodes.add("Add", [scaled, nodes.number(bias, x)]), nodes.number(beta, x)])])
    return nodes.end()


def _lstm(nodes, node, attributes):
    """The layer with its weights as floats, and inputs that are not quantized (docs/compiler.md)."""
    inputs = [*node.input, *[""] * 12]

    def weights(place, scale):
        made = nodes.add("Cast", [inputs[place]], to=onnx.TensorProto.FLOAT)
        if inputs[scale + 1]:
            made = nodes.add("Sub", [made, nodes.add("Cast", [nodes.upright(inputs[scale + 1])], to=onnx.TensorProto.FLOAT)])
        return nodes.add("Transpose", [nodes.add("Mul", [made, nodes.upright(inputs[scale])])], perm=[0, 2, 1])

    given = [inputs[0], weights(1, 8), weights(2, 10), *inputs[3:8]]
    nodes.add("LSTM", given, **attributes)
    del nodes.made[-1].output[:]
    nodes.made[-1].output.extend(node.output)
    return nodes.made


def _quantized(nodes, node, opset, attributes):
    """A quantized operator as that of floats between DequantizeLinear and QuantizeLinear."""
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        nodes.add(node.op_type, list(node.input), **attributes)
        return nodes.end()
    inputs = [*node.input, *[""] * 9]
    floats = lambda place: nodes.add("DequantizeLinear", inputs[place:place + 3])
    if node.op_type == "QGemm":
        return _qgemm(nodes, inputs, floats, **attributes)
    if node.op_type == "QLinearConcat":
        made = nodes.add("Concat", [floats(place) for place in range(2, len(node.input), 3)], **attributes)
        scale, zero = inputs[0], inputs[1]
    elif node.op_type in _QUANTIZED and not attributes.pop("channels_last", 0):
        begins, end = _QUANTIZED[node.op_type]
        given = [inputs[0]] * (node.op_type == "QLinearWhere") + [floats(place) for place in begins]
        attributes.pop("opset", None)
        if node.op_type == "QLinearReduceMean" and opset >= 18:
            given.append(nodes.ints(*attributes.pop("axes")))
        made = nodes.add(node.op_type.removeprefix("QLinear"), given, **attributes)
        scale, zero = inputs[end], inputs[end + 1]
    else:
        return None
    nodes.add("QuantizeLinear", [made, scale, zero])
    return nodes.end()


def _qgemm(nodes, inputs, floats, alpha=1.0, transA=0, transB=0):
    """alpha * (a * b + bias), where the bias counts steps of both scales."""
    turned = lambda x, does: nodes.add("Transpose", [x], perm=[1, 0]) if does else x
    made = nodes.add("MatMul", [turned(floats(0), transA), turned(floats(3), transB)])
    if inputs[6]:
        steps = nodes.add("Cast", [inputs[6]], to=onnx.TensorProto.FLOAT)
        made = nodes.add("Add", [made, nodes.add("Mul", [steps, nodes.add("Mul", [inputs[1], inputs[4]])])])
    made = nodes.add("Mul", [made, nodes.number(alpha, made)])
    if inputs[7]:
        nodes.add("QuantizeLinear", [made, inputs[7], inputs[8]])
    return nodes.end()
