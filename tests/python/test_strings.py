# SPDX-License-Identifier: Apache-2.0
"""Outputs that are strings, and maps, beside ONNX Runtime."""

import numpy
import onnxruntime
import pytest
import rewire
from onnx import TensorProto, helper

X = numpy.random.default_rng(3).standard_normal((20, 4)).astype(numpy.float32)
LABELS = ["a", "b\"c", "\u00e4"]


def classifier(labels):
    """A linear classifier with its scores as maps."""
    random = numpy.random.default_rng(1)
    strings = isinstance(labels[0], str)
    classes = {"classlabels_strings" if strings else "classlabels_ints": labels}
    keys = {"classlabels_strings" if strings else "classlabels_int64s": labels}
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
                              coefficients=random.standard_normal(12).tolist(), intercepts=[0.1, 0.2, 0.3],
                              post_transform="SOFTMAX", **classes),
             helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", **keys)]
    key = TensorProto.STRING if strings else TensorProto.INT64
    outputs = [helper.make_tensor_value_info("label", key, ["N"]),
               helper.make_value_info("maps", helper.make_sequence_type_proto(
                   helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("labels", [LABELS, [7, 2, 5]])
def test_a_session_gives_what_onnx_runtime_gives(labels):
    model = classifier(labels)
    expected = onnxruntime.InferenceSession(model.SerializeToString())
    session = rewire.InferenceSession(model)
    for count in (1, 20):
        (label, maps), (their_label, their_maps) = session.run(None, {"x": X[:count]}), expected.run(None, {"x": X[:count]})
        assert label.tolist() == their_label.tolist() and label.dtype == their_label.dtype
        assert [set(row) for row in maps] == [set(row) for row in their_maps]
        for row, theirs in zip(maps, their_maps):
            assert row == pytest.approx(theirs, rel=1e-5)
    assert [output.type for output in session.get_outputs()] == [output.type for output in expected.get_outputs()]


def test_a_program_gives_strings_and_a_tensor_of_the_maps(tmp_path):
    rewire.compile(classifier(LABELS), tmp_path / "m.rwx")
    program = rewire.load(tmp_path / "m.rwx")
    assert program.output_strings == {"label": tuple(LABELS)} and program.output_keys == {"maps": tuple(LABELS)}
    outputs = program(X)
    best = outputs["maps"].argmax(axis=1)
    assert outputs["label"].tolist() == [LABELS[i] for i in best]
    assert program.run([X])["label"].tolist() == outputs["label"].tolist()
    assert program.with_parameters()(X)["label"].tolist() == outputs["label"].tolist()
    # Memory of the caller's holds positions.
    mine = numpy.empty(20, numpy.int64)
    assert program.run({"x": X}, out={"label": mine})["label"] is mine
    assert mine.tolist() == best.tolist()
    vm = program.vm()
    vm.set_input("x", X)
    vm.invoke()
    assert vm.output("label").tolist() == best.tolist()


def test_no_strings_are_strings_too():
    """An output without elements, whose list is empty."""
    empty = helper.make_tensor("empty", TensorProto.BOOL, [0, 5], [])
    graph = helper.make_graph([helper.make_node("Cast", ["empty"], ["y"], to=TensorProto.STRING)], "g", [],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, [0, 5])], [empty])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    given = rewire.load(rewire.compile(model).executable).run({})["y"]
    assert given.shape == (0, 5) and given.dtype.kind == "U"


def test_programs_without_strings_have_no_lists():
    program = rewire.load(classifier([7, 2, 5]))
    assert program.output_strings == {} and program.output_keys == {"maps": (7, 2, 5)}
    assert program(X)["label"].dtype == numpy.int64


@pytest.mark.parametrize("dims", [(2, 0), (0, 2)])
def test_no_strings_are_strings(dims):
    nodes = [helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", STRING, dims, [])),
             helper.make_node("Gather", ["c", "i"], ["y"], axis=1)]
    program = rewire.load(text_model(nodes, [("i", TensorProto.INT64, ["N"])], [("y", STRING, None)]))
    given = program({"i": numpy.zeros(0, numpy.int64)})["y"]
    assert given.shape == (dims[0], 0) and given.dtype.kind == "U"


def text_model(nodes, inputs, outputs):
    """Of (name, type, shape) triples."""
    graph = helper.make_graph(nodes, "g", *([helper.make_tensor_value_info(*each) for each in infos]
                                            for infos in (inputs, outputs)))
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


WORDS = numpy.array([["ab", "\u00e9t\u00e9", ""], ["A-b", "12.5", "\u65e5 \u672c"]], object)
STRING, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, **attributes)


