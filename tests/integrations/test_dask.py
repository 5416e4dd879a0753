# SPDX-License-Identifier: Apache-2.0
"""Arrays and data frames of Dask through a model."""

import dask
import dask.array
import dask.dataframe
import example_model
import numpy
import onnx
import pandas
import pytest
import rewire
import tiny_models
from rewire_integrations import BatchModel
from rewire_integrations.dask import predict


@pytest.mark.parametrize("chunks", [(2000, 4), (300, 4), (700, 2)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_arrays_in_chunks_of_any_size(classifier, features, chunks, scheduler):
    scores = predict(dask.array.from_array(features, chunks=chunks), BatchModel(classifier))["scores"]
    assert scores.shape == (2000, 3) and scores.dtype == numpy.float32
    numpy.testing.assert_allclose(scores.compute(scheduler=scheduler), example_model.expected(features), rtol=1e-5)


def test_data_frames(classifier, features, tmp_path):
    example_model.write_features(tmp_path / "features.parquet")
    frame = pandas.read_parquet(tmp_path / "features.parquet", dtype_backend="pyarrow")
    scored = predict(dask.dataframe.from_pandas(frame, npartitions=3), BatchModel(classifier))
    assert list(scored.columns) == ["id", "features", "scores"]
    made = scored.compute(scheduler="synchronous")
    assert made["id"].tolist() == list(range(2000))
    numpy.testing.assert_allclose([list(row) for row in made["scores"]], example_model.expected(features), rtol=1e-5)


def test_worker_processes_open_the_model_themselves(classifier, features):
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster):
        scores = predict(dask.array.from_array(features, chunks=(200, 4)), BatchModel(classifier))["scores"]
        numpy.testing.assert_allclose(scores.compute(), example_model.expected(features), rtol=1e-5)


def test_wrong_data_is_named_before_dask_runs(classifier, tmp_path):
    onnx.save(tiny_models.add(), str(tmp_path / "add.onnx"))
    array = dask.array.ones((4, 4), chunks=2)
    with pytest.raises(rewire.InvalidArgumentError, match="takes the columns 'a', 'b', and an array is one"):
        predict(array, BatchModel(tmp_path / "add.onnx"))
    with pytest.raises(rewire.InvalidArgumentError, match="a dask.array.Array or a dask.dataframe.DataFrame is expected"):
        predict(numpy.ones(3), BatchModel(classifier))
    with pytest.raises(rewire.InvalidArgumentError, match=r"rows of shape \(4\) are expected"):
        predict(dask.array.ones((4, 5), chunks=2), BatchModel(classifier))
    onnx.save(tiny_models.add(("N", "K")), str(tmp_path / "open.onnx"))
    with pytest.raises(rewire.InvalidArgumentError, match="output sum.*Dask needs the shape of its rows"):
        predict(array, BatchModel(tmp_path / "open.onnx", fixed={"b": numpy.float32([[1]])}))
