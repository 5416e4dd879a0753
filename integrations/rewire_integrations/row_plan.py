# SPDX-License-Identifier: Apache-2.0
"""What is known of a program whose inputs and outputs have a row for each row of a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy
import rewire
from rewire.signature import TensorInfo

from rewire_integrations.columns import Array


@dataclass(frozen=True)
class OutputColumn:
    """An output, and the column that it becomes."""

    column: str
    info: TensorInfo


class RowPlan:
    """The inputs and outputs of a program, seen as columns. It never changes, so threads may share it.

    `inputs` has the TensorInfo of each input by its column, `outputs` an OutputColumn by the output's name. `rows_of_a_run` is the
    number of rows that every run must have, or None if the first dimension is symbolic.
    """

    def __init__(self, program: rewire.Program, columns: Mapping[str, str], outputs: Mapping[str, str] | None,
                 fixed: Mapping[str, Array]) -> None:
        self.program = program
        inputs = self._whole({info.name: info for info in program.inputs})
        results = self._whole({info.name: info for info in program.outputs})
        self._require_known("columns", columns, inputs)
        self._require_known("fixed", fixed, inputs)
        self._require_known("outputs", outputs or {}, results)
        self.inputs: dict[str, TensorInfo] = {}
        for name, info in inputs.items():
            if name not in fixed:
                column = columns.get(name, name)
                if column in self.inputs:
                    raise rewire.InvalidArgumentError(f"columns: two inputs take the column {column!r}")
                self.inputs[column] = info
        if not self.inputs:
            raise rewire.InvalidArgumentError("the model has no input that a batch could give: all of them are fixed")
        chosen = {name: name for name in results} if outputs is None else outputs
        self.outputs = {name: OutputColumn(column, results[name]) for name, column in chosen.items()}
        self._texts = frozenset(program.input_strings)
        texts = {info.name for info in program.outputs} - set(results)
        self._computed = frozenset(program.output_strings) | {name.removesuffix(".bytes") for name in texts}
        self.rows_of_a_run = self._rows_of_a_run()

    @staticmethod
    def _whole(tensors: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
        """Without the offsets and bytes of strings, which the program has beside the positions that bear the name."""
        return {name: info for name, info in tensors.items()
                if not any(name == f"{text}{part}" for text in tensors for part in (".offsets", ".bytes"))}

    @staticmethod
    def _require_known(what: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        for name in given:
            if name not in known:
                raise rewire.InvalidArgumentError(
                    f"{what}: the model has no {'output' if what == 'outputs' else 'input'} {name!r}; it has {', '.join(known)}")

    def _rows_of_a_run(self) -> int | None:
        firsts: set[int | str | None] = set()
        for info in self.inputs.values():
            if info.shape is not None and len(info.shape) == 0:
                raise rewire.InvalidArgumentError(
                    f"input {info} has no dimension of rows, so a batch cannot give it; give its value by `fixed`")
            firsts.add(None if info.shape is None else info.shape[0])
        numbers = {first for first in firsts if isinstance(first, int)}
        if len(numbers) > 1 or (numbers and len(firsts) > 1):
            said = ", ".join(map(str, self.inputs.values()))
            raise rewire.InvalidArgumentError(
                f"the first dimensions of the inputs do not count the same rows: {said}; compile the model with one symbolic first "
                "dimension, or give inputs that are the same for all rows by `fixed`")
        return numbers.pop() if numbers else None

    def fitted(self, column: str, array: Array) -> Array:
        """The array of a column as its input takes it: cast within the kind, and shaped where rows are flat."""
        info = self.inputs[column]
        if info.name in self._texts:
            return array
        dtype = info.dtype
        # No rows say nothing of their type if they are objects, and nothing of their length if they are lists.
        if len(array) == 0 and (array.dtype == object or 0 in array.shape[1:]):
            array = numpy.empty([0, *(size if isinstance(size, int) else 0 for size in (info.shape or ())[1:])], dtype)
        if dtype is not None and array.dtype != dtype:
            if not numpy.can_cast(array.dtype, dtype, "same_kind"):
                raise rewire.InvalidArgumentError(
                    f"column {column!r}: elements of {dtype} are expected by input {info}, {array.dtype} is given; cast the column")
            array = array.astype(dtype)
        shape = info.shape
        if shape is None or self._fits(shape[1:], array.shape[1:]):
            return array
        rest = shape[1:]
        if all(isinstance(size, int) for size in rest) and math.prod(array.shape[1:]) == math.prod(
                size for size in rest if isinstance(size, int)):
            return array.reshape(len(array), *(size for size in rest if isinstance(size, int)))
        said = ", ".join("?" if size is None else str(size) for size in rest)
        raise rewire.InvalidArgumentError(
            f"column {column!r}: rows of shape ({said}) are expected by input {info}, rows of {array.shape[1:]} are given")

    @staticmethod
    def _fits(expected: Sequence[int | str | None], given: Sequence[int]) -> bool:
        return len(expected) == len(given) and all(
            not isinstance(size, int) or size == actual for size, actual in zip(expected, given))

    def count(self, inputs: Mapping[str, Array]) -> int:
        """The number of rows, which all inputs must share."""
        counts = {name: len(array) for name, array in inputs.items()}
        if len(set(counts.values())) > 1:
            raise rewire.InvalidArgumentError(
                "columns of one length are expected, given are " + ", ".join(f"{name!r}: {rows}" for name, rows in counts.items()))
        return next(iter(counts.values()))

    def outputs_for(self, rows: int, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """New arrays for the outputs whose size is known before the run. An empty batch runs nothing, so it has all of them."""
        sizes: dict[str, int] = {}
        of_rows: set[int | str | None] = {info.shape[0] for info in self.inputs.values() if info.shape}
        for info in self.inputs.values():
            for size, actual in zip(info.shape or (), inputs[info.name].shape):
                if isinstance(size, str):
                    sizes[size] = actual
        made = {}
        for name, output in self.outputs.items():
            info = output.info
            if name in self._computed or info.shape is None or len(info.shape) == 0:
                if rows == 0:
                    made[name] = numpy.empty((0,), object if name in self._computed else info.dtype)
                continue
            # A later dimension that counts rows has another size in each run of a batch.
            shape = [rows, *(None if size in of_rows and isinstance(size, str) else sizes.get(size) if isinstance(size, str) else size
                             for size in info.shape[1:])]
            known = [size for size in shape if size is not None]
            if info.dtype is not None and (rows == 0 or self._counts_rows(info, sizes, rows)):
                if len(known) == len(shape):
                    made[name] = numpy.empty(known, info.dtype)
                elif rows == 0:
                    made[name] = numpy.empty([size or 0 for size in shape], info.dtype)
        return made

    def _counts_rows(self, info: TensorInfo, sizes: Mapping[str, int], rows: int) -> bool:
        assert info.shape is not None
        first = info.shape[0]
        return first == self.rows_of_a_run if isinstance(first, int) else first is not None and sizes.get(first) == rows

    def run(self, inputs: Mapping[str, Array], out: dict[str, Array], rows: int, timeout: float | None) -> dict[str, Array]:
        """Runs the program. Raises InvalidArgumentError for an output that has not a row for each row."""
        results = self.program.run(inputs, out=out or None, timeout=timeout)
        for name in self.outputs:
            result = results[name]
            if not isinstance(result, numpy.ndarray):
                raise rewire.InvalidArgumentError(
                    f"output {self.outputs[name].info} is no array of numpy; name the outputs that a batch needs by `outputs`")
            if result.ndim == 0 or len(result) != rows:
                raise rewire.InvalidArgumentError(
                    f"output {self.outputs[name].info} has the shape {result.shape} for {rows} rows, so it has no row for each; name "
                    "the outputs that a batch needs by `outputs`")
        return results

    def joined(self, name: str, parts: Sequence[Array]) -> Array:
        """The output of several runs, whose size only the runs knew."""
        if len(parts) == 1:
            return parts[0]
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) > 1:
            raise rewire.InvalidArgumentError(
                f"output {self.outputs[name].info} has rows of different shapes in one batch: {sorted(shapes)}; let max_rows be as "
                "large as the batches")
        return numpy.concatenate(parts)
