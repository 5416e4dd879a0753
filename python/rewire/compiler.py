# SPDX-License-Identifier: Apache-2.0
"""Compiling ONNX models."""

import difflib
import os
from dataclasses import dataclass
from typing import Optional, Tuple

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


_PRECISIONS = ("model", "int8", "bf16")


@dataclass(frozen=True)
class ProductPrecision:
    """A convolution, product or recurrent layer of the float model with constant weights."""

    node: str
    """Operator and name: "Conv 'conv1'"."""
    quantized: bool
    """It computes with the precision that was asked for."""
    noise: float
    """How far its own output is from that of the float node for the same input: the L2 norm of the differences by that
    of the output; NaN if that was not measured."""
    reason: str
    """Why it is float32; empty if it is quantized."""


@dataclass(frozen=True)
class OutputMovement:
    """How far an output of float32 moved from the float model's, over all samples."""

    output: str
    max_abs: float
    """The largest difference of an element; infinite if only one of the two is a number."""
    relative: float
    """The L2 norm of all differences by that of the float output."""


@dataclass(frozen=True)
class HostCalls:
    """Calls of a kernel that stay on the CPU in a model that was compiled for a device."""

    kernel: str
    reason: str
    calls: int


@dataclass(frozen=True)
class ZeroedWeights:
    """Subnormal weights of a constant that the pass tiny-weights has made 0."""

    constant: str
    node: str
    """The first node that multiplies by them: "Conv 'conv1'"."""
    count: int


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
    device_arena_bytes: int
    device_separate_bytes: int
    memory_bytes: Optional[int]
    """What one run takes at most beside weights and outputs; None if `unbounded` says why there is no bound."""
    unbounded: str
    quantized: int
    """How many of the `products` compute with precision "int8" or "bf16"."""
    products: Tuple[ProductPrecision, ...]
    movement: Tuple[OutputMovement, ...]
    unmeasured: str
    """Why `movement` is not known: with precision "bf16" and no samples, a model may not run with random inputs."""
    device_calls: int
    """Kernel calls that run on the device that the model was compiled for."""
    host_calls: Tuple[HostCalls, ...]
    zeroed_weights: Tuple[ZeroedWeights, ...]
    seconds: float


@dataclass(frozen=True)
class Compilation:
    """A compiled model: `executable` for `rewire.load`, and the `report`."""

    executable: _rewire.Executable
    report: CompileReport


def compile(model, output=None, *, dims=None, max_dims=None, disable_passes=(), external_data=None, external_folders=(),
            progress=None, precision="model", calibrate=None, calibration="least-squares", max_error=0.05, keep_float=(),
            device="cpu", device_work=100000, parallel="auto", cpu="native", compress=True,
            check_passes=False, strict=False):
    """Compiles an ONNX model, and writes the executable to `output` if that is given.

    `model` is a path, the bytes of a model, or an onnx.ModelProto. `dims` fixes symbolic dimensions ({"batch": 4});
    `max_dims` sets their largest size, beyond which inputs are refused. `external_data` is the folder that weights outside
    of the bytes lie in; for a path it is the model's folder. Links in it may lead to the folder that the model itself lies
    in after links are followed, as in a hub's cache, and to `external_folders`. `progress` is called with what begins.

    `precision="int8"` quantizes a float model by samples. `calibrate` is a dict with an array for each input; with one axis
    more than the input, its first axis counts samples, and any other array is part of every sample. It may be a list of such
    dicts, for samples of several sizes. `calibration` says how ranges follow: "least-squares" and "entropy" may cut rare
    large values off, "min-max" takes all.

    No output moves by more than `max_error` on the samples, in parts of its L2 norm; as many nodes as needed stay float.
    math.inf sets no limit. `keep_float` are names of nodes that stay float in any case. The report says what was quantized,
    and how far each output moved.

    `precision="bf16"` computes convolutions and products with constant weights in bf16, with sums in float32. Such weights take
    half of the memory. The report says how far each output moved on the samples of `calibrate`, or else on random inputs.
    `cpu` is the CPU for which it is chosen how convolutions are computed: "vectors" has AVX512-BF16, "tiles" has AMX, "native"
    is the machine at hand. Programs run on every CPU.

    `device` is "opencl" or "cuda", with a number as in "opencl:1": nodes run there if it has kernels for them. Nodes that hang
    together must compute at least `device_work` elements for that. The report says which kernel calls stay on the CPU, and why.

    With `parallel="auto"` small operators that do not depend on each other run at once, where that is faster on several
    threads; "off" runs all one by one. Results are the same.

    With `compress` the file's code and tables are compressed, where that makes it at least 1/64 smaller. A library that was
    built without zstd cannot open such a file.

    `check_passes` checks the program after each pass, so that a fault of the compiler is an error that names the pass.

    `strict` leaves out each pass that may change more of a result than the order of its sums, so that NaN, infinities and
    overflows are those of the model's operators one by one. It needs the CPU and the model's own precision.

    Returns a Compilation. Raises UnsupportedError with the list `unsupported`, NotFoundError, InvalidFileError,
    InvalidArgumentError for a wrong dimension, pass or calibration. The GIL is not held, and several threads may compile at once.
    """
    name = "model"
    if hasattr(model, "SerializeToString"):
        name = getattr(getattr(model, "graph", None), "name", "") or name
        source = model.SerializeToString()
    elif isinstance(model, str) or hasattr(model, "__fspath__"):
        source = os.fsdecode(model)
    else:
        source = model
    if precision not in _PRECISIONS:
        near = difflib.get_close_matches(str(precision), _PRECISIONS, 1, 0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise errors.InvalidArgumentError(f"precision is {precision!r}, expected 'model', 'int8' or 'bf16'{hint}")
    if parallel not in ("auto", "off"):
        raise errors.InvalidArgumentError(f"parallel is {parallel!r}, expected 'auto' or 'off'")
    if cpu not in ("native", "vectors", "tiles"):
        raise errors.InvalidArgumentError(f"cpu is {cpu!r}, expected 'native', 'vectors' or 'tiles'")
    data = [dict(calibrate)] if hasattr(calibrate, "keys") else [dict(one) for one in calibrate or ()]
    folder = "" if external_data is None else os.fsdecode(external_data)
    made, report, message = _rewire._compile(
        source, folder, name, dict(dims or {}), dict(max_dims or {}), set(disable_passes),
        [os.fsdecode(path) for path in external_folders], precision, data, calibration, max_error, set(keep_float), device,
        device_work, parallel == "auto", cpu, bool(compress), bool(check_passes), bool(strict), progress)
    if made is None:
        nodes = [UnsupportedNode(*row) for row in report]
        error = errors.UnsupportedError("\n".join([message, *(f"  {node}" for node in nodes)]))
        error.unsupported = nodes
        raise error
    if output is not None:
        made.save(output)
    report["products"] = tuple(ProductPrecision(*row) for row in report["products"])
    report["movement"] = tuple(OutputMovement(*row) for row in report["movement"])
    report["host_calls"] = tuple(HostCalls(*row) for row in report["host_calls"])
    report["zeroed_weights"] = tuple(ZeroedWeights(*row) for row in report["zeroed_weights"])
    return Compilation(made, CompileReport(**report))
