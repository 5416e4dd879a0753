# SPDX-License-Identifier: Apache-2.0
"""Rewire: runs compiled machine-learning models.

    import rewire

    program = rewire.load("model.onnx", dims={"batch": 1})
    scores = program({"image": pixels})["scores"]

docs/python.md is the guide.
"""

from rewire._native import _rewire
from rewire._native._rewire import Adt, Executable, ParameterSet, Tensor, VirtualMachine, assemble, compiler_passes, tensor
from rewire.compiler import (
    Compilation, CompileReport, HostCalls, OutputMovement, ProductPrecision, ShardedLayer, UnsupportedNode, ZeroedWeights,
    compile)
from rewire.errors import (
    BusyError, CancelledError, DeadlineExceededError, DepthLimitError, Error, InternalError, InvalidArgumentError,
    InvalidFileError, IoError, KernelError, LinkError, MemoryLimitError, MissingFileError, NotFoundError, OutOfMemoryError,
    RunError, StepLimitError, UnsupportedError, VerificationError)
from rewire.inference_session import (
    ExecutionMode, ExecutionOrder, GraphOptimizationLevel, InferenceSession, IOBinding, ModelMetadata, NodeArg, OrtValue,
    RunOptions, SessionOptions, get_all_providers, get_available_providers, get_device, set_default_logger_severity,
    set_default_logger_verbosity, set_seed)
from rewire.kernels import Kernel, kernel
from rewire.libraries import onnxruntime_library
from rewire.profile import KernelCall, Profile
from rewire.program import Capacity, MemoryBound, OutputPlan, Program, disassemble, load
from rewire.remote import connect
from rewire.signature import TensorInfo

__version__: str = vars(_rewire)["__version__"]

__all__ = [
    "Adt", "BusyError", "CancelledError", "Capacity", "Compilation", "CompileReport", "DeadlineExceededError",
    "DepthLimitError", "Error", "Executable", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "HostCalls",
    "IOBinding", "InferenceSession", "InternalError", "InvalidArgumentError", "InvalidFileError", "IoError", "Kernel",
    "KernelCall", "KernelError", "LinkError", "MemoryBound", "MemoryLimitError", "MissingFileError", "ModelMetadata",
    "NodeArg", "NotFoundError", "OrtValue", "OutOfMemoryError", "OutputMovement", "OutputPlan", "ParameterSet",
    "ProductPrecision", "Profile", "Program", "RunError", "RunOptions", "SessionOptions", "ShardedLayer", "StepLimitError",
    "Tensor", "TensorInfo", "UnsupportedError", "UnsupportedNode", "VerificationError", "VirtualMachine", "ZeroedWeights", "assemble",
    "compile", "compiler_passes", "connect", "disassemble", "get_all_providers", "get_available_providers", "get_device",
    "kernel", "load", "onnxruntime_library", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed", "tensor",
]
