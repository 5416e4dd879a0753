# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, Einsum and attention."""


from builder import Rejected, numbers
from draws import BOOL, F32, is_float
from rules import dtypes, given, has, rule
from rules.generic import float_of


@rule("MatMul", "MatMulInteger")
def matmul(b, schema):
    x = b.pick(dtypes(schema, 0), (1, 5))
    inner, columns = x.shape[-1], b.draws.size()
    if b.draws.chance(0.2):
        shape = (inner,)
    elif x.rank > 2 and b.draws.chance(0.4):
        shape = (*[1 if b.draws.chance(0.3) else size for size in x.shape[:-2]], inner, columns)
    else:
        shape = (*[b.draws.size() for _ in range(b.draws.choose([0, 0, 1]) if x.rank <= 2 else 0)], inner, columns)
    other = x.dtype if schema.name == "MatMul" else b.draws.dtype(dtypes(schema, 1))
    y = b.like(other, shape, "weight")
    if schema.name == "MatMul":
        return b.node("MatMul", [x, y])
    zeros = [b.fresh(b.draws.array(value.dtype, () if b.draws.chance(0.7) else (1,)), role="parameter") if b.draws.chance(0.7) else None for value in (x, y)]
    return b.node("MatMulInteger", [x, y, *zeros])


@rule("Gemm")
def gemm(b, schema):
    x = b.pick([dtype for dtype in dtypes(schema, 0)], (2, 2))
    flip_a, flip_b = b.draws.between(0, 1), b.draws.between(0, 1)
    rows, inner = x.shape[::-1] if flip_a else x.shape
    columns = b.draws.size()
    y = b.like(x.dtype, (columns, inner) if flip_b else (inner, columns), "weight")
    bias = b.like(x.dtype, b.draws.choose([(columns,), (1, columns), (rows, 1), (rows, columns), (), (1,)]), "weight") if schema.since_version < 11 or b.draws.chance(0.7) else None
    factors = given(b.draws, alpha=b.draws.choose([0.5, 1.0, -2.0]), beta=b.draws.choose([0.5, 0.0, 1.0])) if is_float(x.dtype) else {}
    if has(schema, "broadcast") and bias.shape != (rows, columns):
        factors["broadcast"] = 1
    return b.node("Gemm", [x, y, bias], {**({"transA": 1} if flip_a else given(b.draws, transA=0)), **({"transB": 1} if flip_b else {}), **factors})


@rule("Einsum")
def einsum(b, schema):
    equation, shapes = b.draws.choose([
        ("ij,jk->ik", "ij jk"), ("bij,bjk->bik", "bij bjk"), ("bhid,bhjd->bhij", "bhid bhjd"), ("i,i->", "i i"), ("ij->ji", "ij"),
        ("bij->bi", "bij"), ("ii->i", "ii"), ("...ij,jk->...ik", "bij jk"), ("abc,cd->abd", "abc cd"), ("i,j->ij", "i j"),
        ("ij,ij->ij", "ij ij"), ("bhij,bjhd->bihd", "bhij bjhd"), ("ab,cb->ac", "ab cb"), ("abc->", "abc"), ("a,b,c->abc", "a b c"), ("ij,jk", "ij jk"),
    ])
    sizes = {letter: b.draws.size() for letter in "abcdhijk"}
    dtype = b.draws.dtype([each for each in dtypes(schema, 0) if each.kind in "f" or each.kind == "i"])
    shapes = [tuple(sizes[letter] for letter in each) for each in shapes.split()]
    return b.node("Einsum", [b.like(dtype, shape, "weight" if place else "data") for place, shape in enumerate(shapes)], {"equation": equation})


