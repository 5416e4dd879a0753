"""The native part of the package rewire."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy.typing

import rewire.profile
import rewire.program
import rewire.signature
import rewire.types


def _set_error_classes(classes: Sequence[type[BaseException]]) -> None:
    """
    Registers the exception class of each status code, in the order of the codes, and that of missing files.
    """

def _status_name(code: int) -> str:
    """Returns the name of a status code, such as 'invalid argument'."""

class Tensor:
    """
    A tensor in memory of a program or of whoever gave it. It has the buffer protocol and
    DLPack, so that other libraries read it without a copy, and keeps its memory alive. Any
    thread may use it.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions, as a tuple of ints."""

    @property
    def dtype(self) -> str:
        """The element type as Rewire spells it: 'f32', 'i64', 'bf16', 'bool'."""

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""

    @property
    def readonly(self) -> bool:
        """
        True for what nobody may write: constants, parameters, and what was given as read-only.
        """

    def __repr__(self) -> str: ...

    def numpy(self) -> numpy.typing.NDArray[Any]:
        """Returns a numpy array over the same memory."""

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """
        Returns a DLPack capsule, over the same memory unless copy=True. Raises BufferError for another
        device, for a stream that the device does not have, and for a read-only tensor if max_version is
        below (1, 0).
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns DLPack's type and number of the device."""

def tensor(array: rewire.types.Array) -> Tensor:
    """Returns a Tensor over the memory of an array, which it keeps alive."""

class Adt:
    """
    A tagged tuple of values, such as a sequence of ONNX. Fields are made when they are read:
    numpy arrays over the program's memory, ints, or further Adts.
    """

    def __init__(self, tag: int, fields: Sequence[rewire.types.Input]) -> None:
        """
        Makes one of arrays, ints and Adts. The arrays are not copied and must be contiguous.
        """

    @property
    def tag(self) -> int:
        """The constructor's number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...

    def __repr__(self) -> str: ...

class Executable:
    """
    A verified program that is not linked: none of its code has run. Immutable; any number
    of threads may use one.
    """

    @property
    def functions(self) -> list[str]:
        """The names of the functions."""

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels that linking must find."""

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says about itself, such as its producer."""

    def _model(self) -> dict[str, Any]: ...

    def _inputs(self, function: int) -> list[rewire.signature.Row]: ...

    def _outputs(self, function: int) -> list[rewire.signature.Row]: ...

    def _parameters(self) -> list[rewire.signature.Row]: ...

    def _overridable(self) -> list[rewire.signature.DeclaredRow]: ...

    def _index(self, name: str) -> int | None:
        """The place of a function."""

    def to_bytes(self) -> bytes:
        """Returns the bytes of the .rwx file."""

    def save(self, path: rewire.types.Path) -> None:
        """Writes the .rwx file, which is complete or unchanged. Raises IoError."""

def _open(path: rewire.types.Path, model: str, verify: bool) -> tuple[Executable, list[str], bool]:
    """
    Opens a file of any kind: the executable, its kernel libraries, and whether it has parameters.
    """

def _from_bytes(data: rewire.types.Array, verify: bool) -> Executable:
    """Opens the bytes of a .rwx file."""

def _restore_names(executable: Executable, path: rewire.types.Path) -> Executable:
    """Gives a stripped executable its names back."""

def assemble(text: str, directory: str = '') -> Executable:
    """
    Returns the Executable that text assembly describes. Relative @files start in `directory`. Raises
    InvalidArgumentError with a line for each mistake, or VerificationError.
    """

def _known_names(what: str, name: str, names: Iterable[str]) -> str:
    """
    The end of the message that there is no such name: those nearest to it, and a list of all `what`.
    """

def _disassemble(executable: Executable) -> str:
    """Returns text assembly."""

class ParameterSet:
    """
    Named weights for programs that are loaded without them. Files are mapped, not
    read, and arrays are kept, not copied. Programs and processes share a set.
    """

    @staticmethod
    def from_file(path: rewire.types.Path, verify: bool = False) -> ParameterSet:
        """
        Opens a .safetensors, .rwx or TVM parameter file. `verify` checks the checksums that an .rwx has.
        Raises NotFoundError, IoError, InvalidFileError or UnsupportedError.
        """

    @staticmethod
    def from_safetensors(path: rewire.types.Path, verify: bool = False) -> ParameterSet:
        """The same as from_file."""

    @staticmethod
    def from_arrays(arrays: dict[str, rewire.types.Array]) -> ParameterSet:
        """
        Makes a set of a dict of arrays by name. The set keeps the arrays, which nobody may write
        while a program uses them.
        """

    @staticmethod
    def from_program(program: Program) -> ParameterSet:
        """
        The parameters that a program was loaded with, and its named constants.
        """

    def names(self) -> list[str]:
        """The names, sorted."""

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> numpy.typing.NDArray[Any]:
        """An array over the parameter's memory. Raises KeyError."""

    def __repr__(self) -> str: ...

class _Cancellation:
    """Ends the run that it is given to."""

    def __init__(self) -> None: ...

    def cancel(self) -> None:
        """Ends the run, if it goes on now. Any thread may call it."""

