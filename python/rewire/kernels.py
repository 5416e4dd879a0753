# SPDX-License-Identifier: Apache-2.0
"""Python functions as kernels."""


class Kernel:
    """A Python function under the name by which programs import it. Calling it calls the function."""

    def __init__(self, name, function):
        self.name = name
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, *args):
        return self.function(*args)

    def __repr__(self):
        return f"rewire.kernel({self.name!r})"


def kernel(name):
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

    def wrap(function):
        if not callable(function):
            raise TypeError(f"rewire.kernel({name!r}): expected a function, got {type(function).__name__}")
        return Kernel(name, function)

    return wrap


def native(kernels):
    """Kernels as the extension takes them: paths of libraries, and (name, function) pairs."""
    result = []
    items = kernels.items() if isinstance(kernels, dict) else kernels
    for item in items:
        if isinstance(item, Kernel):
            result.append((item.name, item.function))
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and callable(item[1]):
            result.append(item)
        elif isinstance(item, (str, bytes)) or hasattr(item, "__fspath__"):
            import os

            result.append(os.fsdecode(item))
        else:
            raise TypeError(
                "kernels: expected paths of libraries, functions of @rewire.kernel, or a dict of functions by name; "
                f"got {item!r}")
    return result
