# SPDX-License-Identifier: Apache-2.0
"""Tuples in, out and between functions, with the sharing that TVM's own output binding gets wrong."""

from casefile import Adt

from . import case, normal, program


@case("tuple_out")
def tuple_of_two():
    text = "def @main(%x: Tensor[(4), float32]) { (add(%x, 1f), multiply(%x, %x)) }"
    return program(text, {"x": normal(4)})


@case("tuple_out", "alias")
def tuple_of_inputs():
    text = "def @main(%x: Tensor[(4), float32], %y: Tensor[(2), float32]) { (%y, add(%x, 1f), %x, %y) }"
    return program(text, {"x": normal(4), "y": normal(2)})


@case("tuple_out", "alias")
def tuple_field_twice():
    text = """
    def @main(%x: Tensor[(4), float32]) {
      let %y = nn.relu(%x);
      (%y, reshape(%y, newshape=[2, 2]), %y, 3f)
    }"""
    return program(text, {"x": normal(4)})


@case("tuple_out")
def tuple_nested():
    text = """
    def @main(%x: Tensor[(4), float32]) {
      let %y = tanh(%x);
      ((%y, (exp(%x), ())), negative(%y))
    }"""
    return program(text, {"x": normal(4)})


@case("tuple_in", "tuple_out")
def tuple_argument():
    text = """
    def @main(%p: (Tensor[(3), float32], Tensor[(3), float32])) {
      (add(%p.0, %p.1), %p.0)
    }"""
    return program(text, {"p": Adt(0, [normal(3), normal(3, seed="b")])})


@case("tuple_in", "flatten")
def tuple_to_kernel():
    """The kernel of concatenate takes its tuple flattened."""
    text = """
    def @main(%p: (Tensor[(2, 3), float32], Tensor[(2, 1), float32], Tensor[(2, 5), float32])) {
      nn.relu(concatenate(%p, axis=1))
    }"""
    return program(text, {"p": Adt(0, [normal(2, 3), normal(2, 1), normal(2, 5)])})


@case("tuple_out")
def split_parts():
    text = """
    def @main(%x: Tensor[(6, 2), float32]) {
      let %s = split(%x, indices_or_sections=3);
      (%s.2, add(%s.0, %s.1))
    }"""
    return program(text, {"x": normal(6, 2)})


@case("tuple_out", "several_functions")
def tuple_between_functions():
    text = """
    def @pair(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> (Tensor[(3), float32], Tensor[(3), float32]) {
      (subtract(%y, %x), multiply(%x, %y))
    }
    def @main(%x: Tensor[(3), float32]) {
      let %p = @pair(%x, exp(%x));
      let %q = @pair(%p.1, %p.0);
      (%q.0, %p.0, %q.1)
    }"""
    return program(text, {"x": normal(3)})


@case("tuple_out", "int64")
def maximum_and_place():
    text = """
    def @main(%x: Tensor[(3, 9), float32]) {
      (max(%x, axis=[1]), cast(argmax(%x, axis=[1]), dtype="int64"))
    }"""
    return program(text, {"x": normal(3, 9)})
