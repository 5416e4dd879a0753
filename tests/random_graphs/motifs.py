# SPDX-License-Identifier: Apache-2.0
"""Groups of nodes that exporters write and that passes look for, with things put between that should not, or should, stop a
pass: transposes, reshapes, second readers, broadcast constants, scalars of odd ranks."""

import numpy as np

from builder import Rejected, numbers
from draws import F32, HALVES, NUMBER_OF, SHORT, is_float
from rules import broadcast_to
from rules.convolution import image
from rules.quantization import fake_quantize

MOTIFS = []


def motif(function):
    MOTIFS.append(function)
    return function


def add(b):
    return b.draws.choose(MOTIFS)(b)


def _scalar(b, value, dtype=F32):
    return b.constant(np.full(b.draws.choose([(), (), (1,), (1, 1)]), value, dtype))


def _one(b, kind, *inputs, **attributes):
    return b.node(kind, list(inputs), attributes)[0]


def _disturb(b, x):
    """x itself mostly; else something that moves it or that others read."""
    draw = b.draws.between(0, 19)
    if draw == 0 and x.rank > 1:
        return _one(b, "Transpose", x, perm=b.draws.shuffled(range(x.rank)))
    if draw == 1:
        return _one(b, "Identity", x)
    if draw == 2:
        _one(b, "Relu", x)
    if draw == 3 and x.rank:
        return _one(b, "Mul", x, b.like(x.dtype, broadcast_to(b.draws, x.shape), "weight"))
    return x


def _activate(b, x):
    x = _disturb(b, x)
    kind = b.draws.choose(["Relu", "Sigmoid", "swish", "hard_swish", "gelu", "Tanh", "Clip", "LeakyRelu", "none", "none", "Elu", "PRelu", "Softplus"])
    if kind == "none":
        return x
    if kind == "swish":
        return _one(b, "Mul", *b.draws.shuffled([x, _one(b, "Sigmoid", x)]))
    if kind == "hard_swish":
        inner = _one(b, "Add", *b.draws.shuffled([x, _scalar(b, 3)]))
        bounded = _one(b, "Clip", inner, b.constant(np.array(0, np.float32)), b.constant(np.array(6, np.float32))) if b.opset() >= 11 else _one(b, "Clip", inner, min=0.0, max=6.0)
        return _one(b, "Div", _one(b, "Mul", x, bounded), _scalar(b, 6))
    if kind == "gelu":
        if b.opset() < 9:
            raise Rejected("there is no Erf")
        erf = _one(b, "Erf", _one(b, "Div", x, _scalar(b, np.sqrt(2))))
        return _one(b, "Mul", _one(b, "Mul", x, _one(b, "Add", erf, _scalar(b, 1))), _scalar(b, 0.5))
    if kind == "Clip":
        if b.opset() < 11:
            return _one(b, "Clip", x, min=-1.0, max=2.0)
        return _one(b, "Clip", x, b.constant(np.array(-1, np.float32)), b.constant(np.array(2, np.float32)))
    if kind == "PRelu":
        return _one(b, "PRelu", x, b.like(F32, broadcast_to(b.draws, x.shape), "weight", numbers))
    return _one(b, kind, x)


