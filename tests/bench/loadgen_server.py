#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-serve judged by MLPerf's LoadGen: its Server scenario, whose requests come at random times (Poisson) at a mean rate.

    loadgen_server.py BUILD [--rate 500] [--seconds 20] [--latency-ms 10] [--connections 16]

The model is a tiny MLP, and tensors are sent as bytes. A run is valid, as LoadGen says it, if 99 % of the requests are answered within
the latency, and if it was long enough. The server has one core, and LoadGen with the client in Python another one. Exits with 1 if LoadGen
says that the run is not valid, or if an answer is wrong.

Runs in the environment of tests/bench/requirements/loadgen.txt.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading

import mlperf_loadgen as loadgen

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/serve"))
from tiny_mlp import X, mlp  # noqa: E402
from vm_server import server  # noqa: E402


class Client:
    """Threads that have a connection each, and answer LoadGen."""

    def __init__(self, address, connections):
        self.address, self.queue, self.wrong = address, queue.SimpleQueue(), 0
        header = {"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}],
                  "parameters": {"binary_data_output": True}}
        text = json.dumps(header).encode()
        self.body, self.headers = text + X.tobytes(), {"Inference-Header-Content-Length": str(len(text))}
        self.expected = self.ask(http.client.HTTPConnection(address))
        self.threads = [threading.Thread(target=self.work) for _ in range(connections)]
        for thread in self.threads:
            thread.start()

    def ask(self, connection):
        connection.request("POST", "/v2/models/mlp/infer", self.body, self.headers)
        response = connection.getresponse()
        data = response.read()
        assert response.status == 200, data
        return data[int(response.headers["Inference-Header-Content-Length"]):]

    def work(self):
        connection = http.client.HTTPConnection(self.address)
        while (sample := self.queue.get()) is not None:
            self.wrong += self.ask(connection) != self.expected
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(sample, 0, 0)])

    def issue(self, samples):
        for sample in samples:
            self.queue.put(sample.id)

    def end(self):
        for _ in self.threads:
            self.queue.put(None)
        for thread in self.threads:
            thread.join()


def judge(client, options):
    """LoadGen's summary of a run."""
    settings = loadgen.TestSettings()
    settings.scenario = loadgen.TestScenario.Server
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.server_target_qps = options.rate
    settings.server_target_latency_ns = int(options.latency_ms * 1e6)
    settings.server_target_latency_percentile = 0.99
    settings.min_duration_ms = int(options.seconds * 1000)
    settings.min_query_count = int(options.rate * options.seconds)
    sut = loadgen.ConstructSUT(client.issue, lambda: None)
    library = loadgen.ConstructQSL(1, 1, lambda _: None, lambda _: None)
    loadgen.StartTest(sut, library, settings)
    loadgen.DestroyQSL(library)
    loadgen.DestroySUT(sut)
    return pathlib.Path("mlperf_log_summary.txt").read_text(encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--latency-ms", type=float, default=10)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    binary = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("mlp.asm").write_text(mlp(), encoding="utf-8")
        subprocess.run([binary / "vm-as", "mlp.asm"], check=True)
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})  # the server's
        with server(binary, "mlp.rwx") as address:
            os.sched_setaffinity(0, {max(cores)})
            client = Client(address, options.connections)
            try:
                summary = judge(client, options)
            finally:
                client.end()
    figures = dict(re.findall(r"^(.*?) *: +(.+)$", summary, re.MULTILINE))
    late = int(figures["99.00 percentile latency (ns)"]) / 1000
    print(f"LoadGen, Server scenario: {figures['Result is']} at {options.rate:g} requests/s: completed {figures['Completed samples per second']} a second, "
          f"99 % within {late:.0f} us of {options.latency_ms * 1000:.0f}; {client.wrong} wrong answers")
    return 0 if figures["Result is"] == "VALID" and client.wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
