# SPDX-License-Identifier: Apache-2.0
"""A model for Apache Beam's RunInference."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence, Union

import numpy
import rewire
from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.columns import Array, is_arrow, rows_of

__all__ = ["RewireModelHandler"]

Example = Union[Array, Mapping[str, Any]]
"""An element: the array of a model with one input, or arrays by the columns of the inputs; without the dimension of rows."""

_OF_BATCHES = ("min_batch_size", "max_batch_size", "max_batch_duration_secs", "max_batch_weight", "element_size_fn", "batch_length_fn",
               "batch_bucket_boundaries")


class RewireModelHandler(ModelHandler[Example, PredictionResult, BatchModel]):
    """Runs a model in RunInference.

        examples | RunInference(RewireModelHandler("/models/model.onnx", max_batch_size=64))
        keyed | RunInference(KeyedModelHandler(RewireModelHandler("/models/model.onnx")))
        batches | RunInference(RewireModelHandler("/models/model.onnx").with_no_batching())

    An element is an array, or a dict of arrays by column. Beam puts elements together, and their rows are copied into one batch. With
    `with_no_batching` an element is a batch already, and is read where it lies: an array with a row for each example, a dict of such
    arrays, or a RecordBatch or Table of pyarrow.

    The inference of a PredictionResult is a dict with an array for each output, a row of what the model has written for the batch. It
    keeps the whole batch's results in memory; copy it to keep it for long.

    Worker processes of a machine map one file, so that the weights are in memory once, and Beam need not share the model by a server
    process (large_model, model_copies). `options` are those of BatchModel. Arguments of Beam's ModelHandler for batches
    (min_batch_size, max_batch_size, ...) and `env_vars` go to it. A new path by Beam's model updates is opened as the first one.
    """

    def __init__(self, model: str, *, env_vars: Mapping[str, str] | None = None, **options: Any) -> None:
        for name in ("large_model", "model_copies"):
            if options.pop(name, None):
                raise rewire.InvalidArgumentError(
                    f"{name}: worker processes map the file of the model, so that there is one copy of its weights without a server "
                    "process; leave the argument out")
        of_batches = {name: options.pop(name) for name in _OF_BATCHES if name in options}
        super().__init__(env_vars=dict(env_vars or {}), **of_batches)
        self._first_path = model
        self._options = options
        self._model = BatchModel(model, **options)

    def load_model(self) -> BatchModel:
        """Opens the model in this process. Raises its errors before any element."""
        self._model.plan()
        return self._model

    def update_model_path(self, model_path: str | None = None) -> None:
        self._model = BatchModel(model_path or self._first_path, **self._options)

    def validate_inference_args(self, inference_args: Mapping[str, Any] | None) -> None:
        if inference_args:
            raise rewire.InvalidArgumentError(
                f"inference_args: none are known, {', '.join(inference_args)} given; values for all rows are given by `fixed`")

    def run_inference(self, batch: Any, model: BatchModel,
                      inference_args: Mapping[str, Any] | None = None) -> Iterable[PredictionResult]:
        self.validate_inference_args(inference_args)
        columns = self._columns_of(batch, model)
        results = model.run({name: columns[name] for name in model.input_columns})
        rows = len(next(iter(columns.values())))
        examples = batch if isinstance(batch, (list, tuple)) else None
        for row in range(rows):
            # Beam asks for the example beside its inference: of a batch in one piece, that is the batch's row.
            example = examples[row] if examples is not None else self._row(columns, row, batch)
            yield PredictionResult(example, {name: array[row] for name, array in results.items()}, model.model)

    @staticmethod
    def _row(columns: Mapping[str, Array], row: int, batch: Any) -> Example:
        return columns[next(iter(columns))][row] if isinstance(batch, numpy.ndarray) else {
            name: array[row] for name, array in columns.items()}

    @staticmethod
    def _columns_of(batch: Any, model: BatchModel) -> dict[str, Array]:
        names = model.input_columns
        if isinstance(batch, (list, tuple)):
            first = batch[0]
            if not isinstance(first, Mapping):
                return {RewireModelHandler._only(names): rows_of(names[0], numpy.stack([numpy.asarray(each) for each in batch]))}
            return {name: RewireModelHandler._stacked(name, batch) for name in names}
        if isinstance(batch, numpy.ndarray):
            return {RewireModelHandler._only(names): batch}
        given = batch.schema.names if is_arrow(batch) else list(batch)
        for name in names:
            if name not in given:
                raise rewire.InvalidArgumentError(f"the batch has no column {name!r}; it has {', '.join(map(repr, given))}")
        return {name: rows_of(name, batch.column(name) if is_arrow(batch) else batch[name]) for name in names}

    @staticmethod
    def _stacked(name: str, batch: Sequence[Mapping[str, Any]]) -> Array:
        for example in batch:
            if name not in example:
                raise rewire.InvalidArgumentError(f"an element has no {name!r}; it has {', '.join(map(repr, example))}")
        return numpy.stack([numpy.asarray(example[name]) for example in batch])

    @staticmethod
    def _only(names: Sequence[str]) -> str:
        if len(names) != 1:
            raise rewire.InvalidArgumentError(
                f"the model takes the columns {', '.join(map(repr, names))}, and an element is one array; give dicts by column")
        return names[0]

    def get_num_bytes(self, batch: Any) -> int:
        """The bytes of the tensors of a batch, which Beam counts."""
        if hasattr(batch, "nbytes"):
            return int(batch.nbytes)
        parts = batch if isinstance(batch, (list, tuple)) else [batch]
        return sum(sum(numpy.asarray(value).nbytes for value in part.values()) if isinstance(part, Mapping) else
                   numpy.asarray(part).nbytes for part in parts)

    def get_metrics_namespace(self) -> str:
        return "BeamML_Rewire"
