# SPDX-License-Identifier: Apache-2.0
"""What calls take and give, for annotations."""

import os
from typing import Any, Dict, Protocol, Union

import numpy
import numpy.typing


class SupportsDLPack(Protocol):
    """A tensor of any library of DLPack, such as torch and jax."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a capsule over the tensor."""


Array = Union[numpy.typing.ArrayLike, SupportsDLPack]
"""An array of numpy, torch or jax, anything with a buffer or DLPack, or what numpy.asarray takes."""

Input = Any
"""An Array, an int for an input that is one, strings, or an Adt. Programs say in their inputs which of them."""

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

Results = Dict[str, numpy.typing.NDArray[Any]]
"""Outputs by name. Values that are no tensors are ints and Adt; without ml_dtypes, tensors of bfloat16 are Tensor."""
