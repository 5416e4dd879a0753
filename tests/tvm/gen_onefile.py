#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports programs as one shared library each: code or graph, parameters and kernels inside.

    gen_onefile.py OUTPUT [CASE...]      run by the Python of a relay-* environment
"""

import sys

import gen_graph
import gen_relay
import relay_cases
import toolchain
import tvm
from casefile import Case
from tvm import relay
from tvm.contrib import graph_executor
from tvm.runtime import vm as relay_vm


def _graph(output, name):
    program = gen_graph.CASES[name]()
    case = Case(output, f"graph_{name}", "one_file", tvm.__version__, toolchain.ALIGNMENT, ("GraphExecutorFactory",))
    library_path = case.path("library", "lib.so")
    toolchain.export(gen_graph.build(program), library_path)
    executor = graph_executor.GraphModule(toolchain.load(library_path)["default"](tvm.cpu()))
    for call in program.calls:
        case.call("main", call.inputs.items(), gen_graph.run(executor, call.inputs))
    case.write()


def _relay(output, name):
    make, tags = relay_cases.load()[name]
    program = make()
    case = Case(output, f"vm_{name}", "one_file", tvm.__version__, toolchain.ALIGNMENT, ("VMExecutable",) + tags)
    with tvm.transform.PassContext(opt_level=program.opt_level):
        executable = relay.vm.compile(program.module, target=toolchain.TARGET)
    library_path = case.path("library", "lib.so")
    toolchain.export(executable.mod, library_path)
    machine = relay_vm.VirtualMachine(toolchain.load(library_path), tvm.cpu())
    gen_relay.run_calls(case, machine, program.calls)
    case.write()


GRAPHS = ("named_weights", "linked_weights", "reshape_is_nop", "mlp")
CASES = {f"graph_{name}": (_graph, name) for name in GRAPHS if name in gen_graph.CASES}
CASES.update({f"vm_{name}": (_relay, name) for name in ("embedded_weights", "tree_mirror", "dynamic_reshape")})


def generate(output, name):
    make, program = CASES[name]
    make(output, program)


if __name__ == "__main__":
    sys.exit(toolchain.run_all(CASES, generate, sys.argv[1:]))
