#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles Relay programs for the graph executor: graph.json, parameters and a library each, run by TVM's executor.

    gen_graph.py OUTPUT [CASE...]      run by the Python of a relay-* environment
"""

import sys

import numpy as np
import toolchain
import tvm
from casefile import Adt, Case
from relay_cases import Call, Program, normal, parse
from relay_cases import constants as relay_constants
from relay_cases import networks as relay_networks
from relay_cases import target_c as relay_target_c
from tvm import relay
from tvm.contrib import graph_executor


def one_kernel():
    return Program(parse("def @main(%x: Tensor[(2, 3), float32]) { add(%x, 1f) }"), [Call("main", {"x": normal(2, 3)})])


def storage_reused():
    """A chain of kernels that cannot be fused, so that storages take turns."""
    text = """
    def @main(%x: Tensor[(4, 8), float32]) {
      %0 = nn.softmax(%x);
      %1 = nn.softmax(transpose(%0, axes=[1, 0]));
      %2 = nn.softmax(transpose(%1, axes=[1, 0]));
      sum(%2, axis=[1])
    }"""
    return Program(parse(text), [Call("main", {"x": normal(4, 8)}), Call("main", {"x": normal(4, 8, seed="b")})])


def reshape_is_nop():
    """Reshapes are `__nop` nodes that share their input's storage id."""
    text = """
    def @main(%x: Tensor[(2, 12), float32]) {
      %0 = reshape(nn.softmax(%x), newshape=[4, 6]);
      %1 = nn.softmax(%0);
      (reshape(%1, newshape=[24]), reshape(%0, newshape=[3, 8]))
    }"""
    return Program(parse(text), [Call("main", {"x": normal(2, 12)})])


def outputs_shared():
    """An output that is an input, one given twice, one that is a view, one that is a constant."""
    x = relay.var("x", shape=(6,), dtype="float32")
    y = relay.tanh(x)
    constant = relay.const(np.arange(4), "int64")
    fields = [x, y, y, relay.reshape(y, [2, 3]), constant]
    module = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple(fields)))
    return Program(module, [Call("main", {"x": normal(6)})])


def several_outputs():
    text = """
    def @main(%x: Tensor[(6, 2), float32], %i: Tensor[(3), int64]) {
      %0 = split(%x, indices_or_sections=3);
      (%0.2, add(%0.0, %0.1), take(%x, %i, axis=0))
    }"""
    return Program(parse(text), [Call("main", {"x": normal(6, 2), "i": np.array([5, 0, 2], "int64")})])


def half_and_int():
    text = """
    def @main(%x: Tensor[(3, 8), float16], %n: Tensor[(8), int64]) {
      add(multiply(%x, %x), cast(%n, dtype="float16"))
    }"""
    return Program(parse(text), [Call("main", {"x": normal(3, 8, dtype="float16"), "n": normal(8, dtype="int64")})])


def mlp():
    return relay_networks.mlp()


def resnet8():
    return relay_networks.resnet8()


def named_weights():
    text = """
    def @main(%image: Tensor[(1, 16), float32], %weight: Tensor[(8, 16), float32], %bias: Tensor[(8), float32]) {
      nn.relu(nn.bias_add(nn.dense(%image, %weight, units=8), %bias))
    }"""
    params = {"weight": tvm.nd.array(normal(8, 16)), "bias": tvm.nd.array(normal(8))}
    return _bind(Program(parse(text), [Call("main", {"image": normal(1, 16)})]), params)


def linked_weights():
    """Weights linked into the kernels, so that there are no parameters."""
    program = relay_constants.embedded_weights()
    _LINKED.add(id(program.module))
    return program


def c_two_kernels():
    return relay_target_c.two_kernels()


def c_with_workspace():
    return relay_target_c.with_workspace()


_PARAMETERS = {}  # id(module) -> named parameters to build with
_LINKED = set()  # id(module) of those to build with link-params


def _bind(program, params):
    _PARAMETERS[id(program.module)] = params
    return program


def run(executor, inputs):
    for name, value in inputs.items():
        executor.set_input(name, value)
    executor.run()
    outputs = [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]
    return outputs[0] if len(outputs) == 1 else Adt(0, outputs)


def build(program, target=None):
    """The factory that relay.build gives."""
    own, config = toolchain.settings(program)
    options = {"params": _PARAMETERS.get(id(program.module))}
    if id(program.module) in _LINKED:
        options["executor"] = relay.backend.Executor("graph", {"link-params": True})
    with tvm.transform.PassContext(opt_level=program.opt_level, config=config):
        return relay.build(program.module, target or own, **options)


def generate(output, name):
    program = CASES[name]()
    # Kernels in C have no check whose text tells their TVM. So the loader asks for what the oldest rely on.
    alignment = 128 if program.target == "c" else toolchain.ALIGNMENT
    case = Case(output, name, "graph", tvm.__version__, alignment, ("graph",))
    factory = build(program)
    with open(case.path("graph", "graph.json"), "w") as file:
        file.write(factory.get_graph_json())
    with open(case.path("parameters", "weights.params"), "wb") as file:
        file.write(tvm.runtime.save_param_dict(factory.get_params()))
    library_path = case.path("library", "lib.so")
    toolchain.export(factory.get_lib(), library_path)

    graph = (case.directory / "graph.json").read_text()
    executor = graph_executor.create(graph, toolchain.load(library_path), tvm.cpu())
    executor.load_params((case.directory / "weights.params").read_bytes())
    for call in program.calls:
        case.call("main", call.inputs.items(), run(executor, call.inputs))
    case.write()


CASES = {
    make.__name__: make
    for make in (
        one_kernel,
        storage_reused,
        reshape_is_nop,
        outputs_shared,
        several_outputs,
        half_and_int,
        mlp,
        resnet8,
        named_weights,
        linked_weights,
        c_two_kernels,
        c_with_workspace,
    )
}
if tvm.__version__.startswith("0.8"):
    del CASES["linked_weights"]  # its own executor crashes on them


if __name__ == "__main__":
    sys.exit(toolchain.run_all(CASES, generate, sys.argv[1:]))
