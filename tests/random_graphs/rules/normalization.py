# SPDX-License-Identifier: Apache-2.0
"""Normalizations, losses and recurrent layers."""


from builder import numbers
from draws import F32, I32, I64
from rules import any_axis, broadcast_to, dtypes, given, has, rule
from rules.convolution import image
from rules.generic import float_of


@rule("BatchNormalization")
def batch_norm(b, schema):
    x = b.pick(dtypes(schema, 0), (2, 5), lambda v: v.shape[1] > 0, shape=(b.draws.between(1, 3), b.draws.size() or 1, *b.draws.shape(0, 2)))
    shape = (x.shape[1],)
    dtype = x.dtype
    parameters = [b.like(dtype, shape, "weight"), b.like(dtype, shape, "weight"), b.like(dtype, shape, "weight"), b.constant(b.draws.positive(dtype, shape))]
    attributes = given(b.draws, epsilon=b.draws.choose([1e-5, 1e-3]), momentum=0.8)
    if has(schema, "is_test"):
        attributes["is_test"] = 1
    if has(schema, "consumed_inputs"):
        attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    return b.node("BatchNormalization", [x, *parameters], attributes)


@rule("InstanceNormalization")
def instance_norm(b, schema):
    x = image(b, dtypes(schema, 0))
    return b.node("InstanceNormalization", [x, *(b.like(x.dtype, (x.shape[1],), "weight") for _ in range(2))], given(b.draws, epsilon=1e-3))


@rule("LayerNormalization", "RMSNormalization")
def layer_norm(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5), lambda v: v.array.size > 0)
    attributes = given(b.draws, axis=any_axis(b.draws, x.rank), epsilon=1e-3, stash_type=1)
    first = attributes.get("axis", -1) % x.rank
    shape = x.shape[first:]
    for axis in range(first, x.rank if x.source == "input" else first):  # the scale tells these sizes
        b.close(x, axis)
    # Both may be broadcast.
    scale = b.like(x.dtype, broadcast_to(b.draws, shape) if b.draws.chance(0.2) else shape, "weight")
    bias = b.like(x.dtype, broadcast_to(b.draws, shape) if b.draws.chance(0.2) else shape, "weight") if b.draws.chance(0.6) and schema.name == "LayerNormalization" else None
    return b.node(schema.name, [x, scale, bias], attributes)


@rule("GroupNormalization")
def group_norm(b, schema):
    groups = b.draws.choose([1, 2, 3])
    channels = groups * b.draws.extent_of([1, 2, 4])
    x = b.pick(dtypes(schema, 0), (3, 5), lambda v: v.shape[1] == channels and v.array.size > 0, shape=(b.draws.between(1, 2), channels, b.draws.extent(1, 4), b.draws.extent(1, 4)))
    shape = (groups,) if schema.since_version < 21 else (channels,)
    stash = {"stash_type": 1} if has(schema, "stash_type") else {}
    return b.node("GroupNormalization", [x, b.like(x.dtype, shape, "weight"), b.like(x.dtype, shape, "weight")], {"num_groups": groups, **given(b.draws, epsilon=1e-3, **stash)})


@rule("LpNormalization")
def lp_norm(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4), lambda v: v.array.size > 0)
    return b.node("LpNormalization", [x], given(b.draws, axis=any_axis(b.draws, x.rank), p=b.draws.choose([1, 2])))


@rule("LRN")
def lrn(b, schema):
    return b.node("LRN", [image(b, dtypes(schema, 0), ranks=(4, 4))], {"size": b.draws.choose([1, 3, 5]), **given(b.draws, alpha=0.01, beta=0.5, bias=2.0)})


@rule("MeanVarianceNormalization")
def mvn(b, schema):
    x = image(b, dtypes(schema, 0), ranks=(4, 4))
    return b.node("MeanVarianceNormalization", [x], given(b.draws, axes=b.draws.choose([[0, 2, 3], [2, 3], [1, 2, 3]])))


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5), lambda v: v.array.size > 0 and (numbers(v) or (schema.name != "Hardmax" and schema.since_version >= 13)))
    axis = any_axis(b.draws, x.rank) if schema.since_version >= 11 else b.draws.between(0, x.rank - 1)
    return b.node(schema.name, [x], given(b.draws, axis=axis if x.rank > 1 or schema.since_version >= 13 else 0))


