#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the rules of the oracles judge as they should, one small model a rule: what is right is taken, what is wrong is not, and what ONNX
leaves open is called so. The results are given here: Rewire runs nothing.

    judged.py

Prints the cases that are judged otherwise, and exits with 1 if there are any.
"""

import dataclasses
import sys

import numpy as np
from onnx import parser

import promised
from draws import F32
from oracles import Open, Oracles

CASES = []
OPEN = "open"
# The other side of what float32 makes of it.
ROOT_OF_TWO = not np.sqrt(np.float32(2)) * np.sqrt(np.float32(2)) <= 2


@dataclasses.dataclass
class Case:
    name: str
    model: str  # the graph, behind the sets of operators
    feeds: dict
    right: object
    wrong: object  # None where all is open
    opset: int = 17
    functions: str = ""


def case(*given, **more):
    CASES.append(Case(*given, **more))


def floats(*values, shape=None, dtype=F32):
    array = np.array(values).astype(dtype)
    return array if shape is None else array.reshape(shape)


case("an interpolation of equal elements lies on either side of them",
     'g (float[1, 1, 1] x, int64[3] n) => (int32[1, 1, 3] y) { r = Resize<mode = "linear">(x, "", "", n) y = Cast<to = 6>(r) }',
     {"x": floats(3, shape=(1, 1, 1)), "n": np.array([1, 1, 3])}, np.array([[[3, 2, 3]]], np.int32), np.array([[[3, 1, 3]]], np.int32))
case("a sum of whole numbers does not round",
     "g (float[2] x) => (int32[2] y) { r = Add(x, x) y = Cast<to = 6>(r) }", {"x": floats(3, 1)}, np.array([6, 2], np.int32), np.array([5, 2], np.int32))
case("what is quantized is divided first, in the type that it has",
     "g (float16[2] x, float16 s, int8 z) => (int8[2] y) { y = QuantizeLinear(x, s, z) }",
     {"x": floats(0.215, 3, dtype=np.float16), "s": floats(0.086, shape=(), dtype=np.float16), "z": np.array(0, np.int8)},
     np.array([2, 35], np.int8), np.array([5, 35], np.int8), opset=19)
case("a root of what is almost 0 is a number or not",
     "g (float[2] x) => (float[2] y) { e = Erf(x) o = Constant<value = float {1}>() a = Add(e, o) m = Mul(a, x) y = Sqrt(m) }",
     {"x": floats(-4, 1)}, floats(np.nan, 1.3574), floats(np.nan, 1.4))
case("a large product of which an integer is made lies between those of other roundings",
     "g (float[2, 7] x) => (int32[2] y) { r = ReduceProd<axes = [1], keepdims = 0>(x) y = Cast<to = 6>(r) }",
     {"x": np.stack([np.full(7, 8.1, np.float32), np.full(7, 2.0, np.float32)])}, np.array([2287680, 128], np.int32), np.array([2287680, 120], np.int32))
case("the logarithm of a share of almost 1 is almost 0",
     "g (float[1, 2] x) => (float[1, 2] y) { l = LogSoftmax(x) y = Log(l) }", {"x": floats(9.3, -9.1, shape=(1, 2))},
     floats(np.nan, np.nan, shape=(1, 2)), floats(np.nan, 3, shape=(1, 2)))
case("a quantized operator is its formula, in a function, too",
     "g (int8[1, 2] x) => (int8[1, 2] y) { y = own.f(x) }", {"x": np.array([[2, -6]], np.int8)}, np.array([[5, 3]], np.int8), np.array([[4, 3]], np.int8), opset=13,
     functions='<domain: "own", opset_import: ["" : 13, "com.microsoft" : 1]> f (x) => (y) { s = Constant<value = float {0.34046432}>() z = Constant<value = int8 {-2}>() '
               "t = Constant<value = float {0.48461396}>() u = Constant<value = int8 {3}>() y = com.microsoft.QLinearSoftmax<axis = -1, opset = 13>(x, s, z, t, u) }")
case("sums of a type of 16 bits may be those of a wider one",
     "g (float16[1, 3] x, float16[3, 1] w) => (float16[1, 1] y) { y = MatMul(x, w) }",
     {"x": floats(300, 300, 1, shape=(1, 3), dtype=np.float16), "w": floats(300, -300, 2, shape=(3, 1), dtype=np.float16)},
     floats(2, shape=(1, 1), dtype=np.float16), floats(3, shape=(1, 1), dtype=np.float16))
case("channels of an image of three axes are those of its columns",
     "g (float[1, 4, 1] x, int64[3] n, int64[3] b) => (float[1, 2, 1, 1, 2] y) { y = Col2Im(x, n, b) }",
     {"x": floats(1, 2, 3, 4, shape=(1, 4, 1)), "n": np.array([1, 1, 2]), "b": np.array([1, 1, 2])},
     floats(1, 2, 3, 4, shape=(1, 2, 1, 1, 2)), floats(1, 2, 0, 0, shape=(1, 2, 1, 1, 2)), opset=18)
case("a past counts where nothing says what becomes of it",
     "g (float[1, 1, 1] q, float[1, 1, 1] v, float[1, 1, 1, 1] p) => (float[1, 1, 1] y) { y = com.microsoft.MultiHeadAttention<num_heads = 1>(q, q, v, \"\", \"\", \"\", p, p) }",
     {"q": floats(0, shape=(1, 1, 1)), "v": floats(1, shape=(1, 1, 1)), "p": floats(3, shape=(1, 1, 1, 1))},
     floats(2, shape=(1, 1, 1)), floats(1, shape=(1, 1, 1)))
case("axes of a Resize that count from the end",
     'g (float[1, 4] x, float[1] s) => (float[1, 5] y) { y = Resize<axes = [-1]>(x, "", s) }', {"x": floats(1, 2, 3, 4, shape=(1, 4)), "s": floats(1.25)},
     floats(1, 2, 2, 3, 4, shape=(1, 5)), floats(1, 2, 3, 4, 4, shape=(1, 5)), opset=18)
case("channels around an element, and not images around it",
     "g (float[2, 1, 1, 1] x) => (float[2, 1, 1, 1] y) { y = LRN<alpha = 1.0, beta = 0.5, bias = 0.0, size = 3>(x) }", {"x": floats(3, 4, shape=(2, 1, 1, 1))},
     floats(1.7320508, 1.7320508, shape=(2, 1, 1, 1)), floats(1.0392305, 1.3856406, shape=(2, 1, 1, 1)))
case("a batch's own mean is not taken",
     "g (float[1, 1, 2] x, float[1] a, float[1] v) => (float[1, 1, 2] y) { y = BatchNormalization<epsilon = 0.0>(x, a, a, a, v) }",
     {"x": floats(3, 5, shape=(1, 1, 2)), "a": floats(1), "v": floats(4)}, floats(2, 3, shape=(1, 1, 2)), floats(1, 1, shape=(1, 1, 2)), opset=9)
case("axes behind one are softened together before version 13",
     "g (float16[2, 2] x) => (int64[2, n] y) { s = LogSoftmax<axis = 0>(x) y = NonZero(s) }", {"x": floats(0, 60000, 50000, 0, shape=(2, 2), dtype=np.float16)},
     np.array([[0, 1, 1], [0, 0, 1]]), np.array([[0, 1], [0, 1]]), opset=11)
case("turns of a loop give scalars",
     "g (int64 n, bool t) => (bool[m] y) { y = Loop<body = b (int64 i, bool c) => (bool d, bool e) { d = Identity(c) k = Cast<to = 9>(i) e = Not(k) }>(n, t) }",
     {"n": np.array(3), "t": np.array(True)}, np.array([True, False, False]), np.array([[True], [False], [False]]))
case("a quantized layer in a branch reads floats",
     "g (bool c, float[1, 1, 2] x, uint8[1, 2, 4] w, uint8[1, 1, 4] r) => (float[1, 1, 1] y) { y = If<then_branch = t () => (float[1, 1, 1] h) { s = Constant<value_floats = [0.4]>() "
     'z = Constant<value = uint8[1] {0}>() a, h = com.microsoft.DynamicQuantizeLSTM<hidden_size = 1>(x, w, r, "", "", "", "", "", s, z, s, z) }, '
     "else_branch = e () => (float[1, 1, 1] h) { h = ReduceMax<axes = [2]>(x) }>(c) }",
     {"c": np.array(True), "x": floats(-0.1234, 0.2176, shape=(1, 1, 2)), "w": np.array([[[9, 3, 7, 4], [5, 6, 3, 8]]], np.uint8), "r": np.array([[[4, 3, 9, 5]]], np.uint8)},
     floats(0.133675, shape=(1, 1, 1)), floats(0.136, shape=(1, 1, 1)))
case("where NaN stands in an order", "g (float[3] x) => (int64 y) { y = ArgMax<keepdims = 0>(x) }", {"x": floats(1, np.nan, 2)}, OPEN, np.array(0))
case("an integer that does not hold a number", "g (float[1] x) => (int8[1] y) { y = Cast<to = 3>(x) }", {"x": floats(300)}, OPEN, np.array([1], np.int8))
case("a category of no number", "g (float[2] x) => (float[2, 1] y) { y = ai.onnx.ml.OneHotEncoder<cats_int64s = [0], zeros = 1>(x) }", {"x": floats(np.nan, 0)},
     OPEN, floats(7, 1, shape=(2, 1)))
case("a category of no number in a later turn",
     "g (float[2, 1] x) => (float[2, 1, 1] y) { y = Scan<num_scan_inputs = 1, body = b (float[1] r) => (float[1, 1] z) { z = ai.onnx.ml.OneHotEncoder<cats_int64s = [0], zeros = 1>(r) }>(x) }",
     {"x": floats(0, np.nan, shape=(2, 1))}, OPEN, floats(1, 7, shape=(2, 1, 1)))
case("a category that is not there", "g (float[2] x) => (float[2, 1] y) { y = ai.onnx.ml.OneHotEncoder<cats_int64s = [0], zeros = 1>(x) }", {"x": floats(3, 0)},
     floats(0, 1, shape=(2, 1)), floats(1, 1, shape=(2, 1)))
case("recurrent weights of more ways than inputs have",
     "g (float[1, 1, 1] x, float[1, 3, 1] w, float[2, 3, 1] r) => (float[1, 1, 1, 1] y) { y = GRU<hidden_size = 1, layout = 1>(x, w, r) }",
     {"x": floats(1, shape=(1, 1, 1)), "w": floats(1, 2, 3, shape=(1, 3, 1)), "r": floats(1, 2, 3, 4, 5, 6, shape=(2, 3, 1))}, OPEN, floats(7, shape=(1, 1, 1, 1)))
case("a mean of nothing", "g (int8[2, 0] x, float s, int8 z) => (int8[2] y) { y = com.microsoft.QLinearReduceMean<axes = [1], keepdims = 0>(x, s, z, s, z) }",
     {"x": np.zeros((2, 0), np.int8), "s": floats(1, shape=()), "z": np.array(0, np.int8)}, OPEN, np.array([7, 7], np.int8))
case("a sum of nothing", "g (float[2, 0] x) => (float[2] y) { y = ReduceSumSquare<axes = [1], keepdims = 0>(x) }",
     {"x": np.zeros((2, 0), np.float32)}, floats(0, 0), floats(7, 7))
case("a comparison in a body of what is rounded there",
     "g (int64 n, float[2] x) => (bool[1, 2] y) { y = Loop<body = b (int64 i, bool c) => (bool d, bool[2] z) { d = Identity(c) s = Sqrt(x) m = Mul(s, s) z = LessOrEqual(m, x) }>(n, \"\") }",
     {"n": np.array(1), "x": floats(2, -1)}, np.array([[ROOT_OF_TWO, False]]), np.array([[True, True]]))
case("which scale sizes mean", 'g (float[5] x, int64[1] n) => (float[7] y) { y = Resize(x, "", "", n) }', {"x": floats(1, 2, 3, 4, 5), "n": np.array([7])}, OPEN, np.full(7, 9, np.float32))
case("a factor that is exact", 'g (float[4] x, int64[1] n) => (float[5] y) { y = Resize(x, "", "", n) }', {"x": floats(1, 2, 3, 4), "n": np.array([5])},
     floats(1, 2, 2, 3, 4), np.full(5, 9, np.float32))
case("a window larger than the image", "g (float[1, 1, 1] x) => (float[a, b, c] y) { y = MaxPool<kernel_shape = [5], pads = [1, 2], strides = [3]>(x) }",
     {"x": floats(1, shape=(1, 1, 1))}, OPEN, np.zeros((1, 1, 2), np.float32))
case("shares of NaN", 'g (double[2] x, int64[1] n) => (double[4] y) { y = Resize(x, "", "", n) }', {"x": np.array([np.nan, 1]), "n": np.array([4])}, OPEN, np.array([np.nan, np.nan, 1, 5]))
case("a power of what is almost whole", "g (float[2] x) => (float[2] y) { e = Exp(x) n = Neg(e) y = Pow(n, n) }", {"x": floats(np.log(7), 0.5)},
     floats(-(7.0**-7), np.nan), floats(-(7.0**-7), 1))
case("parts that do not fit", "g (float[a, 2] x, float[b, 3] y) => (float[c, d] z) { z = Concat<axis = 0>(x, y) }",
     {"x": np.zeros((0, 2), np.float32), "y": np.ones((1, 3), np.float32)}, OPEN, np.zeros((1, 3), np.float32))
case("what is open elsewhere does not excuse", "g (float[3] x) => (float[3] z) { y = ReduceMax(x) z = Add(x, x) }", {"x": floats(1, np.nan, 2)}, floats(2, np.nan, 4), floats(2, np.nan, 5))


def judgement(case, result):
    """None, what is wrong, or OPEN."""
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {case.opset}, "com.microsoft" : 1, "ai.onnx.ml" : 3, "own" : 1]> {case.model} {case.functions}')
    if not case.functions:
        del proto.opset_import[3:]
    try:
        return Oracles(proto, case.feeds).problem(0, result)
    except Open:
        return OPEN


def main():
    bad = []
    for each in CASES:
        given = each.wrong if isinstance(each.right, str) else each.right
        told = judgement(each, given)
        if told != (OPEN if isinstance(each.right, str) else None):
            bad.append(f"{each.name}: {given.tolist()} is right or open, and judged: {told}")
        if not isinstance(each.right, str) and judgement(each, each.wrong) in (None, OPEN):
            bad.append(f"{each.name}: {each.wrong.tolist()} is wrong, and not noticed")
    name = "%6, 'b' \"c\""
    if not promised.may_refuse("", "NonZero", 17, f"input 0, '{name}', is strings"):
        bad.append(f"strings are refused under any name, such as {name}")
    print("\n".join([*bad, f"{len(CASES) + 1} cases, {len(bad)} judged otherwise"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
