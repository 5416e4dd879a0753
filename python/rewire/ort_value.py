# SPDX-License-Identifier: Apache-2.0
"""Tensors with ONNX Runtime's calls."""

from __future__ import annotations

from typing import Any, Sequence

import numpy
from numpy import dtype
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rewire import errors
from rewire.signature import numpy_name

ORT_NAMES = {
    "f16": "float16", "f32": "float", "f64": "double", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64",
    "c128": "complex128",
}


class OrtValue:
    """A tensor in host memory."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: ArrayLike, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Refers to the array's memory."""
        require_cpu(device_type)
        return OrtValue(numpy.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: DTypeLike = numpy.float32,
                                     device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Allocates a tensor whose contents are undefined."""
        require_cpu(device_type)
        return OrtValue(numpy.empty(shape, element_type))

    @staticmethod
    def from_dlpack(tensor: Any) -> OrtValue:
        """Refers to the memory of a tensor of any library of DLPack."""
        return OrtValue(numpy.from_dlpack(tensor))

    def numpy(self) -> NDArray[Any]:
        """The array itself, not a copy."""
        return self._array

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the same memory."""
        return self._array.__dlpack__()

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._array.shape)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.ctypes.data

    def data_type(self) -> str:
        """The type as ONNX Runtime spells it: "tensor(float)"."""
        names = {numpy_name(ours): theirs for ours, theirs in ORT_NAMES.items()}
        return f"tensor({names.get(self._array.dtype.name, self._array.dtype.name)})"

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Always True."""
        return True

    def has_value(self) -> bool:
        """Always True."""
        return True

    def element_type(self) -> dtype[Any]:
        """The element type of the array."""
        return self._array.dtype

    def update_inplace(self, array: ArrayLike) -> None:
        """Copies the array's elements into this tensor."""
        self._array[...] = array


def require_cpu(device_type: str) -> None:
    if device_type != "cpu":
        raise errors.UnsupportedError(f"device {device_type!r} is not supported; give 'cpu'")
