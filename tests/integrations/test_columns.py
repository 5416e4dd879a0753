# SPDX-License-Identifier: Apache-2.0
"""Columns of batches as arrays, and back: every dtype in every layout, and whether memory is shared."""

import itertools

import numpy
import pandas
import pyarrow
import pytest
import rewire
from rewire_integrations import columns

NUMBERS = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ROWS = [(5,), (5, 3), (5, 3, 2), (1, 4), (0, 3)]


def values(dtype, shape):
    return numpy.random.default_rng(0).integers(0, 100, shape).astype(dtype)


def plain(array):
    return pyarrow.array(array.reshape(-1))


def fixed_lists(array):
    made = plain(array)
    for size in reversed(array.shape[1:]):
        made = pyarrow.FixedSizeListArray.from_arrays(made, size)
    return made


def lists(array, kind=pyarrow.ListArray, dtype=numpy.int32):
    made = plain(array)
    for axis in range(array.ndim - 1, 0, -1):
        count = int(numpy.prod(array.shape[:axis]))
        made = kind.from_arrays(pyarrow.array(numpy.arange(count + 1, dtype=dtype) * dtype(array.shape[axis])), made)
    return made


LAYOUTS = {
    "numpy": lambda array: array,
    "fixed-size lists": fixed_lists,
    "lists": lists,
    "large lists": lambda array: lists(array, pyarrow.LargeListArray, numpy.int64),
    "tensors": lambda array: pyarrow.FixedShapeTensorArray.from_numpy_ndarray(array) if array.ndim > 1 else plain(array),
    "one chunk": lambda array: pyarrow.chunked_array([fixed_lists(array)]),
    "series of Arrow": lambda array: pandas.Series(pandas.arrays.ArrowExtensionArray(lists(array))),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_are_read_where_they_lie(layout):
    for dtype, shape in itertools.product(NUMBERS, ROWS):
        array = values(dtype, shape)
        if layout == "tensors" and 0 in shape:
            continue  # pyarrow makes none of no rows
        read = columns.rows_of("c", LAYOUTS[layout](array))
        assert read.dtype == array.dtype
        assert read.tolist() == array.tolist()
        if array.size:
            assert read.__array_interface__["data"][0] == array.__array_interface__["data"][0], (layout, dtype, shape)


@pytest.mark.parametrize("layout", ["fixed-size lists", "lists", "large lists", "tensors"])
def test_a_part_of_an_arrow_column_begins_where_it_begins(layout):
    for dtype, shape in itertools.product(NUMBERS, [(5,), (5, 3), (5, 3, 2)]):
        array = values(dtype, shape)
        read = columns.rows_of("c", LAYOUTS[layout](array).slice(2, 2))
        assert read.tolist() == array[2:4].tolist()
        assert read.__array_interface__["data"][0] == array[2:].__array_interface__["data"][0]


def test_what_must_be_copied_has_the_same_values():
    array = values("float32", (6, 3))
    chunks = pyarrow.chunked_array([fixed_lists(array[:2]), fixed_lists(array[2:])])
    for column in (chunks, list(array), pandas.Series(list(array)), pandas.Series([row.tolist() for row in array]),
                   pandas.Series([lists(row) for row in array])):
        assert columns.rows_of("c", column).tolist() == array.tolist()
    nested = pandas.Series([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    assert columns.rows_of("c", nested).tolist() == nested.tolist()
    flags = [True, False, True]
    assert columns.rows_of("c", pyarrow.array(flags)).tolist() == flags
    texts = ["a", "bc", ""]
    for column in (pyarrow.array(texts), pyarrow.array(texts, pyarrow.large_string()), pandas.Series(texts), texts):
        assert columns.rows_of("c", column).tolist() == texts


@pytest.mark.parametrize("column, said", [
    (pyarrow.array([1.0, None]), "column 'c': 1 of 2 rows are null"),
    (pyarrow.array([[1.0, None]]), "column 'c': 1 of 2 rows are null"),
    (pyarrow.array([[1.0], [1.0, 2.0]]), "lists of one length are expected, the lengths 1 to 2 are given"),
    (pyarrow.array([b"x"]), "the type binary is given"),
    (pandas.Series([[1.0], [1.0, 2.0]]), r"rows of one shape are expected, the shapes \(1,\), \(2,\) are given"),
    (pandas.Series([[1.0], None]), "a row is None"),
    (pandas.Series([[[1.0], [1.0, 2.0]]]), "a row is no array"),
    (numpy.float32(1), "an array with an axis of rows is expected"),
])
def test_what_is_no_tensor_is_named(column, said):
    with pytest.raises(rewire.InvalidArgumentError, match=said):
        columns.rows_of("c", column)


def test_arrow_columns_lie_over_the_results():
    for dtype, shape, as_lists in itertools.product(NUMBERS, ROWS, (False, True)):
        array = values(dtype, shape)
        made = columns.as_arrow(array, lists=as_lists)
        assert len(made) == len(array)
        made.validate(full=True)
        if array.size:
            back = columns.rows_of("c", made)
            assert back.tolist() == array.tolist()
            assert back.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert pyarrow.types.is_list(columns.as_arrow(values("int8", (2, 3)), lists=True).type)
    assert columns.as_arrow(numpy.array([[True], [False]])).to_pylist() == [[True], [False]]