TEXT_MODELS = {
    "concat": ([node("StringConcat", ["x", "x"], ["y"])], STRING),
    "concat with a constant": ([node("Constant", [], ["c"], value_strings=["<", "\u00e4", ">"]),
                                node("StringConcat", ["x", "c"], ["y"])], STRING),
    "move": ([node("Constant", [], ["i"], value_ints=[2, 0, -1]), node("Gather", ["x", "i"], ["g"], axis=1),
              node("Constant", [], ["s"], value_ints=[3, -1]), node("Reshape", ["g", "s"], ["y"])], STRING),
    "transpose": ([node("Transpose", ["x"], ["y"])], STRING),
    "tile, slice and split": ([node("Constant", [], ["two"], value_ints=[1, 2]), node("Tile", ["x", "two"], ["t"]),
                               node("Split", ["t"], ["a", "y"], axis=1, num_outputs=2)], STRING),
    "join with a constant": ([node("Constant", [], ["c"], value_strings=["q", "ab", ""]),
                              node("Constant", [], ["s"], value_ints=[1, 3]), node("Reshape", ["c", "s"], ["d"]),
                              node("Concat", ["x", "d", "x"], ["y"], axis=0)], STRING),
    "equal": ([node("Constant", [], ["c"], value_strings=["ab"]), node("Equal", ["x", "c"], ["y"])], BOOL),
    "where": ([node("Constant", [], ["c"], value_strings=["ab"]), node("Equal", ["x", "c"], ["e"]),
               node("Constant", [], ["d"], value_string="none"), node("Where", ["e", "d", "x"], ["y"])], STRING),
    "regular expression": ([node("RegexFullMatch", ["x"], ["y"], pattern=r"\p{L}+")], BOOL),
    "encoder": ([node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["ab", "", "b"],
                      values_floats=[1.0, 2.0, 3.0], default_float=-1.0)], FLOAT),
    "encoder to strings": ([node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["ab", ""],
                                 values_strings=["one", "none"], default_string="?")], STRING),
    "columns": ([node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=["", "12.5", "ab"])], FLOAT),
    "to floats": ([node("Constant", [], ["c"], value_string="12"), node("StringConcat", ["c", "x"], ["n"]),
                   node("Cast", ["n"], ["y"], to=FLOAT)], FLOAT),
    "from floats": ([node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["f"], to=FLOAT),
                     node("Cast", ["f"], ["y"], to=STRING)], STRING),
    "counts": ([node("StringSplit", ["x"], ["p", "y"], delimiter="b")], INT64),
}


@pytest.mark.parametrize("name", TEXT_MODELS)
def test_a_session_takes_strings_as_onnx_runtime_does(name):
    nodes, kind = TEXT_MODELS[name]
    x = WORDS if name != "counts" else WORDS[:, :2]  # of an empty string, ONNX Runtime says 0 and numpy 1
    model = text_model(nodes, [("x", STRING, ["N", x.shape[1]])], [("y", kind, None)])
    expected = onnxruntime.InferenceSession(model.SerializeToString())
    session = rewire.InferenceSession(model)
    for rows in (x, x[:1], x[:0]):
        [y], [theirs] = session.run(None, {"x": rows}), expected.run(None, {"x": rows})
        assert y.shape == theirs.shape and y.tolist() == theirs.tolist() and y.dtype == theirs.dtype
    assert [(each.name, each.type, each.shape) for each in session.get_inputs()] == [("x", "tensor(string)", ["N", x.shape[1]])]
    assert [(each.name, each.type) for each in session.get_outputs()] == [
        (each.name, each.type) for each in expected.get_outputs()]


