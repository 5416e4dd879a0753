# SPDX-License-Identifier: Apache-2.0
"""Kernels in C, which a C compiler compiles: libraries of several such kernels bear no mark of TVM."""

import numpy as np
import tvm
from tvm import relay

from . import Call, Program, case, normal


def two_kernels():
    x = relay.var("x", shape=(4, 8), dtype="float32")
    body = relay.nn.relu(relay.annotation.stop_fusion(relay.add(x, relay.const(np.float32(1)))))
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    return Program(module, [Call("main", {"x": normal(4, 8)})], target="c")


def with_workspace():
    x = relay.var("x", shape=(1, 1, 20, 20), dtype="float32")
    body = relay.nn.conv2d(x, relay.const(normal(4, 1, 3, 3)), padding=(1, 1), kernel_size=(3, 3), channels=4)
    body = relay.nn.softmax(relay.annotation.stop_fusion(relay.nn.relu(body)))
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    return Program(module, [Call("main", {"x": normal(1, 1, 20, 20)})], target="c")


@case("target_c", "since 0.9")
def c_two_kernels():
    return two_kernels()


@case("target_c", "since 0.9")
def c_with_workspace():
    return with_workspace()