def _conv(b, x, out, kernel, groups=1, stride=1, pad=None):
    spatial = x.rank - 2
    pad = kernel // 2 if pad is None else pad
    if any(size + 2 * pad < kernel for size in x.shape[2:]):
        raise Rejected("no window fits")
    if not numbers(x):
        raise Rejected("infinities spread in Winograd's form (docs/compiler.md)")
    w = b.like(F32, (out, x.shape[1] // groups, *[kernel] * spatial), "weight")
    bias = [b.like(F32, (out,), "weight")] if b.draws.chance(0.5) else []
    return b.node("Conv", [x, w, *bias], {"group": groups, "kernel_shape": [kernel] * spatial, "strides": [stride] * spatial, "pads": [pad] * 2 * spatial})[0]


@motif
def conv_norm(b):
    x = image(b, [F32])
    out = b.draws.choose([1, 3, 4, 8, 16])
    y = _disturb(b, _conv(b, x, out, b.draws.choose([1, 3]), stride=b.draws.choose([1, 1, 2])))
    if y.rank < 2:
        raise Rejected("no channels")
    if b.draws.chance(0.6):
        shape = (y.shape[1],)
        y = b.node("BatchNormalization", [y, *(b.like(F32, shape, "weight") for _ in range(3)), b.constant(b.draws.positive(F32, shape))])[0]
    elif b.draws.chance(0.5):
        shape = b.draws.choose([(y.shape[1],) + (1,) * (y.rank - 2), (1, y.shape[1]) + (1,) * (y.rank - 2), (), y.shape])
        y = _one(b, b.draws.choose(["Mul", "Add", "Sub", "Div"]), *b.draws.shuffled([y, b.like(F32, shape, "weight")]))
    return [_activate(b, y)]


@motif
def residual(b):
    x = image(b, [F32])
    y = _activate(b, _conv(b, x, x.shape[1], 3 if min(x.shape[2:]) > 1 else 1))
    y = _conv(b, y, x.shape[1], 1) if y.rank == x.rank else y
    return [_activate(b, _one(b, "Add", *b.draws.shuffled([x, y])))]


@motif
def separable(b):
    x = image(b, [F32], channels=b.draws.choose([2, 4, 8, 16]))
    y = _activate(b, _conv(b, x, x.shape[1], 3, groups=x.shape[1], stride=b.draws.choose([1, 2])))
    return [_activate(b, _conv(b, y, b.draws.choose([1, 4, 8]), 1))]


@motif
def padded(b):
    x = image(b, [F32], ranks=(4, 4))
    pads = [0, 0, b.draws.between(0, 2), b.draws.between(0, 2), 0, 0, b.draws.between(0, 2), b.draws.between(0, 2)]
    if b.opset() >= 11:
        y = _one(b, "Pad", x, b.constant(np.array(pads, np.int64)))
    else:
        y = _one(b, "Pad", x, pads=pads)
    return [_activate(b, _conv(b, y, b.draws.choose([1, 4]), b.draws.choose([1, 3]), pad=b.draws.between(0, 1)))]


@motif
def channels_last(b):
    """An image with its channels last, as TensorFlow's exporters have it."""
    n, h, w, c = b.draws.between(1, 2), b.draws.between(1, 6), b.draws.between(1, 6), b.draws.choose([1, 3, 4, 8])
    x = b.like(F32, (n, h, w, c))
    y = _one(b, "Transpose", x, perm=[0, 3, 1, 2])
    y = _activate(b, _conv(b, y, b.draws.choose([c, 4, 8]), b.draws.choose([1, 3])))
    if b.draws.chance(0.4) and y.rank == 4:
        y = _one(b, "AveragePool", y, kernel_shape=[1, 1], strides=[b.draws.choose([1, 2])] * 2)
    if b.draws.chance(0.4) and y.rank == 4:
        z = _activate(b, _conv(b, y, b.draws.choose([2, 4]), 1))
        if z.rank == 4 and z.shape[2:] == y.shape[2:]:
            y = _one(b, "Concat", y, z, axis=1)
    perm = b.draws.choose([[0, 2, 3, 1], [0, 2, 3, 1], [0, 3, 1, 2], [0, 3, 2, 1], [1, 0, 2, 3]])
    if y.rank != 4:
        return [y]
    y = _one(b, "Transpose", y, perm=perm)
    if b.draws.chance(0.5):
        return [_one(b, "Reshape", y, b.constant(np.array([0, -1, y.shape[3]] if y.array.size else y.shape, np.int64)))]
    return [y]


@motif
def tokens(b):
    """An image as rows of its pixels, and back, as vision transformers have it."""
    x = image(b, [F32], ranks=(4, 4))
    y = _conv(b, x, b.draws.choose([4, 8]), b.draws.choose([1, 2, 3]), pad=0)
    n, c, h, w = y.shape
    y = _one(b, "Reshape", y, b.constant(np.array([n, c, h * w], np.int64)))
    y = _one(b, "Transpose", y, perm=[0, 2, 1])
    y = _layer_norm(b, y) if b.draws.chance(0.5) else _activate(b, y)
    y = _one(b, "MatMul", y, b.like(F32, (y.shape[-1], c), "weight")) if y.rank == 3 else y
    if b.draws.chance(0.6) and y.shape == (n, h * w, c):
        y = _one(b, "Transpose", y, perm=[0, 2, 1])
        y = _one(b, "Reshape", y, b.constant(np.array([n, c, h, w], np.int64)))
        return [_conv(b, y, 4, 1)]
    return [y]


def _mean(b, x, axis=-1):
    if b.opset() >= 18:
        return b.node("ReduceMean", [x, b.constant(np.array([axis], np.int64))], {"keepdims": 1})[0]
    return b.node("ReduceMean", [x], {"axes": [axis % x.rank if b.opset() < 11 else axis], "keepdims": 1})[0]


def _layer_norm(b, x):
    centered = _one(b, "Sub", x, _mean(b, x))
    square = _one(b, "Pow", centered, _scalar(b, 2)) if b.draws.chance(0.6) else _one(b, "Mul", centered, centered)
    deviation = _one(b, "Sqrt", _one(b, "Add", _mean(b, square), _scalar(b, 1e-5)))
    y = _one(b, "Div", centered, deviation)
    if b.draws.chance(0.8):
        y = _one(b, "Mul", y, b.like(F32, b.draws.choose([(x.shape[-1],), (x.shape[-1],), (1, x.shape[-1]), ()]), "weight"))
    if b.draws.chance(0.8):
        y = _one(b, "Add", y, b.like(F32, (x.shape[-1],), "weight"))
    return y


@motif
def layer_norm(b):
    return [_layer_norm(b, b.pick([F32], (1, 4), lambda v: v.array.size > 0))]


@motif
def dense(b):
    x = b.pick([F32], (2, 4))
    columns = b.draws.choose([1, 4, 8, 16, 17])
    y = _one(b, "MatMul", x, b.like(F32, (x.shape[-1], columns), "weight"))
    y = _disturb(b, y)
    if b.draws.chance(0.8) and y.rank:
        shape = b.draws.choose([(y.shape[-1],), (1, y.shape[-1]), (1,), y.shape])
        y = _one(b, b.draws.choose(["Add", "Add", "Add", "Sub", "Mul"]), *b.draws.shuffled([y, b.like(F32, shape, "weight")]))
    y = _activate(b, y)
    if y.shape == x.shape and b.draws.chance(0.7):
        y = _one(b, "Add", *b.draws.shuffled([x, y]))
    return [y]


@motif
def attention(b):
    batch, length, heads, size = b.draws.between(1, 2), b.draws.between(1, 5), b.draws.choose([1, 2, 4]), b.draws.choose([1, 2, 4])
    x = b.like(F32, (batch, length, heads * size))
    parts = []
    for place in range(3):
        y = _one(b, "MatMul", x, b.like(F32, (heads * size, heads * size), "weight"))
        if b.draws.chance(0.5):
            y = _one(b, "Add", y, b.like(F32, (heads * size,), "weight"))
        y = _one(b, "Reshape", y, b.constant(np.array([batch if b.draws.chance(0.5) else 0, length if b.draws.chance(0.5) else -1, heads, size], np.int64)))
        parts.append(_one(b, "Transpose", y, perm=[0, 2, 3, 1] if place == 1 else [0, 2, 1, 3]))
    q, k, v = parts
    if b.draws.chance(0.3):
        q = _one(b, "Mul", q, _scalar(b, size**-0.5))
    scores = _one(b, "MatMul", q, k)
    if b.draws.chance(0.6):
        scores = _one(b, b.draws.choose(["Div", "Mul"]), scores, _scalar(b, size**0.5))
    if b.draws.chance(0.5):
        scores = _one(b, "Add", scores, b.like(F32, b.draws.choose([(batch, 1, 1, length), (length, length), (1, 1, length, length), (batch, heads, length, length), (1,)])))
    weights = _one(b, "Softmax", scores, axis=b.draws.choose([-1, -1, -1, 3, 2]))
    y = _one(b, "Transpose", _one(b, "MatMul", weights, v), perm=[0, 2, 1, 3])
    return [_one(b, "Reshape", y, b.constant(np.array([0, -1 if b.draws.chance(0.5) else length, heads * size], np.int64)))]


@motif
def quantized(b):
    """A convolution or product of a model in QDQ form."""
    if b.opset() < 13:
        raise Rejected("QDQ models are newer")
    if b.draws.chance(0.5):
        x = fake_quantize(b, image(b, [F32], ranks=(4, 4)))
        kernel = b.draws.choose([1, 3])
        groups = x.shape[1] if b.draws.chance(0.2) else 1
        w = fake_quantize(b, b.like(F32, (b.draws.choose([1, 2]) * groups if groups > 1 else b.draws.choose([1, 4, 8]), x.shape[1] // groups, kernel, kernel), "weight"), np.dtype(np.int8))
        y = b.node("Conv", [x, w], {"pads": [kernel // 2] * 4, "group": groups})[0]
    else:
        x = fake_quantize(b, b.pick([F32], (2, 3), lambda v: v.array.size > 0))
        y = _one(b, "MatMul", x, fake_quantize(b, b.like(F32, (x.shape[-1], b.draws.choose([1, 4, 8])), "weight"), np.dtype(np.int8)))
    y = _activate(b, y)
    y = fake_quantize(b, y)
    if b.draws.chance(0.3) and y.shape == x.shape:
        y = fake_quantize(b, _one(b, "Add", x, y))
    return [y]


@motif
def by_shape(b):
    """Sizes taken from a tensor, as exporters of dynamic models write them."""
    x = b.pick([F32], (2, 4), lambda v: v.array.size > 0)
    shape = _one(b, "Shape", x)
    first = _one(b, "Gather", shape, b.constant(np.array(0, np.int64)), axis=0)
    if b.opset() >= 13:
        first = _one(b, "Unsqueeze", first, b.constant(np.array([0], np.int64)))
    else:
        first = _one(b, "Unsqueeze", first, axes=[0])
    rest = b.draws.choose([[-1], [-1, x.shape[-1]], [1, -1]])
    target = _one(b, "Concat", first, b.constant(np.array(rest, np.int64)), axis=0)
    return [_one(b, "Reshape", x, target)]


@motif
def chain(b):
    """Elementwise operators one behind the other, with broadcasts in between."""
    x = b.pick([F32], (0, 5))
    for _ in range(b.draws.between(2, 6)):
        kind = b.draws.choose(["Add", "Mul", "Sub", "Div", "Max", "Min", "Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Exp", "Sqrt", "Floor", "PRelu", "Where", "HardSigmoid", "Softsign", "Reciprocal"])
        if kind in ("Add", "Mul", "Sub", "Div", "Max", "Min"):
            shape = x.shape if kind in ("Max", "Min") and b.opset() < 8 else broadcast_to(b.draws, x.shape)
            y = b.like(F32, shape, b.draws.choose(["data", "weight"]))
            x = _one(b, kind, *b.draws.shuffled([x, y]))
        elif kind == "PRelu":
            x = _one(b, kind, x, b.like(F32, broadcast_to(b.draws, x.shape), "weight", numbers))
        elif kind == "Where":
            if b.opset() < 9:
                continue
            x = _one(b, kind, _one(b, "Greater", x, _scalar(b, 0.25)), *b.draws.shuffled([x, b.like(F32, broadcast_to(b.draws, x.shape))]))
        else:
            x = _one(b, kind, x)
    return [x]


@motif
def lookup(b):
    """Rows of a table, and what is made of them."""
    table = b.like(F32, (b.draws.between(1, 9), b.draws.choose([1, 4, 8])), "weight")
    if table.shape[0] == 0:
        raise Rejected("no rows")
    rows = _one(b, "Gather", table, b.indices(b.draws.shape(1, 2), 0, table.shape[0]))
    if b.draws.chance(0.5):
        rows = _one(b, "MatMul", rows, b.like(F32, (table.shape[1], 4), "weight"))
    return [_activate(b, rows)]


@motif
def short_ends(b):
    """Numbers of a short type, as those of images and samples are, made floats, and back."""
    dtype = b.draws.choose(SHORT)
    x = b.fresh(b.draws.array(dtype, b.draws.shape(1, 4)), ("data", dtype, None))
    made = _activate(b, b.cast(x, F32))
    held = [each for each in SHORT if is_float(each) or numbers(made) and np.all((made.array > np.iinfo(each).min) & (made.array < np.iinfo(each).max))]
    return b.node("Cast", [made], {"to": NUMBER_OF[b.draws.choose(held if b.draws.chance(0.7) else HALVES)]})