@rule("Attention")
def attention(b, schema):
    batch, heads, queries, keys, size = (b.draws.between(1, 3), b.draws.choose([1, 2, 4]), b.draws.extent(1, 5), b.draws.extent(1, 5), b.draws.extent_of([1, 2, 4, 8]))
    shared = b.draws.choose([1, heads, *([2] if heads == 4 else [])])
    value_size = b.draws.choose([size, size, 3])
    dtype = float_of(b, schema)
    if b.draws.chance(0.6):
        shapes = [(batch, heads, queries, size), (batch, shared, keys, size), (batch, shared, keys, value_size)]
        attributes = {}
    else:
        shapes = [(batch, queries, heads * size), (batch, keys, shared * size), (batch, keys, shared * value_size)]
        attributes = {"q_num_heads": heads, "kv_num_heads": shared}
    mask = None
    if b.draws.chance(0.5):
        shape = b.draws.choose([(queries, keys), (1, 1, queries, keys), (batch, 1, queries, keys), (batch, heads, queries, keys)])
        # A row that hides everything has no defined result: one key is always seen.
        if b.draws.chance(0.5):
            seen = b.draws.array(BOOL, shape)
            seen[..., 0] = True
            mask = b.fresh(seen, role="parameter")
        else:
            mask = b.fresh(b.draws.array(dtype, shape, "quarters"), role="parameter")
    attributes.update(given(b.draws, is_causal=b.draws.between(0, 1), scale=0.5, softcap=b.draws.choose([0.0, 2.0]), softmax_precision=1))
    if has(schema, "left_window_size"):
        attributes.update(given(b.draws, left_window_size=b.draws.between(-1, 3), right_window_size=b.draws.between(-1, 3)))
    past = []
    if b.draws.chance(0.2):
        length = b.draws.between(1, 3)
        past = [b.like(dtype, (batch, shared, length, size)), b.like(dtype, (batch, shared, length, value_size))]
        mask = None
    inputs = [b.like(dtype, shape) for shape in shapes] + [mask] + past
    if len(schema.inputs) > 6 and not past and b.draws.chance(0.15):
        inputs += [None, None, b.indices((batch,), 1, keys + 1)]
    outputs = b.draws.choose([3, 3, 4]) if past else 1
    if outputs == 4:
        attributes["qk_matmul_output_mode"] = b.draws.between(0, 3)
    return b.node("Attention", inputs, attributes, outputs)


@rule("RotaryEmbedding")
def rotary(b, schema):
    batch, heads, length, half = b.draws.between(1, 3), b.draws.choose([1, 2]), b.draws.extent(1, 4), b.draws.extent_of([1, 2, 4])
    dtype = float_of(b, schema)
    attributes = given(b.draws, interleaved=b.draws.between(0, 1))
    if b.draws.chance(0.5):
        x = b.like(dtype, (batch, heads, length, 2 * half))
    else:
        x = b.like(dtype, (batch, length, heads * 2 * half))
        attributes["num_heads"] = heads
    turned = half
    if half > 1 and b.draws.chance(0.3):
        turned = half // 2
        attributes["rotary_embedding_dim"] = 2 * turned
    if b.draws.chance(0.5):
        table, positions = (8, turned), b.indices((batch, length), 0, 8)
    else:
        table, positions = (batch, length, turned), None
    return b.node("RotaryEmbedding", [x, b.like(dtype, table, "weight"), b.like(dtype, table, "weight"), positions], attributes)


@rule("LinearAttention")
def linear_attention(b, schema):
    batch, heads, length, size, value = b.draws.between(1, 2), b.draws.between(1, 2), b.draws.extent(1, 4), b.draws.extent_of([2, 4]), b.draws.extent_of([2, 3])
    inputs = [b.like(F32, (batch, length, heads * size)), b.like(F32, (batch, length, heads * size)), b.like(F32, (batch, length, heads * value))]
    rule_name = b.draws.choose(["linear", "gated", "delta", "gated_delta"])
    past = b.like(F32, (batch, heads, size, value)) if b.draws.chance(0.5) else None
    decay = b.fresh(-b.draws.positive(F32, (batch, length, heads)), role="parameter") if "gated" in rule_name else None
    beta = b.fresh(b.draws.positive(F32, (batch, length, heads), 0.1, 0.9), role="parameter") if "delta" in rule_name else None
    return b.node("LinearAttention", [*inputs, past, decay, beta], {"update_rule": rule_name, "q_num_heads": heads, "kv_num_heads": heads, **given(b.draws, scale=0.5, chunk_size=2)}, 2)


@rule("CausalConvWithState")
def causal(b, schema):
    batch, channels, length, window = b.draws.between(1, 2), b.draws.extent(1, 4), b.draws.extent(1, 5), b.draws.between(2, 4)
    x = b.like(F32, (batch, channels, length))
    inputs = [x, b.like(F32, (channels, 1, window), "weight"), b.like(F32, (channels,), "weight") if b.draws.chance(0.5) else None,
              b.like(F32, (batch, channels, window - 1)) if b.draws.chance(0.5) else None]
    return b.node("CausalConvWithState", inputs, given(b.draws, activation=b.draws.choose(["none", "silu", "swish"])), 2)


@rule("Det")
def det(b, schema):
    n = b.draws.between(1, 4)
    return b.node("Det", [b.like(float_of(b, schema), (*b.draws.shape(0, 2), n, n), fits=numbers)])


@rule("SwiGLU")
def swiglu(b, schema):
    x = b.pick([dtype for dtype in dtypes(schema, 0)], (1, 4))
    if len(schema.inputs) > 1:
        return b.node("SwiGLU", [x, b.like(x.dtype, x.shape)], {"alpha": b.draws.choose([1.0, 1.702])})
    raise Rejected("of one input: not drawn")


