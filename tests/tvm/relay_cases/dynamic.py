# SPDX-License-Identifier: Apache-2.0
"""Shapes that are known only at run time: shape functions, AllocTensorReg, ShapeOf, ReshapeTensor of a tensor."""

import numpy as np
import tvm
from tvm import relay

from . import Call, Program, case, normal, program


@case("dynamic")
def dynamic_rows():
    text = "def @main(%x: Tensor[(?, 4), float32]) { nn.relu(add(%x, 1f)) }"
    return program(text, *({"x": normal(n, 4)} for n in (1, 7, 3)))


@case("dynamic", "dense")
def dynamic_dense():
    text = """
    def @main(%x: Tensor[(?, 8), float32], %w: Tensor[(5, 8), float32]) {
      tanh(nn.dense(%x, %w, units=5))
    }"""
    return program(text, *({"x": normal(n, 8), "w": normal(5, 8)} for n in (2, 9)))


@case("dynamic", "flatten")
def dynamic_concatenate():
    text = """
    def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(?, 2), float32]) { concatenate((%x, tanh(%y)), axis=0) }"""
    return program(text, *({"x": normal(a, 2), "y": normal(b, 2, seed="y")} for a, b in ((1, 4), (3, 3))))


@case("dynamic", "reshape")
def dynamic_reshape():
    text = "def @main(%x: Tensor[(?, 6), float32]) { reshape(exp(%x), newshape=[-1, 2, 3]) }"
    return program(text, *({"x": normal(n, 6)} for n in (2, 5)))


@case("dynamic", "reshape", "int64")
def reshape_to_argument():
    text = """
    def @main(%x: Tensor[(?, ?), float32], %s: Tensor[(3), int64]) { dyn.reshape(nn.relu(%x), %s, newshape=None) }"""
    shapes = ((4, 6), (2, 3, 4)), ((2, 2), (4, 1, 1))
    return program(text, *({"x": normal(*a), "s": np.array(b, "int64")} for a, b in shapes))


@case("dynamic")
def shape_of_input():
    text = """
    def @main(%x: Tensor[(?, 3, ?), float32]) { shape_of(%x, dtype="int64") }"""
    return program(text, {"x": normal(2, 3, 5)}, {"x": normal(1, 3, 8)})


@case("dynamic", "data_dependent")
def arange_to():
    """The output's size is a value, not a shape."""
    n = relay.var("n", shape=(), dtype="float32")
    zero, one = relay.const(0.0), relay.const(1.0)
    main = relay.Function([n], relay.arange(zero, n, one, dtype="float32"))
    return Program(tvm.IRModule.from_expr(main), [Call("main", {"n": np.float32(v)}) for v in (5, 2)])


@case("dynamic", "data_dependent")
def non_zero():
    text = "def @main(%x: Tensor[(3, 4), float32]) { argwhere(%x) }"
    return program(text, *({"x": np.where(normal(3, 4, seed=s) > 0, 1, 0).astype("float32")} for s in "ab"))


@case("dynamic", "recursion", "loop")
def dynamic_append():
    """A tensor that grows by a row a step."""
    text = """
    def @loop(%i: int32, %x: Tensor[(1, 3), float32], %acc: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
      if (equal(%i, 0)) { %acc } else { @loop(subtract(%i, 1), %x, concatenate((%acc, %x), axis=0)) }
    }
    def @main(%i: int32, %x: Tensor[(1, 3), float32], %acc: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
      @loop(%i, %x, %acc)
    }"""
    return program(text, *({"i": np.int32(i), "x": normal(1, 3), "acc": normal(2, 3)} for i in (0, 4)))