@rule("RNN", "LSTM", "GRU")
def recurrent(b, schema):
    draws = b.draws
    dtype = float_of(b, schema)
    length, batch, inputs, hidden = draws.extent(1, 4), draws.between(1, 3), draws.extent(1, 5), draws.extent_of([1, 2, 4, 5])
    direction = draws.choose(["forward", "reverse", "bidirectional"])
    ways, gates = 2 if direction == "bidirectional" else 1, {"RNN": 1, "GRU": 3, "LSTM": 4}[schema.name]
    layout = draws.between(0, 1) if has(schema, "layout") and draws.chance(0.3) else 0
    # The reference reads neither lengths nor clip, and onnxruntime has no layout but the usual one.
    x = b.like(dtype, (batch, length, inputs) if layout else (length, batch, inputs))
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    values = [x, b.like(dtype, (ways, gates * hidden, inputs), "weight"), b.like(dtype, (ways, gates * hidden, hidden), "weight"),
              b.like(dtype, (ways, 2 * gates * hidden), "weight") if draws.chance(0.6) else None,
              b.fresh(draws.integers(I32, (batch,), 1, length + 1), ("range", I32, 1, length + 1), "parameter") if draws.chance(0.3) and not layout and dtype == F32 else None,
              # What becomes of a state that is NaN differs.
              b.like(dtype, state, fits=numbers) if draws.chance(0.5) else None]
    attributes = {"hidden_size": hidden, **({"direction": direction} if direction != "forward" or draws.chance(0.3) else {}), **({"layout": layout} if layout else {})}
    if schema.name == "LSTM":
        values += [b.like(dtype, state, fits=numbers) if draws.chance(0.4) else None, b.like(dtype, (ways, 3 * hidden), "weight") if draws.chance(0.3) else None]
    if schema.name == "GRU":
        attributes.update(given(draws, linear_before_reset=draws.between(0, 1)))
    # Others hold infinities to the largest number, and NaN to a bound.
    unusual = not layout and all(numbers(value) for value in values if value)
    values[4] = values[4] if unusual else None
    if draws.chance(0.2) and unusual:
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[schema.name]
        attributes["activations"] = [draws.choose(["Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"]) for _ in range(count * ways)]
        if draws.chance(0.5):
            attributes["activations"] = [draws.choose(["LeakyRelu", "HardSigmoid", "Elu", "ThresholdedRelu", "ScaledTanh", "Affine"]) for _ in range(count * ways)]
            attributes["activation_alpha"], attributes["activation_beta"] = ([draws.choose([0.1, 0.5]) for _ in range(count * ways)] for _ in range(2))
    if draws.chance(0.1) and unusual:
        attributes["clip"] = 0.5
    if schema.name == "LSTM" and draws.chance(0.1) and unusual:
        attributes["input_forget"] = 1
    outputs = 3 if schema.name == "LSTM" else 2
    keep = draws.choose([None, None, [True, False, False][:outputs], [False, True, False][:outputs]])
    return b.node(schema.name, values, attributes, outputs, keep_outputs=keep)


@rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(b, schema):
    classes = b.draws.extent(1, 5)
    n, more = b.draws.extent(1, 4), b.draws.shape(0, 2)
    x = b.like(F32, (n, classes, *more))
    target = b.indices((n, *more), 0, classes, b.draws.choose([I64, I32]))
    for axis in range(target.rank):  # ONNX Runtime takes targets and weights of other sizes
        b.close(target, axis), b.close(x, axis if axis == 0 else axis + 1)
    b.close(x, 1)
    weight = b.constant(b.draws.positive(F32, (classes,))) if b.draws.chance(0.4) else None
    if weight:
        b.close(x, 1)
    attributes = given(b.draws, reduction=b.draws.choose(["mean", "sum", "none"]), ignore_index=b.draws.between(-1, classes - 1))
    outputs = 2 if schema.name == "SoftmaxCrossEntropyLoss" and b.draws.chance(0.4) else 1
    return b.node(schema.name, [x, target, weight], attributes, outputs)


