# SPDX-License-Identifier: Apache-2.0
"""Models on a server."""

from __future__ import annotations

from rewire._native import _rewire
from rewire.program import Program


def connect(url: str, *, timeout: float = 10.0) -> Program:
    """Makes a Program of a model on a server of the Open Inference Protocol v2, such as vm-serve, Triton or KServe.

        program = rewire.connect("grpc://localhost:8001/ranker")
        scores = program({"x": x})["scores"]

    `url` is grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL, with /VERSION behind it for one version, and by TLS
    grpcs:// or https://. With
    `?shared_memory` at its end, server and client are on one machine, and outputs lie in memory that both see. Everything
    works as with a local program. Results are received straight into the arrays that `out` gives. Each call that runs at
    the same time as others has a connection of its own.

    `timeout` is in seconds, for connecting and for asking what the inputs and outputs are. A program is pickled as its URL.
    Raises InvalidArgumentError for another URL, NotFoundError if there is no such host or model, IoError if the server does
    not answer, DeadlineExceededError, and UnsupportedError for a model of which no program can be made. Errors of the
    server in a call are KernelError.
    """
    made = Program(_rewire._connect(url, timeout))
    made._made_by = _connect_again, (url, timeout)
    return made


def _connect_again(url: str, timeout: float) -> Program:
    return connect(url, timeout=timeout)
