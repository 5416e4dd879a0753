# SPDX-License-Identifier: Apache-2.0
"""Batches through models: rows, runs, columns, and what is wrong with them."""

import concurrent.futures
import pickle

import example_model
import numpy
import onnx
import pandas
import pyarrow
import pytest
import rewire
import tiny_models
from onnx import TensorProto, helper
from rewire_integrations import BatchModel


def saved(tmp_path, proto):
    path = tmp_path / "m.onnx"
    onnx.save(proto, str(path))
    return str(path)


def test_a_batch_of_any_rows_in_runs_of_any_size(classifier, features):
    for rows in (0, 1, 7, 64, 65):
        for most in (None, 1, 8, 64, 1000):
            scores = BatchModel(classifier, max_rows=most)({"features": features[:rows]})["scores"]
            assert scores.shape == (rows, 3) and scores.dtype == numpy.float32
            numpy.testing.assert_allclose(scores, example_model.expected(features[:rows]), rtol=1e-5)


def test_no_rows_of_an_unknown_type_are_no_rows(classifier):
    assert BatchModel(classifier)(pandas.DataFrame({"features": pandas.Series([], dtype=object)}))["scores"].shape == (0, 3)
    lists = pyarrow.table({"features": pyarrow.array([], pyarrow.list_(pyarrow.float32()))})
    assert BatchModel(classifier)(lists).schema.names == ["features", "scores"]


@pytest.mark.parametrize("size", [1, 4, 16])
def test_a_model_of_a_fixed_number_of_rows(tmp_path, features, size):
    path = tmp_path / "fixed.onnx"
    example_model.write(path, rows=size)
    model = BatchModel(path)
    for rows in (0, 1, size, size + 1, 3 * size - 1):
        scores = model({"features": features[:rows]})["scores"]
        assert scores.shape == (rows, 3)
        numpy.testing.assert_allclose(scores, example_model.expected(features[:rows]), rtol=1e-5)


def test_results_are_written_where_the_whole_batch_lies(classifier, features, monkeypatch):
    """Every run is given a part of one array, and the program writes it in place."""
    model = BatchModel(classifier, max_rows=512)
    assert [plan.rewired for plan in model.program.explain_outputs()] == [True]
    given = []
    plan = model.plan()
    run = plan.run
    monkeypatch.setattr(plan, "run", lambda inputs, out, *rest: given.append((inputs, out)) or run(inputs, out, *rest))
    scores = model({"features": features})["scores"]
    starts = [out["scores"].__array_interface__["data"][0] for _, out in given]
    assert starts == [scores[begin:].__array_interface__["data"][0] for begin in range(0, 2000, 512)]
    begins = [inputs["features"].__array_interface__["data"][0] for inputs, _ in given]
    assert begins == [features[begin:].__array_interface__["data"][0] for begin in range(0, 2000, 512)]


def test_all_kinds_of_batches_give_the_same(classifier, features):
    model = BatchModel(classifier)
    expected = model({"features": features})["scores"]
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(features.reshape(-1)), 4)
    for kind in (pyarrow.table, pyarrow.record_batch):
        scored = model(kind({"id": pyarrow.array(range(2000)), "features": lists}))
        assert isinstance(scored, type(kind({"id": pyarrow.array([1])})))
        assert scored.schema.names == ["id", "features", "scores"]
        assert scored.column("scores").to_pylist() == expected.tolist()
    frame = pandas.DataFrame({"features": list(features)})
    assert model(frame)["scores"].tolist() == expected.tolist()


def test_columns_have_names_of_their_own(classifier, features):
    model = BatchModel(classifier, columns={"features": "measured"}, outputs={"scores": "likely"})
    assert model.input_columns == ["measured"]
    assert list(model({"measured": features, "other": features})) == ["likely"]
    table = pyarrow.table({"measured": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(features.reshape(-1)), 4),
                           "likely": pyarrow.array(range(2000))})
    assert model(table).schema.names == ["measured", "likely"]


def test_flat_rows_and_other_numbers_become_what_the_input_is(tmp_path):
    path = saved(tmp_path, tiny_models.add(("N", 2, 3)))
    flat = numpy.arange(24, dtype=numpy.float64).reshape(4, 6)
    total = BatchModel(path)({"a": flat, "b": flat.astype(numpy.int16)})["sum"]
    assert total.dtype == numpy.float32 and total.shape == (4, 2, 3)
    assert total.reshape(4, 6).tolist() == (2 * flat).tolist()


