# SPDX-License-Identifier: Apache-2.0
"""Constants inside the code, left out of it, and returned."""

import numpy as np
import tvm
from tvm import relay

from . import Call, Program, case, normal


def _affine(late_bound, shape=(6, 32)):
    x = relay.var("x", shape=(2, shape[1]), dtype="float32")
    body = relay.nn.dense(x, relay.const(normal(*shape)))
    body = relay.add(body, relay.const(normal(shape[0])))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(body)))
    return Program(module, [Call("main", {"x": normal(2, shape[1])})], late_bound)


@case("constant")
def embedded_weights():
    return _affine(None)


@case("constant", "late_bound")
def late_bound_weights():
    return _affine(0)


@case("constant", "late_bound")
def late_bound_large_only():
    """The bias is below the limit and stays in the code."""
    return _affine(100)


@case("constant", "tuple_out", "int64", "float16")
def returned_constants():
    x = relay.var("x", shape=(3,), dtype="float32")
    fields = [
        relay.const(np.array([2**40, -1]), "int64"),
        relay.add(x, relay.const(normal(3))),
        relay.const(normal(2, 2, dtype="float16")),
        relay.const(np.array([True, False, True])),
    ]
    module = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple(fields)))
    return Program(module, [Call("main", {"x": normal(3)})])