def body_of(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [helper.make_tensor_value_info(*each) for each in inputs],
                             [helper.make_tensor_value_info(*each) for each in outputs])


def compare(model, feed):
    theirs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    ours = rewire.InferenceSession(model).run(None, feed)
    assert [(each.tolist(), each.shape, each.dtype) for each in ours] == [
        (each.tolist(), each.shape, each.dtype) for each in theirs]


@pytest.mark.parametrize("dims", [[2], [1, 2]])
def test_strings_that_branches_give(dims):
    constant = helper.make_tensor("c", STRING, dims, [b"one", b""])
    branch = node("If", ["b"], ["z"],
                  then_branch=body_of([node("StringConcat", ["x", "x"], ["t"])], [], [("t", STRING, None)]),
                  else_branch=body_of([node("Constant", [], ["e"], value=constant)], [], [("e", STRING, None)]))
    model = text_model([branch, node("StringConcat", ["z", "z"], ["y"])], [("b", BOOL, []), ("x", STRING, ["N"])],
                       [("z", STRING, None), ("y", STRING, None)])
    for condition in (True, False):
        compare(model, {"b": numpy.array(condition), "x": WORDS[0]})


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_strings_that_loops_carry(rounds):
    carried = [("v", STRING, ["N"]), ("w", STRING, ["N"]), ("k", STRING, [1])]
    outputs = [("goes", BOOL, []), ("w2", STRING, None), ("v2", STRING, None), ("k2", STRING, None), ("s", INT64, [1])]
    body = body_of([node("StringConcat", ["v", "k"], ["v2"]), node("Identity", ["w"], ["w2"]), node("Identity", ["k"], ["k2"]),
                    node("Identity", ["go"], ["goes"]), node("Shape", ["v2"], ["s"])],
                   [("i", INT64, []), ("go", BOOL, []), *carried], outputs)
    loop = node("Loop", ["n", "", "x", "c", "x0"], ["a", "b", "k", "sizes"], body=body)
    model = text_model([node("Constant", [], ["c"], value_strings=["p", "", "q"]), loop],
                       [("n", INT64, []), ("x", STRING, ["N"]), ("x0", STRING, [1])],
                       [("a", STRING, None), ("b", STRING, None), ("k", STRING, None), ("sizes", INT64, None)])
    compare(model, {"n": numpy.array(rounds), "x": WORDS[0], "x0": WORDS[1, :1]})


def test_a_scan_takes_strings_one_by_one():
    body = body_of([node("StringConcat", ["s", "e"], ["s2"]), node("Equal", ["e", "k"], ["q"])],
                   [("s", STRING, []), ("e", STRING, [])], [("s2", STRING, []), ("q", BOOL, [])])
    model = text_model([node("Constant", [], ["k"], value_string=WORDS[0, 1]), node("Constant", [], ["s0"], value_string=">"),
                        node("Scan", ["s0", "x"], ["y", "q"], num_scan_inputs=1, body=body)],
                       [("x", STRING, ["N"])], [("y", STRING, None), ("q", BOOL, None)])
    y, q = rewire.InferenceSession(model).run(None, {"x": WORDS[0]})  # ONNX Runtime joins the same states several times
    assert y.tolist() == ">" + "".join(WORDS[0]) and q.tolist() == [False, True, False]


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_strings_have_borders(mode):
    # ONNX Runtime has no Pad of strings: numpy's.
    x = numpy.array([["a", "b"]], object)
    model = text_model([node("Pad", ["x", "p"], ["y"], mode=mode), node("Pad", ["x", "p", "v"], ["z"], mode=mode)],
                       [("x", STRING, ["N", 2]), ("p", INT64, [4]), ("v", STRING, [])],
                       [("y", STRING, None), ("z", STRING, None)])
    pads = numpy.array([1, 0, 0, 2])
    y, z = rewire.InferenceSession(model).run(None, {"x": x, "p": pads, "v": numpy.array("?", object)})
    for given, value in ((y, ""), (z, "?")):
        more = {"constant_values": value} if mode == "constant" else {}
        assert given.tolist() == numpy.pad(x, [(1, 0), (0, 2)], mode, **more).tolist()


