# SPDX-License-Identifier: Apache-2.0
"""Models of the generator nnsmith: it draws a graph of abstract operators whose shapes fit, by a solver; here they become
nodes of ONNX, as PyTorch's exporter writes them. Needs the environment of requirements/nnsmith.txt."""

import functools
import random
import warnings

import numpy as np

import evaluate
import model
from builder import Builder, Rejected, numbers
from draws import F32, I64, NUMBER_OF, Draws, is_float, is_integer

warnings.filterwarnings("ignore")
OPSET = 17
MOST_NODES = (1, 12)
MOST_ELEMENTS = 100_000

# nnsmith's operators whose ONNX operator has the same inputs and no attributes.
SAME = {
    "Abs": "Abs", "Acos": "Acos", "Add": "Add", "And": "And", "Asin": "Asin", "Atan": "Atan", "Ceil": "Ceil", "Cos": "Cos", "Equal": "Equal",
    "Floor": "Floor", "Greater": "Greater", "Less": "Less", "Max": "Max", "Min": "Min", "Mul": "Mul", "Neg": "Neg", "Or": "Or", "ReLU": "Relu",
    "Round": "Round", "Sigmoid": "Sigmoid", "Sin": "Sin", "Sqrt": "Sqrt", "Sub": "Sub", "Tan": "Tan", "Where": "Where", "Xor": "Xor", "MatMul": "MatMul",
}
REDUCTIONS = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ArgMax", "ArgMin"}
INTERPOLATIONS = {"NearestInterp": "nearest", "LinearInterp": "linear", "BilinearInterp": "linear", "TrilinearInterp": "linear", "BicubicInterp": "cubic"}
CASTS = {"CastF32": np.float32, "CastF64": np.float64, "CastI32": np.int32, "CastI64": np.int64, "CastBool": bool}


@functools.lru_cache(None)
def _operators():
    """nnsmith's operators, for the types that ONNX Runtime has for most of them."""
    from nnsmith.abstract.dtype import DType
    from nnsmith.abstract.op import FULL_OPERATOR_SETS

    usual = {DType.float32, DType.float64, DType.int32, DType.int64, DType.bool}
    for each in FULL_OPERATOR_SETS["core"]:
        for side in ("in_dtypes", "out_dtypes"):
            setattr(each, side, [types for types in getattr(each, side) if set(types) <= usual])
    return [each for each in FULL_OPERATOR_SETS["core"] if each.in_dtypes and each.out_dtypes]


def _graph(seed, nodes):
    from nnsmith.graph_gen import model_gen

    random.seed(seed)
    np.random.seed(seed % 2**32)
    method = random.choice(["symbolic", "symbolic-cinit", "concolic"])
    generator = model_gen(opset=_operators(), method=method, max_nodes=nodes, seed=seed, timeout_ms=3000)
    return generator.make_concrete()


def _weight(b, shape):
    return b.constant(b.draws.array(F32, tuple(map(int, shape)), "normal"))


def _ints(b, values):
    return b.constant(np.array([int(each) for each in values], I64))


def _convolution(b, op, x, kernel, pads, dilations, strides):
    dtype = x.dtype
    w, bias = (b.cast(_weight(b, shape), dtype) for shape in ((op.out_channels, op.in_channels, *kernel), (op.out_channels,)))
    return b.node("Conv", [x, w, bias], {"kernel_shape": list(map(int, kernel)), "pads": pads, "dilations": dilations, "strides": strides})


def _pool(b, kind, op, x):
    if not numbers(x):
        raise Rejected("what NaN does to a pool is open")
    pads, stride = [int(op.padding)] * 4, [int(op.stride)] * 2
    return b.node("MaxPool" if kind == "MaxPool2d" else "AveragePool", [x],
                  {"kernel_shape": [int(op.kernel_h_size), int(op.kernel_w_size)], "pads": pads, "strides": stride,
                   **({"count_include_pad": 1} if kind == "AvgPool2d" else {})})


def _slice(b, op, x):
    axis = op.extra_attrs["axis"]
    size, region, start, end = x.shape[axis], op.extra_attrs["region"], int(op.start), int(op.end)
    start -= size if region in ("left", "mid") else 0
    if region == "left" and end < size and end != op.INT_MAX:
        end -= size
    return b.node("Slice", [x, _ints(b, [start]), _ints(b, [end]), _ints(b, [axis]), _ints(b, [op.step])])


