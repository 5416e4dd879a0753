# SPDX-License-Identifier: Apache-2.0
"""The model and the data of the recipes in integrations/*/README.md."""

import pathlib
import sys

import numpy

WEIGHTS = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(4, 3)


def expected(features):
    """What the model computes."""
    products = features.astype(numpy.float64) @ WEIGHTS
    powers = numpy.exp(products - products.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def write(path, rows="rows"):
    """scores = softmax(features @ WEIGHTS). `rows` is the first dimension: a name, or a number."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [helper.make_node("MatMul", ["features", "weights"], ["products"]), helper.make_node("Softmax", ["products"], ["scores"])]
    graph = helper.make_graph(
        nodes, "classifier", [helper.make_tensor_value_info("features", TensorProto.FLOAT, (rows, 4))],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (rows, 3))], [numpy_helper.from_array(WEIGHTS, "weights")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def write_features(path):
    """2,000 rows with an id and four features, as a list of each row, in Parquet."""
    import pyarrow
    import pyarrow.parquet

    features = numpy.random.default_rng(1).standard_normal((2000, 4), dtype=numpy.float32)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(numpy.arange(0, 8001, 4, dtype=numpy.int32)), pyarrow.array(features.reshape(-1)))
    pyarrow.parquet.write_table(pyarrow.table({"id": numpy.arange(2000), "features": lists}), path)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    write(folder / "model.onnx")
    write_features(folder / "features.parquet")
