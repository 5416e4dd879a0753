#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vm-serve does where its machine or its clients fail, as docs/serving.md says it ("When something fails").

    hardships.py BUILD/bin [--connections 10000]      starts servers and hurts them; prints a line for each test

It needs nothing but Python.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from vm_server import server

TRIPLE = """.kernel add = "rewire.add"
.func main(x: f32[N, 4]) -> y: f32[N, 4]
  %shape = shape_of %x
  %bytes = load_consti 268435456
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %h = alloc_tensor_reg %storage, _, %shape, f32
  invoke_packed add(%x, %x, %h), outputs=1
  %last = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %last, _, %shape, f32
  invoke_packed add(%h, %x, %y), outputs=1
  ret %y
.end
"""
INFER = "/v2/models/triple/infer"


class Client:
    """One connection. An answer that does not come within a minute is an error."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        response = self.connection.getresponse()
        return response.status, response.read()

    def infer(self, rows=1):
        """The status, and whether the answer is right."""
        data = list(range(4 * rows))
        body = {"inputs": [{"name": "x", "shape": [rows, 4], "datatype": "FP32", "data": data}]}
        status, answer = self.ask("POST", INFER, json.dumps(body))
        return status, status == 200 and json.loads(answer)["outputs"][0]["data"] == [3 * x for x in data]

    def close(self):
        self.connection.close()


def served(address):
    client = Client(address)
    assert client.infer() == (200, True)
    client.close()


def metric(address, name):
    client = Client(address)
    text = client.ask("GET", "/metrics")[1].decode()
    client.close()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + "{"))


def pid_of(address):
    """The process that listens at a port of this machine."""
    port = f"{int(address.split(':')[1]):04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    inodes = {line.split()[9] for line in lines if line.split()[1].endswith(":" + port) and line.split()[3] == "0A"}
    for entry in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(entry)[len("socket:["):-1] in inodes:
                return int(entry.parts[2])
    raise AssertionError(f"nothing listens at {address}")


def resident(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def test_idle_connections_take_little_and_hold_up_nobody(binary, options):
    """Connections that have sent nothing, a part of a request, and a whole one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(options.connections, hard - 200)
    with server(binary, "triple.rwx") as address:
        pid, place = pid_of(address), (address.split(":")[0], int(address.split(":")[1]))
        served(address)
        before = resident(pid)
        idle = []
        for i in range(count):
            connection = socket.create_connection(place, timeout=60)
            if i % 3 == 1:
                connection.sendall(b"GET /v2/health/")
            if i % 3 == 2:
                connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
                assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            idle.append(connection)
        for _ in range(20):
            served(address)
        each = (resident(pid) - before) / count
        # The first and the last are still served.
        for connection in (idle[2], idle[(count // 3 - 1) * 3 + 2]):
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert each < 8192, each
        # SIGTERM ends the server although they are open: those without a request are closed.
        for connection in idle[1::3]:
            connection.close()
        print(f"  {count} connections, {each:.0f} bytes each", flush=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_beyond_the_limit_on_files_wait_until_others_go(binary, _):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    process = contextlib.ExitStack()
    try:
        address = process.enter_context(server(binary, "triple.rwx", "--loops", 1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with process:
        clients = [Client(address) for _ in range(100)]
        for client in clients:
            client.connection.connect()
        assert clients[0].infer() == (200, True)
        last = []
        waits = threading.Thread(target=lambda: last.append(clients[-1].infer()))
        waits.start()
        waits.join(1)
        assert waits.is_alive()
        for client in clients[:60]:
            client.close()
        waits.join(60)
        assert last == [(200, True)], last
        for client in clients[60:]:
            client.close()


def test_a_server_that_is_killed_takes_no_client_of_another_at_its_port(binary, _):
    """Processes that share a port are workers: the kernel gives each some of the connections."""
    with server(binary, "triple.rwx") as address:
        second = subprocess.Popen([str(binary / "vm-serve"), "--http", address, "triple.rwx"], stdout=subprocess.PIPE, text=True)
        assert second.stdout.readline().startswith("serving HTTP at ")
        try:
            first = pid_of(address)
            clients, ended = [Client(address) for _ in range(64)], 0
            for client in clients:
                assert client.infer() == (200, True)
            second.send_signal(signal.SIGKILL)
            assert second.wait() == -signal.SIGKILL
            for client in clients:
                try:
                    assert client.infer() == (200, True)
                except (ConnectionError, http.client.HTTPException):
                    ended += 1
            assert 0 < ended < len(clients), ended
            # All that come from now on are served, those that come back too.
            for client in clients:
                client.close()
                assert client.infer() == (200, True)
            assert pid_of(address) == first
            # Another worker takes the place of the one that has gone.
            third = subprocess.Popen([str(binary / "vm-serve"), "--http", address, "triple.rwx"], stdout=subprocess.PIPE, text=True)
            assert third.stdout.readline().startswith("serving HTTP at ")
            for _ in range(64):
                served(address)
            third.send_signal(signal.SIGTERM)
            assert third.wait(60) == 0
            served(address)
        finally:
            second.kill()


def test_a_full_disk_stops_the_log_and_the_traces_and_no_request(binary, _):
    command = [binary / "vm-serve", "--http", "127.0.0.1:0", "triple.rwx", "--log-file", "/dev/full", "--trace-file", "/dev/full"]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        client = Client(process.stdout.readline().split()[-1])
        assert client.ask("POST", "/v2/logging", '{"log_verbose_level": 1}')[0] == 200
        assert client.ask("POST", "/v2/trace/setting", '{"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}')[0] == 200
        for _ in range(2000):
            assert client.infer() == (200, True)
        assert json.loads(client.ask("GET", "/v2/trace/setting")[1])["trace_level"] == ["OFF"]
        client.close()
        # The end tells that the log is not whole.
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        code = process.wait(60)
        assert code != 0 and "the log cannot be written" in said and "No space left on device" in said, (code, said)


def test_what_there_is_no_memory_for_is_an_error_of_its_request(binary, _):
    with server(binary, "triple.rwx", "--max-body", "2G") as address:
        pid = pid_of(address)
        served(address)
        used = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
        other = Client(address)
        assert other.infer() == (200, True)
        for _ in range(3):
            large = Client(address)
            large.connection.putrequest("POST", INFER)
            large.connection.putheader("Content-Length", str(1 << 30))
            large.connection.putheader("Inference-Header-Content-Length", "10")
            large.connection.endheaders()
            response = large.connection.getresponse()
            assert response.status == 503 and b"memory" in response.read(), response.status
            large.close()
            assert other.infer() == (200, True)


def test_a_run_above_its_limit_of_memory_fails_alone(binary, _):
    # The value between the two sums has a storage of 256 MB.
    settings = 'models_in = ["triple.rwx"]\n[models.less]\nfile = "triple.rwx"\nmemory_bytes = 1000000\n'
    pathlib.Path("limits.toml").write_text(settings, encoding="utf-8")
    with server(binary, "--config", "limits.toml") as address:
        client, other = Client(address), Client(address)
        body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})
        for _ in range(3):
            status, answer = client.ask("POST", "/v2/models/less/infer", body)
            assert status == 503 and b"of the limit of 1000000 are in use" in answer, answer
            assert other.infer() == (200, True)
            assert client.infer(1000) == (200, True)


def test_connections_that_are_reset_hurt_no_other(binary, _):
    with server(binary, "triple.rwx") as address:
        place = (address.split(":")[0], int(address.split(":")[1]))
        other = Client(address)
        body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})
        request = f"POST {INFER} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        for i in range(3000):
            connection = socket.create_connection(place, timeout=60)
            # Close sends a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(request[:i % (len(request) + 1)] if i % 2 else request)
            connection.close()
            if i % 100 == 0:
                assert other.infer() == (200, True)
        end = time.monotonic() + 60
        while metric(address, "rewire_requests_waiting") and time.monotonic() < end:
            time.sleep(0.05)
        assert metric(address, "rewire_requests_waiting") == 0
        assert other.infer() == (200, True)


def test_two_hundred_reloads_under_load_fail_no_request(binary, _):
    with server(binary, "triple.rwx", "--let-clients-load") as address:
        wrong, made, ends = [], [], threading.Event()

        def ask():
            client = Client(address)
            while not ends.is_set():
                answer = client.infer()
                made.append(1)
                if answer != (200, True):
                    wrong.append(answer)
            client.close()

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        loader = Client(address)
        for _ in range(200):
            assert loader.ask("POST", "/v2/repository/models/triple/load", "{}")[0] == 200
        ends.set()
        for client in clients:
            client.join()
        assert not wrong and len(made) > 200, (wrong[:3], len(made))


def test_a_client_that_sends_byte_by_byte_holds_up_nobody(binary, _):
    with server(binary, "triple.rwx", "--loops", 1, "--instances", 1) as address:
        place = (address.split(":")[0], int(address.split(":")[1]))
        slow = [socket.create_connection(place, timeout=60) for _ in range(50)]
        request = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"
        other = Client(address)
        for byte in request:
            for connection in slow:
                connection.sendall(bytes([byte]))
            assert other.infer() == (200, True)
        for connection in slow:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--connections", type=int, default=10000, help="that are idle at once, if the limit on files allows it")
    options = parser.parse_args()
    binary = options.bin.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("triple.asm").write_text(TRIPLE, encoding="utf-8")
        subprocess.run([binary / "vm-as", "triple.asm"], check=True)
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(binary, options)
                print("ok", name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
