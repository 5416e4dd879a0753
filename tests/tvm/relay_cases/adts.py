# SPDX-License-Identifier: Apache-2.0
"""Lists and options: algebraic data types taken apart by match, passed in and handed back."""

import numpy as np
from casefile import Adt

from . import Call, Program, case, constructors, normal, parse

LIST = """
type List[A] {
  Cons(A, List[A]),
  Nil,
}
"""

OPTION = """
type Option[A] {
  Some(A),
  None,
}
"""


def _list(tags, items):
    value = Adt(tags["Nil"], [])
    for item in reversed(items):
        value = Adt(tags["Cons"], [item, value])
    return value


def _list_program(text, lengths, make=normal, **others):
    """Calls main with a list %l of each length."""
    module = parse(LIST + text)
    tags = constructors(module, "List")
    items = [make(3, seed=i) for i in range(max(lengths))]
    return Program(module, [Call("main", {"l": _list(tags, items[:n]), **others}) for n in lengths])


@case("adt", "adt_in")
def list_length():
    text = """
    def @length[A](%l: List[A]) -> int32 {
      match (%l) {
        Cons(_, %rest) => add(1, @length(%rest)),
        Nil => 0,
      }
    }
    def @main(%l: List[Tensor[(3), float32]]) -> int32 { @length(%l) }"""
    return _list_program(text, (0, 1, 6))


@case("adt", "adt_in")
def list_sum():
    text = """
    def @sum(%l: List[Tensor[(3), float32]], %acc: Tensor[(3), float32]) -> Tensor[(3), float32] {
      match (%l) {
        Cons(%x, %rest) => @sum(%rest, add(%acc, %x)),
        Nil => %acc,
      }
    }
    def @main(%l: List[Tensor[(3), float32]], %z: Tensor[(3), float32]) { @sum(%l, %z) }"""
    return _list_program(text, (0, 4), z=normal(3, seed="z"))


@case("adt", "adt_in", "adt_out", "closure")
def list_map():
    text = """
    def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
      match (%l) {
        Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)),
        Nil => Nil,
      }
    }
    def @main(%l: List[Tensor[(3), float32]], %s: Tensor[(3), float32]) -> List[Tensor[(3), float32]] {
      @map(fn (%x: Tensor[(3), float32]) -> Tensor[(3), float32] { multiply(%x, %s) }, %l)
    }"""
    return _list_program(text, (0, 5), s=normal(3, seed="s"))


@case("adt", "adt_in", "adt_out", "alias")
def list_reverse():
    """The items handed back are the caller's own."""
    text = """
    def @reverse(%l: List[Tensor[(3), int64]], %acc: List[Tensor[(3), int64]]) -> List[Tensor[(3), int64]] {
      match (%l) {
        Cons(%x, %rest) => @reverse(%rest, Cons(%x, %acc)),
        Nil => %acc,
      }
    }
    def @main(%l: List[Tensor[(3), int64]]) -> List[Tensor[(3), int64]] { @reverse(%l, Nil) }"""
    return _list_program(text, (0, 4), make=lambda *shape, seed: normal(*shape, dtype="int64", seed=seed))


@case("adt", "adt_out", "recursion")
def list_built():
    text = """
    def @count(%n: int32, %x: Tensor[(3), float32]) -> List[Tensor[(3), float32]] {
      if (equal(%n, 0)) { Nil } else { Cons(%x, @count(subtract(%n, 1), exp(negative(%x)))) }
    }
    def @main(%n: int32, %x: Tensor[(3), float32]) -> List[Tensor[(3), float32]] { @count(%n, %x) }"""
    module = parse(LIST + text)
    return Program(module, [Call("main", {"n": np.int32(n), "x": normal(3)}) for n in (0, 3)])