class Program:
    def __init__(self, executable: Executable | Program, threads: int = 1, kernels: Sequence[str | tuple[str, Callable[..., Any]]] = (), parameters: Sequence[ParameterSet] = (), ignore_extra_parameters: bool = False, zero_new_storage: bool = False, trust_device_code: bool = False) -> None:
        """Links an executable. rewire.load does this and more."""

    def __call__(self, *args: Any, **kwargs: rewire.types.Input) -> dict[str, numpy.typing.NDArray[Any]]:
        """
        Runs the entry function and returns its outputs, a dict of arrays by name. Inputs are given by
        place, by name, or as one dict. Any number of threads may call at once; the GIL is not held.
        """

    def _run(self, inputs: Any, out: dict[Any, Any] | None, timeout: float | None, function: str | None, steps: int | None, bytes: int | None, require_zero_copy: bool, cancellation: _Cancellation | None = None) -> dict[str, numpy.typing.NDArray[Any]]:
        """Runs a function."""

    def _memory_bound(self, function: str | None, outputs_bound: bool, max_dims: dict[str, int]) -> dict[str, Any]:
        """How much memory a run can need."""

    def _explain_outputs(self, function: str | None) -> list[tuple[str, bool, str, str]]:
        """
        For each output its name, whether it is rewired, the reason and the whole explanation.
        """

    @property
    def executable(self) -> Executable:
        """The executable that the program was linked from."""

def _connect(url: str, timeout: float) -> Program:
    """
    Makes a program of a model on a server. rewire.connect does this and more.
    """

class VirtualMachine:
    """
    Runs functions of a program with inputs and outputs that stay set from run to run. One
    thread at a time: during a run every call but cancel(), bytes_held and bytes_peak raises
    BusyError, on another thread and inside a Python kernel of the run.
    """

    def __init__(self, program: Program) -> None: ...

    def set_input(self, input: int | str, value: rewire.types.Input, copy: bool = False, function: str | None = None) -> None:
        """
        Sets an input, by name or place, until it is set again. The array is kept and read when a function
        runs; with copy=True its elements are copied now. Raises InvalidArgumentError if it does not match.
        """

    def set_output(self, output: int | str, value: rewire.types.Array | rewire.program.Capacity | None, function: str | None = None) -> None:
        """
        Lets runs write an output, by name or place, into this writable array, which is kept. A Capacity is
        memory for an output whose size only the run knows. None lets the machine allocate it again. Raises
        InvalidArgumentError if it does not match.
        """

    def donate(self, input: int | str, output: int | str, function: str | None = None) -> None:
        """
        Lets an output take the memory of an input, which a run then overwrites: state updated in place.
        """

    def invoke(self, function: str | None = None, timeout: float | None = None) -> None:
        """
        Runs a function with what is set; None is the entry. `timeout` is in seconds. The GIL is not held.
        """

    def cancel(self) -> None:
        """
        Ends the run that is going on, which then raises CancelledError. Any thread may call it.
        """

    def output(self, output: int | str) -> numpy.typing.NDArray[Any]:
        """
        Returns an output of the last run, by name or place: an array over its memory.
        """

    def outputs(self, function: str | None = None) -> dict[str, numpy.typing.NDArray[Any]]:
        """Returns all outputs of the last run, a dict by name."""

    def output_report(self, output: int | str, function: str | None = None) -> tuple[bool, str]:
        """Returns whether the last run copied a bound output, and why."""

    def require_zero_copy(self, required: bool = True) -> None:
        """Makes a run fail that would have to copy an output."""

    def set_limits(self, steps: int | None = None, bytes: int | None = None) -> None:
        """Limits the instructions and the memory of each run. None: no limit."""

    def state(self, function: str | None = None) -> bytes:
        """
        Returns the inputs of a function that are set as bytes, which set_state() and C programs of vm-aot read.
        Donated inputs hold what the last run wrote.
        """

    def set_state(self, state: bytes) -> str:
        """
        Sets the inputs that a state has, to copies, and returns the name of their function. Raises
        InvalidArgumentError for the state of another executable, InvalidFileError for damaged bytes.
        """

    def save_state(self, path: rewire.types.Path, function: str | None = None) -> None:
        """Writes state() to a file."""

    def load_state(self, path: rewire.types.Path) -> str:
        """
        Reads a file of save_state(), vm-run or a C program as set_state() does.
        """

    def clear_inputs(self, function: str | None = None) -> None:
        """Forgets the inputs that are set, and lets go of the arrays."""

    def clear_outputs(self, function: str | None = None) -> None:
        """Lets the machine allocate all outputs again."""

    def trim(self) -> None:
        """Releases all memory that no live value uses, the last result included."""

    @property
    def bytes_held(self) -> int:
        """Bytes that the machine holds now. Any thread may ask during a run."""

    @property
    def bytes_peak(self) -> int:
        """The most bytes that it has held. Any thread may ask during a run."""

def _compile(model: Any, folder: str, name: str, dims: dict[str, int], max_dims: dict[str, int], disabled_passes: Iterable[str], external_folders: list[str], precision: str, calibrate: list[dict[str, Any]], calibration: str, max_error: float, keep_float: Iterable[str], device: str, device_work: int, parallel: bool, cpu: str, compress: bool, check_passes: bool, strict: bool, parameters: Iterable[str], all_parameters: bool, initializers: ParameterSet, external_files: dict[str, Any], overridden: Iterable[str], operators: str, cache: str, shards: int, stages: int, rank: int, shard_for_memory: bool, progress: Callable[[str], object] | None) -> tuple[Executable | None, Any, Any]:
    """Compiles a model."""

def compiler_passes() -> list[str]:
    """Returns the names of the passes that can be disabled."""

def _usual_times(runs: list[int], places: list[list[int]]) -> tuple[list[tuple[float, float, int, int]], list[int], list[int]]:
    """Returns what places of a program usually take in a run."""

def _profile(program: Program, args: tuple[Any, ...], function: str | None, repeat: int, warmup: int) -> tuple[list[tuple[int, int]], list[rewire.profile.Call]]:
    """
    Runs a program and returns the times of the runs and of every kernel call.
    """

def _run_tool(name: str, arguments: Iterable[str]) -> int:
    """
    Runs a command line tool and returns its exit code. The process is the tool's from then on: it handles
    signals as the tool does.
    """
