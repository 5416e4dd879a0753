# SPDX-License-Identifier: Apache-2.0
"""Programs: what runs."""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import dataclass
from typing import Any, Callable, List, Mapping, Sequence, Tuple, Union

from rewire import errors, kernels as _kernels, lists as _lists, page, signature
from rewire._native import _rewire
from rewire._native._rewire import Executable, ParameterSet, VirtualMachine
from rewire.compiler import Compilation, ModelProto, compile as _compile
from rewire.model_metadata import ModelMetadata
from rewire.profile import Profile
from rewire.signature import TensorInfo
from rewire.types import Array, Input, Path, Results

Model = Union[str, "os.PathLike[str]", "os.PathLike[bytes]", bytes, bytearray, memoryview, Executable, Compilation, "Program",
              ModelProto]
"""What `load` takes: a path, the bytes of a file, an onnx.ModelProto, or what is loaded or compiled already."""

Parameters = Union[ParameterSet, Mapping[str, Array], Path]
"""Weights: a ParameterSet, a dict of arrays, or the path of a file."""


@dataclass(frozen=True)
class MemoryBound:
    """How much memory one run can need, in bytes. `unbounded` says why there is no bound; it is empty if there is one.

    `devices` has the part of `bytes` that lies on each device other than the host, such as {"cuda:0": 4096}.
    """

    unbounded: str
    bytes: int
    static_bytes: int
    arena_bytes: int
    storage: int
    objects: int
    stack: int
    workspace: int
    pinned: int
    devices: dict[str, int]
    undeclared_workspace: tuple[str, ...]

    @property
    def bounded(self) -> bool:
        return not self.unbounded


@dataclass(frozen=True)
class OutputPlan:
    """Whether an output can be made in the caller's memory: `rewired`, or else copied, for the `reason`."""

    name: str
    rewired: bool
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True)
class Capacity:
    """Memory for an output whose size only the run knows, in `out` and in `VirtualMachine.set_output`. The result is an array over its beginning.

    `array` is a writable, contiguous array of any type and shape. Its bytes count. A run that needs more fails.
    """

    array: Array


