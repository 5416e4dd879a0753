# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs models with Rewire, in this process."""

import ctypes
import pathlib

import numpy as np
import rewire

import evaluate


class Refused(Exception):
    """The compiler does not take the model. `nodes` are those that it lists, if it lists any."""

    def __init__(self, text, nodes=()):
        super().__init__(text)
        self.nodes = nodes


class Failed(Exception):
    """A run ends with an error."""


PASSES = tuple(rewire.compiler_passes())
# A compile opens libraries of kernels and closes those that nobody else has open. Where they stay open it takes a sixth of the time.
_KEPT_OPEN = [ctypes.CDLL(str(path)) for path in (pathlib.Path(rewire.__file__).parent / "_native" / "rewire").glob("librewire_kernels_*.so")]


def compile_model(data, **options):
    try:
        return rewire.compile(data, check_passes=True, **options)
    except rewire.Error as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:500]}", getattr(error, "unsupported", ())) from None


def load(executable, threads=1):
    try:
        return rewire.load(executable, threads=threads)
    except rewire.Error as error:
        raise Failed(f"loading: {type(error).__name__}: {str(error)[:500]}") from None


def array_of(value):
    """A result as the oracles have it."""
    if isinstance(value, rewire.Adt):
        return [array_of(value[i]) for i in range(len(value))]
    return evaluate.normal(value)


def run(program, feeds, names, **options):
    """The outputs of the model in its order."""
    try:
        wanted = {each.name for each in program.inputs}
        texts = set(program.input_strings)
        given = {name: array for name, array in feeds.items() if name in wanted or name in texts}
        results = program.run(given, timeout=20, **options)
        return [array_of(results[name]) for name in names]
    except rewire.Error as error:
        raise Failed(f"{type(error).__name__}: {str(error)[:500]}") from None


def poisoned(arrays):
    """Arrays for outputs, filled with what no result is."""
    made = []
    for array in arrays:
        made.append(np.frombuffer(b"\xa5" * array.nbytes, array.dtype).reshape(array.shape).copy() if array.dtype.kind != "b" else np.ones(array.shape, bool))
    return made
