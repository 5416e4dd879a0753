# SPDX-License-Identifier: Apache-2.0
"""Compiling ONNX models."""

import os
from dataclasses import dataclass
from typing import Optional

from rewire import errors
from rewire._native import _rewire


@dataclass(frozen=True)
class UnsupportedNode:
    """A node of the model that cannot be compiled, and why."""

    node: str
    op_type: str
    domain: str
    opset: int
    reason: str

    def __str__(self):
        domain = f"{self.domain}." if self.domain else ""
        return f"{self.node} ({domain}{self.op_type}, opset {self.opset}): {self.reason}"


@dataclass(frozen=True)
class CompileReport:
    """What compiling made of a model. Sizes are bytes."""

    model_nodes: int
    nodes: int
    kernel_calls: int
    kernels: int
    constants: int
    constant_bytes: int
    arena_bytes: int
    separate_bytes: int
    memory_bytes: Optional[int]
    """What one run takes at most beside weights and outputs; None if `unbounded` says why there is no bound."""
    unbounded: str
    seconds: float


@dataclass(frozen=True)
class Compilation:
    """A compiled model: `executable` for `rewire.load`, and the `report`."""

    executable: _rewire.Executable
    report: CompileReport


def compile(model, output=None, *, dims=None, max_dims=None, disable_passes=(), external_data=None, external_folders=(),
            progress=None):
    """Compiles an ONNX model, and writes the executable to `output` if that is given.

    `model` is a path, the bytes of a model, or an onnx.ModelProto. `dims` fixes symbolic dimensions ({"batch": 4});
    `max_dims` sets their largest size, beyond which inputs are refused. `external_data` is the folder that weights outside
    of the bytes lie in; for a path it is the model's folder. Links in it may lead to `external_folders`, such as a hub's
    cache. `progress` is called with what begins.

    Returns a Compilation. Raises UnsupportedError with the list `unsupported`, NotFoundError, InvalidFileError,
    InvalidArgumentError for a wrong dimension or pass. The GIL is not held, and several threads may compile at once.
    """
    name = "model"
    if hasattr(model, "SerializeToString"):
        name = getattr(getattr(model, "graph", None), "name", "") or name
        source = model.SerializeToString()
    elif isinstance(model, str) or hasattr(model, "__fspath__"):
        source = os.fsdecode(model)
    else:
        source = model
    folder = "" if external_data is None else os.fsdecode(external_data)
    made, report, message = _rewire._compile(
        source, folder, name, dict(dims or {}), dict(max_dims or {}), set(disable_passes),
        [os.fsdecode(path) for path in external_folders], progress)
    if made is None:
        nodes = [UnsupportedNode(*row) for row in report]
        error = errors.UnsupportedError("\n".join([message, *(f"  {node}" for node in nodes)]))
        error.unsupported = nodes
        raise error
    if output is not None:
        made.save(output)
    return Compilation(made, CompileReport(**report))
