# SPDX-License-Identifier: Apache-2.0
"""What functions take and give, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Optional, Tuple, Union

import numpy

Row = Tuple[str, str, Optional[str], Optional[Tuple[Union[int, str, None], ...]]]
"""A value of a signature as the extension gives it: name, type, element type and shape."""


@dataclass(frozen=True)
class TensorInfo:
    """An input, an output or a parameter.

    `shape` has an int for a static dimension, a str for a symbolic one, None for an unknown one; it is None if not even
    the rank is known. `element_type` is Rewire's spelling ("f32", "i64", "bf16", "bool"), or None. Both are None for what
    is no tensor; `type` has the whole type as text.
    """

    name: str
    type: str
    element_type: str | None
    shape: tuple[int | str | None, ...] | None

    @property
    def dtype(self) -> numpy.dtype[Any] | None:
        """numpy's element type. It is None where `element_type` is None, and for "bf16" without the package ml_dtypes."""
        return None if self.element_type is None else numpy_dtype(self.element_type)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


_NUMPY_NAMES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
    "c64": "complex64", "c128": "complex128",
}


def numpy_name(element_type: str) -> str:
    """numpy's name of an element type of Rewire: "float32" for "f32"."""
    return _NUMPY_NAMES.get(element_type, element_type)


def numpy_dtype(element_type: str) -> numpy.dtype[Any] | None:
    """numpy's element type, or None if there is none."""
    if element_type == "bf16":
        try:
            import ml_dtypes
        except ImportError:
            return None
        found: numpy.dtype[Any] = numpy.dtype(ml_dtypes.bfloat16)
        return found
    name = _NUMPY_NAMES.get(element_type)
    return None if name is None else numpy.dtype(name)


DeclaredRow = Tuple[str, str, Optional[Tuple[Union[int, str, None], ...]]]
"""A tensor that a model declares: name, element type and shape."""


def declared(described: Iterable[DeclaredRow]) -> tuple[TensorInfo, ...]:
    """Tensors of a model, whose strings have the element type "string"."""
    return tuple(TensorInfo(name, element if shape is None else f"{element}[{', '.join('?' if dim is None else str(dim) for dim in shape)}]",
                            element, shape) for name, element, shape in described)


def rows(described: Iterable[Row]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(*row) for row in described)
