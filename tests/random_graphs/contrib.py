# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft: their schemas, which ONNX Runtime has and the onnx package then takes."""

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import promised

DOMAIN = "com.microsoft"
KINDS = promised.of_domain(DOMAIN)

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


# The sets in which quantization has what contrib's operators of bytes stand for (expansions.py), and ONNX Runtime runs it.
OLDEST, NEWEST = 13, 25
# Attention with a past: where it is among the inputs. ONNX Runtime reads it only where the node names what it becomes.
_PASTS = {"MultiHeadAttention": (6, 7), "GroupQueryAttention": (3, 4), "Attention": (4,)}


def with_presents(model):
    """The same model with names for all that a past becomes: without them ONNX Runtime leaves the past out."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for nodes in [made.graph.node, *(each.node for each in made.functions)]:
        for node in nodes:
            pasts = _PASTS.get(node.op_type, ()) if node.domain == DOMAIN else ()
            if pasts and len(node.input) > pasts[0] and node.input[pasts[0]]:
                named = [*node.output, *[""] * (1 + len(pasts) - len(node.output))]
                node.output[:] = [name or f"{named[0] or named[-1]}/present{place}" for place, name in enumerate(named)]
    return made
