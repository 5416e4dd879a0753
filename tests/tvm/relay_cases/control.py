# SPDX-License-Identifier: Apache-2.0
"""If, recursion and calls between functions."""

import numpy as np

from . import SINCE_0_9, Call, Program, case, normal, parse, program


@case("if")
def if_else():
    text = """
    def @main(%c: bool, %x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
      if (%c) { add(%x, %y) } else { multiply(%x, %y) }
    }"""
    values = {"x": normal(3), "y": normal(3, seed="y")}
    return program(text, {"c": np.bool_(True), **values}, {"c": np.bool_(False), **values})


@case("if", "alias", SINCE_0_9)
def if_returns_input():
    text = """
    def @main(%x: Tensor[(), int64], %y: Tensor[(3), float32], %z: Tensor[(3), float32]) {
      if (greater(%x, 5i64)) { %y } else { nn.relu(%z) }
    }"""
    values = {"y": normal(3), "z": normal(3, seed="z")}
    return program(text, {"x": np.int64(2**32 + 5), **values}, {"x": np.int64(5), **values})


@case("if")
def if_nested():
    text = """
    def @main(%x: Tensor[(), int32], %y: Tensor[(2), float32]) {
      if (equal(%x, 0)) {
        (%y, 0f)
      } else {
        if (less(%x, 0)) { (negative(%y), 1f) } else { (exp(%y), 2f) }
      }
    }"""
    return program(text, *({"x": np.int32(x), "y": normal(2)} for x in (0, -3, 8)))


@case("recursion", SINCE_0_9)
def factorial():
    text = """
    def @factorial(%n: int64) -> int64 {
      if (less(%n, 2i64)) { 1i64 } else { multiply(%n, @factorial(subtract(%n, 1i64))) }
    }
    def @main(%n: int64) -> int64 { @factorial(%n) }"""
    return program(text, {"n": np.int64(1)}, {"n": np.int64(20)})


@case("recursion", "loop")
def loop_sum():
    """A tail-recursive loop that carries a tensor: a frame a step."""
    text = """
    def @loop(%i: int32, %x: Tensor[(8), float32], %acc: Tensor[(8), float32]) -> Tensor[(8), float32] {
      if (equal(%i, 0)) { %acc } else { @loop(subtract(%i, 1), %x, add(tanh(%acc), %x)) }
    }
    def @main(%i: int32, %x: Tensor[(8), float32]) { @loop(%i, %x, zeros_like(%x)) }"""
    return program(text, {"i": np.int32(0), "x": normal(8)}, {"i": np.int32(50), "x": normal(8)})


@case("recursion", "several_functions")
def even_odd():
    text = """
    def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
    def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
    def @main(%n: int32) -> bool { @even(%n) }"""
    return program(text, {"n": np.int32(6)}, {"n": np.int32(7)})


@case("several_functions")
def three_entries():
    """Every function of the file is called from outside."""
    text = """
    def @scale(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { multiply(%x, 2f) }
    def @shift(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) -> Tensor[(4), float32] {
      add(@scale(%x), %y)
    }
    def @main(%x: Tensor[(4), float32]) { @shift(@scale(%x), %x) }"""
    x, y = normal(4), normal(4, seed="y")
    calls = [Call("main", {"x": x}), Call("scale", {"x": y}), Call("shift", {"x": x, "y": y}), Call("main", {"x": y})]
    return Program(parse(text), calls)
