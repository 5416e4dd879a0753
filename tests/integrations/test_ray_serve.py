# SPDX-License-Identifier: Apache-2.0
"""Models as applications of Ray Serve."""

import json
import socket
import urllib.error
import urllib.request

import example_model
import numpy
import onnx
import psutil
import pytest
import ray
import rewire
import tiny_models
from onnx import TensorProto, helper
from ray import serve
from rewire_integrations import BatchModel
from rewire_integrations.ray_serve import _Replica, application, call, pipeline, run_together

A_TENTH = {"ray_actor_options": {"num_cpus": 0.1}}
RNG = numpy.random.default_rng(7)


@pytest.fixture(scope="module")
def port():
    """The port at which Ray Serve answers HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": number})
    yield number
    serve.shutdown()
    ray.shutdown()


def post(port, path, body):
    """The status and the lines of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), timeout=120) as answer:
            return answer.status, [json.loads(line) for line in answer.read().splitlines()]
    except urllib.error.HTTPError as error:
        return error.code, [json.loads(error.read())]


def test_requests_that_wait_run_as_one_batch(port, tmp_path):
    """Each row of y is the sum of x over all rows of its run, so an answer shows what ran together. The time to wait is never over."""
    path = tmp_path / "sums.onnx"
    nodes = [helper.make_node("ReduceSum", ["x"], ["all"], keepdims=0), helper.make_node("Sub", ["x", "x"], ["none"]),
             helper.make_node("Add", ["none", "all"], ["y"])]
    onnx.save(tiny_models.model(nodes, [("x", TensorProto.FLOAT, ("N",))], [("y", TensorProto.FLOAT, ("N",))]), str(path))
    handle = serve.run(application(str(path), max_batch_size=3, wait_seconds=3600, deployment=A_TENTH), name="sums", route_prefix="/sums")
    parts = [numpy.float32([1]), numpy.float32([10, 20]), numpy.float32([100])]
    answers = [handle.remote({"x": part}) for part in parts]
    assert [answer.result(timeout_s=300)["y"].tolist() for answer in answers] == [[131.0], [131.0, 131.0], [131.0]]
    serve.delete("sums")


def test_only_requests_that_are_wrong_by_themselves_fail(tmp_path):
    """An index in a table of three: one that is too large fails the batch, and alone."""
    path = tmp_path / "gather.onnx"
    onnx.save(tiny_models.model([helper.make_node("Gather", ["table", "index"], ["value"])], [("index", TensorProto.INT64, ("N",))],
                                [("value", TensorProto.FLOAT, ("N",))], [("table", numpy.float32([1, 2, 3]))]), str(path))
    first, second, third = run_together(BatchModel(path), [{"index": numpy.array([index])} for index in (0, 7, 2)])
    assert (first["value"].tolist(), third["value"].tolist()) == ([1.0], [3.0])
    assert isinstance(second, rewire.Error)


def test_shapes_that_differ_do_not_mix(tmp_path):
    path = tmp_path / "add.onnx"
    onnx.save(tiny_models.add(("N", "K")), str(path))
    parts = [RNG.standard_normal((rows, width), dtype=numpy.float32) for rows, width in ((1, 2), (2, 3), (3, 2))]
    for part, made in zip(parts, run_together(BatchModel(path), [{"a": part, "b": part} for part in parts])):
        numpy.testing.assert_array_equal(made["sum"], part + part)


def test_replicas_answer_arrays_and_json_over_one_copy_of_the_weights(port, classifier, features):
    handle = serve.run(application(classifier, deployment={"num_replicas": 2, **A_TENTH}), name="model", route_prefix="/model")
    expected = example_model.expected(features)
    for rows in (1, 7, 2000):
        numpy.testing.assert_allclose(call(handle, {"features": features[:rows]})["scores"], expected[:rows], rtol=1e-5)
    status, (made,) = post(port, "/model", {"features": features[:3].tolist()})
    assert status == 200
    numpy.testing.assert_allclose(made["scores"], expected[:3], rtol=1e-5)

    files = [{mapping.path for mapping in process.memory_maps() if mapping.path.endswith(".rwx")}
             for process in psutil.Process().children(recursive=True) if "ServeReplica:model" in process.name() + "".join(process.cmdline())]
    assert len(files) == 2 and files[0] == files[1] and len(files[0]) == 1

    for body, words in [({"feature": [[1]]}, "no column 'features'; it has 'feature'"), ([1], "a JSON object of columns is expected"),
                        ({"features": [[1, 2]]}, r"rows of shape (4) are expected")]:
        status, (answer,) = post(port, "/model", body)
        assert status == 400 and words in answer["error"]
    with pytest.raises(rewire.InvalidArgumentError, match="no column 'features'"):
        call(handle, {"feature": [[1]]})
    status, (answer,) = post(port, "/model?steps=2", {"features": [[1, 2, 3, 4]]})
    assert status == 400 and "stream: the application has no `feedback`" in answer["error"]
    serve.delete("model")


