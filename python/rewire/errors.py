# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Rewire: one tree, with the codes of the C and C++ interfaces.

Each class also is the builtin exception that Python code would expect: a wrong argument is a ValueError, a missing
name a LookupError, a missing file a FileNotFoundError, too, and a run that took too long a TimeoutError.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, ClassVar, Sequence

from rewire._native import _rewire

if TYPE_CHECKING:
    from rewire.compiler import UnsupportedNode


class Error(Exception):
    """The base of all of them. `code` is the number of rewire::StatusCode, `code_name` its name."""

    code: ClassVar[int] = 0

    @property
    def code_name(self) -> str:
        return _rewire._status_name(self.code)


class InvalidArgumentError(Error, ValueError):
    """A wrong name, index, dtype, shape or option was given. The message says what was expected."""

    code = 1


class NotFoundError(Error, LookupError):
    """There is no such function, input, kernel library or file. For files it is the subclass MissingFileError."""

    code = 2


class MissingFileError(NotFoundError, FileNotFoundError):
    """There is no such file. `errno` is ENOENT."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.ENOENT


class IoError(Error, OSError):
    """The operating system refused a read or a write."""

    code = 3


class InvalidFileError(Error, ValueError):
    """The file is not what it should be, or is damaged."""

    code = 4


class UnsupportedError(Error, NotImplementedError):
    """Well-formed, but too new, or it needs a part that this build lacks.

    `unsupported` lists the nodes of a model that cannot be compiled, as UnsupportedNode; it is empty for other causes.
    """

    code = 5
    unsupported: Sequence[UnsupportedNode] = ()


class VerificationError(Error, ValueError):
    """The executable breaks a rule of the verifier."""

    code = 6


class LinkError(Error):
    """Kernels or parameters are missing or do not match. The message lists them all."""

    code = 7


class RunError(Error, RuntimeError):
    """An instruction failed: a shape, a dtype, a bound, or the program's own check."""

    code = 8


class KernelError(Error, RuntimeError):
    """A kernel returned an error. If a Python kernel raised an exception, that is the `__cause__`."""

    code = 9


class DepthLimitError(Error, RecursionError):
    """Calls within calls went too deep."""

    code = 10


class StepLimitError(Error, RuntimeError):
    """More instructions or work than allowed."""

    code = 11


class MemoryLimitError(Error, MemoryError):
    """More memory than allowed."""

    code = 12


class DeadlineExceededError(Error, TimeoutError):
    """The time given was over before the work was done."""

    code = 13


class CancelledError(Error):
    """VirtualMachine.cancel() ended the run."""

    code = 14


class OutOfMemoryError(Error, MemoryError):
    """There is no memory left."""

    code = 15


class BusyError(Error, RuntimeError):
    """A machine serves one thread at a time, and another one is using it."""

    code = 16


class InternalError(Error, RuntimeError):
    """A bug in Rewire; please report it."""

    code = 17


_rewire._set_error_classes([
    Error, InvalidArgumentError, NotFoundError, IoError, InvalidFileError, UnsupportedError, VerificationError,
    LinkError, RunError, KernelError, DepthLimitError, StepLimitError, MemoryLimitError, DeadlineExceededError,
    CancelledError, OutOfMemoryError, BusyError, InternalError, MissingFileError,
])
