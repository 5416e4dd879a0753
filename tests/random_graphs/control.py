# SPDX-License-Identifier: Apache-2.0
"""If, Loop, Scan and functions of the model: their bodies are graphs that are drawn, too."""

import numpy as np
from onnx import TypeProto, helper

import evaluate
from builder import Builder, Rejected, Value, is_condition
from draws import BOOL, I64
from rules import rule

DEEPEST = 2


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
    others = [_to_give(second, value.dtype, value.shape) for value in results]
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
    carried = [b.pick([np.dtype(np.float32), I64], (0, 4)) for _ in range(b.draws.between(0, 2))]
    turn = Value(body.name(), np.array(0, I64), "outer")
    go_on = Value(body.name(), np.array(True), "outer")
    state = [Value(body.name(), value.array, "outer") for value in carried]
    body.values += [turn, go_on, *state]
    _fill(body)
    if b.draws.chance(0.3):
        # It ends by its condition.
        most = body.constant(np.array(b.draws.between(0, 2), I64))
        condition = body.node("Less", [turn, most])[0]
    else:
        condition = body.identity(go_on)
    given = [_to_give(body, value.dtype, value.shape) for value in carried]
    stacks = _stacks(body, 0 if carried else 1)
    condition, *rest = _distinct(body, [condition, *given, *stacks])
    given, stacks = rest[:len(given)], rest[len(given):]
    trips = b.parameter(np.array(count)) if b.draws.chance(0.9) else None
    start = b.fresh(np.array(True), role="parameter") if b.draws.chance(0.5) else None
    if trips is None:
        raise Rejected("it would not end")
    captured = body.captured
    inputs = [trips, start, *carried]
    proto = helper.make_node("Loop", [v.name if v else "" for v in inputs], [b.name() for _ in (*given, *stacks)],
                             body=_proto(body, [turn, go_on, *state], [condition, *given, *stacks]))
    return b.add(proto, [v for v in inputs if v], captured.values())


@rule("Scan")
def scan(b, schema):
    _nested(b)
    if schema.since_version < 9:
        raise Rejected("of version 8")
    body = Builder(b.draws, b.opsets, b)
    x = b.pick([np.dtype(np.float32), I64], (1, 4), lambda v: v.shape[0] > 0)
    state = [b.pick([np.dtype(np.float32), I64], (0, 3)) for _ in range(b.draws.between(0, 1))]
    inner = [Value(body.name(), value.array, "outer") for value in state]
    row = Value(body.name(), x.array[0], "outer")
    body.values += [*inner, row]
    _fill(body)
    given = [_to_give(body, value.dtype, value.shape) for value in state]
    stacks = _stacks(body, 0 if state else 1)
    rest = _distinct(body, [*given, *stacks])
    given, stacks = rest[:len(given)], rest[len(given):]
    attributes = {"num_scan_inputs": 1, "body": _proto(body, [*inner, row], [*given, *stacks])}
    if b.draws.chance(0.3):
        attributes["scan_input_directions"] = [1]
    if b.draws.chance(0.3) and stacks:
        attributes["scan_output_directions"] = [b.draws.between(0, 1) for _ in stacks]
    proto = helper.make_node("Scan", [v.name for v in (*state, x)], [b.name() for _ in (*given, *stacks)], **attributes)
    return b.add(proto, [*state, x], body.captured.values())


def function(b):
    """A function of the model, and a call of it."""
    if b.depth or b.constants_only:
        raise Rejected("functions are called from the model's own graph")
    body = Builder(b.draws, b.opsets, b, constants_only=True)
    given = [b.pick([np.dtype(np.float32)], (0, 4)) for _ in range(b.draws.between(1, 2))]
    inner = [Value(body.name(), value.array, "outer") for value in given]
    body.values += inner
    _fill(body, 1, 4)
    results = [v for v in body.values if v.source == "node" and v.is_tensor][-b.draws.between(1, 2):]
    if not results:
        raise Rejected("it has no result")
    made = helper.make_function("own", f"function{len(b.functions)}", [v.name for v in inner], [v.name for v in results], body.nodes,
                                [helper.make_opsetid(*each) for each in b.opsets.items() if each[0] != "own"])
    b.opsets["own"] = 1
    b.functions.append(made)
    try:
        return b.node(made.name, given, outputs=len(results), domain="own")
    except (Rejected, evaluate.Invalid):
        b.functions.pop()
        raise
