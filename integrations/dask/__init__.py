# SPDX-License-Identifier: Apache-2.0
"""Arrays and data frames of Dask through a model."""

from __future__ import annotations

from typing import Any

import numpy
import rewire

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.columns import as_arrow

__all__ = ["predict"]


def predict(data: Any, model: BatchModel) -> Any:
    """Returns the outputs for a dask.array.Array or a dask.dataframe.DataFrame, computed when Dask computes them.

        scores = predict(images, BatchModel("/models/model.onnx"))["scores"]     # arrays: a dict of arrays by output
        scored = predict(frame, BatchModel("/models/model.onnx"))                # a data frame with the columns of the outputs

    An array is for a model with one input. Its chunks along the first axis are the batches; its other axes become one chunk. A
    worker runs the model once for all outputs of a chunk. Each output's row must have a known shape.

    Of a data frame, each partition is a batch. Its outputs are columns behind its own, or in place of those of their names. An output
    with one value for each row is a plain column. Others are columns of Arrow lists over the memory that the model has written.

    Workers get the path of the model and open it there; all processes of a machine map one file. The process that calls this opens
    it, too, for the types of its outputs.
    """
    import dask.array

    if isinstance(data, dask.array.Array):
        return _of_array(data, model)
    if hasattr(data, "map_partitions"):
        return data.map_partitions(_of_frame, model, meta=_of_frame(data._meta, model), enforce_metadata=False)
    raise rewire.InvalidArgumentError(f"data: a dask.array.Array or a dask.dataframe.DataFrame is expected, {type(data)} is given")


def _of_array(data: Any, model: BatchModel) -> dict[str, Any]:
    import dask.array
    import dask.delayed

    names = model.input_columns
    if len(names) != 1:
        raise rewire.InvalidArgumentError(
            f"data: the model takes the columns {', '.join(map(repr, names))}, and an array is one; give a data frame")
    plan = model.plan()
    rows = data.rechunk({axis: -1 for axis in range(1, data.ndim)})
    empty = model.run({names[0]: numpy.empty((0, *data.shape[1:]), data.dtype)})
    for output in plan.outputs.values():
        if any(not isinstance(size, int) for size in (output.info.shape or (None, None))[1:]):
            raise rewire.InvalidArgumentError(
                f"output {output.info}: Dask needs the shape of its rows before it runs; fix the dimensions by `dims`, or give a data "
                "frame")
    run = dask.delayed(model.run, pure=True)
    blocks = [run({names[0]: block}) for block in rows.to_delayed().reshape(-1)]
    return {name: dask.array.concatenate([
        dask.array.from_delayed(block[name], (size, *sample.shape[1:]), sample.dtype)
        for block, size in zip(blocks, rows.chunks[0])]) for name, sample in empty.items()}


def _of_frame(frame: Any, model: BatchModel) -> Any:
    """A pandas DataFrame with the columns of the outputs."""
    import pandas

    columns = {}
    for name, array in model(frame).items():
        values: Any = array if array.ndim == 1 else pandas.arrays.ArrowExtensionArray(as_arrow(array, lists=True))
        columns[name] = pandas.Series(values, index=frame.index)
    return frame.assign(**columns)
