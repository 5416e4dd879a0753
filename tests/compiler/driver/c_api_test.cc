// SPDX-License-Identifier: Apache-2.0
// The compiler's C interface: samples for 8-bit integers. Expected values are computed by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/c_api/status.h"

namespace rewire::test {
namespace {

// y = x w. Of 1 and 510, which have a scale of 2, the 1 is lost.
std::string ProductBytes() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"N", 2});
  AddFloats(model.mutable_graph(), "w", {2, 2}, {1.27F, 127, -0.5F, 64});
  AddNode(model.mutable_graph(), "MatMul", {"x", "w"}, "y")->set_name("product");
  SetValue(model.mutable_graph()->add_output(), "y", {"N", 2});
  return model.SerializeAsString();
}

struct HeardOf {
  std::vector<std::string> products;
  std::vector<double> movements;
};

void OnProduct(void* context, const RewireProductPrecision* product) {
  static_cast<HeardOf*>(context)->products.push_back(std::string(product->node) + ": " +
                                                     (product->quantized != 0 ? "int8" : product->reason));
}

void OnMoved(void* context, const RewireOutputMovement* output) {
  if (std::string(output->output) == "y")
    static_cast<HeardOf*>(context)->movements.push_back(output->max_abs);
}

// Two sets of samples: of [1, 2], and of [2, 1, 2], which are two of [1, 2].
class CSamples {
 public:
  CSamples() {
    tensors_[0] = Described(&one_, shape_of_one_, 2);
    tensors_[1] = Described(two_, shape_of_two_, 3);
    for (int i = 0; i < 2; ++i) {
      arrays_[i] = {"x", &tensors_[i]};
      data_[i] = {&arrays_[i], 1};
    }
    options_.struct_size = sizeof(options_);
    options_.context = &heard_;
    options_.precision = kRewirePrecisionInt8;
    options_.calibration = data_;
    options_.calibration_count = 2;
    options_.calibration_method = kRewireCalibrationMinMax;
    options_.product = OnProduct;
    options_.moved = OnMoved;
  }

  RewireStatus Compile() {
    static const std::string kModel = ProductBytes();
    heard_ = {};
    report_ = {};
    report_.struct_size = sizeof(report_);
    RewireExecutable* executable = nullptr;
    const RewireStatus status = rewire_compile_memory(kModel.data(), kModel.size(), nullptr, nullptr,
                                                      &options_, &report_, &executable);
    rewire_executable_destroy(executable);
    return status;
  }

  float one_[2] = {3, 4}, two_[4] = {1, 510, 0, 0};
  std::int64_t shape_of_one_[2] = {1, 2}, shape_of_two_[3] = {2, 1, 2};
  DLTensor tensors_[2];
  RewireCalibrationArray arrays_[2];
  RewireCalibrationData data_[2];
  RewireCompileOptions options_{};
  RewireCompileReport report_{};
  HeardOf heard_;

 private:
  static DLTensor Described(void* data, std::int64_t* shape, int rank) {
    DLTensor tensor{};
    tensor.data = data;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = rank;
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape;
    return tensor;
  }
};

TEST_CASE("C: samples of several sizes quantize, and callbacks tell what that did") {
  CSamples samples;
  REQUIRE(samples.Compile() == kRewireOk);
  CHECK(samples.report_.products == 1);
  CHECK(samples.report_.quantized == 1);
  CHECK(samples.heard_.products == std::vector<std::string>{"MatMul 'product': int8"});
  REQUIRE(samples.heard_.movements.size() == 1);
  CHECK(samples.heard_.movements[0] == Approx(127).epsilon(1e-4));
  samples.options_.max_error = 0.001;
  REQUIRE(samples.Compile() == kRewireOk);
  CHECK(samples.report_.quantized == 0);
  CHECK(samples.heard_.products == std::vector<std::string>{"MatMul 'product': outputs would move too far"});
  CHECK(samples.heard_.movements == std::vector<double>{0});
  samples.options_.max_error = HUGE_VAL;
  const char* keep[] = {"product"};
  samples.options_.keep_float = keep;
  samples.options_.keep_float_count = 1;
  samples.options_.product = nullptr;
  samples.options_.moved = nullptr;
  REQUIRE(samples.Compile() == kRewireOk);
  CHECK(samples.report_.quantized == 0);
  CHECK(samples.heard_.products.empty());
}

