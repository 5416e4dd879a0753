# SPDX-License-Identifier: Apache-2.0
"""The everyday calls of ONNX Runtime, so that switching is one import:

    import rewire as ort
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    scores = session.run(None, {"image": pixels})[0]
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rewire import errors
from rewire._native import _rewire
from rewire.compiler import compile
from rewire.model_metadata import ModelMetadata
from rewire.ort_value import ORT_NAMES, OrtValue, require_cpu
from rewire.program import Program, load, needs_compiling
from rewire.session_options import (
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions, get_all_providers,
    get_available_providers, get_device, set_default_logger_severity, set_default_logger_verbosity, set_seed, warn_ignored,
    warn_of_providers)
from rewire.shared_programs import shared
from rewire.signature import TensorInfo, declared

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
    "OrtValue", "RunOptions", "SessionOptions", "get_all_providers", "get_available_providers", "get_device",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]

@dataclass(frozen=True)
class NodeArg:
    """An input or an output. `type` is spelled as ONNX Runtime does: "tensor(float)"."""

    name: str
    type: str
    shape: list[int | str | None] | None


class IOBinding:
    """Inputs and outputs that are bound to memory for several runs. `InferenceSession.io_binding` makes one."""

    def __init__(self, session: InferenceSession) -> None:
        self._session, self._program = session, session.program
        self._vm = session.program.vm()
        self._inputs: dict[str, Any] = {}
        self._names = [output.name for output in session.program.outputs]
        self._bound: dict[str, NDArray[Any] | None] = {}

    def bind_cpu_input(self, name: str, array: ArrayLike) -> None:
        """Binds an input to an array, which is read when a run begins."""
        self._set_input(name, numpy.asarray(array))

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds an input to a tensor."""
        self._set_input(name, value.numpy())

    def bind_input(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: DTypeLike = None,
                   shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Binds an input to the tensor at an address, which must stay until it is bound again."""
        require_cpu(device_type)
        self._set_input(name, _array_at(buffer_ptr, element_type, shape))

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: DTypeLike = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Binds an output to the tensor at an address; without an address the session allocates it."""
        require_cpu(device_type)
        array = None if buffer_ptr is None else _array_at(buffer_ptr, element_type, shape)
        self._bind(name, array)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Binds an output to a tensor, into which runs write."""
        self._bind(name, value.numpy())

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._vm.clear_inputs()
        self._inputs.clear()
        self._use(self._session.program)

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._vm.clear_outputs()
        self._bound.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing: everything lies on the host."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a run that has returned is finished."""

    def get_outputs(self) -> list[OrtValue]:
        """The bound outputs of the last run, as OrtValue, in the order in which they were bound."""
        return [OrtValue(self._value(name)) for name in self._bound or self._names]

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        """The bound outputs of the last run as copies."""
        return [numpy.array(self._value(name)) for name in self._bound or self._names]

    def _set_input(self, name: str, array: NDArray[Any]) -> None:
        self._use(self._session._program_for({*self._inputs, name}))
        self._vm.set_input(name, array)
        self._inputs[name] = array

    def _use(self, program: Program) -> None:
        """Binds everything to another program of the model, where the inputs that are bound ask for one."""
        if program is self._program:
            return
        vm = program.vm()
        for name, array in self._inputs.items():
            vm.set_input(name, array)
        for name, bound in self._bound.items():
            vm.set_output(name, bound)
        self._vm, self._program = vm, program

    def _bind(self, name: str, array: NDArray[Any] | None) -> None:
        self._vm.set_output(name, array)
        self._bound[name] = array

    def _value(self, name: str) -> NDArray[Any]:
        # Also for a bound array: there may be no result yet, or another thread may be running.
        value, bound = self._vm.output(name), self._bound.get(name)
        return value if bound is None else bound


def _array_at(address: int | None, element_type: DTypeLike, shape: Sequence[int] | None) -> NDArray[Any]:
    if address is None or shape is None:
        raise errors.InvalidArgumentError("a binding needs buffer_ptr, element_type and shape")
    import ctypes

    dtype: numpy.dtype[Any] = numpy.dtype(element_type)
    size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return numpy.ndarray(tuple(shape), dtype, memoryview(memory))


class InferenceSession:
    """A model with ONNX Runtime's calls. `program` is the rewire.Program behind it.

    Sessions of one file with equal options share the program. Any number of threads may call `run` at once. Errors are
    those of rewire.
    """

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None,
                 providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
                 provider_options: Sequence[Mapping[str, Any]] | None = None, **kwargs: Any) -> None:
        options = SessionOptions() if sess_options is None else sess_options
        options.warn()
        warn_of_providers(providers, provider_options)
        for name, value in kwargs.items():
            warn_ignored(f"{name}={value!r}", "InferenceSession takes a model, options and providers", 2)
        self._options, self._model = options, path_or_bytes
        self.program = self._make(())
        self._overridable = declared(self.program.executable._overridable()) if needs_compiling(path_or_bytes) else ()
        self._overriding: dict[tuple[str, ...], Program] = {}
        if not self._overridable:
            self._model = None  # it is not compiled once more
        self._strings, self._keys = self.program.output_strings, self.program.output_keys
        self._texts = self.program._input_texts(), self.program._output_texts()
        # The lists of strings stand behind them, and are no inputs or outputs of the model's.
        self._inputs, self._outputs = (
            [each for each in infos if not any(each.name in parts for parts in texts.values())]
            for infos, texts in zip((self.program.inputs, self.program.outputs), self._texts))
        self._names = [output.name for output in self._outputs]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        """Runs the model and returns the outputs of these names, all if None, as a list of arrays.

        Strings are arrays of objects, and an output of maps is a list of dicts, as ONNX Runtime gives them.
        """
        if run_options is not None:
            run_options.warn()
        outputs: dict[str, Any] = self._program_for(input_feed)(_arrays(input_feed))
        for name in (*self._strings, *self._texts[1]):
            outputs[name] = outputs[name].astype(object)
        for name, keys in self._keys.items():
            outputs[name] = [dict(zip(keys, row)) for row in outputs[name].tolist()]
        if not output_names:
            return list(outputs.values())
        return [self._pick(outputs, name) for name in output_names]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], object], user_data: Any = None,
                  run_options: RunOptions | None = None) -> None:
        """Runs the model on a thread, which then calls `callback(results, user_data, error)`; `error` is empty on success.

        `await session.program.run_async(...)` does without a callback.
        """
        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:  # all there is for it is the text
                results, error = [], str(raised)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """The same with OrtValue in and out."""
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, as NodeArg."""
        return [_node_arg(info, info.name in self._texts[0]) for info in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, as NodeArg."""
        return [self._output_arg(info) for info in self._outputs]

    def get_providers(self) -> list[str]:
        """Where the session runs."""
        return get_available_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider: none."""
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
                      provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Changes nothing, and warns of providers that are not here."""
        warn_of_providers(providers, provider_options)

    def disable_fallback(self) -> None:
        """Does nothing: a run fails where it fails."""

    def enable_fallback(self) -> None:
        """Does nothing, and warns: there is nothing to fall back to."""
        warn_ignored("enable_fallback", "there is no other provider", 2)

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return self.program.metadata

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initializers that a run may give as inputs, as NodeArg. For the first run that gives some of them, the model is
        compiled once more with these as inputs; other runs use what was made of the constants."""
        return [_node_arg(info) for info in self._overridable]

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began: 0, as there is none."""
        return 0

    def end_profiling(self) -> str:
        """Returns an empty text and warns: a session writes no profile, `session.program.profile` measures a run."""
        warn_ignored("end_profiling", "session.program.profile(...) measures a run", 2)
        return ""

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def io_binding(self) -> IOBinding:
        """Returns an IOBinding of this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model with bound inputs and outputs."""
        iobinding._vm.invoke()

    def _make(self, overridden: tuple[str, ...]) -> Program:
        """The model's program where these initializers are inputs."""
        options = self._options
        threads, dims, cache = max(1, options.intra_op_num_threads), options.free_dimensions, options.cache()

        def compiled() -> Program:
            given = {name: value for name, value in options.initializers.items() if name not in overridden}
            return load(compile(self._model, dims=dims, initializers=given, external_files=options.external_files,
                                overridden=overridden, cache=cache), threads=threads)

        if options.initializers or options.external_files:
            return compiled()
        return shared(self._model, (threads, tuple(sorted(dims.items())), cache, overridden),
                      compiled if overridden else lambda: load(self._model, threads=threads, dims=dims, cache=cache))

    def _program_for(self, given: Iterable[str]) -> Program:
        """The program that takes these inputs."""
        if not self._overridable:
            return self.program
        names = {*given}
        overridden = tuple(info.name for info in self._overridable if info.name in names)
        if not overridden:
            return self.program
        if overridden not in self._overriding:
            # Another thread may make the same one; then the first counts.
            self._overriding.setdefault(overridden, self._make(overridden))
        return self._overriding[overridden]

    def _output_arg(self, info: TensorInfo) -> NodeArg:
        arg = _node_arg(info, info.name in self._strings or info.name in self._texts[1])
        if info.name in self._keys:
            key = "string" if isinstance(self._keys[info.name][0], str) else "int64"
            return NodeArg(arg.name, f"seq(map({key},{arg.type}))", [])
        return arg

    def _pick(self, outputs: Mapping[str, Any], name: str) -> Any:
        if name not in outputs:
            raise errors.InvalidArgumentError(f"there is no output {name!r}{_rewire._known_names('outputs', name, self._names)}")
        return outputs[name]


def _arrays(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Lists and OrtValue as arrays; anything else as it is."""
    if any(isinstance(value, OrtValue) for value in feed.values()):
        return {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in feed.items()}
    return dict(feed)


def _node_arg(info: TensorInfo, is_strings: bool = False) -> NodeArg:
    dtype = "string" if is_strings else ORT_NAMES.get(info.element_type or "", info.element_type)
    return NodeArg(info.name, info.type if dtype is None else f"tensor({dtype})",
                   None if info.shape is None else list(info.shape))