@case("adt", "adt_in", "adt_out", "tuple_out")
def list_split_tuple():
    """A list becomes two, handed back in a tuple."""
    text = """
    def @deal(%l: List[Tensor[(3), float32]]) -> (List[Tensor[(3), float32]], List[Tensor[(3), float32]]) {
      match (%l) {
        Cons(%x, %rest) => {
          let %p = @deal(%rest);
          (Cons(%x, %p.1), %p.0)
        },
        Nil => (Nil, Nil),
      }
    }
    def @main(%l: List[Tensor[(3), float32]]) -> (List[Tensor[(3), float32]], List[Tensor[(3), float32]]) {
      @deal(%l)
    }"""
    return _list_program(text, (0, 5))


@case("adt", "adt_in")
def list_second():
    """A match inside a match."""
    text = """
    def @second(%l: List[Tensor[(3), float32]]) -> Tensor[(3), float32] {
      match (%l) {
        Cons(%x, %rest) => match (%rest) {
          Cons(%y, _) => %y,
          Nil => negative(%x),
        },
        Nil => zeros(shape=[3], dtype="float32"),
      }
    }
    def @main(%l: List[Tensor[(3), float32]]) -> Tensor[(3), float32] { @second(%l) }"""
    return _list_program(text, (3, 1, 0, 2))


@case("adt", "adt_in", "nested_match")
def nested_second():
    """One match of nested patterns: the copy of its last clause, for an empty list, reads registers of the first copy."""
    text = """
    def @main(%l: List[Tensor[(3), float32]]) -> Tensor[(3), float32] {
      match (%l) {
        Cons(_, Cons(%y, _)) => %y,
        _ => zeros(shape=[3], dtype="float32"),
      }
    }"""
    return _list_program(text, (3, 1, 2))


@case("adt", "adt_in", "nested_match", "closure")
def list_foldr1():
    """Of TVM's prelude: an incomplete match of nested patterns."""
    text = """
    def @foldr1[A](%f: fn (A, A) -> A, %l: List[A]) -> A {
      match? (%l) {
        Cons(%x, Nil) => %x,
        Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)),
      }
    }
    def @main(%l: List[Tensor[(3), float32]]) -> Tensor[(3), float32] {
      @foldr1(fn (%x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] { subtract(%x, %y) }, %l)
    }"""
    return _list_program(text, (1, 2, 5))


@case("adt", "adt_in", "tuple_in")
def list_of_pairs():
    text = """
    def @dot(%l: List[(Tensor[(3), float32], Tensor[(3), float32])], %acc: Tensor[(3), float32])
        -> Tensor[(3), float32] {
      match (%l) {
        Cons((%x, %y), %rest) => @dot(%rest, add(%acc, multiply(%x, %y))),
        Nil => %acc,
      }
    }
    def @main(%l: List[(Tensor[(3), float32], Tensor[(3), float32])]) -> Tensor[(3), float32] {
      @dot(%l, zeros(shape=[3], dtype="float32"))
    }"""
    make = lambda *shape, seed: Adt(0, [normal(*shape, seed=seed), normal(*shape, seed=f"{seed}b")])
    return _list_program(text, (2, 3), make=make)


@case("adt", "adt_in", "adt_out")
def option_map():
    text = """
    def @main(%o: Option[Tensor[(2), float32]]) -> Option[Tensor[(2), float32]] {
      match (%o) {
        Some(%x) => Some(tanh(%x)),
        None => None,
      }
    }"""
    module = parse(OPTION + text)
    tags = constructors(module, "Option")
    values = Adt(tags["Some"], [normal(2)]), Adt(tags["None"], [])
    return Program(module, [Call("main", {"o": value}) for value in values])


@case("adt", "adt_out", "if")
def option_checked():
    text = """
    def @main(%x: Tensor[(), float32]) -> Option[Tensor[(), float32]] {
      if (less(%x, 0f)) { None } else { Some(sqrt(%x)) }
    }"""
    module = parse(OPTION + text)
    return Program(module, [Call("main", {"x": np.float32(x)}) for x in (2.5, -1)])
