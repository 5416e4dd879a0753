# SPDX-License-Identifier: Apache-2.0
"""Libraries in the package that other programs load."""
import pathlib

from rewire.errors import Error


def onnxruntime_library() -> str:
    """Returns the path of Rewire's ``libonnxruntime.so.1``, for programs written for ONNX Runtime's C interface.

    A program loads it in place of ONNX Runtime's: by ``LD_PRELOAD``, by the folder in ``LD_LIBRARY_PATH``, or by a path that the
    program takes, as ``ORT_DYLIB_PATH``. The folder has the name ``libonnxruntime.so``, too. docs/onnxruntime-api.md says more.

    Raises ``rewire.Error`` where the package was built without it (REWIRE_WITH_ONNXRUNTIME_API).
    """
    path = pathlib.Path(__file__).parent / "_native" / "libonnxruntime.so.1"
    if not path.exists():
        raise Error(f"{path} is not there: this package was built without REWIRE_WITH_ONNXRUNTIME_API; build it with that option, "
                    "or install the wheel")
    return str(path)
