# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft: their schemas, which ONNX Runtime has and the onnx package then takes, and the quantized ones as
operators of ONNX: ONNX Runtime rounds in ways of its own."""

import onnx
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import promised
from versions import of

DOMAIN = "com.microsoft"
# Not drawn: its inputs are not quantized by Rewire, which is nearer to the float layer than ONNX Runtime is.
LEFT_OUT = {"DynamicQuantizeLSTM"}
KINDS = tuple(kind for kind in promised.of_domain(DOMAIN) if kind not in LEFT_OUT)

Schema = onnx.defs.OpSchema


def _parameter(given):
    return Schema.FormalParameter(given.name, given.typeStr, "", param_option=Schema.FormalParameterOption(int(given.option)), is_homogeneous=given.isHomogeneous)


def _attribute(name, given):
    kind = getattr(Schema.AttrType, str(given.type).rpartition(".")[2])
    default = onnx.AttributeProto.FromString(given._default_value) if given._default_value else None
    if default is not None and default.name:
        return Schema.Attribute(name, default, "")
    return Schema.Attribute(name, kind, "", required=given.required)


def register():
    """Makes the schemas of the operators that are drawn known to the onnx package."""
    for each in runtime.get_all_operator_schema():
        if each.domain == DOMAIN and each.name in KINDS and not onnx.defs.has(each.name, domain=DOMAIN):
            types = [(one.type_param_str, one.allowed_type_strs, "") for one in each.type_constraints]
            onnx.defs.register_schema(Schema(each.name, DOMAIN, each.since_version, inputs=[_parameter(one) for one in each.inputs],
                                             outputs=[_parameter(one) for one in each.outputs], type_constraints=types,
                                             attributes=[_attribute(name, one) for name, one in each.attributes.items()]))


# Of quantized operators: where the quantized inputs begin, each followed by its scale and zero, and where the result's scale is.
_ONE, _TWO = ((0,), 3), ((0, 3), 6)
_QUANTIZED = {"QLinearSigmoid": _ONE, "QLinearLeakyRelu": _ONE, "QLinearSoftmax": _ONE, "QLinearAveragePool": _ONE, "QLinearGlobalAveragePool": _ONE,
              "QLinearReduceMean": _ONE, "QLinearAdd": _TWO, "QLinearMul": _TWO, "QLinearWhere": ((1, 4), 7)}
# The sets in which quantization has what they need, and ONNX Runtime runs it.
OLDEST, NEWEST = 13, 25


def expanded(model):
    """The same model with quantized operators as those of floats between DequantizeLinear and QuantizeLinear; the model itself if
    none of its nodes is one."""
    parts = [_expand(node, of(model)) if node.domain == DOMAIN and OLDEST <= of(model) <= NEWEST else None for node in model.graph.node]
    if not any(parts):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node, part in zip(model.graph.node, parts):
        made.graph.node.extend(part or [node])
    return made


def _expand(node, opset):
    """The nodes that stand for one; None for one that ONNX Runtime alone has."""
    nodes, name = [], f"{node.output[0]}/expanded"
    inputs = [*node.input, *[""] * 9]

    def add(kind, given, **attributes):
        made = f"{name}{len(nodes)}"
        while given and not given[-1]:
            given = given[:-1]
        nodes.append(helper.make_node(kind, given, [made], **attributes))
        return made

    def floats(place):
        return add("DequantizeLinear", inputs[place:place + 3])

    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        nodes.append(helper.make_node(node.op_type, list(node.input), list(node.output)))
        nodes[-1].attribute.extend(node.attribute)
        return nodes
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if node.op_type == "QLinearConcat":
        made = add("Concat", [floats(place) for place in range(2, len(node.input), 3)], **attributes)
        scale, zero = inputs[0], inputs[1]
    elif node.op_type in _QUANTIZED and not attributes.pop("channels_last", 0):
        begins, end = _QUANTIZED[node.op_type]
        given = [inputs[0]] * (node.op_type == "QLinearWhere") + [floats(place) for place in begins]
        attributes.pop("opset", None)
        if node.op_type == "QLinearReduceMean" and opset >= 18:
            given.append(add("Constant", [], value_ints=attributes.pop("axes")))
        made = add(node.op_type.removeprefix("QLinear"), given, **attributes)
        scale, zero = inputs[end], inputs[end + 1]
    else:
        return None
    made = add("QuantizeLinear", [made, scale, zero])
    nodes[-1].output[0] = node.output[0]
    return nodes