TEST_CASE("C: wrong samples and options are refused") {
  const auto refused = [](void (*change)(CSamples*)) {
    CSamples samples;
    change(&samples);
    CHECK(samples.Compile() == kRewireInvalidArgument);
    return std::string(rewire_last_error_message());
  };
  CHECK_THAT(refused([](CSamples* s) { s->options_.precision = 3; }),
             Catch::Contains("precision is 3, which stands for nothing"));
  CHECK_THAT(refused([](CSamples* s) { s->options_.calibration_method = 3; }),
             Catch::Contains("calibration_method is 3, which stands for nothing"));
  CHECK_THAT(refused([](CSamples* s) { s->options_.calibration_count = 0; }),
             Catch::Contains("precision int8 calibrates with samples"));
  CHECK_THAT(refused([](CSamples* s) { s->options_.calibration = nullptr; }),
             Catch::Contains("calibration is NULL"));
  CHECK_THAT(refused([](CSamples* s) { s->options_.max_error = -0.5; }),
             Catch::Contains("the largest error is -0.5"));
  CHECK_THAT(refused([](CSamples* s) { s->data_[1].arrays = nullptr; }), Catch::Contains("arrays is NULL"));
  CHECK_THAT(refused([](CSamples* s) { s->arrays_[1].samples = nullptr; }),
             Catch::Contains("samples is NULL"));
  CHECK_THAT(refused([](CSamples* s) { s->arrays_[1].input = nullptr; }), Catch::Contains("input is NULL"));
  CHECK_THAT(refused([](CSamples* s) { s->tensors_[1].shape = nullptr; }),
             Catch::Contains("calibration data for input \"x\": tensor: shape is NULL"));
  CHECK_THAT(refused([](CSamples* s) { s->options_.keep_float_count = 1; }),
             Catch::Contains("keep_float is NULL"));
}

TEST_CASE("C: external data is read from the folder that is given, and refused without one") {
  const TempFolder folder;
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {4});
  onnx::TensorProto* weights = AddWeight(graph, "w", onnx::TensorProto::FLOAT, {4});
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weights->add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  AddNode(graph, "Add", {"x", "w"}, "y");
  SetValue(graph->add_output(), "y", {4});
  folder.Write("weights.bin", std::string(16, '\0'));
  const std::string bytes = model.SerializeAsString();
  const std::string path = folder.path();
  const auto compile = [&](const char* from) {
    RewireExecutable* executable = nullptr;
    const RewireStatus status =
        rewire_compile_memory(bytes.data(), bytes.size(), from, nullptr, nullptr, nullptr, &executable);
    CHECK((executable != nullptr) == (status == kRewireOk));
    rewire_executable_destroy(executable);
    return status;
  };
  CHECK(compile(path.c_str()) == kRewireOk);
  // The data lies in the working folder of the process, too, from where it must not be taken.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(path);
  const RewireStatus without = compile(nullptr);
  std::filesystem::current_path(before);
  CHECK(without != kRewireOk);
  CHECK_THAT(rewire_last_error_message(), Catch::Contains("tensor 'w'") && Catch::Contains("weights.bin"));
}

TEST_CASE("C: each node that cannot be compiled is told before the call fails") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {4});
  AddNode(graph, "NoSuchOperator", {"x"}, "a")->set_name("first");
  AddNode(graph, "Relu", {"a"}, "b");
  AddNode(graph, "NorThisOne", {"b"}, "y")->set_name("second");
  SetValue(graph->add_output(), "y", {4});
  const std::string bytes = model.SerializeAsString();
  std::vector<std::string> told;
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.context = &told;
  options.unsupported = [](void* context, const RewireUnsupportedNode* node) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(node->node);
  };
  RewireExecutable* executable = nullptr;
  CHECK(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, nullptr, &executable) ==
        kRewireUnsupported);
  CHECK(executable == nullptr);
  CHECK(told == std::vector<std::string>{"first", "second"});
}

}  // namespace
}  // namespace rewire::test
