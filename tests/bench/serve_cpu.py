#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's CPU time for a request of a tiny model: over HTTP with binary tensors, over gRPC, and with tensors in shared memory.

    serve_cpu.py BUILD [--rounds 5] [--seconds 2] [--clients 1,64] [--busy-poll US] [--json FILE]

It is the user's and the system's time of the server's process, over the requests that were answered. The server has one core, and h2load, as a closed
loop, another one, both by real-time priority, in slices with as long a pause behind each. Each round measures all forms with each number of clients, in
turn. Figures are medians of the rounds.

With one client it also tells how long a request takes end to end. `--busy-poll US` is vm-serve's.

Runs in the environment of tests/serve/requirements/openai.txt; needs h2load (third_party/install.sh load).
"""
import contextlib
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import time
import urllib.request

from pinned_server import OF_CLIENTS, give_priority, new_folder, options_of, pinned_server

from free_port import free_port
from hardships import pid_of
from tiny_mlp import X, mlp

X_BYTES, Y_BYTES = X.nbytes, 40


def field(number, value):
    """Of protobuf: a text, bytes or a message of less than 16 KB."""
    value = value.encode() if isinstance(value, str) else value
    size = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 127 | 128, len(value) >> 7])
    return bytes([number << 3 | 2]) + size + value


def binary_request():
    head = json.dumps({"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": X_BYTES}}],
                       "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
    return head + X.tobytes(), ["-H", f"Inference-Header-Content-Length: {len(head)}"]


def shared_request():
    def place(offset, size):
        return {"shared_memory_region": "cpu", "shared_memory_offset": offset, "shared_memory_byte_size": size}

    asked = {"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": place(0, X_BYTES)}],
             "outputs": [{"name": "y", "parameters": place(X_BYTES, Y_BYTES)}]}
    return json.dumps(asked, separators=(",", ":")).encode(), []


def grpc_request():
    tensor = field(1, "x") + field(2, "FP32") + field(3, bytes([1, 64]))
    message = field(1, "mlp") + field(5, tensor) + field(7, X.tobytes())
    return b"\0" + struct.pack(">I", len(message)) + message, ["-m", "1", "-H", "content-type: application/grpc", "-H", "te: trailers"]


@contextlib.contextmanager
def shared_region(address):
    """A region of shared memory with the input, which the server knows."""
    key = f"rewire_bench_{os.getpid()}"
    path = pathlib.Path("/dev/shm") / key
    path.write_bytes(X.tobytes() + bytes(Y_BYTES))
    try:
        asked = json.dumps({"key": f"/{key}", "offset": 0, "byte_size": X_BYTES + Y_BYTES}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}/v2/systemsharedmemory/region/cpu/register", asked)):
            yield path
    finally:
        path.unlink()


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(pid, url, form, clients, seconds):
    """Microseconds of the server's CPU for a request, and requests a second."""
    body, options = form
    pathlib.Path("body").write_bytes(body)
    protocol = [] if "ModelInfer" in url else ["--h1"]
    log = pathlib.Path("latencies")
    log.unlink(missing_ok=True)
    if clients == 1:
        options = [*options, f"--log-file={log}"]
    command = ["chrt", "-r", "1", "taskset", "-c", str(OF_CLIENTS), "h2load", "-t", "1", "-c", str(clients), "-D", str(seconds), "-d", "body", *protocol, *options, url]
    before = cpu_seconds(pid)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pid) - before
    time.sleep(seconds)
    done, failed = (int(re.search(rf"(\d+) {word}", text)[1]) for word in ("succeeded", "failed"))
    if failed or not done:
        raise RuntimeError(text)
    found = {"cpu_us": used / done * 1e6, "per_second": done / seconds}
    if clients == 1:
        found["median_us"] = statistics.median(int(line.split("\t")[2]) for line in log.read_text(encoding="utf-8").splitlines())
    return found


def answered(address):
    """How many requests the server has answered with success."""
    with urllib.request.urlopen(f"http://{address}/v2/models/mlp/stats") as response:
        statistics_of = json.load(response)["model_stats"][0]["inference_stats"]
    return statistics_of["success"]["count"], statistics_of["fail"]["count"]


def main():
    options = options_of(__doc__, 5, lambda parser: (
        parser.add_argument("--seconds", type=int, default=2),
        parser.add_argument("--busy-poll", type=int),
        parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 64])))
    json_path = options.json.resolve() if options.json else None
    with new_folder(), contextlib.ExitStack() as stack:
        pathlib.Path("mlp.asm").write_text(mlp(), encoding="utf-8")
        subprocess.run([options.build / "bin/vm-as", "mlp.asm"], check=True, stdout=subprocess.DEVNULL)
        grpc = f"127.0.0.1:{free_port()}"
        address = stack.enter_context(pinned_server(options.build, "mlp.rwx", "--grpc", grpc, "--loops", 1,
                                                    *(["--busy-poll", options.busy_poll] if options.busy_poll else [])))
        pid = pid_of(address)
        give_priority(address)
        region = stack.enter_context(shared_region(address))
        infer = f"http://{address}/v2/models/mlp/infer"
        forms = {"HTTP, binary": (infer, binary_request()), "HTTP, shared memory": (infer, shared_request()),
                 "gRPC": (f"http://{grpc}/inference.GRPCInferenceService/ModelInfer", grpc_request())}
        rounds = [{name: {clients: measured(pid, url, form, clients, options.seconds) for clients in options.clients}
                   for name, (url, form) in forms.items()} for _ in range(options.rounds)]
        succeeded, failed = answered(address)
        # h2load does not look at gRPC's status.
        if failed or not succeeded:
            sys.exit(f"{failed} requests have failed")
        if not any(region.read_bytes()[X_BYTES:]):
            sys.exit("no output has come into the region")
    for name in forms:
        for clients in options.clients:
            each = [row[name][clients]["cpu_us"] for row in rounds]
            rate = statistics.median(row[name][clients]["per_second"] for row in rounds)
            print(f"{name}, {clients} clients: {statistics.median(each):.1f} us of CPU a request ({min(each):.1f} to {max(each):.1f}), {rate:.0f} requests/s"
                  + (f", median end to end {statistics.median(row[name][1]['median_us'] for row in rounds):.0f} us" if clients == 1 else ""))
    if json_path:
        json_path.write_text(json.dumps(rounds, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
