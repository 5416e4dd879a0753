# SPDX-License-Identifier: Apache-2.0
"""Random models of one node, with inputs for them: numbers, texts, sequences, maps and optionals."""
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int32", "int64")
ALL = (*NUMBERS, "int8", "uint8", "int16", "uint16", "uint32", "uint64", "bool")
KIND = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
        "int16": TensorProto.INT16, "uint16": TensorProto.UINT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
        "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL, "string": TensorProto.STRING}
TEXTS = ("", "a", "B", "long text of words", "ä", "x,y")


def elements(random, dtype, shape):
    """An array with small numbers, whose sums are exact."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "string":
        return np.array([random.choice(TEXTS) for _ in range(count)], object).reshape(shape)
    low = 0 if dtype == "bool" or dtype.startswith("uint") else -4
    return np.array([random.randint(low, 4) for _ in range(count)]).astype(dtype).reshape(shape)


@dataclass
class Port:
    name: str
    dtype: str
    shape: list[int] | None  # of the input that is given; None: it declares none
    form: str = "tensor"  # or sequence, optional


@dataclass
class Case:
    op: str
    inputs: list[Port]
    outputs: list[tuple[str, str, int, str]]  # name, dtype, rank (-1: not declared), form
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    domain: str = ""
    operands: list[str] | None = None  # the node's inputs, if they are not the inputs and the constants


def shape_of(random, rank=None, least=0):
    return [random.choice((least or 1, 1, 2, 3, 4) if least else (0, 1, 2, 3, 4, 2, 3)) for _ in range(random.randint(0, 3) if rank is None else rank)]


def unary(op, dtypes, out=None):
    def make(random):
        dtype, shape = random.choice(dtypes), shape_of(random)
        return Case(op, [Port("x", dtype, shape)], [("y", out or dtype, len(shape), "tensor")])
    return make


def binary(op, dtypes, out=None):
    def make(random):
        dtype, shape = random.choice(dtypes), shape_of(random)
        other = [random.choice((1, size)) for size in shape][random.randint(0, len(shape)):]
        ports = [Port("a", dtype, shape), Port("b", dtype, other)]
        if random.random() < 0.3 and dtype != "string":
            return Case(op, ports[:1], [("y", out or dtype, len(shape), "tensor")], constants={"b": elements(random, dtype, other)})
        return Case(op, ports, [("y", out or dtype, len(shape), "tensor")])
    return make


def cast(random):
    to, shape = random.choice(NUMBERS), shape_of(random)
    return Case("Cast", [Port("x", random.choice(NUMBERS), shape)], [("y", to, len(shape), "tensor")], {"to": KIND[to]})


def matmul(random):
    n, k, m = (random.randint(1, 4) for _ in range(3))
    dtype = random.choice(FLOATS)
    return Case("MatMul", [Port("a", dtype, [n, k]), Port("b", dtype, [k, m])], [("y", dtype, 2, "tensor")])


def conv(random):
    channels, size = random.randint(1, 3), random.randint(3, 6)
    weights = elements(random, "float32", [2, channels, 3, 3])
    return Case("Conv", [Port("x", "float32", [1, channels, size, size])], [("y", "float32", 4, "tensor")],
                {"pads": [1, 1, 1, 1]}, {"w": weights})


def reduce(op):
    def make(random):
        dtype, shape = random.choice(("float32", "int32", "int64")), shape_of(random, random.randint(1, 3), 1)
        keep = random.randint(0, 1)
        axis = np.array([random.randrange(-len(shape), len(shape))], np.int64)
        return Case(op, [Port("x", dtype, shape)], [("y", dtype, len(shape) - 1 + keep, "tensor")], {"keepdims": keep}, {"axes": axis})
    return make


def transpose(random):
    shape, dtype = shape_of(random, random.randint(1, 3)), random.choice((*NUMBERS, "bool", "uint8", "string"))
    return Case("Transpose", [Port("x", dtype, shape)], [("y", dtype, len(shape), "tensor")], {"perm": random.sample(range(len(shape)), len(shape))})


def reshape(random):
    shape, dtype = shape_of(random, 2, 1), random.choice((*NUMBERS, "bool", "string"))
    return Case("Reshape", [Port("x", dtype, shape), Port("to", "int64", [1])], [("y", dtype, -1, "tensor")],
                constants={}, operands=["x", "to"])


def concat(random):
    shape, dtype = shape_of(random, 2), random.choice((*NUMBERS, "string", "bool"))
    return Case("Concat", [Port(name, dtype, [random.randint(0, 3), shape[1]]) for name in ("a", "b", "c")], [("y", dtype, 2, "tensor")], {"axis": 0})


def gather(random):
    shape, dtype = shape_of(random, 2, 2), random.choice((*NUMBERS, "string", "bool"))
    return Case("Gather", [Port("x", dtype, shape), Port("i", "int64", shape_of(random, 1))], [("y", dtype, 2, "tensor")])


def where(random):
    shape, dtype = shape_of(random), random.choice((*NUMBERS, "uint8", "string"))
    return Case("Where", [Port("c", "bool", shape), Port("a", dtype, shape), Port("b", dtype, shape)], [("y", dtype, len(shape), "tensor")])


def top_k(random):
    shape = shape_of(random, 2, 3)
    return Case("TopK", [Port("x", random.choice(("float32", "int64")), shape), Port("k", "int64", [1])],
                [("v", "", 2, "tensor"), ("i", "int64", 2, "tensor")])


def split(random):
    dtype, width = random.choice(NUMBERS), random.randint(2, 6)
    first = random.randint(0, width)
    return Case("Split", [Port("x", dtype, [2, width])], [("a", dtype, 2, "tensor"), ("b", dtype, 2, "tensor")], {"axis": 1},
                {"split": np.array([first, width - first], np.int64)})


def constant_of_shape(random):
    return Case("ConstantOfShape", [Port("x", "int64", [random.randint(0, 3)])], [("y", "float32", -1, "tensor")])


def sequence_construct(random):
    dtype = random.choice((*NUMBERS, "bool"))
    return Case("SequenceConstruct", [Port(name, dtype, shape_of(random)) for name in ("a", "b")], [("y", dtype, -1, "sequence")])


def split_to_sequence(random):
    dtype = random.choice(NUMBERS)
    return Case("SplitToSequence", [Port("x", dtype, shape_of(random, 2, 1))], [("y", dtype, -1, "sequence")])


def from_sequence(op, outputs, more=()):
    def make(random):
        dtype = random.choice(NUMBERS)
        return Case(op, [Port("s", dtype, shape_of(random, 2, 1), "sequence"), *[Port(*each) for each in more]],
                    [(name, out or dtype, rank, form) for name, out, rank, form in outputs])
    return make


def concat_from_sequence(random):
    dtype = random.choice(NUMBERS)
    return Case("ConcatFromSequence", [Port("s", dtype, shape_of(random, 2, 1), "sequence")], [("y", dtype, 2, "tensor")], {"axis": 0})


def optional_of(op, out, form):
    def make(random):
        dtype = random.choice(NUMBERS)
        return Case(op, [Port("x", dtype, shape_of(random, 1, 1), "tensor" if op == "Optional" else "optional")], [("y", out or dtype, -1, form)])
    return make


def label_encoder(random):
    return Case("LabelEncoder", [Port("x", "string", shape_of(random))], [("y", "int64", -1, "tensor")],
                {"keys_strings": ["a", "B"], "values_int64s": [random.randint(0, 9), 7], "default_int64": -1}, domain="ai.onnx.ml")


def zip_map(random):
    width = random.randint(1, 3)
    keys = {"classlabels_int64s": list(range(width))} if random.random() < 0.5 else {"classlabels_strings": [f"k{i}" for i in range(width)]}
    key = "int64" if "classlabels_int64s" in keys else "string"
    return Case("ZipMap", [Port("x", "float32", [random.randint(1, 3), width])], [("y", key, -1, "maps")], keys, domain="ai.onnx.ml")


MAKERS: list[Callable] = [
    *[unary(op, FLOATS) for op in ("Exp", "Tanh", "Sigmoid", "Floor", "Sqrt", "Softplus")],
    *[unary(op, NUMBERS) for op in ("Abs", "Neg", "Relu", "Sign")],
    *[unary(op, (*ALL, "string")) for op in ("Identity",)], unary("Not", ("bool",)), unary("IsNaN", ("float32",), "bool"),
    *[binary(op, NUMBERS) for op in ("Add", "Sub", "Mul", "Max", "Min")],
    *[binary(op, (*NUMBERS, "bool"), "bool") for op in ("Equal",)], binary("Less", NUMBERS, "bool"), binary("And", ("bool",)),
    binary("StringConcat", ("string",)),
    *[reduce(op) for op in ("ReduceSum", "ReduceMax", "ReduceMean")],
    cast, matmul, conv, transpose, reshape, concat, gather, where, top_k, split, constant_of_shape, sequence_construct, split_to_sequence,
    unary("Shape", (*NUMBERS, "string"), "int64"), unary("Size", NUMBERS, "int64"), unary("NonZero", ("float32", "int64", "bool"), "int64"),
    from_sequence("SequenceLength", [("y", "int64", 0, "tensor")]),
    from_sequence("SequenceAt", [("y", "", -1, "tensor")], [("i", "int64", [])]),
    from_sequence("SequenceErase", [("y", "", -1, "sequence")], [("i", "int64", [])]),
    concat_from_sequence, optional_of("OptionalHasElement", "bool", "tensor"), optional_of("OptionalGetElement", "", "tensor"),
    label_encoder, zip_map,
]


def type_of(dtype, shape, form):
    tensor = helper.make_tensor_type_proto(KIND[dtype], shape)
    if form == "sequence":
        return helper.make_sequence_type_proto(tensor)
    return helper.make_optional_type_proto(tensor) if form == "optional" else tensor


def maps_type(key):
    proto = onnx.TypeProto()
    inner = proto.sequence_type.elem_type.map_type
    inner.key_type = KIND[key]
    inner.value_type.tensor_type.elem_type = TensorProto.FLOAT
    return proto


def build(random):
    """(the case, the model's bytes). Dimensions are fixed, named or open."""
    case = random.choice(MAKERS)(random)
    inputs = []
    for port in case.inputs:
        declared = [random.choice((size, size, "named" if port.form == "tensor" else size, None)) for size in port.shape]
        names = {}
        for i, size in enumerate(declared):  # one name stands for one size
            if isinstance(size, str):
                declared[i] = names.setdefault(port.shape[i], f"{port.name}_{port.shape[i]}")
        inputs.append(helper.make_value_info(port.name, type_of(port.dtype, declared, port.form)))
    outputs = []
    for name, dtype, rank, form in case.outputs:
        dtype = dtype or case.inputs[0].dtype
        if form == "maps":
            outputs.append(helper.make_value_info(name, maps_type(dtype)))
        else:
            outputs.append(helper.make_value_info(name, type_of(dtype, None if rank < 0 else [None] * rank, form)))
    operands = case.operands or [port.name for port in case.inputs] + list(case.constants)
    node = helper.make_node(case.op, operands, [each[0] for each in case.outputs], "node", domain=case.domain, **case.attributes)
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in case.constants.items()]
    graph = helper.make_graph([node], "random", inputs, outputs, constants)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18 if case.op != "StringConcat" else 20), helper.make_opsetid("ai.onnx.ml", 3)])
    if case.op == "StringConcat":
        model.ir_version = 9
    return case, model.SerializeToString()


def feeds(random, case):
    """Values for the inputs: an array, or a list of arrays for a sequence; None for an optional without a value."""
    given = {}
    for port in case.inputs:
        if port.form == "sequence":
            given[port.name] = [elements(random, port.dtype, port.shape) for _ in range(random.randint(1, 3))]
        elif case.op == "Reshape" and port.name == "to":
            given[port.name] = np.array([-1], np.int64)
        elif case.op == "TopK" and port.name == "k":
            given[port.name] = np.array([random.randint(0, 4)], np.int64)
        elif case.op == "ConstantOfShape":
            given[port.name] = np.array([random.randint(0, 3) for _ in range(port.shape[0])], np.int64)
        elif case.op == "Gather" and port.name == "i":
            given[port.name] = np.array([random.randint(-2, 1) for _ in range(port.shape[0])], np.int64)
        else:
            given[port.name] = elements(random, port.dtype, port.shape)
    return given
