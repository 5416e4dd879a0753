#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""integrations/triton in Triton's own server, asked by Triton's own clients.

    triton_backend.py BUILD MODEL      BUILD has the backend, vm-as and the test's kernels; MODEL is the .onnx file of example_model.py

Runs in the environment of requirements/triton.txt.
"""

import concurrent.futures
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils.shared_memory as shared_memory

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import run_page  # noqa: E402
import triton_server  # noqa: E402
from example_model import expected  # noqa: E402

PROGRAMS = {
    # The kernel itself tells where its tensors are.
    "addresses": """.kernel addresses = "triton_addresses"
.func main(x: f32[4]) -> y: i64[2]
  %s = alloc_storage _, alignment=64, i64[2], cpu
  %y = alloc_tensor %s, _, i64[2]
  invoke_packed addresses(%x, %y), outputs=1
  ret %y
.end
""",
    "double": """.kernel double = "triton_double"
.func main(x: f32[N, 4]) -> y: f32[N, 4]
  %shape = shape_of %x
  %bytes = load_consti 65536
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %shape, f32
  invoke_packed double(%x, %y), outputs=1
  ret %y
.end
""",
    # The size of the output is known in the run alone: as many elements as the first one of `sizes` says.
    "sized": """.func main(sizes: i64[1]) -> y: f32[?]
  %bytes = load_consti 65536
  %s = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %s, _, %sizes, f32
  ret %y
.end
""",
    # Goes on for ever unless x is 0, and returns it then.
    "endless": """.func main(x: i64[]) -> y: i64[]
  %zero = load_consti 0
again:
  if %x == %zero goto done else on
on:
  goto again
done:
  ret %x
.end
""",
    # total = x + before, which is what the next step begins with.
    "steps": """.kernel add = "rewire.add"
.func main(x: f32[4], before: f32[4]) -> total: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed add(%x, %before, %y), outputs=1
  ret %y
.end
""",
    # Returns the list that texts become: positions, ends and bytes.
    "texts": """.metadata "input strings main.0" "{\\"offsets\\": 1, \\"bytes\\": 2}"
.func main(x: i64[?, 2], ends: i64[?], text: u8[?]) -> (positions: i64[?, 2], offsets: i64[?], bytes: u8[?])
  %result = alloc_adt tag=0 (%x, %ends, %text)
  ret %result
.end
""",
    # As `steps` with integers, which end a request of several steps.
    "count": """.kernel add = "rewire.add"
.func main(by: i64[1], before: i64[1]) -> total: i64[1]
  %s = alloc_storage _, alignment=64, i64[1], cpu
  %y = alloc_tensor %s, _, i64[1]
  invoke_packed add(%by, %before, %y), outputs=1
  ret %y
.end
""",
    # The same for rows of a batch, slowly.
    "slow": """.kernel add = "triton_slow_add"
.func main(by: i64[N, 1], before: i64[N, 1]) -> total: i64[N, 1]
  %shape = shape_of %by
  %bytes = load_consti 65536
  %s = alloc_storage %bytes, alignment=64, i64, cpu
  %y = alloc_tensor_reg %s, _, %shape, i64
  invoke_packed add(%by, %before, %y), outputs=1
  ret %y
