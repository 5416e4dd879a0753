# SPDX-License-Identifier: Apache-2.0
"""If, Loop, Scan and functions of the model: their bodies are graphs that are drawn, too. What builders do not keep, such as
optionals, stands within a function."""

import numpy as np
from onnx import AttributeProto, TypeProto, helper

import evaluate
from builder import Builder, Rejected, Value, is_condition
from draws import BOOL, I64, NUMBER_OF
from rules import rule

DEEPEST = 2
CARRIED = tuple(np.dtype(kind) for kind in ("float32", "float32", "int64", "int32", "bool", "float64", "uint8"))


def _typed(value, ranked=True):
    info = helper.make_value_info(value.name, evaluate.type_of(value.array))
    if not value.is_tensor:
        return info
    # A body's shapes may change from turn to turn, so sizes are left open; ranks may not.
    for dim in info.type.tensor_type.shape.dim:
        dim.Clear()
    if not ranked:
        info.type.tensor_type.ClearField("shape")
    return info


def _proto(body, inputs, outputs, typed_inputs=True):
    infos = [_typed(value) if typed_inputs else helper.make_value_info(value.name, TypeProto()) for value in inputs]
    return helper.make_graph(body.nodes, body.name(), infos, [_typed(value) for value in outputs], body.initializers)


def _fill(body, least=1, most=4):
    from operators import grow

    grow(body, body.draws.between(least, most))


def _to_give(body, dtype, shape):
    """A value made in the body of this type and shape."""
    found = [v for v in body.values if v.source == "node" and v.is_tensor and v.dtype == dtype and v.shape == tuple(shape)]
    if found:
        return body.draws.choose(found[-3:])
    return body.identity(body.like(dtype, shape))


def _own(body, value):
    """Outputs of a body are made in it."""
    return value if any(value is each for each in body.values) and value.source == "node" else body.identity(value)


def _stacks(body, least):
    """What each turn adds a row of."""
    made = [value for value in body.values if value.is_tensor]
    return [_own(body, value) for value in made[len(made) - body.draws.between(least, 2):]]


def _distinct(body, values):
    """The values, each once: a graph gives no value twice."""
    found = []
    for value in values:
        found.append(body.identity(value) if any(value is each for each in found) else value)
    return found


def _nested(b):
    if b.depth >= DEEPEST or b.constants_only:
        raise Rejected("nested deep enough")


@rule("If")
def branch(b, schema):
    _nested(b)
    condition = b.find(is_condition) or b.fresh(b.draws.array(BOOL, ()), ("data", BOOL, None), "data")
    count = b.draws.between(1, 2)
    first, second = Builder(b.draws, b.opsets, b), Builder(b.draws, b.opsets, b)
    _fill(first), _fill(second)
    results = [_own(first, b.draws.choose([v for v in first.visible()[-5:] if v.is_tensor])) for _ in range(count)]
    # The branches may give other sizes, where the version lets them.
    others = [_to_give(second, value.dtype, [b.draws.size() for _ in value.shape] if b.opset() >= 11 and b.draws.chance(0.15) else value.shape) for value in results]
    results, others = _distinct(first, results), _distinct(second, others)
    captured = {**first.captured, **second.captured}
    proto = helper.make_node("If", [condition.name], [b.name() for _ in range(count)],
                             then_branch=_proto(first, [], results), else_branch=_proto(second, [], others))
    return b.add(proto, [condition], captured.values())


@rule("Loop")
def loop(b, schema):
    _nested(b)
    body = Builder(b.draws, b.opsets, b)
    count = b.draws.choose([0, 1, 2, 3, 3])
    carried = [b.pick(CARRIED, (0, 4)) for _ in range(b.draws.between(0, 2))]
    turn = Value(body.name(), np.array(0, I64), "outer")
    go_on = Value(body.name(), np.array(True), "outer")
    state = [Value(body.name(), value.array, "outer") for value in carried]
    body.values += [turn, go_on, *state]
    _fill(body)
    ends = b.draws.chance(0.3)
    if ends:
        # It ends by its condition.
        most = body.constant(np.array(b.draws.between(0, 2), I64))
        condition = body.node("Less", [turn, most])[0]
    else:
        condition = body.identity(go_on)
    given = [_to_give(body, value.dtype, value.shape) for value in carried]
    stacks = _stacks(body, 0 if carried else 1)
    condition, *rest = _distinct(body, [condition, *given, *stacks])
    given, stacks = rest[:len(given)], rest[len(given):]
    trips = b.parameter(np.array(count)) if not ends or b.draws.chance(0.7) else None
    start = b.fresh(np.array(b.draws.chance(0.85)), role="parameter") if b.draws.chance(0.5) else None
    captured = body.captured
    inputs = [trips, start, *carried]
    proto = helper.make_node("Loop", [v.name if v else "" for v in inputs], [b.name() for _ in (*given, *stacks)],
                             body=_proto(body, [turn, go_on, *state], [condition, *given, *stacks]))
    # Which sizes the rows of no turns have is open.
    return b.add(proto, [v for v in inputs if v], captured.values(), lambda made: all(value.shape[0] > 0 for value in made[len(given):]))


