# SPDX-License-Identifier: Apache-2.0
"""Straight-line programs: one kernel after another, every dtype that saved models hold."""

import numpy as np

from . import SINCE_0_9, case, normal, program


@case("elementwise")
def add_one():
    return program("def @main(%x: Tensor[(2, 3), float32]) { add(%x, 1f) }", {"x": normal(2, 3)})


@case("elementwise")
def polynomial():
    text = """
    def @main(%x: Tensor[(4, 33), float32], %y: Tensor[(33), float32]) {
      %0 = multiply(%x, %x);
      %1 = add(%0, %y);
      tanh(subtract(%1, exp(%y)))
    }"""
    return program(text, {"x": normal(4, 33), "y": normal(33)})


@case("elementwise")
def scalars():
    text = "def @main(%x: Tensor[(), float32], %y: Tensor[(), float32]) { add(multiply(%x, %y), 0.5f) }"
    return program(text, {"x": np.float32(3), "y": np.float32(-0.25)})


@case("elementwise", "int64")
def integers_64():
    text = """
    def @main(%x: Tensor[(5), int64], %y: Tensor[(5), int64]) {
      where(greater(%x, %y), multiply(%x, %y), bitwise_xor(%x, %y))
    }"""
    return program(text, {"x": normal(5, dtype="int64") + 2**40, "y": normal(5, dtype="int64", seed="y")})


@case("elementwise", "float16")
def half_floats():
    text = "def @main(%x: Tensor[(3, 8), float16], %y: Tensor[(8), float16]) { nn.relu(add(multiply(%x, %y), %y)) }"
    return program(text, {"x": normal(3, 8, dtype="float16"), "y": normal(8, dtype="float16")})


@case("elementwise")
def casts():
    text = """
    def @main(%x: Tensor[(6), float32]) {
      %0 = cast(%x, dtype="int8");
      %1 = cast(%0, dtype="float64");
      %2 = greater(%1, 0f64);
      cast(%2, dtype="uint8")
    }"""
    return program(text, {"x": normal(6) * 3})


@case("elementwise", "bool")
def booleans():
    text = "def @main(%x: Tensor[(7), bool], %y: Tensor[(7), bool]) { logical_or(logical_not(%x), %y) }"
    return program(text, {"x": normal(7) > 0, "y": normal(7, seed="y") > 0})


@case("dense")
def dense_relu():
    text = """
    def @main(%x: Tensor[(3, 16), float32], %w: Tensor[(8, 16), float32], %b: Tensor[(8), float32]) {
      nn.relu(nn.bias_add(nn.dense(%x, %w, units=8), %b))
    }"""
    return program(text, {"x": normal(3, 16), "w": normal(8, 16), "b": normal(8)})


@case("dense", SINCE_0_9)
def softmax_of_matmul():
    text = """
    def @main(%x: Tensor[(2, 4, 8), float32], %y: Tensor[(2, 5, 8), float32]) {
      nn.softmax(nn.batch_matmul(%x, %y, transpose_b=True))
    }"""
    return program(text, {"x": normal(2, 4, 8), "y": normal(2, 5, 8)})


@case("reduction")
def layer_norm():
    text = """
    def @main(%x: Tensor[(2, 7, 16), float32], %g: Tensor[(16), float32], %b: Tensor[(16), float32]) {
      nn.layer_norm(%x, %g, %b)
    }"""
    return program(text, {"x": normal(2, 7, 16), "g": normal(16), "b": normal(16, seed="b")})


@case("empty")
def empty_output():
    """A kernel whose only output has a zero dimension is not called."""
    text = "def @main(%x: Tensor[(0, 4), float32]) { add(nn.relu(%x), 1f) }"
    return program(text, {"x": np.zeros((0, 4), "float32")})


@case("reshape")
def reshape_chain():
    text = """
    def @main(%x: Tensor[(2, 12), float32]) {
      %0 = reshape(nn.relu(%x), newshape=[2, 3, 4]);
      %1 = transpose(%0, axes=[1, 0, 2]);
      reshape(%1, newshape=[-1])
    }"""
    return program(text, {"x": normal(2, 12)})


@case("reshape", "alias")
def reshape_of_input():
    """The result is a view of the input."""
    return program("def @main(%x: Tensor[(6), float32]) { reshape(%x, newshape=[2, 3]) }", {"x": normal(6)})
