# SPDX-License-Identifier: Apache-2.0
"""Python functions as kernels."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Mapping, Sequence, Tuple, Union

from rewire.types import Path

Function = Callable[..., Any]
NativeKernel = Union[str, Tuple[str, Function]]
"""A kernel as the extension takes it: the path of a library, or a name and a function."""


class Kernel:
    """A Python function under the name by which programs import it. Calling it calls the function."""

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self.function = function
        self.__doc__ = function.__doc__
        self.__module__ = getattr(function, "__module__", __name__)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __reduce__(self) -> str:
        # By the name of the function, in whose place the kernel stands.
        return getattr(self.function, "__qualname__", repr(self.function))

    def __repr__(self) -> str:
        return f"rewire.kernel({self.name!r})"


def kernel(name: str) -> Callable[[Function], Kernel]:
    """Makes a kernel of a function: give it to `load` as `kernels=[...]`.

        @rewire.kernel("mine.scale")
        def scale(x, out):
            out[...] = 2 * x

    The function gets a numpy array for each tensor, over the program's memory, and ints, floats and strings as they are.
    It writes the arrays that the import declares as written; the others are read-only. It may return None, an int, a
    float or an array. An exception ends the run with KernelError, whose `__cause__` it is.

    The arrays end with the call, because the program uses their memory again. To keep one, keep a copy. If the function
    keeps an array, a view or an export of one, the run ends with KernelError, whose `__cause__` is a BufferError.

    The function runs with the GIL held, on the thread of the run. Several threads may call it at once.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"rewire.kernel: expected the name of the kernel, got {name!r}")

    def wrap(function: Function) -> Kernel:
        if not callable(function):
            raise TypeError(f"rewire.kernel({name!r}): expected a function, got {type(function).__name__}")
        return Kernel(name, function)

    return wrap


Kernels = Union[Sequence[Union[Kernel, NativeKernel, Path]], Mapping[str, Function]]
"""The kernels of a program: paths of libraries and functions of @rewire.kernel, or a dict of functions by name."""


def native(kernels: Kernels) -> list[NativeKernel]:
    """Kernels as the extension takes them: paths of libraries, and (name, function) pairs."""
    if isinstance(kernels, (str, bytes, os.PathLike, Kernel)):
        kernels = [kernels]
    result: list[NativeKernel] = []
    items: Iterable[Any] = kernels.items() if isinstance(kernels, Mapping) else kernels
    for item in items:
        if isinstance(item, Kernel):
            result.append((item.name, item.function))
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and callable(item[1]):
            result.append(item)
        elif isinstance(item, (str, bytes, os.PathLike)):
            result.append(os.fsdecode(item))
        else:
            raise TypeError(
                "kernels: expected paths of libraries, functions of @rewire.kernel, or a dict of functions by name; "
                f"got {item!r}")
    return result
