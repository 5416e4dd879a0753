# SPDX-License-Identifier: Apache-2.0
"""Sequences, optionals and strings."""

import numpy as np

from builder import Rejected
from draws import F32, I32, I64, TEXT
from rules import any_axis, given, rule


def _sequence(b, dtype=None, shape=None):
    """A sequence that is there, or a new one of one to three tensors."""
    there = [value for value in b.values if not value.is_tensor]
    if there and dtype is None and shape is None and b.draws.chance(0.7):
        return b.draws.choose(there)
    if dtype is None:
        first = b.pick([F32, I64], (0, 4))
        dtype, shape = first.dtype, first.shape
    return b.node("SequenceConstruct", [b.like(dtype, shape) for _ in range(b.draws.between(1, 3))])[0]


@rule("SequenceConstruct")
def construct(b, schema):
    return [_sequence(b)]


@rule("SequenceAt", "SequenceErase")
def at(b, schema):
    sequence = _sequence(b)
    count = len(sequence.array)
    if schema.name == "SequenceErase" and count < 2:
        raise Rejected("an empty sequence does not show its type")
    place = b.parameter(np.array(b.draws.between(-count, count - 1)))
    return b.node(schema.name, [sequence, place])


@rule("SequenceInsert")
def insert(b, schema):
    sequence = _sequence(b)
    tensor = b.like(sequence.array[0].dtype, b.draws.shape(0, 3) if b.draws.chance(0.3) else sequence.array[0].shape)
    place = b.parameter(np.array(b.draws.between(0, len(sequence.array)))) if b.draws.chance(0.6) else None
    return b.node("SequenceInsert", [sequence, tensor, place])


@rule("SequenceLength")
def length(b, schema):
    return b.node("SequenceLength", [_sequence(b)])


@rule("ConcatFromSequence")
def join(b, schema):
    dtype, shape = b.draws.choose([F32, I64]), b.draws.shape(1, 3)
    sequence = _sequence(b, dtype, shape)
    if b.draws.chance(0.3):
        return b.node("ConcatFromSequence", [sequence], {"axis": any_axis(b.draws, len(shape) + 1), "new_axis": 1})
    return b.node("ConcatFromSequence", [sequence], {"axis": any_axis(b.draws, len(shape))})


@rule("SplitToSequence")
def cut(b, schema):
    x = b.pick([F32, I64], (1, 4), lambda v: v.array.size > 0)
    axis = any_axis(b.draws, x.rank)
    if b.draws.chance(0.5):
        return b.node("SplitToSequence", [x], given(b.draws, axis=axis, keepdims=b.draws.between(0, 1)))
    size = x.shape[axis]
    first = b.draws.between(0, size)
    lengths = np.array([first, size - first]) if b.draws.chance(0.6) else np.array(b.draws.between(1, size))
    return b.node("SplitToSequence", [x, b.parameter(lengths)], {"axis": axis})


@rule("StringConcat")
def string_concat(b, schema):
    x = b.pick([TEXT], (0, 3))
    return b.node("StringConcat", [x, b.like(TEXT, x.shape)])


@rule("StringNormalizer")
def normalizer(b, schema):
    x = b.pick([TEXT], (1, 1), lambda v: v.array.size > 0)
    return b.node("StringNormalizer", [x], given(b.draws, case_change_action=b.draws.choose(["LOWER", "UPPER", "NONE"]), is_case_sensitive=b.draws.between(0, 1), stopwords=["the", "a"]))


@rule("StringSplit", "RegexFullMatch", "TfIdfVectorizer")
def text(b, schema):
    if schema.name == "RegexFullMatch":
        return b.node("RegexFullMatch", [b.pick([TEXT], (0, 2))], {"pattern": b.draws.choose(["a+", "[a-z]*", "\\d+"])})
    if schema.name == "StringSplit":
        # Pieces of an empty string: the evaluators differ.
        words = np.array([b.draws.choose(["a b", "c", "a,b", "x y z"]) for _ in range(b.draws.between(1, 4))], object)
        return b.node("StringSplit", [b.fresh(words)], given(b.draws, delimiter=b.draws.choose([",", " "]), maxsplit=b.draws.between(1, 2)), 2)
    shape = b.draws.choose([(b.draws.between(1, 5),), (b.draws.between(1, 3), b.draws.between(1, 5))])
    dtype = b.draws.choose([I64, I32, TEXT])
    if dtype == TEXT:
        x, pool = b.fresh(b.draws.array(TEXT, shape)), {"pool_strings": ["a", "B", "zz", "a", "the"]}
    else:
        x, pool = b.fresh(b.draws.integers(dtype, shape, 0, 5), ("range", dtype, 0, 5)), {"pool_int64s": [1, 2, 3, 1, 2]}
    weights = given(b.draws, weights=[0.5, 1.0, -2.0, 1.5])
    return b.node("TfIdfVectorizer", [x], {"mode": b.draws.choose(["TF", "IDF", "TFIDF"]), "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": b.draws.between(0, 1),
                                          "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3], **pool, **weights})
