# SPDX-License-Identifier: Apache-2.0
"""Rewire: runs compiled machine-learning models.

    import rewire

    program = rewire.load("model.onnx", dims={"batch": 1})
    scores = program({"image": pixels})["scores"]

docs/python.md is the guide.
"""

from rewire._native import _rewire
from rewire._native._rewire import Adt, Executable, ParameterSet, Tensor, VirtualMachine, assemble, compiler_passes, tensor
from rewire.compiler import Compilation, CompileReport, HostCalls, OutputMovement, ProductPrecision, UnsupportedNode, ZeroedWeights, compile
from rewire.errors import (
    BusyError, CancelledError, DeadlineExceededError, DepthLimitError, Error, InternalError, InvalidArgumentError,
    InvalidFileError, IoError, KernelError, LinkError, MemoryLimitError, NotFoundError, OutOfMemoryError, RunError,
    StepLimitError, UnsupportedError, VerificationError)
from rewire.inference_session import (
    InferenceSession, IOBinding, NodeArg, OrtValue, RunOptions, SessionOptions, get_available_providers)
from rewire.kernels import Kernel, kernel
from rewire.profile import KernelCall, Profile
from rewire.program import MemoryBound, OutputPlan, Program, disassemble, load
from rewire.signature import TensorInfo

__version__ = _rewire.__version__

__all__ = [
    "Adt", "BusyError", "CancelledError", "Compilation", "CompileReport", "DeadlineExceededError", "DepthLimitError",
    "Error", "Executable", "HostCalls", "IOBinding", "InferenceSession", "InternalError", "InvalidArgumentError", "InvalidFileError",
    "IoError", "Kernel", "KernelCall", "KernelError", "LinkError", "MemoryBound", "MemoryLimitError", "NodeArg",
    "NotFoundError", "OrtValue", "OutOfMemoryError", "OutputMovement", "OutputPlan", "ParameterSet", "Profile",
    "ProductPrecision", "Program", "RunError", "RunOptions", "SessionOptions", "StepLimitError", "Tensor", "TensorInfo", "UnsupportedError",
    "UnsupportedNode", "VerificationError", "VirtualMachine", "assemble", "compile", "compiler_passes", "disassemble",
    "get_available_providers", "kernel", "load", "tensor",
]
