#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-serve with a tiny model beside Triton's server with a backend that computes nothing, and integrations/triton beside that backend.

    serve_beside_triton.py BUILD [--rounds N] [--seconds S] [--busy-poll US] [--json FILE]

The server has one core and the load generator another one, both by real-time priority, in slices of S seconds with as long a pause behind
each. h2load makes the closed loops (requests a second, and the server's CPU time for one). At half of Triton's rate, vm-bench makes Poisson
arrivals, by four threads, and h2load requests at a fixed rate over 16 connections, all of them at once. Triton gets the number of threads and the batching with which it is fastest; they are tried first. A backend that times
another one measures executions inside Triton. A second vm-serve polls for --busy-poll microseconds before it sleeps. Figures are medians of the rounds, and so are ratios and differences, each within one round.

Runs in the environment of tests/integrations/requirements/triton.txt; needs h2load (third_party/install.sh load).
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import triton_server  # noqa: E402
from free_port import free_port  # noqa: E402
from tiny_mlp import X, mlp  # noqa: E402

SERVER = ["chrt", "-r", "1", "taskset", "-c", "0"]
CLIENT = ["chrt", "-r", "1", "taskset", "-c", "1"]
EMPTY = """backend: "empty"
max_batch_size: {rows}
input {{ name: "x" data_type: TYPE_FP32 dims: [{given} ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [{taken} ] }}
"""


def write_models(build, folder):
    """Triton's repository; vm-serve serves the folder of the model `mlp` in it."""
    (folder / "mlp.asm").write_text(mlp(), encoding="utf-8")
    subprocess.run([build / "bin/vm-as", "mlp.asm"], cwd=folder, check=True)
    configs = {
        "mlp": 'backend: "rewire"\n',
        "empty": EMPTY.format(rows=0, given=" 1, 64", taken=" 1, 10"),
        "empty_batched": EMPTY.format(rows=64, given=" 64", taken=" 10") + "dynamic_batching { }\n",
    }
    for name, config in configs.items():
        version = folder / "models" / name / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(config, encoding="utf-8")
    (folder / "mlp.rwx").rename(folder / "models/mlp/1/model.rwx")


class VmServe:
    """vm-serve with the interface of triton_server.Server."""

    def __init__(self, process, addresses):
        self.process = process
        self.addresses = addresses

    def address(self, kind):
        return self.addresses[kind]

    cpu_seconds = triton_server.Server.cpu_seconds


@contextlib.contextmanager
def vm_serve(build, folder, *options):
    addresses = {kind: f"127.0.0.1:{free_port()}" for kind in ("http", "grpc")}
    command = [*SERVER, build / "bin/vm-serve", folder / "models/mlp/1/model.rwx", "--loops=1", f"--http={addresses['http']}",
               f"--grpc={addresses['grpc']}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().startswith("serving HTTP")
            yield VmServe(process, addresses)
        finally:
            process.terminate()


class Load:
    """Requests for f32[1, 64] by both protocols, as files for h2load."""

    def __init__(self, folder, build, seconds):
        self.folder = folder
        self.build = build
        self.seconds = seconds
        np.save(folder / "x.npy", X.reshape(1, 64))

    def pause(self):
        time.sleep(self.seconds)

    def target(self, server, kind, model):
        """The arguments of h2load for a model."""
        body = self.folder / f"{kind}-{model}"
        if kind == "http":
            head = json.dumps({"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": 256}}],
                               "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
            body.write_bytes(head + X.tobytes())
            return ["--h1", "-d", body, "-H", f"Inference-Header-Content-Length: {len(head)}",
                    f"http://{server.address(kind)}/v2/models/{model}/infer"]
        request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[X.tobytes()])
        request.inputs.add(name="x", datatype="FP32", shape=[1, 64])
        message = request.SerializeToString()
        body.write_bytes(b"\0" + struct.pack(">I", len(message)) + message)
        return ["-m", "1", "-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers",
                f"http://{server.address(kind)}/inference.GRPCInferenceService/ModelInfer"]

    def closed(self, server, kind, model, clients, seconds=None):
        """Requests a second, and microseconds of the server's CPU for one."""
        command = [*CLIENT, "h2load", "-t", "1", "-c", str(clients), "-D", str(seconds or self.seconds), *self.target(server, kind, model)]
        before = server.cpu_seconds()
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        used = server.cpu_seconds() - before
        rate = float(re.search(r"finished in .*?, ([\d.]+) req/s", text)[1])
        done, failed = (int(re.search(rf"(\d+) {word}", text)[1]) for word in ("succeeded", "failed"))
        if failed or not done:
            raise RuntimeError(f"{kind} {model}: {text}")
        return {"per_second": rate, "cpu_us": used / done * 1e6}

    def open(self, server, kind, model, rate):
        """p50 and p99 in microseconds, from the time at which a request is to be made."""
        command = [*CLIENT, self.build / "bin/vm-bench", f"{kind}://{server.address(kind)}/{model}", "--json", "--clients=4",
                   "--input", f"x=@{self.folder / 'x.npy'}", "--rate", str(round(rate)), "--duration", f"{self.seconds}s"]
        (found,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["loads"]
        if found["failed"]:
            raise RuntimeError(f"{kind} {model}: {found}")
        return {name: found["latency_ns"][name] / 1000 for name in ("p50", "p99")}

    def together(self, server, kind, model, rate):
        """p50 and p99 in microseconds, of requests that come over 16 connections at once."""
        log = self.folder / "latencies"
        log.unlink(missing_ok=True)
        command = [*CLIENT, "h2load", "-t", "1", "-c", "16", "--rps", str(rate / 16), "-D", str(self.seconds), f"--log-file={log}"]
        subprocess.run([*command, *self.target(server, kind, model)], capture_output=True, check=True)
        sorted_us = sorted(int(line.split("\t")[2]) for line in log.read_text(encoding="utf-8").splitlines())
        return {name: sorted_us[int(len(sorted_us) * part)] for name, part in (("p50", 0.5), ("p99", 0.99))}

    def check(self, server, kind, model):
        """The model answers: h2load does not look at gRPC's status, and fails for HTTP's by itself."""
        if kind == "grpc":
            given = triton.InferInput("x", [1, 64], "FP32")
            given.set_data_from_numpy(X.reshape(1, 64))
            with triton.InferenceServerClient(server.address(kind)) as client:
                assert client.infer(model, [given]).as_numpy("y").shape == (1, 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--busy-poll", type=int, default=50)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        write_models(build, folder)
        load = Load(folder, build, options.seconds)
        ours = {"vm-serve": stack.enter_context(vm_serve(build, folder)),
                "polling": stack.enter_context(vm_serve(build, folder, f"--busy-poll={options.busy_poll}"))}
        # Each number of threads is a server. Only one of all has work at a time.
        servers = {threads: stack.enter_context(triton_server.started(
            folder / "models", build / "lib/triton", folder / f"log{threads}", f"--http-thread-count={threads}", prefix=SERVER))
            for threads in (1, 2, 8)}
        figures = {}
        for kind in ("http", "grpc"):
            figures[kind] = measured(load, kind, ours, servers, options.rounds)
            figures[kind]["executions"] = [executions(load, build, folder / f"timed{number}", kind) for number in range(options.rounds)]
            for line in lines(kind, figures[kind]):
                print(line, flush=True)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def executions(load, build, folder, kind):
    """Nanoseconds of an execution by the empty backend and by ours, and of a run in ours, all inside Triton: one client, medians and a mean.

    `added`: what ours takes beyond the empty one and the run.
    """
    found = {}
    for name, library in (("empty", "empty/libtriton_empty.so"), ("mlp", "rewire/libtriton_rewire.so")):
        models = folder / f"timed_{kind}_{name}"
        shutil.copytree(load.folder / "models" / name, models / name)
        config = models / name / "config.pbtxt"
        config.write_text(re.sub('backend: ".*"', 'backend: "timed"', config.read_text(encoding="utf-8")), encoding="utf-8")
        with triton_server.started(models, build / "lib/triton", models / "log", "--http-thread-count=1", prefix=SERVER,
                                   environment={"REWIRE_TIMED_BACKEND": str(build / "lib/triton" / library)}) as server:
            load.closed(server, kind, name, 1, 2)
            with urllib.request.urlopen(f"http://{server.address('http')}/v2/models/{name}/stats") as answer:
                run = json.load(answer)["model_stats"][0]["inference_stats"]["compute_infer"]
        found[name] = int(re.search(r"median (\d+) ns", server.log.read_text(encoding="utf-8"))[1])
        if name == "mlp":
            found["run"] = run["ns"] / run["count"]
    return {**found, "added": found["mlp"] - found["empty"] - found["run"]}


def measured(load, kind, ours, servers, rounds):
    tried = {}
    for threads, server in servers.items():
        for model in ("empty", "empty_batched"):
            load.check(server, kind, model)
            load.closed(server, kind, model, 16, 1)
            load.pause()
            tried[f"{model}, {threads} threads"] = max((load.closed(server, kind, model, clients, 1)["per_second"], clients, threads, model)
                                                        for clients in (16, 64))
            load.pause()
    for server in ours.values():
        load.check(server, kind, "model")
    tried_rate, clients, threads, model = max(tried.values())
    fastest = servers[threads]
    load.check(fastest, kind, "mlp")
    load.closed(fastest, kind, "mlp", clients, 1)
    setting = f"{threads} threads of HTTP, {clients} clients, batching {'on' if model == 'empty_batched' else 'off'}"
    found = {"tried": {name: row[0] for name, row in tried.items()}, "triton_setting": setting}
    runs = {**{name: (server, "model") for name, server in ours.items()}, "empty": (fastest, model), "backend": (fastest, "mlp")}
    rounds_of = {name: [] for name in runs}
    rate = tried_rate / 2
    for _ in range(rounds):
        for name, (server, served) in runs.items():
            row = {"alone": load.closed(server, kind, served, 1)}
            load.pause()
            row["full"] = load.closed(server, kind, served, clients)
            load.pause()
            row["poisson"] = load.open(server, kind, served, rate)
            load.pause()
            row["together"] = load.together(server, kind, served, rate)
            load.pause()
            rounds_of[name].append(row)
    for name, rows in rounds_of.items():
        found[name] = {part: {key: statistics.median(row[part][key] for row in rows) for key in rows[0][part]} for part in rows[0]}
    return {**found, "rounds": rounds_of, "half_rate": rate}


def lines(kind, found):
    """The figures as the rows of a table, and what compares them."""
    yield f"{kind}: Triton is fastest with {found['triton_setting']}; p50 and p99 at {found['half_rate']:.0f} requests/s, half of what it does then"
    yield "| server | requests/s | us of CPU a request | requests/s of one client | us of CPU | Poisson: p50 us | p99 us | at once: p50 us | p99 us |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    names = {"vm-serve": "vm-serve, MLP 64-64-10", "polling": "the same, which polls", "empty": "Triton, an empty backend", "backend": "Triton, Rewire's backend, MLP 64-64-10"}
    for name in names:
        parts = [number for part in ("full", "alone", "poisson", "together") for number in found[name][part].values()]
        yield f"| {names[name]} | " + " | ".join(f"{number:,.0f}" if number > 1000 else f"{number:.1f}" for number in parts) + " |"
    rounds = found["rounds"]

    def compared(ours, part, key, how):
        """The median over the rounds, and the range, of a figure of ours by that of the empty backend."""
        each = [how(mine[part][key], empty[part][key]) for mine, empty in zip(rounds[ours], rounds["empty"])]
        return f"{statistics.median(each):.2f} ({min(each):.2f} .. {max(each):.2f})"

    for part, key, what in (("full", "per_second", "requests/s"), ("poisson", "p99", "p99, Poisson"), ("together", "p99", "p99, at once")):
        by = {name: compared(name, part, key, lambda ours, empty: ours / empty) for name in ("vm-serve", "polling")}
        yield f"{kind}: vm-serve's {what} by Triton's: {by['vm-serve']}; if it polls: {by['polling']}"
    each = [row["added"] / 1000 for row in found["executions"]]
    parts = [statistics.median(row[key] / 1000 for row in found["executions"]) for key in ("mlp", "empty", "run")]
    yield (f"{kind}: an execution takes {parts[0]:.1f} us in the backend, {parts[1]:.1f} in the empty one, and a run {parts[2]:.1f}: "
           f"beyond both, {statistics.median(each):.1f} us ({min(each):.1f} .. {max(each):.1f})")


if __name__ == "__main__":
    main()
