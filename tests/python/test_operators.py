# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that few models have, beside ONNX Runtime."""

import itertools

import numpy
import onnx
import onnxruntime
import pytest
import rewire
from onnx import helper, numpy_helper

NAN = float("nan")
RANDOM = numpy.random.default_rng(7)


def floats(*shape, dtype="float32"):
    return RANDOM.standard_normal(shape).astype(dtype)


def compare(nodes, inputs, weights=None, opset=21, functions=(), dims=None):
    """Runs the nodes, from the inputs to "y", here and by ONNX Runtime. `dims` are declared in place of the inputs' own."""
    declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), (dims or {}).get(name, x.shape))
                for name, x in inputs.items()]
    constants = [x if isinstance(x, onnx.TensorProto) else numpy_helper.from_array(x, name)
                 for name, x in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", declared, [onnx.ValueInfoProto(name="y")], constants)
    sets = {"": opset, "ai.onnx.ml": 4, "com.microsoft": 1, "my": 1}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in sets.items()], ir_version=10,
                              functions=list(functions)).SerializeToString()
    expected = onnxruntime.InferenceSession(model).run(None, inputs)[0]
    given = rewire.InferenceSession(model).run(None, inputs)[0]
    assert given.dtype == expected.dtype and given.shape == expected.shape
    numpy.testing.assert_allclose(given.astype("float64"), expected.astype("float64"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rank, p", itertools.product((3, 4, 5), (1, 2, 3, 4, 7)))
def test_global_lp_pool(rank, p):
    compare([helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)], {"x": floats(2, 3, *(4, 3, 2)[:rank - 2])})


@pytest.mark.parametrize("keys, x", [([1.0, NAN, 2.0], [2, NAN, 5, 1]), ([NAN], [1, NAN]), ([NAN, 1.0, NAN], [NAN, 1, 3])])
def test_label_encoder_with_nan(keys, x):
    encoder = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=keys,
                               values_int64s=[10 * (i + 1) for i in range(len(keys))], default_int64=-7)
    compare([encoder], {"x": numpy.array(x, "float32")})


@pytest.mark.parametrize("categories, zeros, dtype", itertools.product(([3, 1, 2], [3, 1, 3]), (0, 1), ("float32", "int64", "float64")))
def test_one_hot_encoder(categories, zeros, dtype):
    encoder = helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_int64s=categories, zeros=zeros)
    compare([encoder], {"x": numpy.array([[1, 3], [3, 3]], dtype)})


def packed(codes, bits):
    """Rows of bytes; the first element of a byte has its lowest bits."""
    per_byte = 8 // bits
    codes = numpy.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per_byte)]).astype("uint8")
    parts = [codes[..., i::per_byte] & ((1 << bits) - 1) for i in range(per_byte)]
    return sum((part << (bits * i) for i, part in enumerate(parts)), numpy.zeros_like(parts[0])).astype("uint8")


def gather(weights, indices, **attributes):
    inputs = ["d", "i", "s"] + (["z"] if "z" in weights else [])
    node = helper.make_node("GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", **attributes)
    compare([node], {"i": indices}, weights)


@pytest.mark.parametrize("bits, block, dtype, zeros", itertools.product((4, 8), (16, 32), ("float32", "float16"), (False, True)))
def test_gather_block_quantized_of_bytes(bits, block, dtype, zeros):
    weights = {"d": packed(RANDOM.integers(0, 1 << bits, (6, 64)), bits), "s": floats(6, 64 // block, dtype=dtype)}
    if zeros:
        weights["z"] = packed(RANDOM.integers(0, 1 << bits, (6, 64 // block)), bits)
    gather(weights, RANDOM.integers(-6, 6, (2, 3)), bits=bits, block_size=block, gather_axis=0, quantize_axis=1)


@pytest.mark.parametrize("kind, along, axis, zeros", itertools.product(("INT4", "UINT4"), (0, 1, -1), (0, 1, -1), (False, True)))
def test_gather_block_quantized_of_four_bits(kind, along, axis, zeros):
    low = -8 if kind == "INT4" else 0

    def four_bits(name, shape):
        codes = RANDOM.integers(low, low + 16, shape)
        return helper.make_tensor(name, getattr(onnx.TensorProto, kind), shape, packed(codes.reshape(-1), 4).tobytes(), raw=True)

    shape, blocks = (16, 32, 40), [16, 32, 40]
    blocks[axis] = (blocks[axis] + 15) // 16
    weights = {"d": four_bits("d", shape), "s": floats(*blocks)}
    if zeros:
        weights["z"] = four_bits("z", blocks)
    gather(weights, RANDOM.integers(0, 16, (2, 3)).astype("int32"), block_size=16, gather_axis=along, quantize_axis=axis)


OPEN = {"known": {}, "lengths": {"x": ["b", "h", "s", 8], "p": ["b", "s"]},
        "all": {"x": ["b", "h", "s", "d"], "c": ["m", "e"], "s": ["m", "e"], "p": ["b", "s"]}}


@pytest.mark.parametrize("domain, shapes, part, interleaved",
                         itertools.product(("", "com.microsoft"), OPEN, (False, True), (0, 1)))
def test_rotary_embedding(domain, shapes, part, interleaved):
    half = 2 if part else 4
    inputs = {"x": floats(2, 5, 3, 8), "p": numpy.array([[0, 1, 2], [4, 5, 6]]), "c": floats(10, half), "s": floats(10, half)}
    order = ["x", "p", "c", "s"] if domain else ["x", "c", "s", "p"]
    attributes = {"rotary_embedding_dim": 4, "num_heads": 5} if part else {}
    node = helper.make_node("RotaryEmbedding", order, ["y"], domain=domain, interleaved=interleaved, **attributes)
    compare([node], inputs, opset=23, dims=OPEN[shapes])


def function(name, called, domain, attribute, wanted, default=None):
    """A function of one call, whose attribute is this function's `wanted`."""
    node = helper.make_node(called, ["x"], ["y"], domain=domain)
    node.attribute.append(onnx.AttributeProto(name=attribute, ref_attr_name=wanted, type=onnx.AttributeProto.FLOAT))
    defaults = [helper.make_attribute(wanted, default)] if default is not None else []
    return helper.make_function("my", name, ["x"], ["y"], [node],
                                [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)],
                                [] if defaults else [wanted], defaults)


@pytest.mark.parametrize("inner, middle, outer, given", itertools.product((None, 0.25), (None, 0.5), (None, 0.75), (None, 2.0)))
def test_defaults_of_nested_functions(inner, middle, outer, given):
    functions = [function("inner", "LeakyRelu", "", "alpha", "a", inner), function("middle", "inner", "my", "a", "b", middle),
                 function("outer", "middle", "my", "b", "c", outer)]
    attributes = {} if given is None else {"c": given}
    compare([helper.make_node("outer", ["x"], ["y"], domain="my", **attributes)], {"x": floats(3, 4)}, functions=functions)
