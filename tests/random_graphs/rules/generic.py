# SPDX-License-Identifier: Apache-2.0
"""Operators drawn from their schemas alone: types, number of inputs, attributes with their kinds and defaults. Inputs are
broadcast against each other, which is right for elementwise operators of any number of inputs."""

import onnx

from builder import Rejected
from draws import NUMBER_OF, F32, is_float
from rules import any_axis, broadcast_to, dtypes

KIND = onnx.defs.OpSchema.AttrType
FORMAL = onnx.defs.OpSchema.FormalParameterOption


def attribute_value(b, name, attribute, x):
    """A value for an attribute of a schema. x is the first input."""
    draws, default = b.draws, onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
    if name == "axis":
        if x is None or x.rank == 0:
            return None
        return any_axis(draws, x.rank)
    if name in ("dtype", "to", "output_dtype"):
        return None
    if attribute.type == KIND.INT:
        return draws.choose([0, 1]) if default in (0, 1) else default
    if attribute.type == KIND.FLOAT:
        return draws.choose([default or 0.0, 0.5, 1.0, -1.0, 2.0, 0.0])
    return None


def attributes_of(b, schema, x):
    found = {}
    for name, attribute in sorted(schema.attributes.items()):
        if attribute.required or b.draws.chance(0.5):
            value = attribute_value(b, name, attribute, x)
            if value is not None:
                found[name] = value
            elif attribute.required:
                raise Rejected(f"attribute {name} needs a rule")
    return found


def count_of_inputs(b, schema):
    count = 0
    for parameter in schema.inputs:
        if parameter.option == FORMAL.Optional and b.draws.chance(0.5):
            break
        if parameter.option == FORMAL.Variadic:
            return count + b.draws.between(max(parameter.min_arity, 1), 4)
        count += 1
    return count


def draw(b, schema):
    count = count_of_inputs(b, schema)
    types, inputs = {}, []
    for place in range(count):
        parameter = schema.inputs[min(place, len(schema.inputs) - 1)]
        allowed = dtypes(schema, place)
        if not allowed:
            raise Rejected("it takes no tensors of the types that are drawn")
        # Inputs of one type variable have one type. Without homogeneous inputs each has its own.
        tied = parameter.type_str if parameter.is_homogeneous else None
        if not inputs:
            inputs.append(b.pick(allowed))
        else:
            dtype = types.get(tied) or b.draws.dtype(allowed)
            shape = inputs[0].shape if schema.name in ("Max", "Min", "Mean", "Sum") and schema.since_version < 8 else broadcast_to(b.draws, inputs[0].shape)
            inputs.append(b.like(dtype, shape))
        if tied:
            types[tied] = inputs[-1].dtype
    # The wide one need not be the first.
    homogeneous = len({value.dtype for value in inputs}) == 1 and len(schema.inputs) <= 2
    if homogeneous and not any(name == "axis" for name in schema.attributes) and schema.name not in ("PRelu",):
        inputs = b.draws.shuffled(inputs)
    return b.node(schema.name, inputs, attributes_of(b, schema, inputs[0] if inputs else None), domain=schema.domain)


def float_of(b, schema, place=0):
    """A float type that the schema allows, f32 where it can be."""
    allowed = [dtype for dtype in dtypes(schema, place) if is_float(dtype)]
    return b.draws.dtype(allowed) if allowed else F32


__all__ = ["draw", "attributes_of", "float_of", "NUMBER_OF"]
