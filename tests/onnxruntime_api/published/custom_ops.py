# SPDX-License-Identifier: Apache-2.0
"""A model for each operator of onnx-extended's library of custom operators (onnx_extended.ortops.tutorial.cpu)."""
import pathlib
import subprocess

import numpy
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "onnx_extended.ortops.tutorial.cpu"
FLOAT, DOUBLE, HALF, F8 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.FLOAT8E4M3FN

# What the operator of trees opens: a library that predicts the same for all trees.
ASSEMBLY = """
typedef struct { float *buffer, *aligned; long offset, lengths[1], strides[1]; } Row;
int Init_model(void) { return 0; }
int GetBatchSize(void) { return 3; }
int GetRowSize(void) { return 4; }
Row Prediction_Function(float* x, float* aligned, long offset, long rows, long columns, long stride, long one, float* y, float* y_aligned,
                        long y_offset, long count, long y_stride) {
  Row row = {y, y_aligned, 0, {count}, {1}};
  (void)aligned, (void)offset, (void)stride, (void)one, (void)y_offset, (void)y_stride;
  for (long i = 0; i < rows; ++i) {
    y[i] = 0;
    for (long j = 0; j < columns; ++j) y[i] += x[i * columns + j] * (float)(j + 1);
  }
  return row;
}
"""


def model(operator, inputs, outputs, **attributes):
    """A model whose inputs and outputs are f32 and f64. Others are cast beside the operator: a host of the C interface seldom has
    arrays of them."""
    nodes, names, results, declared = [], [], [], []
    graph_inputs = [helper.make_tensor_value_info(f"x{i}", DOUBLE if kind == DOUBLE else FLOAT, shape)
                    for i, (kind, shape) in enumerate(inputs)]
    for i, (kind, _) in enumerate(inputs):
        names.append(f"x{i}")
        if kind not in (FLOAT, DOUBLE):
            names[-1] = f"x{i}_cast"
            nodes.append(helper.make_node("Cast", [f"x{i}"], [names[-1]], to=kind))
    own = [f"y{i}" if kind in (FLOAT, DOUBLE) else f"y{i}_own" for i, (kind, _) in enumerate(outputs)]
    nodes.append(helper.make_node(operator, names, own, domain=DOMAIN, **attributes))
    for i, (kind, shape) in enumerate(outputs):
        results.append(helper.make_tensor_value_info(f"y{i}", DOUBLE if kind == DOUBLE else FLOAT, shape))
        if own[i] != f"y{i}":
            declared.append(helper.make_tensor_value_info(own[i], kind, shape))
            nodes.append(helper.make_node("Cast", [own[i]], [f"y{i}"], to=FLOAT))
    if len(outputs) > len(inputs):  # ortcy has room for as many names of outputs as there are inputs: y0 * y1 + y2
        nodes += [helper.make_node("Mul", ["y0", "y1"], ["product"]), helper.make_node("Add", ["product", "y2"], ["y"])]
        declared += results
        results = [helper.make_tensor_value_info("y", FLOAT, outputs[0][1])]
    graph = helper.make_graph(nodes, operator, graph_inputs, results, value_info=declared)
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def assembly(folder):
    """The path of the compiled library."""
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "trees.c", folder / "trees.so"
    source.write_text(ASSEMBLY, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    return str(library)


def cases(folder: pathlib.Path):
    """(operator, model, inputs) for all seven; None in place of inputs: the model cannot be run, and is opened alone."""
    random = numpy.random.default_rng(5)

    def numbers(*shape, dtype=numpy.float32):
        return (random.integers(-8, 9, shape) / 4).astype(dtype)

    table = numpy_helper.from_array(numpy.array([4.5, 1], numpy.float64))
    square = ["N", 4]
    gemm = {"transA": 1, "alpha": 0.5, "beta": 1.0}
    scalar = numpy.array([1], numpy.float32)
    yield "MyCustomOp", model("MyCustomOp", [(FLOAT, square)] * 2, [(FLOAT, square)]), [numbers(3, 4), numbers(3, 4)]
    attributes = {"att_float": 0.5, "att_int64": 7, "att_string": "abc", "att_tensor": table}
    yield ("MyCustomOpWithAttributes", model("MyCustomOpWithAttributes", [(DOUBLE, square)] * 2, [(DOUBLE, square)], **attributes),
           [numbers(3, 4, dtype=numpy.float64), numbers(3, 4, dtype=numpy.float64)])
    yield ("CustomGemmFloat", model("CustomGemmFloat", [(FLOAT, [6, "M"]), (FLOAT, [6, 5]), (FLOAT, ["M", 5])], [(FLOAT, ["M", 5])], **gemm),
           [numbers(6, 4), numbers(6, 5), numbers(4, 5)])
    # Its kernel on the CPU refuses each call, and then ortcy ends the process.
    yield ("CustomGemmFloat16", model("CustomGemmFloat16", [(HALF, [6, "M"]), (HALF, [6, 5])], [(HALF, ["M", 5])], transA=1,
                                      computeType="CUBLAS_COMPUTE_32F"), None)
    yield ("CustomGemmFloat8E4M3FN",
           model("CustomGemmFloat8E4M3FN", [(F8, ["M", 6]), (F8, [5, 6]), (FLOAT, ["M", 5]), (FLOAT, [1]), (FLOAT, [1])],
                 [(FLOAT, ["M", 5])], transB=1, computeType="CUBLAS_COMPUTE_32F"),
           [numbers(4, 6), numbers(5, 6), numbers(4, 5), scalar, scalar])
    yield ("DynamicQuantizeLinear", model("DynamicQuantizeLinear", [(FLOAT, square)], [(F8, square), (FLOAT, []), (F8, [])], to=F8),
           [numbers(3, 4)])
    yield ("TreeEnsembleAssemblyRegressor", model("TreeEnsembleAssemblyRegressor", [(FLOAT, [3, 4])], [(FLOAT, [3, 1])],
                                                  assembly=assembly(folder)), [numbers(3, 4)])
