# SPDX-License-Identifier: Apache-2.0
"""Draws operators from ONNX's schemas, and graphs of them."""

import functools

import onnx

import contrib
import control
import evaluate
import motifs
from builder import Rejected
from draws import FLOATS
from rules import (RULES, classic, convolution, elementwise, generic, indexing, microsoft, microsoft_attention, movement, normalization, products,
                   quantization, sequences, vision)

# Not drawn: pictures, gradients, what is or takes a map, and Multinomial, which is refused (docs/operators.md).
LEFT_OUT = {"ImageDecoder", "Multinomial", "Gradient", "Adagrad", "Adam", "Momentum", "ZipMap", "CastMap", "DictVectorizer", "FlexAttention"}
# What models are mostly made of: drawn more often in large graphs.
USUAL = {
    "Add": 8, "Mul": 8, "Sub": 4, "Div": 3, "Relu": 4, "Sigmoid": 4, "Tanh": 3, "Conv": 9, "MatMul": 8, "Gemm": 4, "Transpose": 9,
    "Reshape": 9, "Concat": 6, "Slice": 6, "Split": 4, "Gather": 4, "Softmax": 3, "ReduceMean": 4, "BatchNormalization": 3, "MaxPool": 3,
    "AveragePool": 3, "Unsqueeze": 4, "Squeeze": 4, "Shape": 3, "Cast": 4, "Pad": 4, "Expand": 3, "Where": 3, "LayerNormalization": 3,
    "Resize": 2, "If": 1, "Loop": 1, "Clip": 2, "ConvTranspose": 2, "Erf": 2, "Sqrt": 2, "Pow": 2, "Flatten": 2,
}
_MODULES = (classic, control, convolution, elementwise, indexing, microsoft, microsoft_attention, movement, normalization, products, quantization,
            sequences, vision)


@functools.lru_cache(None)
def names(opset, ml_opset):
    """All operators of these versions, as (domain, name)."""
    found = []
    for domain, version in (("", opset), ("ai.onnx.ml", ml_opset)):
        for schema in onnx.defs.get_all_schemas_with_history():
            if schema.domain == domain and schema.name not in LEFT_OUT and (domain, schema.name) not in found:
                try:
                    if not onnx.defs.get_schema(schema.name, version, domain).deprecated:
                        found.append((domain, schema.name))
                except onnx.defs.SchemaError:
                    pass
    return (*found, *((contrib.DOMAIN, kind) for kind in contrib.KINDS))


def add_one(b, kind, domain=""):
    schema = b.schema(kind, domain)
    made = RULES.get((domain, kind), generic.draw)
    return made(b, schema)


def _drawn(b, usual):
    draws = b.draws
    if draws.chance(usual * 0.35):
        return motifs.add(b)
    if draws.chance(0.03 if not b.depth else 0.03 * bool(b.functions)):
        return control.function(b)
    if draws.chance(0.03):
        return quantization.few_bits(b)
    if draws.chance(0.05):
        return _between_transposes(b)
    if draws.chance(usual):
        kind = draws.weighted(USUAL)
        return add_one(b, kind)
    domain, kind = draws.choose(names(b.opset(), b.opset("ai.onnx.ml")))
    return add_one(b, kind, domain)


def _between_transposes(b):
    """An operator whose input is transposed, and whose result is, in any order of the axes: what passes move and cancel."""
    x = b.pick(FLOATS, (2, 5))
    b.node("Transpose", [x], {"perm": b.draws.shuffled(range(x.rank))})
    kind = b.draws.weighted(USUAL) if b.draws.chance(0.6) else b.draws.choose([kind for domain, kind in names(b.opset(), 1) if domain == ""])
    made = add_one(b, kind)[0]
    return b.node("Transpose", [made], {"perm": b.draws.shuffled(range(made.rank))}) if made.is_tensor and made.rank > 1 else [made]


@functools.lru_cache(None)
def without_sums(opset):
    """Operators that add nothing up: elementwise ones, and those that move elements."""
    drawn = {kind for _, kind in names(opset, 1)}
    own = {kind for (_, kind), made in RULES.items() if made.__module__ in ("rules.elementwise", "rules.movement")}
    unary = {kind for kind in drawn if ("", kind) not in RULES and kind not in ("Sum", "Mean")}
    return tuple(("", kind) for kind in sorted(drawn & (own | unary)))


def grow(b, count, only=None):
    """Adds nodes until there are so many, or until too many tries have failed. Nodes that a try left behind stay: they are
    valid by themselves."""
    usual = 0.75 if count > 4 else 0.25
    if b.draws.style == "extremes":
        only = only or without_sums(b.opset())
    tries = 0
    begun = len(b.nodes)
    while len(b.nodes) - begun < count and tries < 6 * count + 10:
        tries += 1
        try:
            if only:
                domain, kind = b.draws.choose(only)
                add_one(b, kind, domain)
            else:
                _drawn(b, usual)
        except (Rejected, evaluate.Invalid, onnx.defs.SchemaError, IndexError, ZeroDivisionError):
            # The last two: a rule met a size of 0 that it has no draw for.
            continue
