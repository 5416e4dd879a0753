# SPDX-License-Identifier: Apache-2.0
"""Trees: constructors with several recursive fields, and types within types."""

import numpy as np
from casefile import Adt

from . import Call, Program, case, constructors, normal, parse

TREE = """
type Tree[A] {
  Node(Tree[A], A, Tree[A]),
  Leaf,
}
"""

EXPRESSION = """
type Expression {
  Number(Tensor[(2), float32]),
  Add(Expression, Expression),
  Multiply(Expression, Expression),
  Negate(Expression),
}
"""


def _tree(tags, depth, seed=1):
    if depth == 0:
        return Adt(tags["Leaf"], [])
    children = [_tree(tags, depth - 1, 2 * seed + side) for side in (0, 1)]
    return Adt(tags["Node"], [children[0], normal(3, seed=seed), children[1]])


def _tree_program(text, **others):
    module = parse(TREE + text)
    tags = constructors(module, "Tree")
    return Program(module, [Call("main", {"t": _tree(tags, depth), **others}) for depth in (0, 3)])


@case("adt", "adt_in")
def tree_sum():
    text = """
    def @sum(%t: Tree[Tensor[(3), float32]]) -> Tensor[(3), float32] {
      match (%t) {
        Node(%l, %x, %r) => add(add(@sum(%l), %x), @sum(%r)),
        Leaf => zeros(shape=[3], dtype="float32"),
      }
    }
    def @main(%t: Tree[Tensor[(3), float32]]) -> Tensor[(3), float32] { @sum(%t) }"""
    return _tree_program(text)


@case("adt", "adt_in", "adt_out")
def tree_mirror():
    text = """
    def @mirror(%t: Tree[Tensor[(3), float32]]) -> Tree[Tensor[(3), float32]] {
      match (%t) {
        Node(%l, %x, %r) => Node(@mirror(%r), negative(%x), @mirror(%l)),
        Leaf => Leaf,
      }
    }
    def @main(%t: Tree[Tensor[(3), float32]]) -> Tree[Tensor[(3), float32]] { @mirror(%t) }"""
    return _tree_program(text)


@case("adt", "adt_out", "recursion")
def tree_grown():
    text = """
    def @grow(%n: int32, %x: Tensor[(3), float32]) -> Tree[Tensor[(3), float32]] {
      if (equal(%n, 0)) {
        Leaf
      } else {
        Node(@grow(subtract(%n, 1), tanh(%x)), %x, @grow(subtract(%n, 1), exp(%x)))
      }
    }
    def @main(%n: int32, %x: Tensor[(3), float32]) -> Tree[Tensor[(3), float32]] { @grow(%n, %x) }"""
    module = parse(TREE + text)
    return Program(module, [Call("main", {"n": np.int32(n), "x": normal(3)}) for n in (0, 3)])


@case("adt", "adt_in", "recursion")
def expression_value():
    """An interpreter of a small language: four constructors."""
    text = """
    def @value(%e: Expression) -> Tensor[(2), float32] {
      match (%e) {
        Number(%x) => %x,
        Add(%l, %r) => add(@value(%l), @value(%r)),
        Multiply(%l, %r) => multiply(@value(%l), @value(%r)),
        Negate(%x) => negative(@value(%x)),
      }
    }
    def @main(%e: Expression) -> Tensor[(2), float32] { @value(%e) }"""
    module = parse(EXPRESSION + text)
    tags = constructors(module, "Expression")
    number = lambda seed: Adt(tags["Number"], [normal(2, seed=seed)])
    total = Adt(tags["Add"], [number(1), Adt(tags["Negate"], [number(2)])])
    product = Adt(tags["Multiply"], [total, Adt(tags["Add"], [total, number(3)])])
    return Program(module, [Call("main", {"e": value}) for value in (number(1), total, product)])
