#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles Relay programs for OpenCL, for the graph executor and for the Relay VM.

    gen_opencl.py OUTPUT [CASE...]      run by the Python of a relay-* environment

No TVM of these environments can run OpenCL code. So the expected values are what the same TVM gives for the same
program compiled for the CPU. The two differ in the order of sums and in the last bits of functions: case.json has
the tolerance.
"""

import pathlib
import shutil
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

OPENCL = tvm.target.Target("opencl", host="llvm -mtriple=x86_64-linux-gnu")
TOLERANCE = 1e-5


def _graph(output, name):
    program = gen_graph.CASES[name]()
    case = Case(output, f"graph_{name}", "graph", tvm.__version__, toolchain.ALIGNMENT, ("graph",), TOLERANCE)
    factory = gen_graph.build(program, OPENCL)
    with open(case.path("graph", "graph.json"), "w") as file:
        file.write(factory.get_graph_json())
    with open(case.path("parameters", "weights.params"), "wb") as file:
        file.write(tvm.runtime.save_param_dict(factory.get_params()))
    toolchain.export(factory.get_lib(), case.path("library", "lib.so"))

    executor = graph_executor.GraphModule(gen_graph.build(gen_graph.CASES[name]())["default"](tvm.cpu()))
    for call in program.calls:
        case.call("main", call.inputs.items(), gen_graph.run(executor, call.inputs))
    case.write()


def _relay(output, name):
    make, tags = relay_cases.load()[name]
    program = make()
    case = Case(output, f"vm_{name}", "relay_vm", tvm.__version__, toolchain.ALIGNMENT, tags, TOLERANCE)
    with tvm.transform.PassContext(opt_level=program.opt_level):
        code, library = relay.vm.compile(program.module, target=OPENCL).save()
    with open(case.path("code", "code.ro"), "wb") as file:
        file.write(code)
    toolchain.export(library, case.path("library", "lib.so"))

    program = make()
    with tvm.transform.PassContext(opt_level=program.opt_level):
        executable = relay.vm.compile(program.module, target=toolchain.TARGET)
    gen_relay.run_calls(case, relay_vm.VirtualMachine(executable, tvm.cpu()), program.calls)
    case.write()


GRAPHS = ("one_kernel", "storage_reused", "reshape_is_nop", "outputs_shared", "several_outputs", "mlp", "named_weights")
RELAY = ("embedded_weights", "returned_constants", "polynomial", "integers_64", "dense_relu", "layer_norm")
RELAY += ("softmax_of_matmul", "reshape_chain", "tuple_nested", "tuple_argument", "tuple_to_kernel", "split_parts")
RELAY += ("if_nested", "loop_sum", "three_entries", "list_sum", "list_second", "tree_mirror", "option_map", "closure_chosen")
RELAY += ("dynamic_dense", "dynamic_concatenate", "reshape_to_argument", "shape_of_input", "non_zero")
CASES = {f"graph_{name}": (_graph, name) for name in GRAPHS}
CASES.update({f"vm_{name}": (_relay, name) for name in RELAY if name in relay_cases.load()})
# Of this kind there is no code in one of the builds, whatever the program.
NO_CODE = "schedule not registered for"


def generate(output, name):
    make, program = CASES[name]
    try:
        make(output, program)
    except RuntimeError as error:
        if NO_CODE not in str(error):
            raise
        shutil.rmtree(pathlib.Path(output) / name)
        print(f"left out {name}: this TVM has no OpenCL code for an operator of it: {str(error).splitlines()[-1][:120]}")


if __name__ == "__main__":
    sys.exit(toolchain.run_all(CASES, generate, sys.argv[1:]))
