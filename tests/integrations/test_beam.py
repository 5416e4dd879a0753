# SPDX-License-Identifier: Apache-2.0
"""Pipelines of Beam through a model."""

import apache_beam as beam
import example_model
import numpy
import onnx
import pyarrow
import pytest
import rewire
import tiny_models
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from rewire_integrations import columns
from rewire_integrations.beam import RewireModelHandler


def in_memory():
    """One process: what a test gives and takes are its own objects."""
    return PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory"])


def equal_to_expected(features, key=lambda result: result[0], scores=lambda result: result[1]):
    expected = example_model.expected(features)

    def check(found):
        assert sorted(key(each) for each in found) == list(range(len(expected)))
        for each in found:
            numpy.testing.assert_allclose(scores(each), expected[key(each)], rtol=1e-5)

    return check


def test_keyed_elements_are_batched_and_keep_their_keys(classifier, features):
    handler = KeyedModelHandler(RewireModelHandler(classifier, min_batch_size=8, max_batch_size=64))
    with beam.Pipeline(options=in_memory()) as pipeline:
        found = (pipeline | beam.Create(list(enumerate(features))) | RunInference(handler)
                 | beam.MapTuple(lambda key, result: (key, result.inference["scores"].tolist())))
        assert_that(found, equal_to_expected(features))


def test_plain_elements_come_back_with_their_inference(classifier, features):
    with beam.Pipeline(options=in_memory()) as pipeline:
        found = (pipeline | beam.Create(list(features[:100])) | RunInference(RewireModelHandler(classifier))
                 | beam.Map(lambda result: (result.example.tolist(), result.inference["scores"].tolist(), result.model_id)))

        def check(rows):
            assert len(rows) == 100 and {row[2] for row in rows} == {classifier}
            for example, scores, _ in rows:
                numpy.testing.assert_allclose(scores, example_model.expected(numpy.array([example], "f4"))[0], rtol=1e-5)

        assert_that(found, check)


BATCHES = {
    "array": lambda rows: rows,
    "dict": lambda rows: {"features": rows},
    "record batch": lambda rows: pyarrow.record_batch({"features": columns.as_arrow(rows)}),
    "table": lambda rows: pyarrow.table({"features": columns.as_arrow(rows)}),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_are_read_where_they_lie(classifier, features, kind):
    handler = RewireModelHandler(classifier)
    model = handler.load_model()
    given = handler._columns_of(BATCHES[kind](features), model)["features"]
    assert given.__array_interface__["data"][0] == features.__array_interface__["data"][0]
    found = list(handler.with_no_batching().run_inference(BATCHES[kind](features), model))
    assert len(found) == len(features)
    numpy.testing.assert_allclose([each.inference["scores"] for each in found], example_model.expected(features), rtol=1e-5)
    first = found[0].example if kind == "array" else found[0].example["features"]
    assert first.tolist() == features[0].tolist()
    assert handler.get_num_bytes(BATCHES[kind](features)) >= features.nbytes


def test_prebatched_elements_of_a_pipeline(classifier, features):
    with beam.Pipeline(options=in_memory()) as pipeline:
        found = (pipeline | beam.Create([features[:700], features[700:]])
                 | RunInference(RewireModelHandler(classifier).with_no_batching())
                 | beam.Map(lambda result: result.inference["scores"].tolist()))

        def check(rows):
            assert len(rows) == len(features)
            assert sorted(map(tuple, rows)) == sorted(
                tuple(each.inference["scores"].tolist()) for each in
                RewireModelHandler(classifier).run_inference(features, RewireModelHandler(classifier).load_model()))

        assert_that(found, check)


def test_elements_of_several_inputs_are_dicts(tmp_path):
    path = str(tmp_path / "add.onnx")
    onnx.save(tiny_models.add(), path)
    handler = RewireModelHandler(path)
    model = handler.load_model()
    a = numpy.arange(4, dtype=numpy.float32)
    found = list(handler.run_inference([{"a": a, "b": 2 * a}, {"a": a, "b": 3 * a}], model))
    assert [each.inference["sum"].tolist() for each in found] == [(3 * a).tolist(), (4 * a).tolist()]
    assert handler.get_num_bytes([{"a": a, "b": a}]) == 2 * a.nbytes
    with pytest.raises(rewire.InvalidArgumentError, match="an element has no 'b'; it has 'a'"):
        list(handler.run_inference([{"a": a}], model))
    with pytest.raises(rewire.InvalidArgumentError, match="an element is one array; give dicts by column"):
        list(handler.run_inference([a], model))
    with pytest.raises(rewire.InvalidArgumentError, match="the batch has no column 'b'; it has 'a'"):
        list(handler.run_inference({"a": numpy.stack([a])}, model))


def test_what_the_handler_does_not_take(classifier):
    for name in ("large_model", "model_copies"):
        with pytest.raises(rewire.InvalidArgumentError, match=f"{name}: worker processes map the file"):
            RewireModelHandler(classifier, **{name: 2})
    with pytest.raises(rewire.InvalidArgumentError, match="inference_args: none are known, k given"):
        RewireModelHandler(classifier).validate_inference_args({"k": 1})
    assert RewireModelHandler(classifier, max_batch_size=3).batch_elements_kwargs() == {"max_batch_size": 3}
    assert not RewireModelHandler(classifier).share_model_across_processes()


def test_another_path_of_the_model(classifier, tmp_path, features):
    other = tmp_path / "other.onnx"
    example_model.write(other)
    handler = RewireModelHandler(classifier)
    handler.update_model_path(str(other))
    assert next(iter(handler.run_inference(features[:1], handler.load_model()))).model_id == str(other)
    handler.update_model_path()
    assert handler.load_model().model == classifier
