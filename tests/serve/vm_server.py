# SPDX-License-Identifier: Apache-2.0
"""A vm-serve for tests in Python."""
import contextlib
import signal
import subprocess


@contextlib.contextmanager
def server(binary, *arguments):
    """A server at a free port; ended by SIGTERM, which must be a success."""
    command = [str(binary / "vm-serve"), "--http", "127.0.0.1:0", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("serving HTTP at "), line
        yield line.split()[-1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