def test_steps_are_streamed(port, tmp_path):
    """next = token + 1 and total = past + token, step by step."""
    path = tmp_path / "steps.onnx"
    nodes = [helper.make_node("Add", ["token", "one"], ["next"]), helper.make_node("Add", ["past", "token"], ["total"])]
    vectors = [(name, TensorProto.FLOAT, ("N",)) for name in ("token", "past", "next", "total")]
    onnx.save(tiny_models.model(nodes, vectors[:2], vectors[2:], [("one", numpy.float32([1]))]), str(path))
    handle = serve.run(application(str(path), feedback={"next": "token", "total": "past"}, streamed=["total"], deployment=A_TENTH),
                       name="steps", route_prefix="/steps")
    expected = [{"total": [3.0, 1.0]}, {"total": [7.0, 3.0]}, {"total": [12.0, 6.0]}]
    given = {"token": numpy.float32([3, 1]), "past": numpy.float32([0, 0])}
    made = list(handle.options(stream=True, method_name="stream").remote(given, 3))
    assert [{name: array.tolist() for name, array in step.items()} for step in made] == expected
    body = {name: array.tolist() for name, array in given.items()}
    assert post(port, "/steps?steps=3", body) == (200, expected)
    for steps in ("0", "-1", "many"):
        status, (answer,) = post(port, f"/steps?steps={steps}", body)
        assert status == 400 and f"steps: a number of at least 1 is expected, '{steps}' is given" in answer["error"]
    serve.delete("steps")


@pytest.mark.parametrize("names, words", [({"feedback": {"score": "features"}}, "feedback: the model has no column 'score' there"),
                                          ({"feedback": {"scores": "feature"}}, "feedback: the model has no column 'feature' there"),
                                          ({"streamed": ["score"]}, "streamed: the model has no column 'score' there")])
def test_wrong_names_of_steps_are_refused(classifier, names, words):
    with pytest.raises(rewire.InvalidArgumentError, match=words):
        _Replica(classifier, 8, 0.0, names.get("feedback", {}), names.get("streamed"), {})


def test_a_pipeline_hands_arrays_from_worker_to_worker(port, tmp_path):
    """Two executables: y = 2 x, and z = 2 y. The arrays are larger than what Ray sends inside its messages."""
    path = tmp_path / "double.onnx"
    onnx.save(tiny_models.model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", TensorProto.FLOAT, ("N", 256))],
                                [("y", TensorProto.FLOAT, ("N", 256))]), str(path))
    stages = [application(str(path), name="double", deployment=A_TENTH),
              application(str(path), name="again", columns={"x": "y"}, outputs={"y": "z"}, deployment=A_TENTH)]
    handle = serve.run(pipeline(*stages, deployment=A_TENTH), name="pipeline", route_prefix="/pipeline")
    x = RNG.standard_normal((400, 256), dtype=numpy.float32)
    numpy.testing.assert_array_equal(call(handle, {"x": x})["z"], 4 * x)
    status, (made,) = post(port, "/pipeline", {"x": x[:2].tolist()})
    assert status == 200
    numpy.testing.assert_array_equal(numpy.float32(made["z"]), 4 * x[:2])
    status, (made,) = post(port, "/pipeline", {"w": [[1]]})
    assert status == 400 and "no column 'x'" in made["error"]
    serve.delete("pipeline")
    with pytest.raises(rewire.InvalidArgumentError, match="at least one stage is expected"):
        pipeline()