def test_a_dimension_that_only_the_run_knows(tmp_path):
    """NonZero's second dimension is the data's; its rows are those of the batch only here."""
    nodes = [helper.make_node("Shape", ["x"], ["sizes"], start=1, end=2), helper.make_node("Mul", ["sizes", "two"], ["twice"]),
             helper.make_node("Concat", ["minus", "twice"], ["shape"], axis=0), helper.make_node("Concat", ["x", "x"], ["xx"], axis=1),
             helper.make_node("Reshape", ["xx", "shape"], ["y"])]
    constants = [("two", numpy.array([2])), ("minus", numpy.array([-1]))]
    path = saved(tmp_path, tiny_models.model(nodes, [("x", TensorProto.FLOAT, ("N", "K"))], [("y", TensorProto.FLOAT, ("N", "L"))], constants))
    x = numpy.arange(12, dtype=numpy.float32).reshape(6, 2)
    for most in (None, 4):
        assert BatchModel(path, max_rows=most)({"x": x})["y"].tolist() == numpy.concatenate([x, x], axis=1).tolist()


def test_inputs_for_all_rows_are_fixed(tmp_path):
    node = helper.make_node("Mul", ["x", "factor"], ["y"])
    path = saved(tmp_path, tiny_models.model([node], [("x", TensorProto.FLOAT, ("N", 2)), ("factor", TensorProto.FLOAT, ())],
                                             [("y", TensorProto.FLOAT, ("N", 2))]))
    x = numpy.ones((5, 2), numpy.float32)
    assert BatchModel(path, fixed={"factor": numpy.float32(3)}, max_rows=2)({"x": x})["y"].tolist() == (3 * x).tolist()
    with pytest.raises(rewire.InvalidArgumentError, match="factor: f32.* has no dimension of rows.*`fixed`"):
        BatchModel(path).plan()
    with pytest.raises(rewire.InvalidArgumentError, match="all of them are fixed"):
        BatchModel(path, fixed={"factor": 1, "x": x}).plan()


def test_strings_in_and_out(tmp_path):
    node = helper.make_node("StringConcat", ["a", "b"], ["ab"])
    path = saved(tmp_path, tiny_models.model([node], [(name, TensorProto.STRING, ("N",)) for name in "ab"],
                                             [("ab", TensorProto.STRING, ("N",))], opset=20))
    table = pyarrow.table({"a": ["x", "yy", ""], "b": ["1", "2", "3"]})
    for most in (None, 2):
        assert BatchModel(path, max_rows=most)(table).column("ab").to_pylist() == ["x1", "yy2", "3"]


def test_outputs_without_a_row_for_each_row_are_refused(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0), helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path, tiny_models.model(nodes, [("x", TensorProto.FLOAT, ("N", 2))],
                                             [("mean", TensorProto.FLOAT, ()), ("y", TensorProto.FLOAT, ("N", 2))]))
    x = numpy.ones((5, 2), numpy.float32)
    with pytest.raises(rewire.InvalidArgumentError, match=r"output mean.* has the shape \(\) for 5 rows"):
        BatchModel(path)({"x": x})
    assert list(BatchModel(path, outputs=["y"])({"x": x})) == ["y"]


@pytest.mark.parametrize("options, batch, said", [
    ({}, {"feature": numpy.ones((2, 4))}, "the batch has no column 'features'; it has 'feature'"),
    ({}, {"features": numpy.ones((2, 5), "f4")}, r"rows of shape \(4\) are expected by input features.*\(5,\) are given"),
    ({}, {"features": numpy.ones((2, 4), "c8")}, "elements of float32 are expected by input features.* complex64 is given"),
    ({"columns": {"feature": "x"}}, {}, "columns: the model has no input 'feature'; it has features"),
    ({"outputs": ["score"]}, {}, "outputs: the model has no output 'score'; it has scores"),
    ({"fixed": {"f": 1}}, {}, "fixed: the model has no input 'f'; it has features"),
])
def test_wrong_uses_are_named(classifier, options, batch, said):
    with pytest.raises(rewire.InvalidArgumentError, match=said):
        BatchModel(classifier, **options)(batch)


def test_columns_of_different_lengths(tmp_path):
    path = saved(tmp_path, tiny_models.add())
    with pytest.raises(rewire.InvalidArgumentError, match="columns of one length are expected, given are 'a': 2, 'b': 3"):
        BatchModel(path)({"a": numpy.ones((2, 4), "f4"), "b": numpy.ones((3, 4), "f4")})
    with pytest.raises(rewire.InvalidArgumentError, match="two inputs take the column 'a'"):
        BatchModel(path, columns={"b": "a"}).plan()
    with pytest.raises(rewire.InvalidArgumentError, match="max_rows is 0"):
        BatchModel(path, max_rows=0)


def test_what_is_pickled_is_the_path(classifier, features):
    model = BatchModel(classifier, max_rows=100)
    expected = model({"features": features})["scores"]
    data = pickle.dumps(model)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert again({"features": features})["scores"].tolist() == expected.tolist()
    assert again.program is model.program
    assert BatchModel(classifier, threads=2).program is not model.program


def test_one_object_is_called_by_many_threads(classifier, features):
    model = BatchModel(classifier, max_rows=10)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda begin: model({"features": features[begin:begin + 50]})["scores"], range(0, 2000, 50)))
    numpy.testing.assert_allclose(numpy.concatenate(made), example_model.expected(features), rtol=1e-5)