.end
""",
}
STATE = 'parameters: { key: "state.total" value: { string_value: "before" } }\n'
SEVERAL = """model_transaction_policy { decoupled: true }
parameters: { key: "stop.total" value: { string_value: "10" } }
parameters: { key: "most_steps" value: { string_value: "64" } }
"""
TOGETHER = """max_batch_size: 8
sequence_batching {
  oldest { max_candidate_sequences: 8 preferred_batch_size: 8 max_queue_delay_microseconds: 60000000 }
  max_sequence_idle_microseconds: 60000000
}
"""


class Repository:
    def __init__(self, folder, build):
        self.folder = folder / "models"
        self.build = build

    def add(self, name, config="", file=None, program=None):
        """A model of a program, or of a file. Returns its folder."""
        version = self.folder / name / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(f'backend: "rewire"\n{config}', encoding="utf-8")
        if file is not None:
            shutil.copy(file, version)
        else:
            (version / "model.asm").write_text(PROGRAMS[program or name], encoding="utf-8")
            subprocess.run([self.build / "bin/vm-as", "model.asm"], cwd=version, check=True)
        return version.parent


def tensor(client, name, values):
    kinds = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64"}
    given = client.InferInput(name, list(values.shape), kinds[values.dtype])
    given.set_data_from_numpy(values)
    return given


def refused(call, *words):
    """The call fails, and the error has these words."""
    try:
        call()
    except tritonclient.utils.InferenceServerException as error:
        for each in words:
            assert each in str(error), f"'{each}' is not in: {error}"
    else:
        raise AssertionError(f"answered in place of an error with '{words[0]}'")


class Tests:
    """Each function that does not begin with _ is a test."""

    def __init__(self, server, repository):
        self._server = server
        self._repository = repository
        self._http = tritonclient.http.InferenceServerClient(server.address("http"), concurrency=64, network_timeout=300, connection_timeout=300)
        self._grpc = tritonclient.grpc.InferenceServerClient(server.address("grpc"))
        self._clients = [(tritonclient.http, self._http), (tritonclient.grpc, self._grpc)]

    def _close(self):
        for _, client in self._clients:
            client.close()

    def _infer(self, name, **inputs):
        """Over HTTP."""
        given = [tensor(tritonclient.http, each, values) for each, values in inputs.items()]
        return self._http.infer(name, given)

    def _double(self, values):
        """Over gRPC, whose client serves any thread: the answer, or the error's text."""
        try:
            return self._grpc.infer("double32", [tensor(tritonclient.grpc, "x", values)]).as_numpy("y")
        except tritonclient.utils.InferenceServerException as error:
            return str(error)

    def _statistics(self, name):
        return self._http.get_inference_statistics(name)["model_stats"][0]

    def an_onnx_model_needs_one_line_of_configuration(self):
        self._http.load_model("classifier")
        config = self._http.get_model_config("classifier")
        assert (config["max_batch_size"], "dynamic_batching" in config) == (4, True), config
        assert [(each["name"], each["data_type"], each["dims"]) for each in config["input"]] == [("features", "TYPE_FP32", [4])]
        assert [(each["name"], each["data_type"], each["dims"]) for each in config["output"]] == [("scores", "TYPE_FP32", [3])]
        features = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
        for kind, client in self._clients:
            answer = client.infer("classifier", [tensor(kind, "features", features)], request_id="7")
            assert np.allclose(answer.as_numpy("scores"), expected(features), atol=1e-6)
        given = tritonclient.http.InferInput("features", [3, 4], "FP32")
        given.set_data_from_numpy(features, binary_data=False)
        answer = self._http.infer("classifier", [given], outputs=[tritonclient.http.InferRequestedOutput("scores", class_count=1)])
        assert answer.as_numpy("scores").shape == (3, 1)
        statistics = self._statistics("classifier")
        assert statistics["inference_count"] == 9 and statistics["inference_stats"]["success"]["count"] == 3
        assert sorted(each["batch_size"] for each in statistics["batch_stats"]) == [3]
        assert statistics["inference_stats"]["compute_infer"]["ns"] > 0

    def a_stream_answers_in_order(self):
        self._http.load_model("double")
        answers = []
        done = threading.Event()

        def answered(result, error):
            answers.append(error or result.as_numpy("y")[0, 0])
            if len(answers) == 20:
                done.set()

        self._grpc.start_stream(answered)
        for number in range(20):
            self._grpc.async_stream_infer("double", [tensor(tritonclient.grpc, "x", np.full((1, 4), number, np.float32))])
        assert done.wait(60)
        self._grpc.stop_stream()
        assert answers == [2 * number for number in range(20)], answers

    def the_kernel_reads_and_writes_tritons_memory(self):
        """Input and output are in the client's region: the kernel's own addresses lie in the server's mapping of it, at their offsets."""
        self._http.load_model("addresses")
        name, key = "region", f"/rewire_triton_{self._server.process.pid}"
        region = shared_memory.create_shared_memory_region(name, key, 8192)
        try:
            shared_memory.set_shared_memory_region(region, [np.ones(4, np.float32)])
            for kind, client in self._clients:
                client.register_system_shared_memory(name, key, 8192)
                given = kind.InferInput("x", [4], "FP32")
                given.set_shared_memory(name, 16)
                wanted = kind.InferRequestedOutput("y")
                wanted.set_shared_memory(name, 16, 4096)
                client.infer("addresses", [given], outputs=[wanted])
                output, read = shared_memory.get_contents_as_numpy(region, np.int64, [2], 4096)
                maps = pathlib.Path(f"/proc/{self._server.process.pid}/maps").read_text(encoding="utf-8")
                starts = [int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(key)]
                assert output - 4096 in starts and read == output - 4096, (output, read, starts)
                client.unregister_system_shared_memory(name)
        finally:
            shared_memory.destroy_shared_memory_region(region)
        # In memory of Triton's own, each output is where its response is made: no two that are alive at once share it.
        assert self._infer("addresses", x=np.ones(4, np.float32)).as_numpy("y")[0] % 8 == 0

    def requests_of_32_clients_are_one_batch(self):
        """The delay is longer than any load of the machine, so a batch runs because it is full."""
        self._http.load_model("double32")
        x = [np.full((1, 4), number, np.float32) for number in range(32)]
        with concurrent.futures.ThreadPoolExecutor(32) as clients:
            for _ in range(3):
                answers = list(clients.map(self._double, x))
                for values, answer in zip(x, answers):
                    assert (answer == 2 * values).all(), (values, answer)
        statistics = self._statistics("double32")
        assert [(each["batch_size"], each["compute_infer"]["count"]) for each in statistics["batch_stats"]] == [(32, 3)], statistics
        assert (statistics["inference_count"], statistics["execution_count"]) == (96, 3), statistics

    def a_wrong_request_of_a_batch_fails_alone(self):
        x = [np.full((1, 4), -1 if number == 5 else number, np.float32) for number in range(32)]

        with concurrent.futures.ThreadPoolExecutor(32) as clients:
            answers = list(clients.map(self._double, x))
        for number, (values, answer) in enumerate(zip(x, answers)):
            if number == 5:
                assert "an element is negative" in answer, answer
            else:
                assert (answer == 2 * values).all(), answer
        assert self._statistics("double32")["inference_stats"]["fail"]["count"] == 1

    def an_output_of_unknown_size_has_the_size_of_its_run(self):
        self._http.load_model("sized")
        for size in (3, 0, 200):
            assert self._infer("sized", sizes=np.array([size], np.int64)).as_numpy("y").shape == (size,)
        refused(lambda: self._infer("sized", sizes=np.array([-1], np.int64)), "alloc_tensor_reg")
        assert self._infer("sized", sizes=np.array([5], np.int64)).as_numpy("y").shape == (5,)

    def a_scalar_is_one_element_for_clients(self):
        self._http.load_model("endless")
        assert self._http.get_model_config("endless")["input"][0]["dims"] == [1]
        assert self._infer("endless", x=np.zeros(1, np.int64)).as_numpy("y").tolist() == [0]

    def texts_are_bytes(self):
        self._http.load_model("texts")
        assert [(each["name"], each["data_type"]) for each in self._http.get_model_config("texts")["input"]] == [("x", "TYPE_STRING")]
        for kind, client in self._clients:
            given = kind.InferInput("x", [1, 2], "BYTES")
            given.set_data_from_numpy(np.array([["fünf", ""]], object))
            answer = client.infer("texts", [given])
            assert answer.as_numpy("positions").tolist() == [[0, 1]] and answer.as_numpy("offsets").tolist() == [0, 5, 5]
            assert answer.as_numpy("bytes").tobytes().decode() == "fünf"

    def a_client_that_cancels_ends_its_run(self):
        """There is one instance, which the run holds, so that the second request is answered only if the first one has ended."""
        self._http.load_model("endless")
        ended = []
        done = threading.Event()

        def answered(result, error):
            ended.append((result, error))
            done.set()

        busy = self._server.cpu_seconds()
        call = self._grpc.async_infer("endless", [tensor(tritonclient.grpc, "x", np.ones(1, np.int64))], answered)
        while self._server.cpu_seconds() < busy + 0.2:  # it runs
            time.sleep(0.05)
        call.cancel()
        assert done.wait(60) and "CANCELLED" in str(ended[0][1]), ended
        assert self._infer("endless", x=np.zeros(1, np.int64)).as_numpy("y").tolist() == [0]
        assert self._statistics("endless")["inference_stats"]["fail"]["count"] == 1

    def sequences_keep_their_state_apart(self):
        self._http.load_model("steps")
        config = self._http.get_model_config("steps")
        assert config["sequence_batching"]["oldest"]["max_candidate_sequences"] == 1000, config
        x = np.ones(4, np.float32)
        for step in range(5):
            for factor, name in enumerate([7, "seven", 9], 1):
                for kind, client in self._clients[:1] if step % 2 else self._clients[1:]:
                    answer = client.infer("steps", [tensor(kind, "x", x * factor)], sequence_id=name, sequence_start=step == 0,
                                          sequence_end=step == 4)
                    assert (answer.as_numpy("total") == factor * (step + 1)).all(), (step, name)
        given = [tensor(tritonclient.http, "x", x), tensor(tritonclient.http, "before", 10 * x)]
        answer = self._http.infer("steps", given, sequence_id=5, sequence_start=True)
        assert (answer.as_numpy("total") == 11).all()
        refused(lambda: self._http.infer("steps", given, sequence_id=5), "input 'before' is the state of sequence 5")
        answer = self._http.infer("steps", given[:1], sequence_id=5, sequence_end=True)
        assert (answer.as_numpy("total") == 12).all()

    def a_request_of_several_steps_has_several_responses(self):
        self._http.load_model("count")
        self._http.load_model("counted")
        answers = queue.Queue()
        self._grpc.start_stream(lambda result, error: answers.put((result, error)))

        def totals(by, steps, before=None, model="count", **options):
            """Those of all responses, up to the last one or the error."""
            given = [tensor(tritonclient.grpc, "by", np.array([by]))]
            if before is not None:
                given.append(tensor(tritonclient.grpc, "before", np.array([before])))
            self._grpc.async_stream_infer(model, given, parameters={"steps": steps}, **options)
            found = []
            while True:
                result, error = answers.get(timeout=60)
                if error is not None:
                    return [*found, str(error)]
                found += result.as_numpy("total").tolist()
                if result.get_response().parameters["triton_final_response"].bool_param:
                    return found

        assert (found := totals(3, 3)) == [3, 6, 9], found
        assert totals(2, 20) == [2, 4, 6, 8, 10], "10 ends it"
        assert totals(1, 4, before=5) == [6, 7, 8, 9]
        assert totals(1, 2, model="counted", sequence_id=3, sequence_start=True) == [1, 2]
        assert totals(1, 3, model="counted", sequence_id=3, sequence_end=True) == [3, 4, 5]
        assert totals(1, 1) == [1]
        assert "65 are asked for" in totals(1, 65)[-1] and "from 1 on is expected" in totals(1, 0)[-1]
        assert "sequences need sequence_batching" in totals(1, 2, sequence_id=3, sequence_start=True)[-1]
        assert totals(20, 64) == [20 * step for step in range(1, 65)]
        self._grpc.stop_stream()
        asked = json.dumps({"by": 4, "before": 2, "steps": 9}).encode()
        with urllib.request.urlopen(f"http://{self._server.address('http')}/v2/models/count/generate_stream", asked, timeout=60) as events:
            totals = [json.loads(line.removeprefix(b"data: "))["total"] for line in events.read().splitlines() if line]
        assert totals == [6, 10], totals
        statistics = self._statistics("count")
        assert statistics["execution_count"] == 3 + 5 + 4 + 1 + 64 + 2, statistics
        given = [tensor(tritonclient.http, "x", np.ones(4, np.float32))]
        refused(lambda: self._http.infer("steps", given, sequence_id=8, sequence_start=True, sequence_end=True, parameters={"steps": 2}),
                "model 'steps' gives one response a request")

    def steps_of_sequences_are_one_batch(self):
        """The delay is longer than any load of the machine, so a batch runs because all sequences have a step in it."""
        self._http.load_model("slow")

        def step(number, of_sequence):
            given = [tensor(tritonclient.grpc, "by", np.array([[of_sequence]]))]
            answer = self._grpc.infer("slow", given, sequence_id=of_sequence, sequence_start=number == 0, sequence_end=number == 3)
            return answer.as_numpy("total").tolist()

        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            for number in range(4):
                answers = list(clients.map(lambda of_sequence, number=number: step(number, of_sequence), range(1, 9)))
                assert answers == [[[(number + 1) * of_sequence]] for of_sequence in range(1, 9)], answers
        statistics = self._statistics("slow")
        assert [(each["batch_size"], each["compute_infer"]["count"]) for each in statistics["batch_stats"]] == [(8, 4)], statistics

    def requests_for_several_steps_join_between_steps(self):
        self._http.load_model("joined")
        answers = {name: queue.Queue() for name in ("first", "second", "third")}
        clients = {}

        def ask(name, by, steps):
            clients[name] = tritonclient.grpc.InferenceServerClient(self._server.address("grpc"))
            clients[name].start_stream(lambda result, error: answers[name].put((result, error)))
            clients[name].async_stream_infer("joined", [tensor(tritonclient.grpc, "by", np.array([[by]]))], parameters={"steps": steps})

        def totals(name, count):
            found = []
            while len(found) < count:
                result, error = answers[name].get(timeout=60)
                assert error is None, error
                found += result.as_numpy("total").reshape(-1).tolist()
            return found

        ask("first", 1, 200)  # six seconds
        assert totals("first", 2) == [1, 2]
        ask("second", 5, 20)
        ask("third", 7, 20)
        # The second and the third ones are answered while the first one goes on.
        assert totals("second", 20) == [5 * step for step in range(1, 21)]
        assert totals("third", 20) == [7 * step for step in range(1, 21)]
        assert totals("first", 198) == list(range(3, 201))
        for client in clients.values():
            client.stop_stream()
            client.close()
        runs = {each["batch_size"]: each["compute_infer"]["count"] for each in self._statistics("joined")["batch_stats"]}
        assert sum(size * count for size, count in runs.items()) == 240, runs
        assert sum(count for size, count in runs.items() if size > 1) >= 20 and sum(runs.values()) <= 220, runs

    def what_cannot_be_loaded_says_why(self):
        for name, words in [
            ("no_file", ["no_file/1: model.rwx or model.onnx is expected"]),
            ("no_batches", ["max_batch_size is 8, but requests cannot be put together"]),
            ("wrong_parameter", ["the backend has no parameter 'thread'", "did you mean 'threads'"]),
            ("wrong_number", ["parameter 'threads': a whole number is expected, 'two' is given"]),
            ("wrong_input", ["the model has no input 'X'", "did you mean 'x'"]),
            ("wrong_type", ["input 'x': data_type TYPE_FP32 expected, TYPE_FP16 given"]),
            ("wrong_dims", ["output 'y': dims [2] expected, [3] given"]),
            ("wrong_state", ["the model has no output 'sum'"]),
            ("wrong_stop", ["parameter 'stop.total': an output of INT64 is expected that is state"]),
            ("own_state", ["sequence_batching.state is not supported"]),
            ("on_gpu", ["KIND_CPU"]),
        ]:
            refused(lambda name=name: self._http.load_model(name), *words)

    def a_setting_that_does_not_exist_is_a_warning(self):
        log = self._server.log.read_text(encoding="utf-8")
        assert "--backend-config=rewire,kernel: the backend has no such setting; it has kernels" in log, log

    def wrong_requests_say_why(self):
        self._http.load_model("addresses")
        refused(lambda: self._infer("addresses", x=np.ones(5, np.float32)), "[4]")
        refused(lambda: self._infer("addresses", x=np.ones(4, np.int64)), "FP32")
        assert self._infer("addresses", x=np.ones(4, np.float32)).as_numpy("y").shape == (2,)

    def loads_and_unloads_leave_nothing(self, count=60):
        """The first loads take memory that the allocator keeps. As many loads again take some 1,000 bytes each; one that kept its model would
        take 12,000."""
        features = np.ones((1, 4), np.float32)

        def rounds(times):
            for _ in range(times):
                self._http.load_model("reloaded")
                assert self._infer("reloaded", features=features).as_numpy("scores").shape == (1, 3)
                self._http.unload_model("reloaded")
            return self._server.resident_bytes()

        first = rounds(count)
        growth = rounds(count) - first
        print(f"triton: {count} more loads and unloads have grown the server by {growth // count} bytes each")
        assert growth < count * 6000, growth


