# SPDX-License-Identifier: Apache-2.0
"""Data sets of Ray through a model."""

import example_model
import numpy
import pytest
import ray
import rewire
from rewire_integrations.ray_data import Predictor


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture
def data(features):
    return ray.data.from_numpy(features).map_batches(
        lambda batch: {"id": numpy.round(batch["data"][:, 0] * 1e6).astype("i8"), "features": batch["data"]}).materialize()


@pytest.mark.parametrize("batch_format", ["numpy", "pandas", "pyarrow"])
def test_every_format_of_a_batch_gives_every_row_once(classifier, features, data, batch_format):
    scored = data.map_batches(Predictor, fn_constructor_kwargs={"model": classifier, "max_rows": 100}, batch_format=batch_format,
                              batch_size=300, concurrency=2)
    rows = {row["id"]: row["scores"] for row in scored.take_all()}
    expected = example_model.expected(features)
    assert sorted(rows) == sorted(numpy.round(features[:, 0] * 1e6).astype("i8").tolist())
    for key, row in zip(numpy.round(features[:, 0] * 1e6).astype("i8").tolist(), expected):
        numpy.testing.assert_allclose(rows[key], row, rtol=1e-5)


@pytest.mark.parametrize("batch_format", ["numpy", "pandas", "pyarrow"])
@pytest.mark.parametrize("keep, names", [(True, {"id", "features", "scores"}), (False, {"scores"}), (["id"], {"id", "scores"})])
def test_columns_that_are_kept(classifier, features, batch_format, keep, names):
    """The class as Ray calls it, in this process."""
    block = ray.data.from_numpy(features).rename_columns({"data": "features"}).add_column("id", lambda frame: frame.index)
    batch = next(iter(block.iter_batches(batch_format=batch_format, batch_size=50)))
    made = Predictor(classifier, keep=keep)(batch)
    assert set(made.schema.names if batch_format == "pyarrow" else made) == names
    with pytest.raises(rewire.InvalidArgumentError, match="keep: the batch has no column 'ids'"):
        Predictor(classifier, keep=["ids"])(batch)


def test_a_wrong_path_ends_the_job_and_is_named(data):
    with pytest.raises(ray.exceptions.RayError, match="there is no file /nowhere/model.onnx on the machine"):
        data.map_batches(Predictor, fn_constructor_kwargs={"model": "/nowhere/model.onnx"}, concurrency=1).materialize()


def test_tensors_in_the_object_store_are_read_there(classifier, features):
    """What a worker gets from the store is read-only memory of the store, and the model's input is that memory."""
    read = ray.get(ray.put(features))
    assert not read.flags.writeable
    model = Predictor(classifier)._model
    plan = model.plan()
    assert plan.fitted("features", read).__array_interface__["data"] == read.__array_interface__["data"]
    numpy.testing.assert_allclose(model({"features": read})["scores"], example_model.expected(features), rtol=1e-5)