class Program(_rewire.Program):
    """A model that is ready to run. `rewire.load` makes one.

    A program never changes. Any number of threads may call it at once; the GIL is not held while it runs. Results are
    numpy arrays over the program's memory, each its own: later runs do not change them.
    """

    _made_by: tuple[Callable[..., Program], tuple[Any, ...]] | None = None  # a function and what it was given, for pickle

    def run(self, inputs: Mapping[str, Input] | Sequence[Input] | Array = (), *, out: Out | None = None,
            timeout: float | None = None, function: str | None = None, max_steps: int | None = None,
            max_bytes: int | None = None, require_zero_copy: bool = False) -> Results:
        """Runs a function and returns its outputs, a dict by name.

        `inputs` is a dict by name, a sequence, or the array that is the only input. `out` gives writable arrays for outputs:
        a dict by name or place, or an array for the only output. Results are made right there, or copied there
        (explain_outputs tells which), and the dict has these arrays. A Capacity in place of an array is memory for an output
        whose size is not known. `timeout` is in seconds. `max_steps` and `max_bytes` limit the instructions and the memory of
        the run. `require_zero_copy` turns a copy into an error.

        Raises InvalidArgumentError for inputs that do not match, RunError, KernelError, DeadlineExceededError and the
        other errors of runs. The contents of `out` are then unspecified.
        """
        return self._run_with(inputs, out, function, (timeout, max_steps, max_bytes, require_zero_copy), None)

    async def run_async(self, inputs: Mapping[str, Input] | Sequence[Input] | Array = (), *, out: Out | None = None,
                        timeout: float | None = None, function: str | None = None, max_steps: int | None = None,
                        max_bytes: int | None = None, require_zero_copy: bool = False) -> Results:
        """The same as `run`, on a thread of the event loop's executor, so that the loop goes on.

        Cancelling the task ends the run. The task is over when the run is, so that nothing writes to `out` afterwards.
        """
        import asyncio  # half as much again to import as this package

        cancellation = _rewire._Cancellation()
        settings = (timeout, max_steps, max_bytes, require_zero_copy)
        work = functools.partial(self._run_with, inputs, out, function, settings, cancellation)
        running = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # A run that has not begun is not there to be ended, so it is asked again. Nothing ends the wait before the run.
            while not running.done():
                cancellation.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([running], timeout=0.001)
            running.exception()  # has been looked at
            raise

    def _run_with(self, inputs: Any, out: Out | None, function: str | None, settings: _Settings,
                  cancellation: _rewire._Cancellation | None) -> Results:
        timeout, max_steps, max_bytes, require_zero_copy = settings
        return self._run(inputs, self._given(out, function), timeout, function, max_steps, max_bytes, require_zero_copy,
                         cancellation)

    def _given(self, out: Out | None, function: str | None) -> dict[Any, Any] | None:
        """Arrays by name or place, as the extension takes them."""
        if out is None:
            return None
        if isinstance(out, Mapping):
            given: dict[Any, Any] = dict(out)
        elif isinstance(out, (list, tuple)):
            given = dict(enumerate(out))
        else:
            outputs = self.outputs_of(function)
            if len(outputs) != 1:
                raise errors.InvalidArgumentError(
                    f"out: one array is given for {len(outputs)} outputs; give a dict by name, of these: "
                    + ", ".join(each.name for each in outputs))
            given = {0: out}
        return {key: (value.array,) if isinstance(value, Capacity) else value for key, value in given.items()}

    def vm(self) -> VirtualMachine:
        """Returns a VirtualMachine: inputs and outputs stay bound from run to run. Make one for each thread."""
        return _rewire.VirtualMachine(self)

    def with_parameters(self, *parameters: Parameters) -> Program:
        """Returns a program with other parameters. It shares everything else with this one."""
        return type(self)(self, parameters=[_as_parameters(each) for each in parameters])

    def __reduce__(self) -> tuple[Callable[..., Program], tuple[Any, ...]]:
        if self._made_by is None:
            raise TypeError("a program is pickled as the path that it was loaded from, and this one was made of an object; "
                            "load it from a file")
        return self._made_by

    @property
    def output_strings(self) -> _lists.Strings:
        """The lists of strings of the entry function's outputs that are strings, by name: a dict of tuples.

        Calls of the program give arrays of str for these outputs. A VirtualMachine, and an array given by `out`, have
        positions in the list. Outputs whose list only the run knows are not here; calls give arrays of str for them, too.
        """
        return self._lists()[0]

    @property
    def output_keys(self) -> _lists.Keys:
        """The keys of the entry function's outputs that are maps, by name: a dict of tuples.

        Such an output is a tensor with a row for each map and a column for each key.
        """
        return self._lists()[1]

    @property
    def input_strings(self) -> tuple[str, ...]:
        """The names of the entry function's inputs that are strings.

        Calls of the program take arrays or lists of str for them. A VirtualMachine takes three arrays: positions, the
        offsets of the strings in the third one, and their bytes in UTF-8.
        """
        return tuple(self._input_texts())

    def _input_texts(self) -> _lists.Parts:
        index = self._function_index(None)
        return _lists.computed(self.executable, "input strings ", self.functions[index], [each.name for each in self.inputs])

    def _output_texts(self) -> _lists.Parts:
        index = self._function_index(None)
        return _lists.computed(self.executable, "strings ", self.functions[index], [each.name for each in self.outputs])

    def _lists(self) -> tuple[_lists.Strings, _lists.Keys]:
        name = self.functions[self._function_index(None)]
        return _lists.of_outputs(self.executable, name, [output.name for output in self.outputs])

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(self.executable.functions)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the entry function, as TensorInfo."""
        return self.inputs_of(None)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs of the entry function, as TensorInfo."""
        return self.outputs_of(None)

    @property
    def metadata(self) -> ModelMetadata:
        """What the ONNX model that was compiled says about itself, as ModelMetadata; `executable.metadata` has the file's entries."""
        return ModelMetadata(**self.executable._model())

    @property
    def parameters(self) -> tuple[TensorInfo, ...]:
        """The weights that the file leaves to be given, as TensorInfo."""
        return signature.rows(self.executable._parameters())

    def inputs_of(self, function: str | None) -> tuple[TensorInfo, ...]:
        """The inputs of a function."""
        return signature.rows(self.executable._inputs(self._function_index(function)))

    def outputs_of(self, function: str | None) -> tuple[TensorInfo, ...]:
        """The outputs of a function."""
        return signature.rows(self.executable._outputs(self._function_index(function)))

    def memory_bound(self, function: str | None = None, *, outputs_bound: bool = False, **dims: int) -> MemoryBound:
        """Computes how much memory a run can need at most, for these largest sizes of symbolic dimensions.

            program.memory_bound(batch=8).bytes

        `outputs_bound` says that all outputs are given arrays. Raises InvalidArgumentError for a dimension that no input
        has.
        """
        found = self._memory_bound(function, outputs_bound, dims)
        found["undeclared_workspace"] = tuple(found["undeclared_workspace"])
        return MemoryBound(**found)

    def explain_outputs(self, function: str | None = None) -> list[OutputPlan]:
        """Returns for each output whether it can be made in the caller's memory, and if not, why: a list of OutputPlan."""
        return [OutputPlan(*row) for row in self._explain_outputs(function)]

    def profile(self, *args: Any, function: str | None = None, repeat: int = 1, warmup: int = 1) -> Profile:
        """Runs with the inputs and returns the time of every kernel call, as a Profile.

        Inputs are given by place or as one dict. `warmup` runs before are not measured.
        """
        if repeat < 1 or warmup < 0:
            raise errors.InvalidArgumentError(
                f"profile: expected repeat of at least 1 and warmup of at least 0, got {repeat} and {warmup}")
        runs, calls = _rewire._profile(self, args, function, repeat, warmup)
        return Profile(runs, calls)

    def _function_index(self, function: str | None) -> int:
        if function is None:
            return max(0, self.functions.index("main") if "main" in self.functions else 0)
        index = self.executable._index(function)
        if index is None:
            raise errors.NotFoundError(f"there is no function {function!r}"
                                       f"{_rewire._known_names('functions', function, self.functions)}")
        return index

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        return f"<rewire.Program ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        lines = [("", "name", "type")]
        for kind, values in (("input", self.inputs), ("output", self.outputs), ("parameter", self.parameters)):
            lines += [(kind, each.name, each.type) for each in values]
        return page.table("rewire.Program", lines)


