# SPDX-License-Identifier: Apache-2.0
"""What functions take and give, as data."""

from dataclasses import dataclass
from typing import Optional, Tuple, Union


@dataclass(frozen=True)
class TensorInfo:
    """An input, an output or a parameter.

    `shape` has an int for a static dimension, a str for a symbolic one, None for an unknown one; it is None if not even
    the rank is known. `dtype` is Rewire's spelling ("f32", "i64", "bf16", "bool"), or None. Both are None for what is
    no tensor; `type` has the whole type as text.
    """

    name: str
    type: str
    dtype: Optional[str]
    shape: Optional[Tuple[Union[int, str, None], ...]]

    def __str__(self):
        return f"{self.name}: {self.type}"


_NUMPY_NAMES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
    "c64": "complex64", "c128": "complex128",
}


def numpy_name(dtype):
    """numpy's name of a dtype of Rewire: "float32" for "f32"."""
    return _NUMPY_NAMES.get(dtype, dtype)


def rows(described):
    return tuple(TensorInfo(*row) for row in described)
