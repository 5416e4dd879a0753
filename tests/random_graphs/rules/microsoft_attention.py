# SPDX-License-Identifier: Apache-2.0
"""Attention operators of com.microsoft, with caches, masks and rotations."""

import numpy as np

from builder import Rejected, numbers
from draws import F32, I32, I64
from rules import given
from rules.microsoft import add, of_microsoft


class Sizes:
    """A batch of sequences whose new words attend to those and to past ones."""

    def __init__(self, b, head=(1, 2, 4, 8)):
        if b.draws.style == "wide":
            raise Rejected("scores of float16 may overflow, which ONNX Runtime computes in float32")
        self.batch, self.length, self.heads, self.head = b.draws.between(1, 3), b.draws.extent(1, 5), b.draws.choose([1, 2, 4]), b.draws.extent_of(head)
        self.past = b.draws.choose([0, 0, 1, 3])

    @property
    def width(self):
        return self.heads * self.head


def _float(b, shape, role="data"):
    return b.like(F32, shape, role, numbers)


def _bias(b, sizes, keys):
    """A bias of the scores, broadcast over batch and heads as ONNX Runtime takes it."""
    lead = (b.draws.choose([1, sizes.batch]), b.draws.choose([1, sizes.heads]))
    return _float(b, (*lead, sizes.length, keys)) if b.draws.chance(0.3) else None


def _padding(b, batch, keys):
    """1 for each key that may be seen, at least one of each row; or lengths."""
    if b.draws.chance(0.4):
        return b.constant(b.draws.integers(I32, (batch,), 1, keys + 1))
    mask = b.draws.integers(I32, (batch, keys), 0, 2)
    mask[:, 0] = 1
    return b.constant(mask)


@of_microsoft("Attention")
def attention(b, schema):
    sizes, width = Sizes(b), b.draws.choose([1, 3, 8])
    keys = sizes.length + sizes.past
    mask = _padding(b, sizes.batch, keys) if b.draws.chance(0.3) else None
    causal = 0 if mask else b.draws.between(0, 1)  # a causal row that sees padding alone has no meaning
    past = _float(b, (2, sizes.batch, sizes.heads, sizes.past, sizes.head)) if sizes.past else None
    inputs = [_float(b, (sizes.batch, sizes.length, width)), _float(b, (width, 3 * sizes.width), "weight"), _float(b, (3 * sizes.width,), "weight"), mask, past, _bias(b, sizes, keys)]
    return add(b, "Attention", inputs, {"num_heads": sizes.heads, "unidirectional": causal, **given(b.draws, scale=0.3)}, 2 if past else 1)


@of_microsoft("MultiHeadAttention")
def multi_head(b, schema):
    sizes, keys = Sizes(b), b.draws.extent(1, 5)
    value = b.draws.choose([sizes.width, sizes.width, sizes.heads * 3])
    all_keys = keys + (sizes.past if value == sizes.width else 0)
    sizes.past = all_keys - keys
    bias = _float(b, (2 * sizes.width + value,), "weight") if b.draws.chance(0.4) else None
    mask = _padding(b, sizes.batch, all_keys) if b.draws.chance(0.3) else None
    past = [_float(b, (sizes.batch, sizes.heads, sizes.past, sizes.head)) for _ in range(2)] if sizes.past else [None, None]
    inputs = [_float(b, (sizes.batch, sizes.length, sizes.width)), _float(b, (sizes.batch, keys, sizes.width)), _float(b, (sizes.batch, keys, value)), bias, mask, _bias(b, sizes, all_keys), *past]
    return add(b, "MultiHeadAttention", inputs, {"num_heads": sizes.heads, **given(b.draws, scale=0.3)}, 3 if past[0] else 1)


def _rotations(b, size, most):
    """Tables of cosines and sines."""
    angles = np.outer(np.arange(most), 1.0 / (3.0 ** np.arange(size // 2)))
    return [b.constant(part(angles).astype(np.float32)) for part in (np.cos, np.sin)]


@of_microsoft("GroupQueryAttention")
def grouped(b, schema):
    sizes = Sizes(b, head=(8, 16))
    shared = b.draws.choose([1, sizes.heads])
    total = sizes.length + sizes.past
    past = [_float(b, (sizes.batch, shared, sizes.past, sizes.head)) for _ in range(2)] if sizes.past else [None, None]
    if sizes.past and sizes.length > 1 and sizes.batch > 1:
        raise Rejected("ONNX Runtime takes several words behind a cache for one sequence alone")
    lengths, whole = b.constant(np.full((sizes.batch,), total - 1, np.int32)), b.constant(np.array(total, np.int32))
    rotary = b.draws.chance(0.4)
    tables = _rotations(b, sizes.head, total + b.draws.between(0, 2)) if rotary else [None, None]
    inputs = [_float(b, (sizes.batch, sizes.length, sizes.width)), *(_float(b, (sizes.batch, sizes.length, shared * sizes.head)) for _ in range(2)), *past, lengths, whole, *tables]
    attributes = {"num_heads": sizes.heads, "kv_num_heads": shared, **given(b.draws, scale=0.3)}
    if rotary:
        attributes.update(do_rotary=1, **given(b.draws, rotary_interleaved=1))
    return add(b, "GroupQueryAttention", inputs, {**attributes, **given(b.draws, local_window_size=b.draws.choose([1, 2, 4]))}, 3)


@of_microsoft("RotaryEmbedding")
def rotary(b, schema):
    sizes, most = Sizes(b, head=(2, 4, 8)), 8
    shape = (sizes.batch, sizes.length, sizes.width) if b.draws.chance(0.6) else (sizes.batch, sizes.heads, sizes.length, sizes.head)
    places = b.indices((sizes.batch, sizes.length), 0, most, I64) if b.draws.chance(0.6) else b.indices((1,), 0, most - sizes.length + 1, I64)
    places = b.close(places, 0) if places.shape == (1,) and places.source == "input" else places  # one for all, which an open size does not say
    return add(b, "RotaryEmbedding", [_float(b, shape), places, *_rotations(b, sizes.head, most)], given(b.draws, interleaved=b.draws.between(0, 1)))
