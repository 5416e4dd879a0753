# SPDX-License-Identifier: Apache-2.0
"""From the columns of a batch to arrays with a row for each row of the batch, and back. Nothing is copied where the layout allows.

| column | becomes | copied |
|---|---|---|
| numpy array of numbers or booleans | itself | no |
| numpy array or pandas Series of objects, each an array or a list of one shape | one array | yes |
| Arrow array of numbers without nulls, in one chunk; a Series over one | an array over Arrow's buffer | no |
| Arrow array of fixed-size lists or of fixed-shape tensors | the same, with more axes | no |
| Arrow array of lists that have one length | the same | no |
| Arrow array in several chunks | one array | yes |
| Arrow booleans, which are bits; strings | one array | yes |

pyarrow is imported only where a column is Arrow's.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy
import rewire

Array = numpy.ndarray[Any, Any]


def is_arrow(value: Any) -> bool:
    """Whether a value is an array, a table or a batch of pyarrow. It is not if nobody has imported pyarrow."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(
        value, (arrow.Array, arrow.ChunkedArray, arrow.RecordBatch, arrow.Table))


def rows_of(name: str, column: Any) -> Array:
    """The array of a column, whose first axis counts rows. Raises InvalidArgumentError that names the column."""
    if is_arrow(column):
        return _arrow_rows(name, column)
    if hasattr(getattr(column, "dtype", None), "pyarrow_dtype"):  # a Series of pandas over an array of Arrow
        return _arrow_rows(name, column.array.__arrow_array__())
    array = numpy.asarray(column)
    if array.ndim == 0:
        raise rewire.InvalidArgumentError(f"column {name!r}: an array with an axis of rows is expected, {column!r} is given")
    if array.dtype != object or len(array) == 0 or isinstance(array.flat[0], str):
        return array
    return _stacked(name, array)


def _stacked(name: str, objects: Array) -> Array:
    parts = [_element(name, each) for each in objects]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise rewire.InvalidArgumentError(
            f"column {name!r}: rows of one shape are expected, the shapes {', '.join(map(str, sorted(shapes)[:4]))} are given; pad or "
            "group them before the model")
    return numpy.stack(parts)


def _element(name: str, value: Any) -> Array:
    """The array of one row. pandas makes arrays of arrays of Arrow's lists in lists."""
    if value is None:
        raise rewire.InvalidArgumentError(f"column {name!r}: a row is None, and a tensor has no nulls; fill or drop such rows")
    try:
        array = rows_of(name, value) if is_arrow(value) else numpy.asarray(value)
    except ValueError as error:
        raise rewire.InvalidArgumentError(f"column {name!r}: a row is no array: {error}") from error
    return _stacked(name, array) if array.dtype == object and array.ndim else array


def _arrow_rows(name: str, column: Any) -> Array:
    import pyarrow

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else pyarrow.concat_arrays(column.chunks) if column.num_chunks else \
            pyarrow.array([], column.type)
    if column.null_count:
        raise rewire.InvalidArgumentError(
            f"column {name!r}: {column.null_count} of {len(column)} rows are null, and a tensor has no nulls; fill or drop them")
    kind = column.type
    if isinstance(kind, pyarrow.FixedShapeTensorType):
        made: Array = column.to_numpy_ndarray()
        return made
    if isinstance(column, pyarrow.ExtensionArray):
        return rows_of(name, column.storage)
    if pyarrow.types.is_fixed_size_list(kind):
        return _listed(name, column, kind.list_size)
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return _listed(name, column, _one_length(name, column))
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return numpy.array(column.to_pylist(), dtype=object)
    if pyarrow.types.is_boolean(kind):
        return numpy.asarray(column.to_numpy(zero_copy_only=False))
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)):
        raise rewire.InvalidArgumentError(
            f"column {name!r}: numbers, booleans, strings, lists or tensors are expected, the type {kind} is given; cast it before "
            "the model")
    return numpy.asarray(column.to_numpy(zero_copy_only=True))


def _listed(name: str, column: Any, length: int) -> Array:
    """An array of lists as one with an axis more. `flatten` leaves the elements of an array of lists where they lie."""
    values = rows_of(name, column.flatten())
    return values.reshape(len(column), length, *values.shape[1:])


def _one_length(name: str, column: Any) -> int:
    offsets = numpy.asarray(column.offsets.to_numpy(zero_copy_only=True))
    lengths = numpy.diff(offsets)
    if len(lengths) == 0:
        return 0
    if (lengths != lengths[0]).any():
        raise rewire.InvalidArgumentError(
            f"column {name!r}: lists of one length are expected, the lengths {lengths.min()} to {lengths.max()} are given; pad or "
            "group them before the model")
    return int(lengths[0])


def as_arrow(array: Array, *, lists: bool = False) -> Any:
    """An Arrow array over the memory of an array with an axis of rows; booleans and strings are copied.

    One axis gives numbers, two give fixed-size lists, more give tensors of a fixed shape. With `lists`, all axes but the first are
    plain lists in lists; such an array has less than 2^31 elements.
    """
    import pyarrow

    if lists and array.size >= 2**31:
        raise rewire.InvalidArgumentError(
            f"lists of Arrow count elements in 32 bits, and this output has {array.size}; make the batches smaller")

    if array.ndim == 1:
        return pyarrow.array(array)
    array = numpy.ascontiguousarray(array)
    lists = lists or array.size == 0  # the number of fixed-size lists of no elements is not in Arrow's array
    if not lists and array.ndim > 2 and array.dtype != bool:
        return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(array)
    made = pyarrow.array(array.reshape(-1))
    for axis in range(array.ndim - 1, 0, -1):
        size = array.shape[axis]
        if lists:
            starts = numpy.arange(math.prod(array.shape[:axis]) + 1, dtype=numpy.int32) * numpy.int32(size)
            made = pyarrow.ListArray.from_arrays(pyarrow.array(starts), made)
        else:
            made = pyarrow.FixedSizeListArray.from_arrays(made, size)
    return made
