# SPDX-License-Identifier: Apache-2.0
"""Compiling ONNX models."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Protocol, Sequence, Union

from rewire import errors
from rewire._native import _rewire
from rewire.signature import TensorInfo, declared
from rewire.types import Array, Path


class ModelProto(Protocol):
    """An onnx.ModelProto."""

    def SerializeToString(self, *args: Any, **kwargs: Any) -> bytes:
        """Returns the bytes of the model."""


Samples = Union[Mapping[str, Array], Sequence[Mapping[str, Array]]]
"""Arrays by the names of inputs, or a list of such dicts."""


@dataclass(frozen=True)
class UnsupportedNode:
    """A node of the model that cannot be compiled, and why."""

    node: str
    op_type: str
    domain: str
    opset: int
    reason: str

    def __str__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        return f"{self.node} ({domain}{self.op_type}, opset {self.opset}): {self.reason}"


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
class ShardedLayer:
    """A layer with constant weights of a model that is compiled for one of several ranks."""

    node: str
    """Operator and name: "MatMul 'up'"."""
    split: str
    """"columns", "rows", "heads", "groups"; empty if each rank has all of it."""
    reason: str
    """Why it is not split; else empty."""
    weight_bytes: int
    rank_bytes: int
    """The bytes of a rank's part."""


@dataclass(frozen=True)
class CompileReport:
    """What compiling made of a model. Sizes are bytes."""

    model_nodes: int
    nodes: int
    kernel_calls: int
    kernels: int
    constants: int
    constant_bytes: int
    parameters: int
    """Tensors that programs are linked with."""
    parameter_bytes: int
    arena_bytes: int
    separate_bytes: int
    device_arena_bytes: int
    device_separate_bytes: int
    memory_bytes: int | None
    """What one run takes at most beside weights and outputs; None if `unbounded` says why there is no bound."""
    unbounded: str
    quantized: int
    """How many of the `products` compute with precision "int8" or "bf16"."""
    products: tuple[ProductPrecision, ...]
    movement: tuple[OutputMovement, ...]
    unmeasured: str
    """Why `movement` is not known: with precision "bf16" and no samples, a model may not run with random inputs."""
    device_calls: int
    """Kernel calls that run on the device that the model was compiled for."""
    host_calls: tuple[HostCalls, ...]
    zeroed_weights: tuple[ZeroedWeights, ...]
    overridable: tuple[TensorInfo, ...]
    """The model's initializers that are inputs, too, as the model declares them: `overridden` of `rewire.compile` may name them.
    Those that it names already are not here."""
    sharded_layers: tuple[ShardedLayer, ...]
    """The layers with constant weights, for several `shards`."""
    split_inputs: tuple[str, ...]
    """Caches of which a rank has its heads."""
    from_cache: bool
    """The executable comes from the cache. Then only its kernels, constants and memory are counted here."""
    cache_problem: str
    """Why the cache was not used, or why the executable is not kept there; empty if nothing went wrong."""
    seconds: float


@dataclass(frozen=True)
class Compilation:
    """A compiled model: `executable` for `rewire.load`, the `report`, and the executable's `parameters` with the model's own
    elements."""

    executable: _rewire.Executable
    report: CompileReport
    parameters: _rewire.ParameterSet


def _require_choice(name: str, given: Any, choices: Sequence[str]) -> None:
    if given in choices:
        return
    raise errors.InvalidArgumentError(f"{name} is {given!r}{_rewire._known_names('choices', str(given), choices)}")