@pytest.mark.parametrize("attributes", [{}, {"sorted": 0}, {"axis": 1}, {"axis": 0, "sorted": 0}])
def test_different_strings_are_found(attributes):
    x = numpy.array([["b", "", "b", "\u00e4", "b"], ["ab", "z", "ab", "\U0001f600", "a"]], object)
    model = text_model([node("Unique", ["x"], ["y", "first", "inverse", "counts"], **attributes)], [("x", STRING, ["N", "M"])],
                       [("y", STRING, None), *[(name, INT64, None) for name in ("first", "inverse", "counts")]])
    for given in (x, x[:1], numpy.array([["q"] * 3] * 2, object)):
        compare(model, {"x": given})


def test_all_parts_of_strings_are_strings():
    model = text_model([node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2), node("StringConcat", ["b", "a"], ["y"])],
                       [("x", STRING, [2, 3])], [("b", STRING, None), ("y", STRING, None)])
    compare(model, {"x": WORDS})


def test_outputs_of_one_list_have_parts_of_their_own():
    model = text_model([node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)], [("x", STRING, ["N"])],
                       [("a", STRING, None), ("b", STRING, None)])
    given = rewire.load(model)({"x": WORDS[:, 0].tolist() * 2})
    assert given["a"].tolist() == given["b"].tolist() == WORDS[:, 0].tolist()
    assert sorted(given) == ["a", "b"]


def test_words_that_the_pool_has_are_counted_as_onnx_runtime_counts_them():
    nodes = [node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
                  ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_strings=["a", "b", "\u00e4", "a", "b", "b", "a"])]
    model = text_model(nodes, [("x", STRING, ["N", 5])], [("y", FLOAT, None)])
    x = numpy.array([["a", "b", "c", "a", "\u00e4"], ["", "a", "a", "b", "b"]], object)
    [theirs] = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert rewire.load(model)(x)["y"].tolist() == theirs.tolist()


def test_a_program_takes_arrays_and_lists_of_str():
    nodes = [node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER", stopwords=["The", "\u00c9"])]
    program = rewire.load(text_model(nodes, [("x", STRING, ["N"])], [("y", STRING, None)]))
    assert program.input_strings == ("x",) and program.output_strings == {}
    x = ["tHE", "b", "\u00e9", "stra\u00dfe"]
    for given in (x, numpy.array(x), numpy.array(x, object)):
        for outputs in (program(given), program({"x": given}), program(x=given), program.run([given]), program.run({"x": given})):
            assert list(outputs) == ["y"] and outputs["y"].tolist() == ["B", "STRA\u00dfE"]
    assert program(["the"])["y"].tolist() == [""] and program([])["y"].tolist() == [""]
    with pytest.raises(rewire.InvalidArgumentError, match="input 'x' is strings, one of its elements is 3"):
        program(numpy.array(["a", 3], object))
    # The three tensors that a virtual machine and other hosts work with.
    vm = program.vm()
    vm.set_input("x", numpy.array([0, 0, 1]))
    vm.set_input("x.offsets", numpy.array([0, 1, 3]))
    vm.set_input("x.bytes", numpy.frombuffer(b"abc", numpy.uint8))
    vm.invoke()
    ends, data = vm.output("y.offsets").tolist(), vm.output("y.bytes").tobytes()
    assert [data[ends[i]:ends[i + 1]] for i in vm.output("y").tolist()] == [b"A", b"A", b"BC"]
    with pytest.raises(rewire.KernelError, match="a position is 2, the list has 2 strings"):
        program(numpy.array([2]), **{"x.offsets": numpy.array([0, 1, 3]), "x.bytes": numpy.frombuffer(b"abc", numpy.uint8)})
