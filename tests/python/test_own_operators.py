# SPDX-License-Identifier: Apache-2.0
"""Operators of foreign domains: with attributes and sizes that only a run knows; docs/own-operators.md runs as it stands."""

import os
import pathlib
import subprocess
import sys

import numpy
import onnx
import pytest
import rewire
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[2]

SCHEMAS = [
    {"domain": "com.acme", "name": "Every", "kernel": "acme.every",
     "inputs": [{"name": "x", "dtype": "f32", "shape": ["N", "rest..."]}],
     "outputs": [{"name": "y", "shape": ["ceil(N / step)", "rest..."]}],
     "attributes": [{"name": "step", "type": "int"}, {"name": "factor", "type": "float", "default": 1}]},
    {"domain": "com.acme", "name": "Above", "kernel": "acme.above",
     "inputs": [{"name": "x"}],
     "outputs": [{"name": "y", "dtype": "x", "shape": ["?"], "shape_function": "acme.above.shape"}],
     "attributes": [{"name": "least", "type": "float"}]},
]


@rewire.kernel("acme.every")
def every(x, step, factor, y):
    y[...] = factor * x[::int(step)]


@rewire.kernel("acme.above")
def above(x, least, y):
    y[...] = x[x > least]


@rewire.kernel("acme.above.shape")
def above_shape(x, least, shape):
    shape[...] = numpy.count_nonzero(x > least)


def model():
    nodes = [helper.make_node("Every", ["x"], ["rows"], domain="com.acme", step=2),
             helper.make_node("Above", ["rows"], ["y"], domain="com.acme", least=3.5)]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 2])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["K"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(helper.make_graph(nodes, "own", [x], [y]), opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("operators", [SCHEMAS, {"operators": SCHEMAS}])
def test_attributes_and_sizes_of_a_run(operators):
    program = rewire.load(rewire.compile(model(), operators=operators), kernels=[every, above, above_shape])
    x = numpy.arange(10, dtype=numpy.float32).reshape(5, 2)
    for rows in 5, 2:
        numpy.testing.assert_array_equal(program.run(x[:rows])["y"], [value for value in x[:rows:2].ravel() if value > 3.5])


RETURNING = {"domain": "com.acme", "name": "Above", "kernel": "acme.above", "returns": True,
             "inputs": [{"name": "x", "shape": ["N", "C"]}], "attributes": [{"name": "least", "type": "float"}],
             "outputs": [{"name": "values", "shape": ["?"]}, {"name": "at", "dtype": "i64", "shape": ["?", "2"]}]}


def returning_model():
    node = helper.make_node("Above", ["x"], ["values", "at"], domain="com.acme", least=3.5)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 2])
    outputs = [helper.make_tensor_value_info("values", onnx.TensorProto.FLOAT, ["K"]),
               helper.make_tensor_value_info("at", onnx.TensorProto.INT64, ["K", 2])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(helper.make_graph([node], "own", [x], outputs), opset_imports=opsets, ir_version=8)


def test_a_kernel_returns_outputs_whose_shapes_show_when_it_runs():
    kernel = rewire.kernel("acme.above")(lambda x, least: (x[x > least], numpy.ascontiguousarray(numpy.argwhere(x > least))))
    program = rewire.load(rewire.compile(returning_model(), operators=[RETURNING]), kernels=[kernel])
    x = numpy.arange(10, dtype=numpy.float32).reshape(5, 2)
    for rows in 5, 2, 0:
        outputs = program.run(x[:rows])
        numpy.testing.assert_array_equal(outputs["values"], x[:rows][x[:rows] > 3.5])
        numpy.testing.assert_array_equal(outputs["at"], numpy.argwhere(x[:rows] > 3.5))


@pytest.mark.parametrize(("returned", "said"), [
    (lambda x, least: (x[x > least], numpy.zeros((1, 3), numpy.int64)), r"output 'at' .* is i64\[1, 3\], expected i64\[\?, 2\]"),
    (lambda x, least: (x[x > least].astype(numpy.float64), numpy.zeros((1, 2), numpy.int64)), "output 'values' .* is f64"),
    (lambda x, least: x, "returned|field|ADT"),
])
def test_what_a_kernel_returns_is_checked(returned, said):
    program = rewire.load(rewire.compile(returning_model(), operators=[RETURNING]), kernels=[rewire.kernel("acme.above")(returned)])
    with pytest.raises(rewire.Error, match=said):
        program.run(numpy.ones((2, 2), numpy.float32))


def test_a_schema_that_is_wrong_is_an_error_with_its_place():
    wrong = [{**SCHEMAS[0], "outputs": [{"name": "y", "shape": ["M"]}]}]
    with pytest.raises(rewire.InvalidArgumentError, match="output 'y': dimension 'M': 'M' is no dimension of an input"):
        rewire.compile(model(), operators=wrong)


def test_without_a_schema_the_error_says_what_to_do():
    with pytest.raises(rewire.UnsupportedError, match="docs/own-operators.md"):
        rewire.compile(model())


def test_the_page_runs_as_it_stands_and_the_example_has_its_files(tmp_path):
    # The headers of this tree, and the tools of this module.
    commands = {"pkg-config": f"echo -I{ROOT}/include", "vm-run": f'exec "{sys.executable}" -m rewire run "$@"',
                "vm-compile": f'exec "{sys.executable}" -m rewire compile "$@"',
                "vm-inspect": f'exec "{sys.executable}" -m rewire inspect "$@"'}
    for name, command in commands.items():
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        script.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    page = [ROOT / "tests/support/run_page.py", ROOT / "docs/own-operators.md", work]
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-B", *page], capture_output=True, text=True, check=False, env={**os.environ, **path})
    assert done.returncode == 0, done.stderr + done.stdout
    assert "15 blocks" in done.stdout
    example = ROOT / "examples/own_operator"
    for name in "acme.c", "acme.json":
        assert (work / name).read_text(encoding="utf-8") == (example / name).read_text(encoding="utf-8"), name
    assert onnx.load(work / "acme.onnx") == onnx.load(example / "acme.onnx")
