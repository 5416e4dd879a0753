#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Millions of requests to one vm-serve, whose memory must stay flat.

    soak.py BUILD/bin [--requests 200000] [--clients 16]      20000000 for the long form

In each of 20 rounds, vm-bench asks over HTTP and gRPC as fast as there are answers. Besides, in each round 200 clients come and go, among them some
that send nonsense, some that close their connection in the middle of a request, and some whose sequences and generations nobody ends; and
the model is loaded again. The memory of the process behind the last rounds may be no more than a mebibyte above that behind the fifth.

It needs nothing but Python.
"""
import argparse
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402
from hardships import INFER, TRIPLE, Client, pid_of, resident  # noqa: E402
from vm_server import server  # noqa: E402

SUM = """.kernel add = "rewire.add"
.func main(x: f32[1, 4], past: f32[1, 4]) -> present: f32[1, 4]
  %a = alloc_storage _, alignment=64, f32[1, 4], cpu
  %present = alloc_tensor %a, _, f32[1, 4]
  invoke_packed add(%x, %past, %present), outputs=1
  ret %present
.end
"""
SETTINGS = """models_in = ["triple.rwx", "sum.rwx"]
[server]
let_clients_load = true
[models.triple.batching]
max_batch_size = 16
[models.sum.sequence]
state = {present = "past"}
max_sequences = 100
"""
ROUNDS, SETTLED = 20, 5
SLACK = 1 << 20


def load(binary, url, requests, clients):
    """How many requests vm-bench has made; none may fail."""
    made, seconds = 0, 1
    while made < requests:
        command = [str(binary / "vm-bench"), url, "--clients", str(clients), "--duration", f"{seconds}s", "--dim", "N=1", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        now = sum(int(count) for count in re.findall(r'"succeeded": *(\d+)', done.stdout))
        assert now > 0, done.stdout
        made += now
        seconds = max(1, min(60, int((requests - made) * seconds / now)))
    return made


def come_and_go(address, number):
    place = (address.split(":")[0], int(address.split(":")[1]))
    body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})
    request = f"POST {INFER} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    for i in range(200):
        if i % 4 == 0:
            with socket.create_connection(place, timeout=60) as connection:
                connection.sendall(request[:i * len(request) // 200])
        elif i % 4 == 1:
            client = Client(address)
            assert client.ask("POST", INFER, body[:-i % len(body)])[0] in (200, 400)
            client.close()
        else:
            client = Client(address)
            step = {"sequence_id": number * 1000 + i, "sequence_start": True}
            inputs = [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [i, i, i, i]}]
            assert client.ask("POST", "/v2/models/sum/infer", json.dumps({"inputs": inputs, "parameters": step}))[0] == 200
            client.close()
    client = Client(address)
    for model in ("triple", "sum"):
        assert client.ask("POST", f"/v2/repository/models/{model}/load", "{}")[0] == 200
    client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=200000)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    binary = options.bin.resolve()
    each = options.requests // ROUNDS // 2
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in (("triple", TRIPLE), ("sum", SUM)):
            pathlib.Path(f"{name}.asm").write_text(text, encoding="utf-8")
            subprocess.run([binary / "vm-as", f"{name}.asm"], check=True)
        pathlib.Path("serve.toml").write_text(SETTINGS, encoding="utf-8")
        made, memory, grpc = 0, [], f"127.0.0.1:{free_port()}"
        with server(binary, "--config", "serve.toml", "--grpc", grpc) as address:
            pid = pid_of(address)
            for number in range(ROUNDS):
                made += load(binary, f"http://{address}/triple", each, options.clients)
                made += load(binary, f"grpc://{grpc}/triple", each, options.clients)
                come_and_go(address, number)
                memory.append(resident(pid))
    settled, last = memory[SETTLED - 1], min(memory[-3:])
    print(f"{made} requests, none failed: {settled / 1e6:.1f} MB behind round {SETTLED}, {last / 1e6:.1f} MB at the end")
    if last > settled + SLACK:
        print("the memory grows: " + " ".join(f"{one / 1e6:.1f}" for one in memory))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
