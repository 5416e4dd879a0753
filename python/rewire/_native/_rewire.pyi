"""The native part of the package rewire."""

from collections.abc import Sequence
from typing import overload


class Tensor:
    """
    A tensor in memory of a program or of whoever gave it. It has the buffer protocol and
    DLPack, so that other libraries read it without a copy, and keeps its memory alive. Any
    thread may use it.
    """

    @property
    def shape(self) -> object:
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

    def numpy(self) -> object:
        """Returns a numpy array over the same memory."""

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: object | None = None) -> object:
        """
        Returns a DLPack capsule, over the same memory unless copy=True. Raises BufferError for another
        device, for a stream that the device does not have, and for a read-only tensor if max_version is
        below (1, 0).
        """

    def __dlpack_device__(self) -> tuple:
        """Returns DLPack's type and number of the device."""

    def __repr__(self) -> str: ...

def tensor(array: object) -> Tensor:
    """Returns a Tensor over the memory of an array, which it keeps alive."""

class Adt:
    """
    A tagged tuple of values, such as a sequence of ONNX. Fields are made when they are read:
    numpy arrays over the program's memory, ints, or further Adts.
    """

    def __init__(self, tag: int, fields: Sequence) -> None:
        """
        Makes one of arrays, ints and Adts. The arrays are not copied and must be contiguous.
        """

    @property
    def tag(self) -> int:
        """The constructor's number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> object: ...

    def __repr__(self) -> str: ...

class Executable:
    """
    A verified program that is not linked: none of its code has run. Immutable; any number
    of threads may use one.
    """

    @property
    def functions(self) -> list:
        """The names of the functions."""

    @property
    def kernels(self) -> list:
        """The names of the kernels that linking must find."""

    @property
    def metadata(self) -> dict:
        """What the file says about itself, such as its producer."""

    def to_bytes(self) -> bytes:
        """Returns the bytes of the .rwx file."""

    def save(self, path: object) -> None:
        """Writes the .rwx file, which is complete or unchanged. Raises IoError."""

def assemble(text: str, directory: str = '') -> Executable:
    """
    Returns the Executable that text assembly describes. Relative @files start in `directory`. Raises
    InvalidArgumentError with a line for each mistake, or VerificationError.
    """

class ParameterSet:
    """
    Named weights for programs that are loaded without them. Files are mapped, not
    read, and arrays are kept, not copied. Programs and processes share a set.
    """

    @staticmethod
    def from_file(path: object) -> ParameterSet:
        """
        Opens a .safetensors, .rwx or TVM parameter file. Raises NotFoundError, IoError or
        InvalidFileError.
        """

    @staticmethod
    def from_safetensors(path: object) -> ParameterSet:
        """The same as from_file."""

    @staticmethod
    def from_arrays(arrays: dict) -> ParameterSet:
        """
        Makes a set of a dict of arrays by name. The set keeps the arrays, which nobody may write
        while a program uses them.
        """

    @staticmethod
    def from_program(program: Program) -> ParameterSet:
        """
        The parameters that a program was loaded with, and its named constants.
        """

    def names(self) -> list:
        """The names, sorted."""

    def __len__(self) -> int: ...

    def __contains__(self, name: str) -> bool: ...

    def __getitem__(self, name: str) -> object:
        """An array over the parameter's memory. Raises KeyError."""

    def __repr__(self) -> str: ...

class Program:
    @overload
    def __init__(self, executable: Executable, threads: int = 1, kernels: Sequence = (), parameters: Sequence = (), ignore_extra_parameters: bool = False, zero_new_storage: bool = False, trust_device_code: bool = False) -> None: ...

    @overload
    def __init__(self, program: Program, parameters: Sequence) -> None: ...

    def __call__(self, *args, **kwargs) -> dict:
        """
        Runs the entry function and returns its outputs, a dict of arrays by name. Inputs are given by
        place, by name, or as one dict. Any number of threads may call at once; the GIL is not held.
        """

    @property
    def executable(self) -> Executable:
        """The executable that the program was linked from."""

class VirtualMachine:
    """
    Runs functions of a program with inputs and outputs that stay set from run to run. One
    thread at a time: during a run every call but cancel(), bytes_held and bytes_peak raises
    BusyError, on another thread and inside a Python kernel of the run.
    """

    def __init__(self, program: Program) -> None: ...

    def set_input(self, input: object, value: object, copy: bool = False, function: object | None = None) -> None:
        """
        Sets an input, by name or place, until it is set again. The array is kept and read when a function
        runs; with copy=True its elements are copied now. Raises InvalidArgumentError if it does not match.
        """

    def set_output(self, output: object, value: object | None, function: object | None = None) -> None:
        """
        Lets runs write an output, by name or place, into this writable array, which is kept. None lets the
        machine allocate it again. Raises InvalidArgumentError if it does not match.
        """

    def donate(self, input: object, output: object, function: object | None = None) -> None:
        """
        Lets an output take the memory of an input, which a run then overwrites: state updated in place.
        """

    def invoke(self, function: object | None = None, timeout: object | None = None) -> None:
        """
        Runs a function with what is set; None is the entry. `timeout` is in seconds. The GIL is not held.
        """

    def cancel(self) -> None:
        """
        Ends the run that is going on, which then raises CancelledError. Any thread may call it.
        """

    def output(self, output: object) -> object:
        """
        Returns an output of the last run, by name or place: an array over its memory.
        """

    def outputs(self, function: object | None = None) -> dict:
        """Returns all outputs of the last run, a dict by name."""

    def output_report(self, output: object, function: object | None = None) -> object:
        """Returns whether the last run copied a bound output, and why."""

    def require_zero_copy(self, required: bool = True) -> None:
        """Makes a run fail that would have to copy an output."""

    def set_limits(self, steps: object | None = None, bytes: object | None = None) -> None:
        """Limits the instructions and the memory of each run. None: no limit."""

    def clear_inputs(self, function: object | None = None) -> None:
        """Forgets the inputs that are set, and lets go of the arrays."""

    def clear_outputs(self, function: object | None = None) -> None:
        """Lets the machine allocate all outputs again."""

    def trim(self) -> None:
        """Releases all memory that no live value uses, the last result included."""

    @property
    def bytes_held(self) -> int:
        """Bytes that the machine holds now. Any thread may ask during a run."""

    @property
    def bytes_peak(self) -> int:
        """The most bytes that it has held. Any thread may ask during a run."""

def compiler_passes() -> list[str]:
    """Returns the names of the passes that can be disabled."""
