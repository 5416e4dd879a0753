# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that are not attention: what ONNX Runtime's optimizer fuses, and quantized forms."""

import numpy as np

import contrib
from builder import Rejected, numbers
from draws import BOOL, F32, I32, I64, U8
from rules import any_axis, broadcast_to, dtypes, given, rule
from rules.convolution import Windows, image
from rules.quantization import INTEGERS, scale_of, zero_of


def of_microsoft(*kinds):
    return rule(*kinds, domain=contrib.DOMAIN)


def add(b, kind, inputs, attributes=None, outputs=1, **options):
    return b.node(kind, inputs, attributes, outputs, domain=contrib.DOMAIN, **options)


@of_microsoft("BiasGelu", "FastGelu")
def gelu_of_bias(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 4), lambda v: v.shape[-1] > 0)
    bias = b.like(x.dtype, x.shape[-1:], "weight") if schema.name == "BiasGelu" or b.draws.chance(0.6) else None
    return add(b, schema.name, [x, bias])


@of_microsoft("QuickGelu")
def quick_gelu(b, schema):
    return add(b, "QuickGelu", [b.pick(dtypes(schema, 0))], given(b.draws, alpha=b.draws.choose([1.0, 1.702, 0.5])))


@of_microsoft("FusedMatMul")
def fused_matmul(b, schema):
    x = b.pick([F32], (2, 4), numbers)
    turned, other = b.draws.between(0, 1), b.draws.between(0, 1)
    inner, columns = x.shape[-2] if turned else x.shape[-1], b.draws.size()
    lead = [1 if b.draws.chance(0.2) else size for size in x.shape[:-2]] if b.draws.chance(0.6) else []
    y = b.like(F32, (*lead, *((columns, inner) if other else (inner, columns))), "weight")
    return add(b, "FusedMatMul", [x, y], {"transA": turned, "transB": other, **given(b.draws, alpha=b.draws.choose([0.5, -2.0]))})


_ACTIVATIONS = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "LeakyRelu": 1, "HardSigmoid": 2}


@of_microsoft("FusedGemm")
def fused_gemm(b, schema):
    x = b.pick([F32], (2, 2), numbers)
    turned, other = b.draws.between(0, 1), b.draws.between(0, 1)
    rows, inner = x.shape[::-1] if turned else x.shape
    columns = b.draws.size()
    y = b.like(F32, (columns, inner) if other else (inner, columns), "weight")
    bias = b.like(F32, b.draws.choose([(columns,), (1, columns), (rows, columns)]), "weight") if b.draws.chance(0.7) else None
    kind = b.draws.choose(list(_ACTIVATIONS))
    numbers_of = {name: 0.3 for name in ("activation_alpha", "activation_beta")[:_ACTIVATIONS[kind]]}
    return add(b, "FusedGemm", [x, y, bias], {"activation": kind, "transA": turned, "transB": other, **numbers_of, **given(b.draws, alpha=0.5, beta=2.0)})


