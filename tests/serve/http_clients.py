#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-serve as Triton's own HTTP client sees it, unmodified.

    http_clients.py --bin BUILD/bin      starts servers and calls them; prints a line for each test
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import call_table
import numpy
import onnx
import tritonclient.http as http
import tritonclient.utils.shared_memory as shared_memory
from certificates import make_certificate
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException
from vm_server import server

ROWS, WIDTH = 3, 4
X = numpy.arange(ROWS * WIDTH, dtype=numpy.float32).reshape(ROWS, WIDTH)


def write_model(path):
    """y = relu(x w), z = x + 1, for any number of rows."""
    w = numpy.linspace(-1, 1, WIDTH * 2, dtype=numpy.float32).reshape(WIDTH, 2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"]),
             helper.make_node("Add", ["x", "one"], ["z"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2]),
         helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", WIDTH])],
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(numpy.float32([1]), "one")])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return w


def write_sum(path):
    """y = x + past, which is the next past."""
    vector = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "past", "y", "present")]
    nodes = [helper.make_node("Add", ["x", "past"], ["y"]), helper.make_node("Identity", ["y"], ["present"])]
    graph = helper.make_graph(nodes, "g", vector[:2], vector[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


SETTINGS = """models_in = ["models"]
[server]
let_clients_load = true
[models.model.batching]
max_batch_size = 16
[models.sum.sequence]
state = {present = "past"}
"""


def given(binary=True):
    x = http.InferInput("x", X.shape, "FP32")
    x.set_data_from_numpy(X, binary_data=binary)
    return [x]


def refused(call, words):
    try:
        call()
    except InferenceServerException as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def test_an_onnx_model_is_compiled_when_it_is_loaded(client, w):
    result = client.infer("model", given(), request_id="5")
    assert result.get_response()["id"] == "5"
    assert numpy.allclose(result.as_numpy("y"), numpy.maximum(X @ w, 0), atol=1e-5)
    assert (result.as_numpy("z") == X + 1).all()


def test_json_and_bytes_give_the_same(client, _):
    expected = client.infer("model", given()).as_numpy("y")
    for binary_in in (False, True):
        for binary_out in (False, True):
            wanted = [http.InferRequestedOutput("y", binary_data=binary_out)]
            result = client.infer("model", given(binary_in), outputs=wanted)
            assert (result.as_numpy("y") == expected).all()
            assert result.as_numpy("z") is None


def test_many_requests_at_once(client, _):
    asked = [client.async_infer("model", given()) for _ in range(200)]
    assert all((one.get_result().as_numpy("z") == X + 1).all() for one in asked)


def test_calls_about_server_and_models(client, _):
    client.unregister_cuda_shared_memory()
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("model", "1")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    assert client.get_model_metadata("model")["inputs"][0]["shape"] == [-1, WIDTH]
    assert client.get_model_config("model")["max_batch_size"] == 16
    assert client.get_model_repository_index()[0]["state"] == "READY"
    client.infer("model", given())
    statistics = client.get_inference_statistics("model")["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] > 0
    assert statistics["inference_count"] >= statistics["execution_count"]


def test_loading_again_fails_no_request(client, _):
    asked = []
    for _ in range(5):
        asked += [client.async_infer("model", given()) for _ in range(20)]
        client.load_model("model")
    assert all((one.get_result().as_numpy("z") == X + 1).all() for one in asked)
    client.unload_model("model")
    assert not client.is_model_ready("model")
    client.load_model("model")
    assert client.is_model_ready("model")


def test_classification(client, w):
    for binary in (False, True):
        result = client.infer("model", given(), outputs=[http.InferRequestedOutput("y", binary_data=binary, class_count=1)])
        found = [bytes(text) if binary else text.encode() for text in result.as_numpy("y").ravel().tolist()]
        y = client.infer("model", given()).as_numpy("y")
        assert [int(text.split(b":")[1]) for text in found] == y.argmax(1).tolist(), found


def test_sequences_keep_their_state(client, _):
    """Interleaved, by numbers and texts; then one that has ended."""
    for step in range(5):
        for factor, name in enumerate([7, "7", "seven", 2**62], 1):
            x = http.InferInput("x", [4], "FP32")
            x.set_data_from_numpy(numpy.full(4, factor, numpy.float32))
            answer = client.infer("sum", [x], sequence_id=name, sequence_start=step == 0, sequence_end=step == 4)
            assert (answer.as_numpy("y") == factor * (step + 1)).all()
            assert answer.as_numpy("present") is None
    refused(lambda: client.infer("sum", [x], sequence_id=7), "sequence 7 of model 'sum' has ended with the step")
    assert client.get_model_config("sum")["sequence_batching"]["state"][0]["output_name"] == "present"


def test_shared_memory(client, _):
    client.unregister_system_shared_memory()
    region = shared_memory.create_shared_memory_region("region", "/rewire_clients_test", 4096)
    try:
        shared_memory.set_shared_memory_region(region, [X])
        client.register_system_shared_memory("region", "/rewire_clients_test", 4096)
        assert client.get_system_shared_memory_status()[0]["byte_size"] == 4096
        x = http.InferInput("x", X.shape, "FP32")
        x.set_shared_memory("region", X.nbytes)
        z = http.InferRequestedOutput("z")
        z.set_shared_memory("region", X.nbytes, offset=1024)
        client.infer("model", [x], outputs=[z])
        assert (shared_memory.get_contents_as_numpy(region, numpy.float32, X.shape, 1024) == X + 1).all()
        client.unregister_system_shared_memory("region")
        refused(lambda: client.infer("model", [x]), "is not registered")
    finally:
        shared_memory.destroy_shared_memory_region(region)
    assert client.get_cuda_shared_memory_status() == []


def test_what_is_not_there_is_refused_by_name(client, _):
    refused(lambda: client.infer("other", given()), "there is no model 'other'")
    refused(lambda: client.infer("model", given(), sequence_id=3), "model 'model' keeps no state for sequences")
    refused(lambda: client.register_cuda_shared_memory("region", b"", 0, 16), "does not have the extension")
    refused(lambda: client.load_model("model", config="{}"), "the parameter 'config' is not supported")
    refused(lambda: client.infer("model", given(), request_compression_algorithm="gzip"), "Content-Encoding")


def test_the_log_has_what_its_settings_say(client, _):
    log = pathlib.Path("vm-serve.log")
    client.infer("model", given(), request_id="unseen")
    assert client.get_log_settings()["log_verbose_level"] == 0
    assert client.update_log_settings({"log_verbose_level": 1})["log_verbose_level"] == 1
    client.infer("model", given(), request_id="seen")
    client.update_log_settings({"log_verbose_level": 0, "log_info": False})
    client.load_model("model")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert sum("request 'seen' of model model" in line for line in lines) == 1, lines
    assert not any("'unseen'" in line for line in lines), lines
    assert sum("model model, version 1: ready" in line for line in lines) == 1, lines  # from the start
    refused(lambda: client.update_log_settings({"log_file": "/tmp/log"}), "cannot be changed by clients")


def test_requests_are_traced_as_the_settings_say(client, _):
    settings = client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "2"})
    assert settings["trace_level"] == ["TIMESTAMPS"] and settings["trace_rate"] == "2", settings
    for _ in range(6):
        client.infer("model", given())
    assert client.update_trace_settings("model", {"trace_level": ["OFF"]})["trace_level"] == ["OFF"]
    client.infer("model", given())
    assert client.get_trace_settings("sum")["trace_level"] == ["TIMESTAMPS"]
    traces = json.loads(pathlib.Path("traces.json").read_text(encoding="utf-8") + "]")
    assert [trace["id"] for trace in traces] == [1, 2, 3], traces
    assert all(trace["model_name"] == "model" and len(trace["timestamps"]) == 7 for trace in traces), traces


def test_sigterm_ends_the_server_with_success(client, _):
    assert client.is_server_live()  # `server` sees the exit code of each run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    binary = parser.parse_args().bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        w = write_model(pathlib.Path(folder) / "models/model/1/model.onnx")
        write_sum(pathlib.Path(folder) / "models/sum.onnx")
        settings = pathlib.Path(folder) / "serve.toml"
        settings.write_text(SETTINGS, encoding="utf-8")
        certificate, key = make_certificate(pathlib.Path(folder))
        tls = {"ssl": True, "ssl_options": {"ca_certs": str(certificate)}}
        (pathlib.Path(folder) / "run").mkdir()
        os.chdir(pathlib.Path(folder) / "run")  # of log and traces
        models = ["--config", settings, "--trace-file", "traces.json", "--log-file", "vm-serve.log"]
        # All calls without TLS, then by TLS.
        for arguments, options in [(models, {}), ([*models, "--tls-cert", certificate, "--tls-key", key], tls)]:
            answered, unsupported = set(), set()
            for name, test in sorted(globals().items()):
                if not name.startswith("test_"):
                    continue
                begin = time.monotonic()
                with server(binary, *arguments) as address:
                    with http.InferenceServerClient(address, concurrency=8, **options) as client:
                        recorded = call_table.Recorded(client, InferenceServerException)
                        test(recorded, w)
                        answered |= recorded.answered
                        unsupported |= recorded.unsupported
                pathlib.Path("vm-serve.log").unlink()
                print(f"ok {name}{' by TLS' if options else ''} {time.monotonic() - begin:.1f} s", flush=True)
            call_table.check(1, http.InferenceServerClient, answered, unsupported)
    return 0


if __name__ == "__main__":
    sys.exit(main())
