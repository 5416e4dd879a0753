// SPDX-License-Identifier: Apache-2.0
// Operators over axes of 0, 1 and few elements: what is compiled for open dimensions gives what is compiled
// for the sizes, or both are refused.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/values/node_text.h"
#include "rewire/tests/compiler/values/run_model.h"

namespace rewire::test {
namespace {

// Nodes that make y, and what they take besides x: lines of nodes and of constants ("c: i64[1] = 0").
struct SizeForm {
  std::vector<const char*> lines;
  std::vector<std::int64_t> sizes;  // that each axis of x has in turn
  std::size_t rank = 2;
  std::int64_t opset = 18;
};

const std::vector<std::int64_t> kFew = {0, 1, 3};

std::vector<SizeForm> Forms() {
  std::vector<SizeForm> forms;
  for (const char* node : {"y = Abs(x)",
                           "y = Relu(x)",
                           "y = Sigmoid(x)",
                           "y = Neg(x)",
                           "y = Exp(x)",
                           "y = Cast(x) <to = 7>",
                           "y = IsNaN(x)",
                           "y = Softmax(x) <axis = 0>",
                           "y = Softmax(x)",
                           "y = LogSoftmax(x)",
                           "y = Hardmax(x)",
                           "y = Transpose(x)",
                           "y = Flatten(x)",
                           "y = Shape(x)",
                           "y = Size(x)",
                           "y = ReduceSum(x)",
                           "y = ReduceProd(x)",
                           "y = ReduceSumSquare(x)",
                           "y = ReduceL1(x)",
                           "y = ReduceL2(x)",
                           "y = ReduceLogSumExp(x)",
                           "y = ReduceMean(x)",
                           "y = ReduceMax(x)",
                           "y = ReduceMin(x)",
                           "y = ArgMax(x) <axis = 1>",
                           "y = ArgMin(x) <axis = 0, keepdims = 0>",
                           "y = NonZero(x)",
                           "y = Unsqueeze(x, zero)",
                           "y = Concat(x, x) <axis = 0>",
                           "y = Concat(x, x, x) <axis = 1>",
                           "y = CumSum(x, zero)",
                           "y = CumSum(x, zero) <exclusive = 1, reverse = 1>",
                           "y = Gather(x, zero) <axis = 1>",
                           "y = Gather(x, none) <axis = 0>",
                           "y = GatherElements(x, ints) <axis = 0>",
                           "y = Tile(x, twos)",
                           "y = Expand(x, ones)",
                           "y = Where(flags, x, x)",
                           "y = Compress(x, flag) <axis = 0>",
                           "y = OneHot(ints, three, pair)",
                           "y = Pad(x, pads)",
                           "y = Pad(x, pads) <mode = \"edge\">",
                           "y = Pad(x, wide) <mode = \"wrap\">",
                           "y = Pad(x, pads) <mode = \"reflect\">",
                           "y = TopK(x, one) <axis = 0>",
                           "y = LayerNormalization(x, weight)",
                           "y = LpNormalization(x)",
                           "y = Trilu(x)",
                           "y = EyeLike(x)",
                           "y = ReverseSequence(x, lengths) <time_axis = 0, batch_axis = 1>",
                           "y = Reshape(x, flat)",
                           "y = Reshape(x, kept)",
                           "y = Slice(x, back, far, zero, minus)",
                           "y = Slice(x, zero, far, zero, two)",
                           "y = Slice(x, one, far)",
                           "y = MatMul(x, x)",
                           "y = Gemm(x, x) <transB = 1>",
                           "y = Einsum(x, x) <equation = \"ij,kj->ik\">",
                           "y, z = Split(x) <num_outputs = 2>",
                           "y, z, u, v = Split(x) <num_outputs = 4>",
                           "y = Unique(x) <sorted = 1>",
                           "y = DynamicQuantizeLinear(x)",
                           "y = Dropout(x)",
                           "y = Identity(x)",
                           "y = Clip(x, half)"})
    forms.push_back({{node}, kFew});
  for (const char* node :
       {"y = MaxPool(x) <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>",
        "y = MaxPool(x) <kernel_shape = [3, 1], strides = [2, 1], ceil_mode = 1, pads = [1, 0, 1, 0]>",
        "y = AveragePool(x) <kernel_shape = [2, 3], strides = [2, 3], ceil_mode = 1>",
        "y = AveragePool(x) <kernel_shape = [3, 3], strides = [3, 2], ceil_mode = 1, pads = [1, 1, 1, 1], "
        "count_include_pad = 1>",
        "y = LpPool(x) <kernel_shape = [2, 2], strides = [3, 3], ceil_mode = 1>",
        "y = MaxPool(x) <kernel_shape = [2, 2]>", "y = GlobalAveragePool(x)", "y = GlobalMaxPool(x)",
        "y = Resize(x, \"\", scales) <mode = \"linear\">", "y = Resize(x, \"\", uneven)",
        "y = Resize(x, \"\", uneven) <mode = \"linear\", coordinate_transformation_mode = \"align_corners\">",
        "y = SpaceToDepth(x) <blocksize = 1>", "y = InstanceNormalization(x, weight, weight)",
        "y = Squeeze(x, zero)"})
    forms.push_back({{node}, {0, 1, 2, 5}, 4});
  return forms;
}

void AddLine(onnx::GraphProto* graph, std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || line.find('(') != std::string_view::npos) {
    AddNodeText(graph, line);
    return;
  }
  *graph->add_initializer() = TensorOfText(line.substr(colon + 2));
  graph->mutable_initializer(graph->initializer_size() - 1)->set_name(std::string(line.substr(0, colon)));
}

// `dims` of x; -1: open.
onnx::ModelProto Model(const SizeForm& form, const Shape& dims) {
  onnx::ModelProto model = EmptyModel(form.opset);
  onnx::GraphProto* graph = model.mutable_graph();
  static const char* const kNames[] = {"A", "B", "C", "D"};
  std::vector<Dim> of_x;
  for (std::size_t i = 0; i < dims.size(); ++i) of_x.push_back(dims[i] < 0 ? Dim(kNames[i]) : Dim(dims[i]));
  SetValue(graph->add_input(), "x", of_x);
  for (const char* line :
       {"zero: i64[1] = 0",       "none: i64[0] =",           "one: i64[1] = 1",
        "two: i64[1] = 2",        "twos: i64[2] = 2 3",       "ones: i64[2] = 1 1",
        "minus: i64[1] = -1",     "back: i64[1] = -1",        "far: i64[1] = 9223372036854775807",
        "three: i64[1] = 3",      "pair: f32[2] = 0 1",       "flag: bool[1] = 1",
        "pads: i64[4] = 1 0 0 1", "wide: i64[4] = 4 1 2 5",   "flat: i64[2] = -1 3",
        "kept: i64[3] = 0 -1 1",  "half: f32[] = 0.5",        "lengths: i64[1] = 1",
        "weight: f32[1] = 2",     "scales: f32[4] = 1 1 2 2", "uneven: f32[4] = 1 1 1.4 2.5"})
    AddLine(graph, line);
  for (const char* line : {"flags = Greater(x, half)", "ints = Cast(x) <to = 7>"}) AddLine(graph, line);
  for (const char* line : form.lines) AddLine(graph, line);
  // So that the shapes are computed where they lead, too.
  AddLine(graph, "s = Shape(y)");
  for (const char* name : {"y", "s"}) {
    SetValue(graph->add_output(), name, {});
    graph->mutable_output(graph->output_size() - 1)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  return model;
}

struct Given {
  std::string error;
  Elements y, shape;
};

Given RunOver(LinkedModel* model, const Shape& dims) {
  Given given{model->error(), {}, {}};
  if (!given.error.empty()) return given;
  std::vector<float> values;
  for (std::int64_t i = 0; i < CountOf(dims); ++i) values.push_back(static_cast<float>(i % 3) / 2);
  std::vector<Elements> inputs = {ElementsOf(dims, values)};
  given.error = model->Run(&inputs);
  if (given.error.empty()) given.y = model->Output(0), given.shape = model->Output(1);
  return given;
}

TEST_CASE("open sizes of 0 and 1 give what fixed ones give") {
  int compared = 0;
  for (const SizeForm& form : Forms()) {
    LinkedModel open(Model(form, Shape(form.rank, -1)));
    INFO(form.lines[0] << ": " << open.error());
    // Some need a size to be known; then nothing is compared.
    if (!open.error().empty()) continue;
    // Axes of images vary, batch and channels stay.
    const bool image = form.rank == 4;
    for (const std::int64_t first : form.sizes) {
      for (const std::int64_t second : form.sizes) {
        const Shape dims = image ? Shape{1, 1, first, second} : Shape{first, second};
        INFO("[" << first << ", " << second << "]");
        LinkedModel fixed(Model(form, dims));
        const Given expected = RunOver(&fixed, dims), given = RunOver(&open, dims);
        INFO("fixed: " << expected.error << "\nopen: " << given.error);
        // A kernel is not called for an output of no elements, and cannot refuse its operands.
        const bool is_empty = given.error.empty() && CountOf(given.y.shape) == 0;
        CHECK((expected.error.empty() == given.error.empty() || is_empty));
        if (!expected.error.empty() || !given.error.empty()) continue;
        CHECK(given.y == expected.y);
        CHECK(given.y.shape.size() == static_cast<std::size_t>(given.shape.shape[0]));
        CHECK(given.shape == ElementsOf(given.shape.shape, given.y.shape));
        ++compared;
      }
    }
  }
  CHECK(compared > 500);
}

}  // namespace
}  // namespace rewire::test
