# SPDX-License-Identifier: Apache-2.0
"""The models of side_by_side.py and the rows that they get.

Each function writes into a folder: model.onnx, mapped.onnx, which is the same with its weights in a file, model.rwx, x.npy, and
rows.parquet, which has numbers of rows beside x. Models have one input `x` and one output `y`, both with an axis of rows.
"""

import pathlib
import sys

import numpy

WIDTH = 2048
TOKENS, VOCABULARY = 32, 30522


def save(model, folder):
    import onnx
    import rewire

    onnx.save(model, str(folder / "model.onnx"))
    onnx.save(model, str(folder / "mapped.onnx"), save_as_external_data=True, location="mapped.weights")
    rewire.compile(folder / "model.onnx", folder / "model.rwx")


def save_rows(x, folder):
    import pyarrow
    import pyarrow.parquet

    numpy.save(folder / "x.npy", x)
    rows, width = x.shape
    starts = pyarrow.array(numpy.arange(rows + 1, dtype=numpy.int32) * width)
    table = pyarrow.table({"id": numpy.arange(rows), "x": pyarrow.ListArray.from_arrays(starts, pyarrow.array(x.reshape(-1)))})
    pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=max(1, rows // 16))


def products(folder, rows, megabytes):
    """h = relu(h @ w) again and again, and 8 columns of the last one, over 2048 floats a row."""
    from onnx import TensorProto, helper, numpy_helper

    random = numpy.random.default_rng(0)
    layers = max(1, round(megabytes * 1e6 / (4 * WIDTH * WIDTH)))
    nodes, weights, value = [], [], "x"
    for layer in range(layers):
        weights.append(numpy_helper.from_array((random.standard_normal((WIDTH, WIDTH), numpy.float32) * (2 / WIDTH) ** 0.5), f"w{layer}"))
        nodes += [helper.make_node("MatMul", [value, f"w{layer}"], [f"p{layer}"]), helper.make_node("Relu", [f"p{layer}"], [f"h{layer}"])]
        value = f"h{layer}"
    weights += [numpy_helper.from_array(numpy.array([part]), name) for name, part in (("from", 0), ("to", 8), ("axis", 1))]
    nodes.append(helper.make_node("Slice", [value, "from", "to", "axis"], ["y"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("rows", WIDTH))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("rows", 8))], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder)
    save_rows(numpy.random.default_rng(1).standard_normal((rows, WIDTH), dtype=numpy.float32), folder)


def encoder(folder, rows, _):
    """An embedding of each text: the mean of the hidden states of its tokens. Texts have 8 to 32 tokens, padded with 0."""
    from onnx import TensorProto, compose, helper

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))
    from generated import Graph, bert_mini, tensor

    tokens = Graph(0)
    tokens.node("Identity", "x", outputs=["input_ids"])
    tokens.node("Cast", tokens.node("Not", tokens.node("Equal", "x", tokens.ints("padding", 0))), outputs=["attention_mask"],
                to=TensorProto.INT64)
    ids = [tensor(name, ["rows", TOKENS], TensorProto.INT64) for name in ("x", "input_ids", "attention_mask")]
    pooled = Graph(0)
    pooled.node("ReduceMean", "hidden", outputs=["y"], axes=[1], keepdims=0)
    hidden = tensor("hidden", ["rows", TOKENS, 768])
    layers = compose.add_prefix(bert_mini(layers=6, width=768, heads=12, vocabulary=VOCABULARY), "layers.")
    model = compose.merge_models(tokens.model("tokens", ids[:1], ids[1:]), layers,
                                 [(name, f"layers.{name}") for name in ("input_ids", "attention_mask")])
    model = compose.merge_models(model, pooled.model("pooled", [hidden], [tensor("y", ["rows", 768])]), [("layers.hidden", "hidden")])
    save(model, folder)
    random = numpy.random.default_rng(1)
    x = random.integers(1, VOCABULARY, (rows, TOKENS))
    x[numpy.arange(TOKENS) >= random.integers(8, TOKENS + 1, rows)[:, None]] = 0
    save_rows(x, folder)


MODELS = {"products": products, "encoder": encoder}