@rule("Scan")
def scan(b, schema):
    _nested(b)
    if schema.since_version < 9:
        raise Rejected("of version 8")
    body = Builder(b.draws, b.opsets, b)
    x = b.pick(CARRIED, (1, 4), lambda v: v.array.size > 0)
    scanned, axes = [x], [b.draws.between(0, x.rank - 1) if b.draws.chance(0.3) else 0]
    length = x.shape[axes[0]]
    if b.draws.chance(0.3):
        scanned.append(b.like(b.draws.choose(CARRIED), (length, *b.draws.shape(0, 2))))
        axes.append(0)
    state = [b.pick(CARRIED, (0, 3)) for _ in range(b.draws.between(0, 1))]
    inner = [Value(body.name(), value.array, "outer") for value in state]
    rows = [Value(body.name(), np.asarray(value.array.take(0, axis)), "outer") for value, axis in zip(scanned, axes)]
    body.values += [*inner, *rows]
    _fill(body)
    given = [_to_give(body, value.dtype, value.shape) for value in state]
    stacks = _stacks(body, 0 if state else 1)
    rest = _distinct(body, [*given, *stacks])
    given, stacks = rest[:len(given)], rest[len(given):]
    attributes = {"num_scan_inputs": len(scanned), "body": _proto(body, [*inner, *rows], [*given, *stacks])}
    if any(axes) or b.draws.chance(0.1):
        attributes["scan_input_axes"] = axes
    if b.draws.chance(0.3):
        attributes["scan_input_directions"] = [b.draws.between(0, 1) for _ in scanned]
    if b.draws.chance(0.3) and stacks:
        attributes["scan_output_directions"] = [b.draws.between(0, 1) for _ in stacks]
    if b.draws.chance(0.2) and stacks:
        attributes["scan_output_axes"] = [b.draws.between(0, value.rank) for value in stacks]
    proto = helper.make_node("Scan", [v.name for v in (*state, *scanned)], [b.name() for _ in (*given, *stacks)], **attributes)
    return b.add(proto, [*state, *scanned], body.captured.values())


def function(b):
    """A function of the model, and a call of it; or another call of one that is there, also from within others."""
    if b.functions and b.draws.chance(0.4):
        return _call_again(b)
    if not b.functions and not b.depth and b.draws.chance(0.3):
        function(b)  # which the next one may call
    body = _function_body(b)
    given = [b.pick([np.dtype(np.float32)], (0, 4)) for _ in range(b.draws.between(1, 2))]
    inner = [Value(body.name(), value.array, "outer") for value in given]
    body.values += inner
    if b.functions and b.draws.chance(0.6):
        _call_again(body)
    _fill(body, 1, 4)
    results = [v for v in body.values if v.source == "node" and v.is_tensor][-b.draws.between(1, 2):]
    if not results:
        raise Rejected("it has no result")
    return _call(b, body, given, inner, results, _references(b, body))


def _call_again(b):
    made = b.draws.choose(b.functions)
    inputs = [b.pick([np.dtype(np.float32)], (0, 4)) for _ in made.input]
    return b.node(made.name, inputs, b.signatures[made.name], len(made.output), domain="own")


# Kinds of attributes that a call may give, by their field.
_FIELDS = {AttributeProto.INT: "i", AttributeProto.FLOAT: "f", AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRING: "s"}


def _references(b, body):
    """Makes attributes of the body's nodes refer to those of the call; gives them by their names, with what they are."""
    found = {}
    for node in body.nodes:
        for attribute in node.attribute:
            # Those that name types are changed by forms (retype.py).
            if attribute.type in _FIELDS and attribute.name not in ("to", "dtype", "output_dtype") and b.draws.chance(0.2):
                name = f"attribute {len(found)}"
                found[name] = AttributeProto.FromString(attribute.SerializeToString())
                found[name].name = name
                attribute.ClearField(_FIELDS[attribute.type])
                attribute.ref_attr_name = name
    return found


