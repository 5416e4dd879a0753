# SPDX-License-Identifier: Apache-2.0
"""The calls of TVM's VirtualMachine, so that a script changes its import alone:

    import rewire.tvm as vm
    machine = vm.VirtualMachine(vm.load("model.so"), vm.cpu())
    machine.set_input("main", data)
    machine.run()
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy

from rewire import errors
from rewire.program import Program, load as _load

__all__ = ["Device", "VirtualMachine", "cpu", "load"]


class Device:
    """A device, by TVM's name. Only the host is known."""

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        self.device_type = 1
        self.device_id = index
        self.kind = kind

    def sync(self) -> None:
        """Does nothing: a run that has returned is finished."""

    def __repr__(self) -> str:
        return f"{self.kind}({self.device_id})"


def cpu(index: int = 0) -> Device:
    """The host."""
    return Device("cpu", index)


def load(path: Any, **options: Any) -> Program:
    """Loads what TVM compiled (.ro, .so), or any file that `rewire.load` takes."""
    return _load(path, **options)


class VirtualMachine:
    """TVM's VirtualMachine over a program of Rewire. One thread at a time.

    `executable` is a rewire.Program, a path or bytes. Results are numpy arrays over the program's memory, or lists of them
    for tuples. `memory_cfg` is taken and has no effect.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, executable: Any, device: Device | Sequence[Device] | None = None, memory_cfg: Any = None) -> None:
        devices = device if isinstance(device, (list, tuple)) else [device]
        for each in devices:
            kind = getattr(each, "device_type", 1)
            if kind != 1:
                raise errors.UnsupportedError(f"device {each} is not supported; programs run on the host: cpu()")
        self._program = executable if hasattr(executable, "vm") else _load(executable)
        self._vm = self._program.vm()
        self._last: str | None = None

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets the inputs of a function, by place or name. They are kept and read when it runs."""
        for index, value in enumerate(args):
            self._vm.set_input(index, _array(value), function=func_name)
        for name, value in kwargs.items():
            self._vm.set_input(name, _array(value), function=func_name)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Sets one input: an index or name and a value, or one keyword."""
        if kwargs:
            args = next(iter(kwargs.items()))
        self._vm.set_input(args[0], _array(args[1]), function=func_name)

    def set_outputs(self, func_name: str, *args: Any) -> None:
        """Lets the next runs of a function write its outputs, in order, into these arrays."""
        for index, value in enumerate(args):
            self._vm.set_output(index, _array(value), function=func_name)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Runs a function, with these inputs if there are any, and returns its result."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        self._vm.invoke(func_name)
        self._last = func_name
        outputs = self.get_outputs()
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `main`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Runs a function and keeps its result for get_outputs."""
        self.invoke(func_name, *args, **kwargs)

    def invoke_with_outputs(self, func_name: str, input_args: Mapping[str, Any] | Sequence[Any], output_args: Sequence[Any]) -> None:
        """Runs a function with inputs, a dict by name or a list, into these arrays."""
        self.set_outputs(func_name, *output_args)
        if isinstance(input_args, Mapping):
            self.set_input(func_name, **input_args)
        else:
            self.set_input(func_name, *input_args)
        self._vm.invoke(func_name)
        self._last = func_name

    def get_outputs(self, func_name: str | None = None) -> list[Any]:
        """The outputs of the last run, as a list."""
        return list(self._vm.outputs(func_name or self._last).values())

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The place of an input, or -1."""
        names = [info.name for info in self._program.inputs_of(func_name)]
        return names.index(input_name) if input_name in names else -1

    def benchmark(self, device: Device | None = None, *args: Any, func_name: str = "main", repeat: int = 5, number: int = 5,
                  **kwargs: Any) -> list[float]:
        """Runs a function `repeat` times `number` times; returns the mean seconds of each repeat."""
        import time

        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        means = []
        for _ in range(repeat):
            start = time.perf_counter()
            for _ in range(number):
                self._vm.invoke(func_name)
            means.append((time.perf_counter() - start) / number)
        self._last = func_name
        return means


def _array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "asnumpy") else (
        numpy.asarray(value) if isinstance(value, (int, float, list, tuple)) else value)
