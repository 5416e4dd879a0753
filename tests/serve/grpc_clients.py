#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tritonclient's gRPC client, as it is, against vm-serve: every one of its calls, with what the server answers.

    grpc_clients.py BIN      the folder of the tools; tritonclient must be installed (tests/serve/requirements/tritonclient_grpc.txt)

Prints a row for each call. What came of each must be what the table in docs/serving.md says; a call that is refused must say so by
UNIMPLEMENTED.
"""
import asyncio
import contextlib
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile

import call_table
import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
import tritonclient.utils.shared_memory as shared_memory
from certificates import make_certificate

MODEL = """.kernel add = "rewire.add"
.func main(x: f32[4], y: f32[4]) -> z: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %z = alloc_tensor %s, _, f32[4]
  invoke_packed add(%x, %y, %z), outputs=1
  ret %z
.end
"""
X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([10, 20, 30, 40], np.float32)


def inputs(make=triton.InferInput):
    given = [make("x", [4], "FP32"), make("y", [4], "FP32")]
    given[0].set_data_from_numpy(X)
    given[1].set_data_from_numpy(Y)
    return given


def state(factor):
    """The input of a step that is no state."""
    x = triton.InferInput("x", [4], "FP32")
    x.set_data_from_numpy(np.full(4, factor, np.float32))
    return [x]


SETTINGS = """models_in = ["model.rwx"]
[server]
let_clients_load = true
[models.sum]
file = "sum.rwx"
[models.sum.sequence]
state = {z = "y"}
"""


class Calls:
    """Each function is a call of the client; its name is the client's."""

    def __init__(self, client):
        self.client = client

    def is_server_live(self):
        assert self.client.is_server_live()

    def is_server_ready(self):
        assert self.client.is_server_ready()

    def is_model_ready(self):
        assert self.client.is_model_ready("model")
        assert not self.client.is_model_ready("none")

    def get_server_metadata(self):
        assert self.client.get_server_metadata().name

    def get_model_metadata(self):
        metadata = self.client.get_model_metadata("model")
        assert [tensor.name for tensor in metadata.inputs] == ["x", "y"]
        assert [(tensor.datatype, list(tensor.shape)) for tensor in metadata.outputs] == [("FP32", [4])]

    def get_model_config(self):
        config = self.client.get_model_config("model").config
        assert config.name == "model" and [tensor.name for tensor in config.input] == ["x", "y"]
        assert config.input[0].data_type == 11 and list(config.output[0].dims) == [4]

    def get_model_repository_index(self):
        assert [model.name for model in self.client.get_model_repository_index().models] == ["model", "sum"]

    def load_model(self):
        self.client.load_model("model")

    def unload_model(self):
        self.client.unload_model("model")
        assert not self.client.is_model_ready("model")
        self.client.load_model("model")
        assert self.client.is_model_ready("model")

    def get_inference_statistics(self):
        statistics = self.client.get_inference_statistics("model").model_stats
        assert statistics[0].name == "model"

    def get_trace_settings(self):
        assert list(self.client.get_trace_settings("model").settings["trace_level"].value) == ["OFF"]

    def update_trace_settings(self):
        settings = self.client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}).settings
        assert list(settings["trace_level"].value) == ["TIMESTAMPS"] and list(settings["trace_rate"].value) == ["1"]
        self.client.infer("model", inputs(), request_id="traced")
        settings = self.client.update_trace_settings(settings={"trace_level": None, "trace_rate": None}).settings
        assert list(settings["trace_level"].value) == ["OFF"] and list(settings["trace_rate"].value) == ["1000"]

    def get_log_settings(self):
        settings = self.client.get_log_settings().settings
        assert settings["log_info"].bool_param and settings["log_verbose_level"].uint32_param == 0

    def update_log_settings(self):
        assert self.client.update_log_settings({"log_verbose_level": 1}).settings["log_verbose_level"].uint32_param == 1
        self.client.infer("model", inputs(), request_id="logged")
        assert not self.client.update_log_settings({"log_info": False, "log_verbose_level": 0}).settings["log_info"].bool_param

    def get_system_shared_memory_status(self):
        assert not self.client.get_system_shared_memory_status().regions

    def register_system_shared_memory(self):
        """With inputs and an output in it: infer reads and writes the region."""
        region = shared_memory.create_shared_memory_region("region", "/rewire_grpc_test", 48)
        try:
            shared_memory.set_shared_memory_region(region, [X, Y])
            self.client.register_system_shared_memory("region", "/rewire_grpc_test", 48)
            assert self.client.get_system_shared_memory_status().regions["region"].byte_size == 48
            given = [triton.InferInput("x", [4], "FP32"), triton.InferInput("y", [4], "FP32")]
            given[0].set_shared_memory("region", 16)
            given[1].set_shared_memory("region", 16, 16)
            wanted = triton.InferRequestedOutput("z")
            wanted.set_shared_memory("region", 16, 32)
            result = self.client.infer("model", given, outputs=[wanted])
            assert result.get_output("z").parameters["shared_memory_region"].string_param == "region"
            found = shared_memory.get_contents_as_numpy(region, np.float32, [4], 32)
            assert (found == X + Y).all()
        finally:
            self.client.unregister_system_shared_memory("region")
            shared_memory.destroy_shared_memory_region(region)

    def unregister_system_shared_memory(self):
        self.client.unregister_system_shared_memory("none")
        self.client.unregister_system_shared_memory()

    def get_cuda_shared_memory_status(self):
        assert not self.client.get_cuda_shared_memory_status().regions

    def register_cuda_shared_memory(self):
        try:
            self.client.register_cuda_shared_memory("region", b"", 0, 16)
        except triton.InferenceServerException as error:
            assert "UNIMPLEMENTED" in error.status(), error
        else:
            raise AssertionError("a region of CUDA was registered")

    def unregister_cuda_shared_memory(self):
        self.client.unregister_cuda_shared_memory()

    def infer(self):
        result = self.client.infer("model", inputs(), request_id="7", client_timeout=60)
        assert (result.as_numpy("z") == X + Y).all() and result.get_response().id == "7"

    def infer_classes(self):
        """The largest elements in place of the output."""
        wanted = [triton.InferRequestedOutput("z", class_count=2)]
        result = self.client.infer("model", inputs(), outputs=wanted)
        assert result.as_numpy("z").tolist() == [b"44:3", b"33:2"], result.as_numpy("z")

    def infer_wrong(self):
        """A wrong shape, a missing input and an unknown model are errors of the request alone."""
        wrong = triton.InferInput("x", [3], "FP32")
        wrong.set_data_from_numpy(X[:3])
        for model, given, status in [("model", [wrong, inputs()[1]], "INVALID_ARGUMENT"), ("model", inputs()[:1], "INVALID_ARGUMENT"),
                                     ("none", inputs(), "NOT_FOUND")]:
            try:
                self.client.infer(model, given)
            except triton.InferenceServerException as error:
                assert status in error.status(), error
            else:
                raise AssertionError(f"{model} answered")

    def async_infer(self):
        answers = queue.Queue()
        for _ in range(20):
            self.client.async_infer("model", inputs(), lambda result, error: answers.put((result, error)))
        for _ in range(20):
            result, error = answers.get(timeout=60)
            assert error is None and (result.as_numpy("z") == X + Y).all()

    def start_stream(self):
        """And async_stream_infer, stop_stream: answers in order, and an error in between."""
        answers = queue.Queue()
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        for number in range(6):
            self.client.async_stream_infer("none" if number == 3 else "model", inputs(), request_id=str(number))
        for number in range(6):
            result, error = answers.get(timeout=60)
            assert (error is not None) == (number == 3)
            if error is None:
                assert result.get_response().id == str(number) and (result.as_numpy("z") == X + Y).all()
        self.client.stop_stream()


    def infer_sequence(self):
        """Two sequences, interleaved, by a number and by a text; the stream has another, whose steps wait for each other."""
        wanted = [triton.InferRequestedOutput("z")]
        for step in range(4):
            for factor, name in enumerate([7, "7"], 1):
                answer = self.client.infer("sum", state(factor), sequence_id=name, sequence_start=step == 0, sequence_end=step == 3,
                                           outputs=wanted)
                assert (answer.as_numpy("z") == factor * (step + 1)).all()
        try:
            self.client.infer("sum", state(1), sequence_id=7)
        except triton.InferenceServerException as error:
            assert "NOT_FOUND" in error.status() and "sequence 7 of model 'sum' has ended" in error.message(), error
        else:
            raise AssertionError("a sequence that has ended answered")
        answers = queue.Queue()
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        for step in range(20):
            self.client.async_stream_infer("sum", state(1), sequence_id=9, sequence_start=step == 0, sequence_end=step == 19,
                                           outputs=wanted)
        for step in range(20):
            result, error = answers.get(timeout=60)
            assert error is None and (result.as_numpy("z") == step + 1).all(), error
        self.client.stop_stream()
        state_of = self.client.get_model_config("sum").config.sequence_batching.state[0]
        assert (state_of.output_name, state_of.input_name) == ("z", "y")


