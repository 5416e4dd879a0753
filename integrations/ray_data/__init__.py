# SPDX-License-Identifier: Apache-2.0
"""Batches of Ray Data through a model."""

from __future__ import annotations

from typing import Any, Sequence

import rewire

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.columns import is_arrow

__all__ = ["Predictor"]


class Predictor:
    """The class for `Dataset.map_batches`: each worker makes one, and Ray calls it with batches.

        scored = dataset.map_batches(Predictor, fn_constructor_kwargs={"model": "/models/model.onnx"}, concurrency=4)

    The workers of a machine map one file, so the weights are in memory once. The model is opened when the worker begins, so a
    wrong path ends the job before the first batch.

    `keep` says which columns of the batch come out again: True for all, or their names. `options` are those of BatchModel.
    `batch_format` of map_batches may be "numpy", "pandas" or "pyarrow". With "numpy", tensors of Ray's Arrow blocks are read where
    they lie in the object store; an output of a column's name takes its place. Numbers, and outputs with one axis more than the
    rows, come back to Ray as numpy arrays, of which it makes its tensors.
    """

    def __init__(self, model: str, *, keep: bool | Sequence[str] = True, **options: Any) -> None:
        self._model = BatchModel(model, **options)
        self._keep = keep
        self._model.plan()

    def __call__(self, batch: Any) -> Any:
        if is_arrow(batch):
            scored = self._model(batch)
            if self._keep is True:
                return scored
            outputs = [output.column for output in self._model.plan().outputs.values()]
            kept = [name for name in self._kept(batch.schema.names) if name not in outputs]
            return scored.select([*kept, *outputs])
        results = self._model(batch)
        if isinstance(batch, dict):
            return {**{name: batch[name] for name in self._kept(list(batch))}, **results}
        kept = batch[self._kept(list(batch.columns))]
        return kept.assign(**{name: array if array.ndim == 1 else list(array) for name, array in results.items()})

    def _kept(self, names: Sequence[str]) -> list[str]:
        if isinstance(self._keep, bool):
            return list(names) if self._keep else []
        missing = [name for name in self._keep if name not in names]
        if missing:
            raise rewire.InvalidArgumentError(f"keep: the batch has no column {missing[0]!r}; it has {', '.join(map(repr, names))}")
        return list(self._keep)
