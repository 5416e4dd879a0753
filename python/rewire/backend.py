# SPDX-License-Identifier: Apache-2.0
"""An ONNX backend, as onnx.backend.base describes it. Needs the package onnx.

    import onnx.backend.test
    import rewire.backend

    tests = onnx.backend.test.BackendTest(rewire.backend, __name__)
"""

from __future__ import annotations

from typing import Any

import numpy
import onnx
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep as _BackendRep

from rewire._native import _rewire
from rewire.program import Program, load as _load

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


# ADTs that the compiler makes of ONNX's sequences and optionals.
def _to_native(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _rewire.Adt(0, [_to_native(each) for each in value])
    return numpy.ascontiguousarray(value) if numpy.ndim(value) else numpy.asarray(value)


def _from_native(value: Any) -> Any:
    if isinstance(value, _rewire.Adt):
        return [_from_native(value[i]) for i in range(len(value))]
    array = numpy.asarray(value)
    return array.astype(object) if array.dtype.kind == "U" else array  # as onnx has strings


class BackendRep(_BackendRep):
    """A compiled model. `run` takes inputs in order, or a dict by name, and returns the outputs in order."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        if isinstance(inputs, dict):
            given: Any = {name: _to_native(value) for name, value in inputs.items()}
        else:
            given = [_to_native(value) for value in inputs]
        return tuple(_from_native(value) for value in self.program.run(given).values())


class Backend(_Backend):
    """Compiles and runs ONNX models on the host."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return BackendRep(_load(model))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        names = [name for name in node.input if name]
        values = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(names, map(numpy.asarray, inputs))
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, outputs)
        return cls.run_model(onnx.helper.make_model(graph), inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper().startswith("CPU")

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        from rewire.errors import UnsupportedError

        try:
            cls.prepare(model, device)
        except UnsupportedError:
            return False
        return True


prepare = Backend.prepare
run_node = Backend.run_node
run_model = Backend.run_model
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