@of_microsoft("FusedConv")
def fused_conv(b, schema):
    x = image(b, [F32], ranks=(4, 4))
    windows = Windows(b, x.shape[2:], same=False)
    groups, out = (x.shape[1], x.shape[1]) if b.draws.chance(0.2) else (1, b.draws.choose([1, 3, 4, 8]))
    inputs = [x, b.like(F32, (out, x.shape[1] // groups, *windows.kernel), "weight"), b.like(F32, (out,), "weight") if b.draws.chance(0.6) else None]
    attributes = {**windows.attributes(b, schema), "group": groups}
    if b.draws.chance(0.3):  # what is added has the shape of the result
        made = b.node("Conv", inputs, attributes)[0]
        inputs.append(b.like(F32, made.shape, fits=numbers))
    kind = b.draws.choose(list(_ACTIVATIONS))
    parameters = [0.3, 0.4][:_ACTIVATIONS[kind]]
    return add(b, "FusedConv", inputs, {**attributes, "activation": kind, **({"activation_params": parameters} if parameters else {})})


@of_microsoft("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_norm(b, schema):
    x = b.pick([F32], (2, 3), lambda v: v.array.size > 0 and numbers(v))
    width, simplified = x.shape[-1:], "Simplified" in schema.name
    inputs = [x, b.like(F32, x.shape, fits=numbers), b.like(F32, width, "weight")]
    inputs += [] if simplified else [b.like(F32, width, "weight") if b.draws.chance(0.7) else None]
    inputs += [b.like(F32, width, "weight") if b.draws.chance(0.5) else None]
    sums = b.draws.chance(0.4)
    return add(b, schema.name, inputs, {"epsilon": b.draws.choose([1e-5, 1e-3])}, 4 if sums else 1, keep_outputs=[True, False, False, True] if sums else None)


@of_microsoft("EmbedLayerNormalization")
def embed(b, schema):
    batch, length, words, width = (b.draws.between(1, 4) for _ in range(4))
    table = lambda rows: b.constant(b.draws.array(F32, (rows, width), "normal"))
    segments = b.draws.chance(0.6)
    inputs = [b.indices((batch, length), 0, words, I32), b.indices((batch, length), 0, 2, I32) if segments else None, table(words), table(length + 1),
              table(2) if segments else None, *(b.like(F32, (width,), "weight", numbers) for _ in range(2))]
    masked = b.draws.chance(0.5)
    inputs.append(b.indices((batch, length), 0, 2, I32) if masked else None)
    inputs.append(b.indices((batch, length), 0, length + 1, I32) if b.draws.chance(0.3) else None)
    return add(b, "EmbedLayerNormalization", inputs, {"epsilon": 1e-3, **given(b.draws, mask_index_type=b.draws.between(0, 1) if masked else None)}, b.draws.choose([2, 3]))


def _quantized(b, x, zero=0.85):
    """A quantized tensor with its scale and zero; a zero may be missing where elements are unsigned."""
    if not contrib.OLDEST <= b.opset() <= contrib.NEWEST:
        raise Rejected("ONNX Runtime rounds in ways of its own, and what the operator stands for (expansions.py) needs these sets")
    return [x, scale_of(b), zero_of(b, x.dtype) if x.dtype != U8 or b.draws.chance(zero) else None]


@of_microsoft("QLinearAdd", "QLinearMul")
def qlinear_two(b, schema):
    x = b.pick(INTEGERS, (0, 4))
    y = b.like(x.dtype, broadcast_to(b.draws, x.shape))
    return add(b, schema.name, [*_quantized(b, x), *_quantized(b, y), *_quantized(b, x)[1:]])


@of_microsoft("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
def qlinear_one(b, schema):
    soft = schema.name == "QLinearSoftmax"
    x = b.pick(INTEGERS, (1 if soft else 0, 4), lambda v: v.array.size > 0)
    attributes = {"opset": 13, "axis": any_axis(b.draws, x.rank)} if soft else given(b.draws, alpha=0.2) if schema.name == "QLinearLeakyRelu" else {}
    return add(b, schema.name, [*_quantized(b, x), scale_of(b), zero_of(b, x.dtype)], attributes)


@of_microsoft("QLinearWhere")
def qlinear_where(b, schema):
    x = b.pick(INTEGERS, (0, 4))
    y = b.like(x.dtype, broadcast_to(b.draws, x.shape))
    condition = b.like(BOOL, broadcast_to(b.draws, x.shape))
    return add(b, "QLinearWhere", [condition, *_quantized(b, x, zero=1), *_quantized(b, y, zero=1), scale_of(b), zero_of(b, x.dtype)])


@of_microsoft("QLinearConcat")
def qlinear_concat(b, schema):
    x = b.pick(INTEGERS, (1, 4))
    axis, parts = any_axis(b.draws, x.rank), [x]
    for _ in range(b.draws.between(0, 2)):
        parts.append(b.like(x.dtype, [b.draws.size() if place == axis % x.rank else size for place, size in enumerate(x.shape)]))
    quantized = [value for part in parts for value in _quantized(b, part, zero=1)]
    return add(b, "QLinearConcat", [scale_of(b), zero_of(b, x.dtype), *quantized], {"axis": axis})


@of_microsoft("QLinearReduceMean")
def qlinear_mean(b, schema):
    x = b.pick(INTEGERS, (1, 4), lambda v: v.array.size > 0)
    axes = b.draws.some(range(x.rank), b.draws.between(1, x.rank))
    return add(b, "QLinearReduceMean", [*_quantized(b, x), scale_of(b), zero_of(b, x.dtype)], {"axes": axes, "keepdims": b.draws.between(0, 1)})


def _image_of_bytes(b, last):
    x = image(b, INTEGERS, ranks=(4, 4))
    return b.node("Transpose", [x], {"perm": [0, 2, 3, 1]})[0] if last else x


@of_microsoft("QLinearAveragePool", "QLinearGlobalAveragePool")
def qlinear_pool(b, schema):
    last = b.draws.chance(0.3)
    x = _image_of_bytes(b, last)
    spatial = x.shape[1:3] if last else x.shape[2:]
    attributes = {"channels_last": 1} if last else given(b.draws, channels_last=0)
    if schema.name == "QLinearAveragePool":
        windows = Windows(b, spatial, dilate=False, same=False)
        attributes.update(windows.attributes(b, schema), **given(b.draws, count_include_pad=b.draws.between(0, 1)))
        if not windows.touch(spatial, 0):
            raise Rejected("a window in the padding has no defined value")
    return add(b, schema.name, [*_quantized(b, x, zero=1), scale_of(b), zero_of(b, x.dtype)], attributes)


@of_microsoft("QLinearConv")
def qlinear_conv(b, schema):
    last = b.draws.chance(0.6)
    x = _image_of_bytes(b, last)
    channels, spatial = (x.shape[3], x.shape[1:3]) if last else (x.shape[1], x.shape[2:])
    windows, out = Windows(b, spatial, same=False), b.draws.choose([1, 3, 4, 8])
    w = b.like(np.dtype(np.int8), (out, channels, *windows.kernel), "weight")
    by_channel = (out,) if b.draws.chance(0.4) else ()
    inputs = [*_quantized(b, x, zero=1), w, scale_of(b, F32, by_channel), b.constant(np.zeros(by_channel, np.int8)), scale_of(b), zero_of(b, x.dtype)]
    bias = b.constant(b.draws.integers(I32, (out,), -20, 20)) if b.draws.chance(0.5) else None
    return add(b, "QLinearConv", [*inputs, bias], {**windows.attributes(b, schema), **given(b.draws, channels_last=0) | ({"channels_last": 1} if last else {})})


@of_microsoft("QGemm")
def qgemm(b, schema):
    x = b.pick(INTEGERS, (2, 2), lambda v: v.array.size > 0)
    turned, other = b.draws.between(0, 1), b.draws.between(0, 1)
    inner, columns = x.shape[0] if turned else x.shape[1], b.draws.size() or 1
    w = b.like(x.dtype, (columns, inner) if other else (inner, columns), "weight")
    bias = b.constant(b.draws.integers(I32, b.draws.choose([(columns,), (1, columns)]), -20, 20)) if b.draws.chance(0.5) else None
    result = [scale_of(b), zero_of(b, x.dtype)] if b.draws.chance(0.6) else []
    return add(b, "QGemm", [*_quantized(b, x, zero=1), *_quantized(b, w, zero=1), bias, *result], {"transA": turned, "transB": other, **given(b.draws, alpha=0.5)})


@of_microsoft("DynamicQuantizeMatMul", "MatMulIntegerToFloat")
def matmul_of_bytes(b, schema):
    floats = schema.name == "DynamicQuantizeMatMul"
    x = b.pick([F32] if floats else INTEGERS, (2, 3), lambda v: v.array.size > 0 and numbers(v))
    columns = b.draws.size() or 1
    w = b.like(b.draws.choose(INTEGERS), (x.shape[-1], columns), "weight")
    by_column = (columns,) if b.draws.chance(0.4) else ()
    zeros = zero_of(b, w.dtype, by_column) if b.draws.chance(0.6) else None
    bias = b.like(F32, (columns,), "weight", numbers) if b.draws.chance(0.5) else None
    if floats:
        return add(b, schema.name, [x, w, scale_of(b, F32, by_column), zeros, bias])
    return add(b, schema.name, [x, w, scale_of(b), scale_of(b, F32, by_column), zero_of(b, x.dtype) if b.draws.chance(0.7) else None, zeros, bias])


@of_microsoft("MatMulNBits")
def matmul_of_bits(b, schema):
    bits, block = b.draws.choose([4, 4, 8]), b.draws.choose([16, 32])
    depth, columns = b.draws.choose([16, 24, 32, 40, 48]), b.draws.choose([1, 3, 8, 17])
    blocks = -(-depth // block)
    x = b.like(F32, (*b.draws.shape(0, 1), b.draws.between(1, 3), depth), fits=numbers)
    packed = b.constant(b.draws.integers(U8, (columns, blocks, block * bits // 8), 0, 256))
    scales = b.constant(b.draws.positive(F32, b.draws.choose([(columns * blocks,), (columns, blocks)]), 0.02, 0.5))
    zeros = b.constant(b.draws.integers(U8, (columns * ((blocks * bits + 7) // 8),), 0, 256)) if b.draws.chance(0.5) else None
    bias = b.like(F32, (columns,), "weight", numbers) if b.draws.chance(0.4) else None
    return add(b, "MatMulNBits", [x, packed, scales, zeros, None, bias], {"K": depth, "N": columns, "bits": bits, "block_size": block})


@of_microsoft("GatherBlockQuantized")
def gather_bits(b, schema):
    rows, block = b.draws.between(1, 6), 16
    bits, blocks = b.draws.choose([4, 8]), b.draws.between(1, 3)
    data = b.constant(b.draws.integers(U8, (rows, blocks * block * bits // 8), 0, 256))
    zeros = b.constant(b.draws.integers(U8, (rows, -(-blocks * bits // 8)), 0, 256)) if b.draws.chance(0.5) else None
    places = b.indices(b.draws.shape(0, 2), 0, rows, b.draws.choose([I64, I32]))
    return add(b, "GatherBlockQuantized", [data, places, scale_of(b, F32, (rows, blocks)), zeros],
               {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1})


@of_microsoft("QuantizeLinear", "DequantizeLinear")
def linear(b, schema):
    types = (*INTEGERS, np.dtype(np.int16), np.dtype(np.uint16))
    back = schema.name == "DequantizeLinear"
    x = b.pick(types if back else [F32], (1, 4), numbers)
    axis = any_axis(b.draws, x.rank) if b.draws.chance(0.5) else None
    shape = () if axis is None else (x.shape[axis],)
    return add(b, schema.name, [x, scale_of(b, F32, shape), zero_of(b, x.dtype if back else b.draws.choose(types), shape)], {} if axis is None else {"axis": axis})


@of_microsoft("DynamicQuantizeLSTM")
def quantized_lstm(b, schema):
    if b.draws.style == "wide":
        raise Rejected("the pass pack-bytes rounds inputs to 16 bits, which a sum of large numbers shows")
    length, batch, inputs, hidden = b.draws.between(1, 4), b.draws.between(1, 3), b.draws.between(1, 5), b.draws.choose([1, 2, 4, 5])
    direction = b.draws.choose(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    kind, state = b.draws.choose(INTEGERS), (ways, batch, hidden)
    weights = [b.constant(b.draws.integers(kind, (ways, rows, 4 * hidden), 0 if kind == U8 else -9, 10)) for rows in (inputs, hidden)]
    values = [b.like(F32, (length, batch, inputs), fits=numbers), *weights,
              b.like(F32, (ways, 8 * hidden), "weight") if b.draws.chance(0.6) else None, None,
              *(b.like(F32, state, fits=numbers) if b.draws.chance(0.4) else None for _ in range(2)),
              b.like(F32, (ways, 3 * hidden), "weight") if b.draws.chance(0.2) else None,
              *(value for _ in range(2) for value in (scale_of(b, F32, (ways,)), zero_of(b, kind, (ways,))))]
    return add(b, "DynamicQuantizeLSTM", values, {"hidden_size": hidden, "direction": direction}, 3)
