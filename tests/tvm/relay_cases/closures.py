# SPDX-License-Identifier: Apache-2.0
"""Functions as values: captured tensors, functions passed on, and closures in a list."""

import numpy as np

from . import case, normal, program


@case("closure")
def closure_captures():
    text = """
    def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) {
      let %f = fn (%z: Tensor[(3), float32]) -> Tensor[(3), float32] { add(multiply(%x, %z), %y) };
      let %g = fn (%z: Tensor[(3), float32]) -> Tensor[(3), float32] { subtract(%f(%z), %x) };
      %g(%g(%y))
    }"""
    return program(text, {"x": normal(3), "y": normal(3, seed="y")})


@case("closure", "several_functions")
def closure_from_function():
    text = """
    def @adder(%n: Tensor[(2), float32]) -> fn (Tensor[(2), float32]) -> Tensor[(2), float32] {
      fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] { add(%x, %n) }
    }
    def @main(%x: Tensor[(2), float32]) {
      let %f = @adder(exp(%x));
      let %g = @adder(tanh(%x));
      %f(%g(%x))
    }"""
    return program(text, {"x": normal(2)})


@case("closure", "recursion")
def closure_repeated():
    text = """
    def @repeat(%f: fn (Tensor[(4), float32]) -> Tensor[(4), float32], %n: int32,
                %x: Tensor[(4), float32]) -> Tensor[(4), float32] {
      if (equal(%n, 0)) { %x } else { @repeat(%f, subtract(%n, 1), %f(%x)) }
    }
    def @main(%x: Tensor[(4), float32], %n: int32) {
      let %s = exp(%x);
      @repeat(fn (%z: Tensor[(4), float32]) -> Tensor[(4), float32] { sqrt(add(%z, %s)) }, %n, %s)
    }"""
    return program(text, {"x": normal(4), "n": np.int32(0)}, {"x": normal(4), "n": np.int32(5)})


@case("closure", "if")
def closure_chosen():
    """Which function is called is known only at run time."""
    text = """
    def @main(%c: bool, %x: Tensor[(3), float32]) {
      let %y = exp(%x);
      let %f = if (%c) {
        fn (%z: Tensor[(3), float32]) -> Tensor[(3), float32] { add(%z, %y) }
      } else {
        fn (%z: Tensor[(3), float32]) -> Tensor[(3), float32] { multiply(%z, multiply(%x, %y)) }
      };
      %f(%x)
    }"""
    return program(text, *({"c": np.bool_(c), "x": normal(3)} for c in (True, False)))
