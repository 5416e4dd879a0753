# SPDX-License-Identifier: Apache-2.0
"""Data frames of Spark through a model, in the Python workers of the executors."""

from __future__ import annotations

import inspect
from typing import Any, Iterable, Iterator

import pyarrow
import rewire
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import DataFrame
from pyspark.sql import types as _types

from rewire_integrations.batch_model import BatchModel
from rewire_integrations.columns import Array, as_arrow, rows_of
from rewire_integrations.row_plan import OutputColumn

__all__ = ["arrow_udf", "predict_udf", "with_predictions"]

_SCALARS: dict[str | None, type[_types.DataType]] = {
    "f32": _types.FloatType, "f64": _types.DoubleType, "i8": _types.ByteType, "i16": _types.ShortType, "i32": _types.IntegerType,
    "i64": _types.LongType, "bool": _types.BooleanType,
}


def _type_of(model: BatchModel, output: OutputColumn) -> _types.DataType:
    info = output.info
    if info.name in model.program.output_strings:
        return _types.StringType()
    if info.element_type not in _SCALARS or info.shape is None:
        raise rewire.UnsupportedError(
            f"output {info}: Spark has columns of {', '.join(str(each) for each in _SCALARS)} with a known rank; name the outputs to "
            "return by `outputs`, or cast this one in the model")
    made: _types.DataType = _SCALARS[info.element_type]()
    for _ in info.shape[1:]:
        made = _types.ArrayType(made)
    return made


def _outputs_of(model: BatchModel) -> list[tuple[str, _types.DataType]]:
    return [(output.column, _type_of(model, output)) for output in model.plan().outputs.values()]


class _Append:
    """The function of mapInArrow. Workers get it pickled, with the path of the model."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield self._model.append(batch, lists=True)


def with_predictions(frame: DataFrame, model: BatchModel) -> DataFrame:
    """Returns a data frame with a column for each output behind the columns of `frame`, or in place of one of its name.

    It runs by DataFrame.mapInArrow: the model reads Arrow's memory and writes the memory of the new columns. Outputs with more axes
    than rows are arrays of Spark. Rows of an Arrow batch, spark.sql.execution.arrow.maxRecordsPerBatch, are a batch of the model.
    The driver opens the model, too, for the types of its outputs. Raises UnsupportedError for an output whose type Spark lacks.
    """
    made = dict(_outputs_of(model))
    fields = [_types.StructField(field.name, made.pop(field.name)) if field.name in made else field
              for field in frame.schema.fields]
    fields += [_types.StructField(name, kind) for name, kind in made.items()]
    return frame.mapInArrow(_Append(model), _types.StructType(fields))


class _Predict:
    """What predict_batch_udf calls: an array for each input, by place."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model
        names = model.input_columns
        # Spark counts the parameters to know how many columns there are. Columns need not be names of Python.
        kind = inspect.Parameter.POSITIONAL_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(f"input_{place}", kind) for place in range(len(names))])
        self._only = len(model.plan().outputs) == 1

    def __call__(self, *arrays: Array) -> Any:
        names = self._model.input_columns
        results = self._model.run({name: rows_of(name, array) for name, array in zip(names, arrays)})
        return next(iter(results.values())) if self._only else results


def predict_udf(model: BatchModel, *, batch_size: int = 1024) -> Any:
    """Returns a function of columns by Spark's own predict_batch_udf: one column for each of `model.input_columns`, in that order.

        frame.withColumn("scores", predict_udf(model)("features"))

    A model with one output gives its value, a scalar or an array; one with several a struct of them. Spark hands rows over by pandas
    and copies them; with_predictions and arrow_udf do not. A column is flat: a tensor is an array in it, whose rows are given the
    input's shape. Raises UnsupportedError for an output that predict_batch_udf does not take: booleans, and more than one axis
    beside the rows.
    """
    outputs = _outputs_of(model)
    for output in model.plan().outputs.values():
        if len(output.info.shape or ()) > 2 or output.info.element_type == "bool":
            raise rewire.UnsupportedError(
                f"output {output.info}: predict_batch_udf takes outputs of at most one axis beside the rows, and no booleans; use "
                "arrow_udf or with_predictions")
    shapes = [None if info.shape is None or len(info.shape) < 2 else
              [-1 if not isinstance(size, int) else size for size in info.shape[1:]] for info in model.plan().inputs.values()]
    for info, shape in zip(model.plan().inputs.values(), shapes):
        if shape and -1 in shape:
            raise rewire.UnsupportedError(
                f"input {info}: predict_batch_udf needs the shape of a row; fix its dimensions by `dims`, or use with_predictions")
    kind = outputs[0][1] if len(outputs) == 1 else _types.StructType([_types.StructField(*each) for each in outputs])
    return predict_batch_udf(lambda: _Predict(model), return_type=kind, batch_size=batch_size,
                             input_tensor_shapes=shapes if any(shapes) else None)


class _Columns:
    """The function of an Arrow UDF: Arrow arrays in and out."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        names = self._model.input_columns
        for given in batches:
            columns = given if isinstance(given, tuple) else (given,)
            if len(columns) != len(names):
                raise rewire.InvalidArgumentError(f"the model takes the columns {', '.join(names)}; {len(columns)} are given")
            results = self._model.run({name: rows_of(name, column) for name, column in zip(names, columns)})
            made = {name: as_arrow(array, lists=True) for name, array in results.items()}
            yield next(iter(made.values())) if len(made) == 1 else pyarrow.StructArray.from_arrays(list(made.values()), list(made))


def arrow_udf(model: BatchModel) -> Any:
    """Returns a function of columns by Spark's arrow_udf: one column for each of `model.input_columns`, in that order.

        frame.select("id", arrow_udf(model)("features").alias("scores"))

    A model with one output gives its value, one with several a struct of them. The model reads Arrow's memory and writes the
    memory of the new column.
    """
    from pyspark.sql.functions import arrow_udf as of_spark

    outputs = _outputs_of(model)
    kind = outputs[0][1] if len(outputs) == 1 else _types.StructType([_types.StructField(*each) for each in outputs])
    run = _Columns(model)
    if len(model.input_columns) == 1:
        def one(batches: Iterator[pyarrow.Array]) -> Iterator[pyarrow.Array]:
            return run(batches)

        return of_spark(one, kind)

    def several(batches: Iterator[tuple[pyarrow.Array, ...]]) -> Iterator[pyarrow.Array]:
        return run(batches)

    return of_spark(several, kind)