async def asynchronous(address, tls):
    """The client for asyncio."""
    async with triton_aio.InferenceServerClient(address, **tls) as client:
        assert await client.is_server_live()
        results = await asyncio.gather(*(client.infer("model", inputs(triton_aio.InferInput)) for _ in range(20)))
        assert all((result.as_numpy("z") == X + Y).all() for result in results)


def check(address, **tls):
    """Makes every call, and prints a row for each."""
    way = "grpcs" if tls else "grpc"
    client = call_table.Recorded(triton.InferenceServerClient(address, **tls), triton.InferenceServerException)
    calls = Calls(client)
    for name in [name for name in vars(Calls) if not name.startswith("_")]:
        getattr(calls, name)()
        print(f"{way}: {name}")
    asyncio.run(asynchronous(address, tls))
    print(f"{way}: aio.infer")
    client.close()
    call_table.check(2, triton.InferenceServerClient, client.answered, client.unsupported)


@contextlib.contextmanager
def server(binary, folder, *arguments):
    """The addresses of HTTP and gRPC; the server is ended by SIGTERM, which must be a success."""
    command = [binary, "--config", "serve.toml", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--log-file", "serve.log",
               "--trace-file", "traces.json", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [process.stdout.readline().split()[-1] for _ in range(2)]
        finally:
            process.terminate()
        assert process.wait(timeout=60) == 0, "the server did not end well"
    log = (folder / "serve.log").read_text(encoding="utf-8")
    assert log.count("request 'logged' of model model, version 1") == 1, log
    (folder / "serve.log").unlink()
    assert [trace["request_id"] for trace in json.loads((folder / "traces.json").read_text(encoding="utf-8"))] == ["traced"]


def main():
    bins = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.asm").write_text(MODEL, encoding="utf-8")
        subprocess.run([bins / "vm-as", "model.asm"], cwd=folder, check=True)
        shutil.copy(folder / "model.rwx", folder / "sum.rwx")
        (folder / "serve.toml").write_text(SETTINGS, encoding="utf-8")
        with server(bins / "vm-serve", folder) as (_, grpc):
            check(grpc)
        certificate, key = make_certificate(folder)
        with server(bins / "vm-serve", folder, "--tls-cert", certificate, "--tls-key", key) as (http, _):
            # By ALPN, gRPC is at the port of HTTP, too.
            check(http.replace("127.0.0.1", "localhost"), ssl=True, root_certificates=str(certificate))
    return 0


if __name__ == "__main__":
    sys.exit(main())