def _function_body(b):
    if b.depth or b.constants_only:
        raise Rejected("functions are called from the model's own graph")
    return Builder(b.draws, b.opsets, b, constants_only=True)


def _call(b, body, given, inner, results, references=None):
    """Makes a function of a body, and calls it. Some attributes have defaults, which the call may leave out."""
    references = references or {}
    defaults = {name for name in references if b.draws.chance(0.5)}
    made = helper.make_function("own", f"function{len(b.functions)}", [v.name for v in inner], [v.name for v in results], body.nodes,
                                [helper.make_opsetid(*each) for each in b.opsets.items()],
                                [name for name in references if name not in defaults], [references[name] for name in references if name in defaults])
    b.functions.append(made)
    b.signatures[made.name] = {name: helper.get_attribute_value(each) for name, each in references.items() if name not in defaults or b.draws.chance(0.3)}
    try:
        return b.node(made.name, given, b.signatures[made.name], len(results), domain="own")
    except (Rejected, evaluate.Invalid):
        b.functions.pop()
        raise


def _hidden(b, kind, inputs, result=None, **attributes):
    """A node whose result is of a kind that builders do not keep, such as an optional: the value stands for it within a function."""
    name = b.name()
    b.nodes.append(helper.make_node(kind, [value.name for value in inputs], [name], **attributes))
    return Value(name, result, "node")


@rule("Optional", "OptionalHasElement", "OptionalGetElement")
def optionals(b, schema):
    """An optional around a tensor, or an empty one, and what it holds."""
    body = _function_body(b)
    x = b.pick(CARRIED, (0, 3))
    inner = Value(body.name(), x.array, "outer")
    filled = schema.name == "OptionalGetElement" or b.draws.chance(0.7)
    made = _hidden(body, "Optional", [inner] if filled else [], **({} if filled else {"type": evaluate.type_of(x.array)}))
    result = _hidden(body, "OptionalGetElement" if schema.name == "OptionalGetElement" else "OptionalHasElement", [made])
    return _call(b, body, [x], [inner], [result])


@rule("SequenceEmpty", "SequenceMap")
def sequences(b, schema):
    """A sequence that is filled from nothing, or whose elements go through a graph."""
    body = _function_body(b)
    x = b.pick([np.dtype(np.float32), I64], (1, 3))
    inner = Value(body.name(), x.array, "outer")
    if schema.name == "SequenceEmpty":
        made = _hidden(body, "SequenceEmpty", [], dtype=NUMBER_OF[x.dtype])
        for _ in range(b.draws.between(1, 3)):
            made = _hidden(body, "SequenceInsert", [made, inner])
    else:
        row = helper.make_tensor_value_info("row", NUMBER_OF[x.dtype], None)
        graph = helper.make_graph([helper.make_node(b.draws.choose(["Neg", "Abs"]), ["row"], ["made"])], "each", [row],
                                  [helper.make_tensor_value_info("made", NUMBER_OF[x.dtype], None)])
        made = _hidden(body, "SequenceMap", [_hidden(body, "SequenceConstruct", [inner] * b.draws.between(1, 3))], body=graph)
    result = _hidden(body, "ConcatFromSequence", [made], axis=b.draws.between(0, x.rank - 1))
    return _call(b, body, [x], [inner], [result])


@rule("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def randoms(b, schema):
    """Random numbers, of which only the shape or the range is looked at: that is what all agree on."""
    body = _function_body(b)
    x = b.pick([np.dtype(np.float32)], (1, 4))
    inner = Value(body.name(), x.array, "outer")
    attributes = {"shape": list(x.shape)} if schema.name in ("RandomNormal", "RandomUniform") else {}
    if schema.name == "Bernoulli":
        inputs = [_hidden(body, "Sigmoid", [inner])]
    else:
        inputs = [inner] if not attributes else []
    made = _hidden(body, schema.name, inputs, **attributes)
    if b.draws.chance(0.5):
        return _call(b, body, [x], [inner], [_hidden(body, "Shape", [made])])
    number = _hidden(body, "Cast", [made], to=NUMBER_OF[np.dtype(np.float32)])
    return _call(b, body, [x], [inner], [_hidden(body, "Sub", [number, number])])
