# SPDX-License-Identifier: Apache-2.0
"""A model that is given batches: columns by name in, columns by name out, a row for each row."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

import numpy
import rewire

from rewire_integrations import columns as _columns, model_file
from rewire_integrations.columns import Array
from rewire_integrations.row_plan import RowPlan


class BatchModel:
    """Runs a model over batches of any number of rows.

        model = BatchModel("model.onnx", max_rows=256)
        model({"image": images})            # {"scores": an array with a row for each image}
        model(table)                        # a pyarrow.Table or RecordBatch with the columns of the outputs behind its own

    A row is one step along the first dimension of each input. Where that dimension is symbolic, a batch is one run; `max_rows`
    cuts larger batches into several. Where it is a number B, batches are cut into runs of B rows, and the last one is filled up
    with copies of its last row, whose results nobody sees. All runs write into the same arrays: an output has one array for the
    whole batch, and the kernels write each part of it where it lies if the output plan allows (Program.explain_outputs).

    `model` is the path of an .onnx or .rwx file, on every machine that runs it. The object is small: pickling it carries the path
    and the arguments, and the file is opened where and when a batch comes. All processes of a machine map one file, so that its
    weights are in memory once (executable_of).

    `columns` names the column of each input, {"image": "pixels"}; an input without an entry takes the column of its own name. `outputs`
    names the outputs to return, as a list, or as a dict of the columns that they become. `fixed` are arrays for inputs that are the
    same for all rows. Numbers are cast within their kind (float64 to float32); anything else is an error. A column of flat rows is
    given the input's shape if its rows have as many elements.

    `dims` and `max_dims` are as for rewire.compile, and are for .onnx models. `threads` is the number of threads of a run; engines
    run a process for each core, so it is 1. `timeout` is seconds for one run. `load` are further arguments of rewire.load.

    Any number of threads may call one object.
    """

    def __init__(self, model: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None,
                 outputs: Iterable[str] | Mapping[str, str] | None = None, fixed: Mapping[str, Any] | None = None,
                 max_rows: int | None = None, dims: Mapping[str, int] | None = None,
                 max_dims: Mapping[str, int] | None = None, threads: int = 1, timeout: float | None = None,
                 load: Mapping[str, Any] | None = None) -> None:
        if max_rows is not None and max_rows < 1:
            raise rewire.InvalidArgumentError(f"max_rows is {max_rows}, expected at least 1")
        self.model = os.fspath(model)
        self._columns = dict(columns or {})
        self._outputs = None if outputs is None else dict(outputs) if isinstance(outputs, Mapping) else {each: each for each in outputs}
        self._fixed = {name: numpy.asarray(value) for name, value in (fixed or {}).items()}
        self._max_rows = max_rows
        self._sizes = {"dims": dict(dims or {}), "max_dims": dict(max_dims or {})}
        self._timeout = timeout
        self._load = {"threads": threads, **(load or {})}
        self._opened: RowPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def plan(self) -> RowPlan:
        """Opens the model in this process, if that has not happened, and returns what is known of its rows."""
        if self._opened is None:
            executable = model_file.executable_of(self.model, **self._sizes)
            program = model_file.program_of(executable, self._load)
            self._opened = RowPlan(program, self._columns, self._outputs, self._fixed)
        return self._opened

    @property
    def program(self) -> rewire.Program:
        """The program of this process. All models of one file and one set of arguments share it."""
        return self.plan().program

    @property
    def input_columns(self) -> list[str]:
        """The columns that a batch must have."""
        return list(self.plan().inputs)

    def __call__(self, batch: Any) -> Any:
        """Runs a batch: a dict of columns, a pandas DataFrame, or a pyarrow.Table or RecordBatch.

        Returns a dict of numpy arrays by column; of Arrow data, the same kind of data with the columns of the outputs appended.
        Raises InvalidArgumentError that names the column, and the errors of runs.
        """
        if _columns.is_arrow(batch):
            return self.append(batch)
        return self.run({name: _columns.rows_of(name, self._column(batch, name)) for name in self.input_columns})

    def append(self, batch: Any, *, lists: bool = False) -> Any:
        """Runs a pyarrow.Table or RecordBatch, and returns one with the columns of the outputs behind its own.

        Nothing of the batch is copied, and the new columns are over the memory that the model has written. `lists` is as for
        columns.as_arrow. A column of an output's name is replaced.
        """
        results = self.run({name: _columns.rows_of(name, self._column(batch, name)) for name in self.input_columns})
        for name, array in results.items():
            made = _columns.as_arrow(array, lists=lists)
            at = batch.schema.get_field_index(name)
            batch = batch.append_column(name, made) if at < 0 else batch.set_column(at, name, made)
        return batch

    def _column(self, batch: Any, name: str) -> Any:
        names = batch.schema.names if _columns.is_arrow(batch) else list(batch.keys())
        if name not in names:
            raise rewire.InvalidArgumentError(
                f"the batch has no column {name!r}; it has {', '.join(map(repr, names)) or 'none'}. "
                "`columns` says which column an input takes")
        return batch.column(name) if _columns.is_arrow(batch) else batch[name]

    def run(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Runs arrays by the column's name, as columns.rows_of gives them, and returns the outputs by the column's name."""
        plan = self.plan()
        inputs = {source.name: plan.fitted(column, arrays[column]) for column, source in plan.inputs.items()}
        rows = plan.count(inputs)
        results = plan.outputs_for(rows, inputs)
        step = plan.rows_of_a_run or self._max_rows or max(rows, 1)
        parts: list[dict[str, Array]] = []
        for begin in range(0, rows, step):
            end = min(begin + step, rows)
            out = {name: array[begin:end] for name, array in results.items()}
            parts.append(self._run_rows(plan, {name: array[begin:end] for name, array in inputs.items()}, out, end - begin))
        made = {name: results.get(name) if name in results else plan.joined(name, [part[name] for part in parts])
                for name in plan.outputs}
        return {plan.outputs[name].column: array for name, array in made.items() if array is not None}

    def _run_rows(self, plan: RowPlan, inputs: dict[str, Array], out: dict[str, Array], rows: int) -> dict[str, Array]:
        """One run. Rows that are missing to the model's own number are filled up, and then results are cut and copied."""
        missing = (plan.rows_of_a_run or rows) - rows
        if not missing:
            return plan.run({**inputs, **self._fixed}, out, rows, self._timeout)
        filled = {name: numpy.concatenate([array, numpy.repeat(array[-1:], missing, axis=0)]) for name, array in inputs.items()}
        results = plan.run({**filled, **self._fixed}, {}, rows + missing, self._timeout)
        for name, array in out.items():
            array[...] = results[name][:rows]
        return {name: array[:rows] for name, array in results.items()}
