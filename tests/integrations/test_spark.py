# SPDX-License-Identifier: Apache-2.0
"""Data frames of Spark through a model. Skipped where there is no Java."""

import os
import shutil
import sys

import example_model
import numpy
import onnx
import pytest
import rewire
import tiny_models
from onnx import TensorProto, helper

if shutil.which("java") is None:
    pytest.skip("there is no Java, which Spark needs: third_party/install.sh engines", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402
from rewire_integrations import BatchModel  # noqa: E402
from rewire_integrations.spark import arrow_udf, predict_udf, with_predictions  # noqa: E402


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
               .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).config("spark.driver.host", "127.0.0.1")
               .config("spark.sql.execution.arrow.maxRecordsPerBatch", "300").getOrCreate())
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "features.parquet"
    example_model.write_features(path)
    return spark.read.parquet(str(path))


def check(rows, features):
    assert [row.id for row in rows] == list(range(2000))
    numpy.testing.assert_allclose([row.scores for row in rows], example_model.expected(features), rtol=1e-5)


def test_columns_are_appended_by_arrow(classifier, frame, features):
    scored = with_predictions(frame, BatchModel(classifier, max_rows=128))
    assert [(field.name, field.dataType.simpleString()) for field in scored.schema.fields] == [
        ("id", "bigint"), ("features", "array<float>"), ("scores", "array<float>")]
    check(scored.orderBy("id").collect(), features)


def test_an_expression_by_arrow(classifier, frame, features):
    check(frame.select("id", arrow_udf(BatchModel(classifier))("features").alias("scores")).orderBy("id").collect(), features)


def test_an_expression_by_sparks_own_function(classifier, frame, features):
    model = BatchModel(classifier)
    check(frame.select("id", predict_udf(model, batch_size=100)("features").alias("scores")).orderBy("id").collect(), features)


@pytest.fixture
def two(tmp_path):
    """total = a + b, half of it, and whether it is above 10."""
    nodes = [helper.make_node("Add", ["a", "b"], ["total"]), helper.make_node("Div", ["total", "two"], ["half"]),
             helper.make_node("Greater", ["total", "ten"], ["large"])]
    path = tmp_path / "two.onnx"
    onnx.save(tiny_models.model(nodes, [(name, TensorProto.DOUBLE, ("N",)) for name in "ab"],
                                [("total", TensorProto.DOUBLE, ("N",)), ("half", TensorProto.DOUBLE, ("N",)),
                                 ("large", TensorProto.BOOL, ("N",))],
                                [("ten", numpy.array(10.0)), ("two", numpy.array(2.0))]), str(path))
    return BatchModel(path, outputs=["total", "large"])


def test_several_inputs_and_outputs(spark, two):
    frame = spark.range(20).selectExpr("id", "cast(id as double) a", "cast(id * 2 as double) b")
    expected = [(3.0 * number, 3 * number > 10) for number in range(20)]
    scored = with_predictions(frame, two)
    assert [(row.total, row.large) for row in scored.orderBy("id").collect()] == expected
    rows = frame.select("id", arrow_udf(two)("a", "b").alias("made")).orderBy("id").collect()
    assert [(row.made.total, row.made.large) for row in rows] == expected
    numbers = BatchModel(two.model, outputs=["total", "half"])
    rows = frame.select("id", predict_udf(numbers)("a", "b").alias("made")).orderBy("id").collect()
    assert [(row.made.total, row.made.half) for row in rows] == [(total, total / 2) for total, _ in expected]
    with pytest.raises(rewire.UnsupportedError, match="output large.* and no booleans"):
        predict_udf(two)
    replaced = with_predictions(frame, BatchModel(two.model, outputs={"total": "a"}))
    assert replaced.columns == ["id", "a", "b"]
    assert [row.a for row in replaced.orderBy("id").collect()] == [total for total, _ in expected]


@pytest.fixture
def pair(tmp_path):
    """twice = x + x, a row of two, and total, the sum of a row."""
    nodes = [helper.make_node("Add", ["x", "x"], ["twice"]), helper.make_node("ReduceSum", ["x", "axes"], ["total"], keepdims=0)]
    path = tmp_path / "pair.onnx"
    onnx.save(tiny_models.model(nodes, [("x", TensorProto.FLOAT, ("N", 2))],
                                [("twice", TensorProto.FLOAT, ("N", 2)), ("total", TensorProto.FLOAT, ("N",))],
                                [("axes", numpy.array([1]))]), str(path))
    return BatchModel(path)


def test_tensors_of_more_axes(spark, pair, tmp_path):
    path = tmp_path / "add.onnx"
    onnx.save(tiny_models.add(("N", 2, 3)), str(path))
    frame = spark.range(7).selectExpr("id", "transform(sequence(0, 5), x -> cast(x + id as float)) a").selectExpr("id", "a", "a as b")
    rows = with_predictions(frame, BatchModel(path)).orderBy("id").collect()
    assert rows[3]["sum"] == [[6.0, 8.0, 10.0], [12.0, 14.0, 16.0]]
    numbers = spark.range(3).selectExpr("id", "array(cast(id as float), cast(1 as float)) x")
    for function in (arrow_udf(pair), predict_udf(pair)):
        made = [row.made for row in numbers.select("id", function("x").alias("made")).orderBy("id").collect()]
        assert [(row.twice, row.total) for row in made] == [([2.0 * place, 2.0], place + 1.0) for place in range(3)]
    with pytest.raises(rewire.UnsupportedError, match="output sum.* at most one axis beside the rows"):
        predict_udf(BatchModel(path))


def test_types_that_spark_lacks_are_named(tmp_path):
    path = tmp_path / "u.onnx"
    onnx.save(tiny_models.add(("N",), TensorProto.UINT8), str(path))
    for make in (predict_udf, arrow_udf):
        with pytest.raises(rewire.UnsupportedError, match="output sum: .*Spark has columns of f32"):
            make(BatchModel(path))


def test_a_failure_of_a_worker_says_what_is_wrong(spark, classifier):
    frame = spark.createDataFrame([(1, [1.0, 2.0])], "id long, features array<float>")
    with pytest.raises(Exception, match=r"rows of shape \(4\) are expected by input features"):
        with_predictions(frame, BatchModel(classifier)).collect()
