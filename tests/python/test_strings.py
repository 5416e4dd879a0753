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


def test_programs_without_strings_have_no_lists():
    program = rewire.load(classifier([7, 2, 5]))
    assert program.output_strings == {} and program.output_keys == {"maps": (7, 2, 5)}
    assert program(X)["label"].dtype == numpy.int64
