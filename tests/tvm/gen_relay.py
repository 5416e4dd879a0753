#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Relay programs to Relay VM executables and runs each by TVM's own VM.

    gen_relay.py OUTPUT [CASE...]      run by the Python of a relay-* environment

The expected values come from the saved files, loaded again: what anyone who holds the files would have got.
"""

import sys

import relay_cases
import toolchain
import tvm
from casefile import Adt, Case
from tvm import relay
from tvm.runtime import container
from tvm.runtime import vm as relay_vm


def to_tvm(value):
    if isinstance(value, Adt):
        return container.ADT(value.tag, [to_tvm(field) for field in value.fields])
    return tvm.nd.array(value)


def from_tvm(value):
    if isinstance(value, container.ADT):
        return Adt(value.tag, [from_tvm(value[i]) for i in range(len(value))])
    return value.numpy()


def generate(output, name):
    make, tags = relay_cases.CASES[name]
    program = make()
    case = Case(output, name, "relay_vm", tvm.__version__, toolchain.ALIGNMENT, tags)
    target, config = toolchain.settings(program)
    with tvm.transform.PassContext(opt_level=program.opt_level, config=config):
        executable = relay.vm.compile(program.module, target=target)
    # TVM 0.8 binds no constants late: they stay in the code.
    late_bound = program.late_bound if hasattr(executable, "move_late_bound_consts") else None
    if late_bound is not None:
        executable.move_late_bound_consts(case.path("late_bound", "constants.params"), late_bound)
    code, library = executable.save()
    with open(case.path("code", "code.ro"), "wb") as file:
        file.write(code)
    # A library of a program that calls no kernel, where TVM makes one, exports nothing, and nobody needs it.
    library_path = case.path("library", "lib.so") if executable.primitive_ops else str(case.directory / "lib.so")
    if library is not None:
        toolchain.export(library, library_path)
        library = toolchain.load(library_path)
    loaded = relay_vm.Executable.load_exec(code, library)
    if late_bound is not None:
        loaded.load_late_bound_consts(str(case.directory / "constants.params"))
    machine = relay_vm.VirtualMachine(loaded, tvm.cpu())
    run_calls(case, machine, program.calls)
    case.write()


def run_calls(case, machine, calls):
    """Adds every call with what TVM's VM gives for it."""
    for call in calls:
        inputs = list(call.inputs.items() if isinstance(call.inputs, dict) else call.inputs)
        result = machine.invoke(call.function, *[to_tvm(value) for _, value in inputs])
        case.call(call.function, inputs, from_tvm(result))


if __name__ == "__main__":
    sys.exit(toolchain.run_all(relay_cases.load(), generate, sys.argv[1:]))
