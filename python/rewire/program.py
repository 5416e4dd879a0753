# SPDX-License-Identifier: Apache-2.0
"""Programs: what runs."""

import os
from dataclasses import dataclass
from typing import Dict, Tuple

from rewire import errors, kernels as _kernels, lists as _lists, signature
from rewire._native import _rewire
from rewire.compiler import compile as _compile
from rewire.profile import Profile


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
    devices: Dict[str, int]
    undeclared_workspace: Tuple[str, ...]

    @property
    def bounded(self):
        return not self.unbounded


@dataclass(frozen=True)
class OutputPlan:
    """Whether an output can be made in the caller's memory: `rewired`, or else copied, for the `reason`."""

    name: str
    rewired: bool
    reason: str
    text: str

    def __str__(self):
        return f"{self.name}: {self.text}"


class Program(_rewire.Program):
    """A model that is ready to run. `rewire.load` makes one.

    A program never changes. Any number of threads may call it at once; the GIL is not held while it runs. Results are
    numpy arrays over the program's memory, each its own: later runs do not change them.
    """

    def run(self, inputs=(), *, out=None, timeout=None, function=None, max_steps=None, max_bytes=None,
            require_zero_copy=False):
        """Runs a function and returns its outputs, a dict by name.

        `inputs` is a dict by name, or a sequence. `out` gives writable arrays for outputs, by name or place: results are
        made right there, or copied there (explain_outputs tells which), and the dict has these arrays. `timeout` is in
        seconds. `max_steps` and `max_bytes` limit the instructions and the memory of the run. `require_zero_copy` turns
        a copy into an error.

        Raises InvalidArgumentError for inputs that do not match, RunError, KernelError, DeadlineExceededError and the
        other errors of runs. The contents of `out` are then unspecified.
        """
        return self._run(inputs, out, timeout, function, max_steps, max_bytes, require_zero_copy)

    def vm(self):
        """Returns a VirtualMachine: inputs and outputs stay bound from run to run. Make one for each thread."""
        return _rewire.VirtualMachine(self)

    def with_parameters(self, *parameters):
        """Returns a program with other parameters. It shares everything else with this one."""
        return Program(self, [_as_parameters(each) for each in parameters])

    @property
    def output_strings(self):
        """The lists of strings of the entry function's outputs that are strings, by name: a dict of tuples.

        Calls of the program give arrays of str for these outputs. A VirtualMachine, and an array given by `out`, have
        positions in the list. Outputs whose list only the run knows are not here; calls give arrays of str for them, too.
        """
        return self._lists()[0]

    @property
    def output_keys(self):
        """The keys of the entry function's outputs that are maps, by name: a dict of tuples.

        Such an output is a tensor with a row for each map and a column for each key.
        """
        return self._lists()[1]

    @property
    def input_strings(self):
        """The names of the entry function's inputs that are strings.

        Calls of the program take arrays or lists of str for them. A VirtualMachine takes three arrays: positions, the
        offsets of the strings in the third one, and their bytes in UTF-8.
        """
        return tuple(self._input_texts())

    def _input_texts(self):
        index = self._function_index(None)
        return _lists.computed(self.executable, "input strings ", self.functions[index], [each.name for each in self.inputs])

    def _output_texts(self):
        index = self._function_index(None)
        return _lists.computed(self.executable, "strings ", self.functions[index], [each.name for each in self.outputs])

    def _lists(self):
        name = self.functions[self._function_index(None)]
        return _lists.of_outputs(self.executable, name, [output.name for output in self.outputs])

    @property
    def functions(self):
        """The names of the functions."""
        return tuple(self.executable.functions)

    @property
    def inputs(self):
        """The inputs of the entry function, as TensorInfo."""
        return self.inputs_of(None)

    @property
    def outputs(self):
        """The outputs of the entry function, as TensorInfo."""
        return self.outputs_of(None)

    @property
    def parameters(self):
        """The weights that the file leaves to be given, as TensorInfo."""
        return signature.rows(self.executable._parameters())

    def inputs_of(self, function):
        """The inputs of a function."""
        return signature.rows(self.executable._inputs(self._function_index(function)))

    def outputs_of(self, function):
        """The outputs of a function."""
        return signature.rows(self.executable._outputs(self._function_index(function)))

    def memory_bound(self, function=None, *, outputs_bound=False, **dims):
        """Computes how much memory a run can need at most, for these largest sizes of symbolic dimensions.

            program.memory_bound(batch=8).bytes

        `outputs_bound` says that all outputs are given arrays. Raises InvalidArgumentError for a dimension that no input
        has.
        """
        found = self._memory_bound(function, outputs_bound, dims)
        found["undeclared_workspace"] = tuple(found["undeclared_workspace"])
        return MemoryBound(**found)

    def explain_outputs(self, function=None):
        """Returns for each output whether it can be made in the caller's memory, and if not, why: a list of OutputPlan."""
        return [OutputPlan(*row) for row in self._explain_outputs(function)]

    def profile(self, *args, function=None, repeat=1, warmup=1):
        """Runs with the inputs and returns the time of every kernel call, as a Profile.

        Inputs are given by place or as one dict. `warmup` runs before are not measured.
        """
        if repeat < 1 or warmup < 0:
            raise errors.InvalidArgumentError(
                f"profile: expected repeat of at least 1 and warmup of at least 0, got {repeat} and {warmup}")
        runs, calls = _rewire._profile(self, *args, function=function, repeat=repeat, warmup=warmup)
        return Profile(runs, calls)

    def _function_index(self, function):
        if function is None:
            return max(0, self.functions.index("main") if "main" in self.functions else 0)
        index = self.executable._index(function)
        if index is None:
            raise errors.NotFoundError(f"there is no function {function!r}; there are: {', '.join(self.functions)}")
        return index

    def __repr__(self):
        inputs = ", ".join(map(str, self.inputs))
        outputs = ", ".join(map(str, self.outputs))
        return f"<rewire.Program ({inputs}) -> ({outputs})>"