def _schemas_of(operators: Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> str:
    """The JSON of schemas of operators."""
    if isinstance(operators, (str, bytes, os.PathLike)):
        with open(operators, encoding="utf-8") as file:
            return file.read()
    return json.dumps(operators if isinstance(operators, Mapping) else {"operators": [dict(one) for one in operators]})


def compile(model: str | os.PathLike[str] | os.PathLike[bytes] | bytes | bytearray | memoryview | ModelProto,
            output: Path | None = None, *, dims: Mapping[str, int] | None = None, max_dims: Mapping[str, int] | None = None,
            disable_passes: Iterable[str] = (), external_data: Path | None = None, external_folders: Iterable[Path] = (),
            progress: Callable[[str], object] | None = None, precision: str = "model", calibrate: Samples | None = None,
            calibration: str = "least-squares", max_error: float = 0.05, keep_float: Iterable[str] = (),
            device: str = "cpu", device_work: int = 100000, parallel: str = "auto", cpu: str = "native",
            compress: bool = True, check_passes: bool = False, strict: bool = False,
            parameters: str | Iterable[str] | _rewire.ParameterSet = (),
            initializers: Mapping[str, Array] | _rewire.ParameterSet | None = None,
            external_files: Mapping[str, Any] | None = None, overridden: Iterable[str] = (),
            operators: Path | Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
            cache: Path | None = None, shards: int = 1, stages: int = 1, rank: int = 0, shard_for: str = "time") -> Compilation:
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

    `parameters` are names of constants of the model, as a list, a ParameterSet or a dict with such keys: they become parameters
    of the executable, for `rewire.load(..., parameters=...)`, and packed weights are made of them then. "all" stands for all
    floats of more than one element. A name on which the program depends, as on a shape, is an error.

    `initializers` are elements of the model's initializers, in place of its own: a ParameterSet or a dict of arrays. An array
    has the initializer's dtype. The executable may use its memory, so nobody may write it. `external_files` are files of
    external data in memory, as buffers by the location that the model names. `overridden` are initializers that the graph lists
    among its inputs, too, and that each run gives; `report.overridable` has those that may stand here.

    `operators` are schemas of operators that kernels of yours compute, of any domain: the path of a JSON file, or what stands
    in one, as a dict or as the list of its operators. Give their kernels to `rewire.load(..., kernels=...)`.

    `cache` is a folder of yours in which executables are kept, so that a model is compiled once; it is made if it is not there.
    The report then says whether the executable comes from there. An executable with parameters, initializers or
    files of the caller's, one of precision "int8", and one that samples are measured on is compiled in any case.

    `shards` and `stages` ask for the program of `rank`, one of several processes that run a model together. With `shards` they
    compute each layer together, and each holds its part of the weights; `shard_for` is "time" to split what is then faster, or
    "memory" to split all that can be split. With `stages` each computes one part of the layers. The report's `sharded_layers`
    say what is split.

    Returns a Compilation. Raises UnsupportedError with the list `unsupported`, NotFoundError, InvalidFileError,
    InvalidArgumentError for a wrong dimension, pass, parameter, initializer or calibration. The GIL is not held, and several threads may compile at once.
    """
    _require_choice("precision", precision, ("model", "int8", "bf16"))
    _require_choice("parallel", parallel, ("auto", "off"))
    _require_choice("cpu", cpu, ("native", "vectors", "tiles"))
    _require_choice("shard_for", shard_for, ("time", "memory"))
    name, source = _source_of(model)
    data = [dict(calibrate)] if isinstance(calibrate, Mapping) else [dict(one) for one in calibrate or ()]
    folder = "" if external_data is None else os.fsdecode(external_data)
    everything = isinstance(parameters, str) and parameters == "all"
    if isinstance(parameters, str) and not everything:
        raise errors.InvalidArgumentError(f"parameters is {parameters!r}, expected 'all' or a list of names")
    names: Iterable[str] = ()
    if isinstance(parameters, _rewire.ParameterSet):
        names = parameters.names()
    elif not everything:
        names = list(parameters)
    given = initializers if isinstance(initializers, _rewire.ParameterSet) else _rewire.ParameterSet.from_arrays(dict(initializers or {}))
    made, report, own = _rewire._compile(
        source, folder, name, dict(dims or {}), dict(max_dims or {}), disable_passes,
        [os.fsdecode(path) for path in external_folders], precision, data, calibration, max_error, keep_float, device,
        device_work, parallel == "auto", cpu, compress, check_passes, strict, names, everything,
        given, dict(external_files or {}), overridden, _schemas_of(operators), "" if cache is None else os.fsdecode(cache), shards, stages, rank,
        shard_for == "memory", progress)
    if made is None:
        nodes = [UnsupportedNode(*row) for row in report]
        error = errors.UnsupportedError("\n".join([own or "", *(f"  {node}" for node in nodes)]))
        error.unsupported = nodes
        raise error
    if output is not None:
        made.save(output)
    report["products"] = tuple(ProductPrecision(*row) for row in report["products"])
    report["movement"] = tuple(OutputMovement(*row) for row in report["movement"])
    report["sharded_layers"] = tuple(ShardedLayer(*row) for row in report["sharded_layers"])
    report["split_inputs"] = tuple(report["split_inputs"])
    report["host_calls"] = tuple(HostCalls(*row) for row in report["host_calls"])
    report["overridable"] = declared(made._overridable())
    report["zeroed_weights"] = tuple(ZeroedWeights(*row) for row in report["zeroed_weights"])
    return Compilation(made, CompileReport(**report), own)


def _source_of(model: Any) -> tuple[str, Any]:
    """The name of a model, and its path or bytes."""
    if hasattr(model, "SerializeToString"):
        return getattr(getattr(model, "graph", None), "name", "") or "model", model.SerializeToString()
    return "model", os.fsdecode(model) if isinstance(model, (str, os.PathLike)) else model