def _pad(b, op, x):
    listed = [int(each) for each in op.padding_list]  # pairs, the last axis first
    begins, ends = [0] * x.rank, [0] * x.rank
    for place in range(len(listed) // 2):
        begins[x.rank - 1 - place], ends[x.rank - 1 - place] = listed[2 * place:2 * place + 2]
    kind = op.extra_attrs["type"]
    if kind != "constant":
        return b.node("Pad", [x, _ints(b, begins + ends)], {"mode": {"replicate": "edge", "reflect": "reflect"}[kind]})
    return b.node("Pad", [x, _ints(b, begins + ends), b.constant(np.array(0.5).astype(x.dtype))])


def _reduce(b, kind, op, x):
    axis = op.extra_attrs["reduce_dim"]
    if kind in ("ArgMax", "ArgMin"):
        array = x.array.astype(np.float64).reshape(-1) if axis is None else x.array.astype(np.float64)
        gaps = np.diff(np.sort(array, axis or 0), axis=axis or 0)
        if x.source == "node" and is_float(x.dtype) and np.isclose(gaps, 0).any():
            raise Rejected("which of almost equal numbers is the last one follows from rounding")
        x = x if axis is not None else b.node("Reshape", [x, _ints(b, [-1])])[0]
        return b.node(kind, [x], {"axis": axis or 0, "keepdims": 0})
    if kind == "ReduceSum":
        return b.node(kind, [x, None if axis is None else _ints(b, [axis])], {"keepdims": 0})
    return b.node(kind, [x], {"keepdims": 0, **({} if axis is None else {"axes": [axis]})})


def _lower(b, op, inputs):
    """Adds nodes for an abstract operator."""
    kind, x = type(op).__name__, inputs[0]
    if kind in SAME:
        return b.node(SAME[kind], inputs)
    if kind in CASTS:
        if is_float(x.dtype) and not np.all(np.abs(x.array) < 2**30):
            raise Rejected("a number that the integer does not hold")
        return b.node("Cast", [x], {"to": NUMBER_OF[np.dtype(CASTS[kind])]})
    if kind in ("Div", "Pow"):
        # What integers give by 0, or with a negative exponent, is open.
        return b.node("Max" if is_integer(x.dtype) else kind, inputs)
    if kind in REDUCTIONS:
        return _reduce(b, kind, op, x)
    if kind.startswith("Concat"):
        return b.node("Concat", inputs, {"axis": op.extra_attrs["axis"]})
    if kind.startswith("ExpandLast"):
        return b.node("Expand", [x, _ints(b, op.output_like[0].shape)])
    if kind in INTERPOLATIONS:
        mode = INTERPOLATIONS[kind]
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if mode == "nearest" else {"coordinate_transformation_mode": "half_pixel"}
        sizes = [*x.shape[:2], *op.size]
        if any(new % old for new, old in zip(map(int, sizes[2:]), x.shape[2:])):
            raise Rejected("which scale a size means is open")
        return b.node("Resize", [x, None, None, _ints(b, sizes)], {"mode": mode, **how})
    if kind in ("MaxPool2d", "AvgPool2d"):
        return _pool(b, kind, op, x)
    if kind == "Conv1d":
        return _convolution(b, op, x, (op.kernel_size,), [int(op.padding)] * 2, [int(op.dilation)], [int(op.stride)])
    if kind == "NCHWConv2d":
        return _convolution(b, op, x, (op.kernel_h_size, op.kernel_w_size), [int(op.padding)] * 4, [int(op.dilation_h), int(op.dilation_w)], [int(op.stride)] * 2)
    if kind == "BatchNorm2d":
        shape = (op.nfeat,)
        rest = [b.cast(value, x.dtype) for value in (*(_weight(b, shape) for _ in range(3)), b.constant(b.draws.positive(F32, (int(op.nfeat),))))]
        return b.node("BatchNormalization", [x, *rest])
    if kind == "Transpose":
        first, second = op._init_swap_dims(list(x.shape))
        order = list(range(x.rank))
        order[first], order[second] = order[second], order[first]
        return b.node("Transpose", [x], {"perm": order})
    if kind in ("Tril", "Triu"):
        return b.node("Trilu", [x, b.constant(np.array(int(op.diagonal), I64))], {"upper": int(kind == "Triu")})
    if kind == "Squeeze":
        axis = op.extra_attrs["reduce_dim"]
        return b.node("Squeeze", [x, None if axis is None else _ints(b, [axis])])
    if kind == "Clip":
        limit = 1.5 if is_float(x.dtype) else 1
        return b.node("Clip", [x, *(b.constant(np.array(each, x.dtype)) for each in (-limit, limit))])
    if kind == "GELU":
        half, one, root = (b.constant(np.array(each, x.dtype)) for each in (0.5, 1, np.sqrt(2)))
        erf = b.node("Erf", b.node("Div", [x, root]))[0]
        return b.node("Mul", [b.node("Mul", [x, b.node("Add", [erf, one])[0]])[0], half])
    if kind == "Log2":
        return b.node("Div", [b.node("Log", [x])[0], b.constant(np.array(np.log(2), x.dtype))])
    return {
        "LeakyReLU": lambda: b.node("LeakyRelu", [x], {"alpha": 0.01}),
        "PReLU": lambda: b.node("PRelu", [x, b.constant(np.array([0.25], x.dtype))]),
        "Softmax": lambda: b.node("Softmax", [x], {"axis": int(op.dim)}),
        "Slice": lambda: _slice(b, op, x),
        "Reshape": lambda: b.node("Reshape", [x, _ints(b, op.target_shape)]),
        "ConstPad": lambda: _pad(b, op, x), "ReflectPad": lambda: _pad(b, op, x), "ReplicatePad": lambda: _pad(b, op, x),
    }[kind]()


def _numpy_type(tensor):
    return np.dtype(str(tensor.dtype).rpartition(".")[2])


def draw(seed):
    """The model of a seed. Raises evaluate.Invalid where ONNX Runtime and the reference do not run what came out."""
    draws = Draws(seed)
    draws.style = draws.choose(["normal", "normal", "quarters"])
    b = Builder(draws, {"": OPSET, "ai.onnx.ml": 3})
    b.most_elements = MOST_ELEMENTS
    values = {}
    try:
        for each in _graph(seed, draws.between(*MOST_NODES)).insts:
            op, names = each.iexpr.op, each.retvals()
            if type(op).__name__ in ("Input", "Constant"):
                tensor = op.output_like[0]
                dtype, shape = _numpy_type(tensor), tuple(map(int, tensor.shape))
                array = draws.array(dtype, shape)
                made = [b.input(array, ("data", dtype, None)) if type(op).__name__ == "Input" else b.constant(array)]
            else:
                made = _lower(b, op, [values[name] for name in each.iexpr.args])
            values.update(zip(names, made))
    except Rejected as reason:
        raise evaluate.Invalid(str(reason)) from None
    return model.finish(seed, b)
