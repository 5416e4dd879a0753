# SPDX-License-Identifier: Apache-2.0
"""Triton's server, as nvidia-pytriton brings it along, as a process of a test or a benchmark."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request

from free_port import free_port

# The package is not imported: its Python asks for far more than its server.
BINARY = pathlib.Path(sysconfig.get_path("purelib")) / "pytriton/tritonserver/bin/tritonserver"


class Server:
    """A running server. `address(kind)` is that of "http" or "grpc"."""

    def __init__(self, process, ports, log):
        self.process = process
        self.ports = ports
        self.log = log

    def address(self, kind):
        return f"127.0.0.1:{self.ports[kind]}"

    def resident_bytes(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers(address):
    try:
        with urllib.request.urlopen(f"http://{address}/v2/health/live", timeout=10) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextlib.contextmanager
def started(repository, backends, log, *arguments, prefix=(), environment=None):
    """Starts a server over a repository of models and a folder of backends. It must end well when it is told to."""
    ports = {kind: free_port() for kind in ("http", "grpc")}
    command = [*prefix, BINARY, f"--model-repository={repository}", f"--backend-directory={backends}", "--allow-metrics=false"]
    for kind, port in ports.items():
        command += [f"--{kind}-port={port}", f"--{kind}-address=127.0.0.1"]
    variables = {**os.environ, "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "", **(environment or {})}
    with open(log, "w", encoding="utf-8") as to:
        process = subprocess.Popen([*command, *arguments], stdout=to, stderr=subprocess.STDOUT, env=variables)
    try:
        server = Server(process, ports, pathlib.Path(log))
        end = time.monotonic() + 300
        while not answers(server.address("http")):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{server.log.read_text(encoding='utf-8')}")
            time.sleep(0.1)
        yield server
        process.send_signal(signal.SIGTERM)
        status = process.wait(120)
        if status != 0:
            raise RuntimeError(f"the server ended with {status}:\n{server.log.read_text(encoding='utf-8')}")
    finally:
        process.kill()
        process.wait()