Out = Union[Mapping[Union[str, int], Union[Array, Capacity]], Mapping[str, Union[Array, Capacity]],
            List[Union[Array, Capacity]], Tuple[Union[Array, Capacity], ...], Array, Capacity]
"""Memory for outputs: arrays by name or place, or one for the only output."""

_Settings = Tuple[Union[float, None], Union[int, None], Union[int, None], bool]


class _StringProgram(Program):
    """A program of which inputs or outputs are strings. Programs without them are not slowed down."""

    def __call__(self, *args: Any, **kwargs: Input) -> Results:
        texts = self._input_texts()
        if texts:
            given = args[0] if len(args) == 1 and isinstance(args[0], dict) else self._by_name(args)
            args, kwargs = (_lists.with_positions({**given, **kwargs}, texts),), {}
        outputs = _lists.with_computed(super().__call__(*args, **kwargs), self._output_texts())
        return _lists.with_strings(outputs, self.output_strings)

    def _run_with(self, inputs: Any, out: Out | None, function: str | None, settings: _Settings,
                  cancellation: _rewire._Cancellation | None) -> Results:
        is_entry = self._function_index(function) == self._function_index(None)
        texts = self._input_texts() if is_entry else {}
        if texts:
            inputs = _lists.with_positions(inputs if isinstance(inputs, dict) else self._by_name(inputs), texts)
        outputs = super()._run_with(inputs, out, function, settings, cancellation)
        if not is_entry:
            return outputs
        bound = () if out is None else tuple((self._given(out, function) or {}).values())
        return _lists.with_strings(_lists.with_computed(outputs, self._output_texts(), bound), self.output_strings, bound)

    def _by_name(self, inputs: Sequence[Input]) -> dict[str, Input]:
        names = [each.name for each in self.inputs]
        if len(inputs) > len(names):
            raise errors.InvalidArgumentError(f"{len(inputs)} inputs are given, the program has {len(names)}")
        return dict(zip(names, inputs))


def _as_parameters(given: Parameters, verify: bool = False) -> ParameterSet:
    if isinstance(given, ParameterSet):
        return given
    if isinstance(given, Mapping):
        return ParameterSet.from_arrays(dict(given))
    return ParameterSet.from_file(given, verify)


def _parameter_sets(given: Parameters | Sequence[Parameters] | None, verify: bool) -> list[ParameterSet]:
    if given is None:
        return []
    if isinstance(given, (list, tuple)):
        return [_as_parameters(each, verify) for each in given]
    return [_as_parameters(given, verify)]  # type: ignore[arg-type]


def needs_compiling(model: Any) -> bool:
    """Whether what `load` is given is a model of ONNX, which it compiles."""
    if isinstance(model, Executable):
        return False
    if isinstance(model, (str, os.PathLike)):
        return os.fsdecode(model).endswith(".onnx")
    if hasattr(model, "SerializeToString"):
        return True
    # An executable begins with its magic, a model of ONNX with the field of its version.
    return not hasattr(model, "executable") and bytes(memoryview(model)[:1]) == b"\x08"