def main(build, model):
    build = pathlib.Path(build).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models = Repository(folder, build)
        for each in PROGRAMS:
            models.add(each, {"steps": STATE, "count": STATE + SEVERAL, "slow": STATE + TOGETHER}.get(each, ""))
        models.add("double32", "max_batch_size: 32\ndynamic_batching { max_queue_delay_microseconds: 60000000 }", program="double")
        for each in ("classifier", "reloaded"):
            models.add(each, file=model)
        shutil.rmtree(models.add("no_file", program="addresses") / "1")
        (models.folder / "no_file/1").mkdir()
        addresses = {
            "no_batches": "max_batch_size: 8",
            "wrong_parameter": 'parameters: { key: "thread" value: { string_value: "2" } }',
            "wrong_number": 'parameters: { key: "threads" value: { string_value: "two" } }',
            "wrong_input": 'input { name: "X" data_type: TYPE_FP32 dims: [4] }',
            "wrong_type": 'input { name: "x" data_type: TYPE_FP16 dims: [4] }',
            "wrong_dims": 'output { name: "y" data_type: TYPE_INT64 dims: [3] }',
            "on_gpu": "instance_group { kind: KIND_MODEL }",
        }
        for each, config in addresses.items():
            models.add(each, config, program="addresses")
        models.add("counted", STATE + SEVERAL + "sequence_batching { oldest { max_candidate_sequences: 4 } }", program="count")
        models.add("joined", STATE + "max_batch_size: 8\nmodel_transaction_policy { decoupled: true }", program="slow")
        models.add("wrong_stop", STATE + SEVERAL, program="steps")
        models.add("wrong_state", STATE.replace("total", "sum"), program="steps")
        state = 'state { input_name: "before" output_name: "total" data_type: TYPE_FP32 dims: [4] }'
        models.add("own_state", f"sequence_batching {{ {state} }}", program="steps")
        kernels = build / "tests/libraries/triton_kernels.so"
        with triton_server.started(models.folder, build / "lib/triton", folder / "log", "--model-control-mode=explicit",
                                   f"--backend-config=rewire,kernels={kernels}", "--backend-config=rewire,kernel=none") as server:
            tests = Tests(server, models)
            for each in [each for each in vars(Tests) if not each.startswith("_")]:
                try:
                    getattr(tests, each)()
                except BaseException:
                    print(server.log.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
                    raise
                print(f"triton: {each.replace('_', ' ')}", flush=True)
            tests._close()  # an open connection keeps the server from ending
        os.environ["PATH"] = os.pathsep.join([str(triton_server.BINARY.parent), os.environ["PATH"]])
        os.environ["BACKENDS"] = str(build / "lib/triton")
        (folder / "page").mkdir()
        shutil.copy(model, folder / "page")
        count = run_page.run(HERE.parents[1] / "integrations/triton/README.md", folder / "page")
        print(f"triton: {count} blocks of its README ran as they stand")


if __name__ == "__main__":
    main(*sys.argv[1:])