class _StringProgram(Program):
    """A program of which inputs or outputs are strings. Programs without them are not slowed down."""

    def __call__(self, *args, **kwargs):
        texts = self._input_texts()
        if texts:
            given = args[0] if len(args) == 1 and isinstance(args[0], dict) else self._by_name(args)
            args, kwargs = (_lists.with_positions({**given, **kwargs}, texts),), {}
        outputs = _lists.with_computed(super().__call__(*args, **kwargs), self._output_texts())
        return _lists.with_strings(outputs, self.output_strings)

    def run(self, inputs=(), *, out=None, function=None, **options):
        is_entry = self._function_index(function) == self._function_index(None)
        texts = self._input_texts() if is_entry else {}
        if texts:
            inputs = _lists.with_positions(inputs if isinstance(inputs, dict) else self._by_name(inputs), texts)
        outputs = super().run(inputs, out=out, function=function, **options)
        if not is_entry:
            return outputs
        bound = () if out is None else tuple(out.values() if hasattr(out, "values") else out)
        return _lists.with_strings(_lists.with_computed(outputs, self._output_texts(), bound), self.output_strings, bound)

    def _by_name(self, inputs):
        names = [each.name for each in self.inputs]
        if len(inputs) > len(names):
            raise errors.InvalidArgumentError(f"{len(inputs)} inputs are given, the program has {len(names)}")
        return dict(zip(names, inputs))

    run.__doc__ = Program.run.__doc__

    def with_parameters(self, *parameters):
        return _StringProgram(self, [_as_parameters(each) for each in parameters])

    with_parameters.__doc__ = Program.with_parameters.__doc__


def _as_parameters(given):
    if isinstance(given, _rewire.ParameterSet):
        return given
    if isinstance(given, dict):
        return _rewire.ParameterSet.from_arrays(given)
    return _rewire.ParameterSet.from_file(given)


def _parameter_sets(given):
    if given is None:
        return []
    if isinstance(given, (list, tuple)):
        return [_as_parameters(each) for each in given]
    return [_as_parameters(given)]


def _is_model_to_compile(model):
    if isinstance(model, str) or hasattr(model, "__fspath__"):
        return os.fsdecode(model).endswith(".onnx")
    if hasattr(model, "SerializeToString"):
        return True
    # An executable begins with its magic, a model of ONNX with the field of its version.
    return not hasattr(model, "executable") and bytes(memoryview(model)[:1]) == b"\x08"


def _executable_of(model, dims, max_dims, bundle_model):
    """The executable of whatever `load` was given, and the libraries with its kernels."""
    if not isinstance(model, _rewire.Executable) and _is_model_to_compile(model):
        return _compile(model, dims=dims, max_dims=max_dims).executable, []
    if dims or max_dims:
        raise errors.InvalidArgumentError(
            "dims: the model is compiled already; sizes are fixed when it is compiled (rewire.compile)")
    if isinstance(model, _rewire.Executable):
        return model, []
    if isinstance(model, str) or hasattr(model, "__fspath__"):
        executable, kernels, _ = _rewire._open(os.fsdecode(model), [], bundle_model)
        return executable, kernels
    if hasattr(model, "executable"):
        return model.executable, []
    return _rewire._from_bytes(model), []


def load(model, *, dims=None, max_dims=None, threads=1, kernels=(), parameters=None, ignore_extra_parameters=False,
         zero_new_storage=False, model_name="", trust_device_code=False, name_map=None):
    """Loads a model and returns a Program.

    `model` is the path of a .rwx or .onnx file, of a Relay executable of TVM (.ro, .so) or of text assembly (.asm); the
    bytes of a .rwx or .onnx file; an onnx.ModelProto, an Executable, or what `compile` returns. An ONNX model is
    compiled, with `dims` and `max_dims` as for `compile`. `model_name` chooses one model of a bundle.

    `threads` is how many threads the kernels of one run use. `kernels` are paths of kernel libraries and functions of
    `@rewire.kernel`; loading a library runs its code. `parameters` are a ParameterSet, a dict of arrays, a path, or a
    list of those. `zero_new_storage` fills new memory with zeroes, for files from strangers. `trust_device_code` runs code
    for devices that the file itself holds. That is native code, so set it only for files whose origin you trust.
    `name_map` is the path of the map that vm-strip wrote: errors and profiles then have the names that it took.

    Bytes are kept and not copied. Raises NotFoundError, InvalidFileError, VerificationError, UnsupportedError, LinkError.
    """
    executable, found = _executable_of(model, dims, max_dims, model_name)
    if name_map is not None:
        executable = _rewire._restore_names(executable, os.fsdecode(name_map))
    has_strings = any(key.startswith(("strings ", "input strings ")) for key in executable.metadata)
    made = _StringProgram if has_strings else Program
    return made(executable, threads=threads, kernels=_kernels.native(kernels) + list(found),
                parameters=_parameter_sets(parameters), ignore_extra_parameters=ignore_extra_parameters,
                zero_new_storage=zero_new_storage, trust_device_code=trust_device_code)


def disassemble(program):
    """Returns a program or an executable as text assembly, which `assemble` takes back."""
    return _rewire._disassemble(program if isinstance(program, _rewire.Executable) else program.executable)