def _executable_of(model: Any, dims: Mapping[str, int] | None, max_dims: Mapping[str, int] | None,
                   bundle_model: str, verify: bool, cache: Path | None) -> tuple[Executable, list[str]]:
    """The executable of whatever `load` was given, and the libraries with its kernels."""
    if needs_compiling(model):
        return _compile(model, dims=dims, max_dims=max_dims, cache=cache).executable, []
    if dims or max_dims:
        raise errors.InvalidArgumentError(
            "dims: the model is compiled already; sizes are fixed when it is compiled (rewire.compile)")
    if isinstance(model, Executable):
        return model, []
    if isinstance(model, (str, os.PathLike)):
        executable, kernels, _ = _rewire._open(model, bundle_model, verify)
        return executable, kernels
    if hasattr(model, "executable"):
        return model.executable, []
    return _rewire._from_bytes(model, verify), []


def _require_model(model: Any) -> None:
    if isinstance(model, (str, os.PathLike, Executable)) or hasattr(model, "SerializeToString") or hasattr(model, "executable"):
        return
    try:
        memoryview(model)
    except TypeError:
        raise errors.InvalidArgumentError(
            f"model: a path, bytes, an onnx.ModelProto or an Executable expected, {model!r} given") from None


def load(model: Model, *,
         dims: Mapping[str, int] | None = None, max_dims: Mapping[str, int] | None = None, threads: int = 1,
         kernels: _kernels.Kernels = (), parameters: Parameters | Sequence[Parameters] | None = None,
         ignore_extra_parameters: bool = False, zero_new_storage: bool = False, model_name: str = "",
         trust_device_code: bool = False, name_map: Path | None = None, verify: bool = False,
         cache: Path | None = None) -> Program:
    """Loads a model and returns a Program.

    `model` is the path of a .rwx or .onnx file, of a Relay executable of TVM (.ro, .so) or of text assembly (.asm); the
    bytes of a .rwx or .onnx file; an onnx.ModelProto, an Executable, or what `compile` returns. An ONNX model is
    compiled, with `dims`, `max_dims` and `cache` as for `compile`. `model_name` chooses one model of a bundle.

    `threads` is how many threads the kernels of one run use. `kernels` are paths of kernel libraries and functions of
    `@rewire.kernel`; loading a library runs its code. `parameters` are a ParameterSet, a dict of arrays, a path, or a
    list of those. `zero_new_storage` fills new memory with zeroes, for files from strangers. `trust_device_code` runs code
    for devices that the file itself holds. That is native code, so set it only for files whose origin you trust.
    `name_map` is the path of the map that vm-strip wrote: errors and profiles then have the names that it took. `verify` checks
    the checksum of every constant of a file now, also of an .rwx that `parameters` names. Otherwise code and tables are
    verified, and weights are taken as they are.

    Bytes are kept and not copied. A program that is loaded from a path can be pickled: what is pickled are the path and the
    arguments of this call. Raises MissingFileError, NotFoundError, InvalidFileError, VerificationError, UnsupportedError,
    LinkError.
    """
    _require_model(model)
    executable, found = _executable_of(model, dims, max_dims, model_name, verify, cache)
    if name_map is not None:
        executable = _rewire._restore_names(executable, name_map)
    has_strings = any(key.startswith(("strings ", "input strings ")) for key in executable.metadata)
    made = (_StringProgram if has_strings else Program)(
        executable, threads=threads, kernels=_kernels.native(kernels) + list(found),
        parameters=_parameter_sets(parameters, verify), ignore_extra_parameters=ignore_extra_parameters,
        zero_new_storage=zero_new_storage, trust_device_code=trust_device_code)
    if isinstance(model, (str, os.PathLike)):
        made._made_by = _load_again, (os.path.abspath(os.fsdecode(model)), {
            "dims": dims, "max_dims": max_dims, "threads": threads, "kernels": kernels, "parameters": parameters,
            "ignore_extra_parameters": ignore_extra_parameters, "zero_new_storage": zero_new_storage,
            "model_name": model_name, "trust_device_code": trust_device_code, "name_map": name_map,
            "verify": verify, "cache": cache})
    return made


def _load_again(path: str, options: dict[str, Any]) -> Program:
    return load(path, **options)


def disassemble(program: Program | Executable) -> str:
    """Returns a program or an executable as text assembly, which `assemble` takes back."""
    return _rewire._disassemble(program.executable if isinstance(program, Program) else program)
