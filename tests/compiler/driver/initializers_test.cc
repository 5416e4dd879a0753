// SPDX-License-Identifier: Apache-2.0
// Initializers whose elements the host gives, external data in memory, and initializers that runs give.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/compiler/emit/overridable.h"
#include "rewire/tests/compiler/driver/weighted_models.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/c_api/status.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

// The model's initializers, as a host would give them.
ParameterSet InitializersOf(const onnx::GraphProto& graph) {
  ParameterSet set;
  for (const onnx::TensorProto& weight : graph.initializer()) {
    const Ints shape(weight.dims().begin(), weight.dims().end());
    const bool floats = weight.data_type() == onnx::TensorProto::FLOAT;
    const bool halves = weight.data_type() == onnx::TensorProto::FLOAT16;
    Result<Tensor> tensor = Tensor::Make(floats   ? kFloat32
                                         : halves ? kFloat16
                                                  : kInt64,
                                         {shape.data(), shape.size()});
    REQUIRE(tensor);
    for (int i = 0; i < weight.float_data_size(); ++i) tensor->data<float>()[i] = weight.float_data(i);
    for (int i = 0; i < weight.int64_data_size(); ++i) tensor->data<std::int64_t>()[i] = weight.int64_data(i);
    for (int i = 0; i < weight.int32_data_size(); ++i)
      static_cast<std::uint16_t*>(tensor->view().data())[i] =
          static_cast<std::uint16_t>(weight.int32_data(i));
    set.Set(weight.name(), *tensor);
  }
  return set;
}

TEST_CASE("initializers: given elements make the executable that the model with these elements makes") {
  for (const WeightedCase& each : WeightedCases()) {
    INFO(each.name);
    WeightedModel first = each.make(1), second = each.make(2);
    const Ints x = first.x();
    compiler::CompileOptions options;
    options.initializers = InitializersOf(*second.graph());
    if (options.initializers.size() == 0) continue;  // its weights are nodes Constant
    const Outcome given = CompileBytes(first.Bytes(), "", options), expected = CompileBytes(second.Bytes());
    INFO(given.message);
    REQUIRE((given.message.empty() && expected.message.empty()));
    const bool same_file = FileOf(given) == FileOf(expected);
    CHECK(same_file);

    // Named as parameters, too, they are those of the executable as far as it has any.
    for (const onnx::TensorProto& weight : first.graph()->initializer())
      options.parameters.insert(weight.name());
    const Outcome bound = CompileBytes(first.Bytes(), "", options);
    INFO(bound.message);
    REQUIRE(bound.message.empty());
    CHECK(bound.compiled.parameters.size() > 0);
    CHECK(RunWith(bound, bound.compiled.parameters, x) == RunWith(expected, {}, x));
  }
}

// y = x + w, where w is an input, too, if that is asked for; w is f32[2].
onnx::ModelProto Sum(bool overridable) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {2});
  if (overridable) SetValue(model.mutable_graph()->add_input(), "w", {2});
  AddFloats(model.mutable_graph(), "w", {2}, {1, 2});
  AddNode(model.mutable_graph(), "Add", {"x", "w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {2});
  return model;
}

// The same, where the elements of w are at byte 4 of the file "weights.bin".
onnx::ModelProto ExternalSum() {
  onnx::ModelProto model = Sum(false);
  onnx::TensorProto* weight = model.mutable_graph()->mutable_initializer(0);
  weight->clear_float_data();
  weight->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair("location", "weights.bin"), {"offset", "4"}, {"length", "8"}}) {
    onnx::StringStringEntryProto* entry = weight->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

TEST_CASE("initializers: a given tensor is used in place, and kept as long as the executable") {
  const auto elements = std::make_shared<std::vector<float>>(std::vector<float>{10, 20});
  const std::weak_ptr<std::vector<float>> kept = elements;
  const float* const place = elements->data();
  Result<Tensor> tensor = Tensor::Wrap(TensorView(elements->data(), {2}), elements);
  REQUIRE(tensor);
  compiler::CompileOptions options;
  options.initializers.Set("w", *std::move(tensor));
  std::optional<Outcome> made = CompileProto(Sum(false), options);
  REQUIRE(made->message.empty());
  options.initializers = {};
  const auto& constants = made->compiled.module.constants;
  REQUIRE(constants.size() == 1);
  CHECK(static_cast<const void*>(constants[0].stored.view.data()) == place);
  CHECK(RunWith(*made, {}, {2}) == std::vector<float>{10, 21});
  CHECK(kept.use_count() == 2);  // this test and the executable
  made.reset();
  CHECK(kept.use_count() == 1);
}

TEST_CASE("initializers: files of external data in memory") {
  std::vector<float> file = {-1, 30, 40, -1};
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(file.data()), 16);
  const std::string model = ExternalSum().SerializeAsString();
  compiler::CompileOptions options;
  options.external_files["weights.bin"] = {bytes, nullptr};
  // Bytes without an owner are copied, from a model without a folder, too.
  const Outcome copied = CompileBytes(model, "", options);
  INFO(copied.message);
  REQUIRE(copied.message.empty());
  file.assign(4, 0);
  CHECK(RunWith(copied, {}, {2}) == std::vector<float>{30, 41});
  // Bytes with an owner are used in place.
  const auto owner = std::make_shared<const std::vector<float>>(std::vector<float>{-1, 5, 6});
  options.external_files["weights.bin"] = {{reinterpret_cast<const std::byte*>(owner->data()), 12}, owner};
  const Outcome in_place = CompileBytes(model, "", options);
  REQUIRE(in_place.message.empty());
  CHECK(static_cast<const void*>(in_place.compiled.module.constants[0].stored.view.data()) == &(*owner)[1]);
  CHECK(RunWith(in_place, {}, {2}) == std::vector<float>{5, 7});
  // They go before files in the model's folder, which serve other locations.
  const TempFolder folder;
  folder.Write("weights.bin", std::string(12, '\0'));
  folder.Write("model.onnx", model);
  const Result<Compilation> beside = Compile((folder.path() / "model.onnx").string(), options);
  REQUIRE(beside);
  const Constant& constant = beside->executable.module().constants[0];
  CHECK(static_cast<const void*>(constant.stored.view.data()) == &(*owner)[1]);
  // A tensor that is given for the initializer itself goes before both, and the file need not be there.
  options.external_files.clear();
  CHECK_THAT(CompileBytes(model, "", options).message, Catch::Contains("external data"));
  options.initializers = InitializersOf(Sum(false).graph());
  CHECK(RunWith(CompileBytes(model, "", options), {}, {2}) == std::vector<float>{1, 3});
  options.initializers = {};
  options.external_files["weights.bin"] = {bytes.subspan(0, 8), nullptr};
  CHECK_THAT(CompileBytes(model, "", options).message,
             Catch::Contains("external data 'weights.bin': 8 bytes at 4 of a file of 8"));
}

TEST_CASE("initializers: those that runs give are inputs, and the others stay constants") {
  compiler::CompileOptions options;
  const Outcome constant = CompileProto(Sum(true), options);
  const auto overridable = compiler::ReadOverridable(constant.compiled.module);
  REQUIRE(overridable.size() == 1);
  CHECK(overridable[0].name == "w");
  CHECK(RunWith(constant, {}, {2}) == std::vector<float>{1, 3});
  options.overridden = {"w"};
  Outcome input = CompileProto(Sum(true), options);
  REQUIRE(input.message.empty());
  std::vector<float> x = {1, 2}, w = {100, 200};
  const Answer answer = RunOn(std::move(input.compiled.module),
                              {{"x", TensorView(x.data(), {2})}, {"w", TensorView(w.data(), {2})}});
  CHECK(answer.error.empty());
  CHECK(answer.values == std::vector<float>{101, 202});
  CHECK(compiler::ReadOverridable(input.compiled.module).empty());
  CHECK(compiler::ReadOverridable(CompileProto(Sum(false)).compiled.module).empty());
  // Older models list all initializers among the inputs, and mean constants.
  onnx::ModelProto old = Sum(true);
  old.set_ir_version(3);
  CHECK(compiler::ReadOverridable(CompileProto(old).compiled.module).empty());
  CHECK_THAT(CompileProto(old, options).message, Catch::Contains("no initializer 'w' that is an input, too"));
}

Span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string TextOf(const OverridableInitializer& initializer) {
  std::string text = initializer.name + " " + initializer.element_type;
  if (!initializer.shape) return text;
  for (const auto& [size, name] : *initializer.shape) text += " " + std::to_string(size) + name;
  return text + " end";
}

TEST_CASE("initializers: an executable says which of them runs may give, with their declared types") {
  onnx::ModelProto model = Sum(false);
  onnx::GraphProto* const graph = model.mutable_graph();
  const auto add = [&](const std::string& name, int type) {
    onnx::TensorProto* const tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->add_dims(0);
    onnx::ValueInfoProto* const input = graph->add_input();
    input->set_name(name);
    input->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return input->mutable_type()->mutable_tensor_type();
  };
  add("no shape", onnx::TensorProto::INT64);
  add("scalar", onnx::TensorProto::DOUBLE)->mutable_shape();
  onnx::TensorShapeProto* const shape = add("open", onnx::TensorProto::STRING)->mutable_shape();
  shape->add_dim()->set_dim_value(2);
  shape->add_dim()->set_dim_param("N");
  shape->add_dim();
  add("\xff", onnx::TensorProto::FLOAT);  // no text that an executable can hold
  add("long" + std::string(std::size_t{1} << 20, 'x'), onnx::TensorProto::FLOAT);
  const std::string bytes = model.SerializeAsString();
  const Result<Compilation> made = rewire::CompileBytes(AsBytes(bytes), "", "sum");
  REQUIRE(made);
  std::vector<std::string> told;
  for (const OverridableInitializer& each : OverridableInitializers(made->executable))
    told.push_back(TextOf(each));
  CHECK(told == std::vector<std::string>{"no shape i64", "scalar f64 end", "open string 2 -1N -1 end"});
  CHECK(made->report.overridable == std::vector<std::string>{"no shape", "scalar", "open"});

  // Anyone may have written the file.
  Module module;
  for (const char* text : {"no JSON", "[]", R"(["a", 1, null])", R"(["a", "f32", 5])",
                           R"(["a", "f32", [true]])", R"(["b", "f32", [-7]])"})
    module.metadata.emplace_back("overridable " + std::to_string(module.metadata.size()), text);
  const auto read = compiler::ReadOverridable(module);
  REQUIRE(read.size() == 1);
  CHECK(TextOf(read[0]) == "b f32 -1 end");
}

TEST_CASE("initializers: a cached executable says which of them runs may give") {
  const TempFolder folder;
  const std::string model = Sum(true).SerializeAsString();
  CompileOptions options;
  options.cache = folder.path().string();
  for (const bool from_cache : {false, true}) {
    const Result<Compilation> made = rewire::CompileBytes(AsBytes(model), "", "sum", options);
    REQUIRE(made);
    CHECK(made->report.from_cache == from_cache);
    CHECK(made->report.overridable == std::vector<std::string>{"w"});
  }
}

TEST_CASE("initializers: what cannot be given") {
  const auto message = [](const char* name, Result<Tensor> tensor, const onnx::ModelProto& model) {
    REQUIRE(tensor);
    compiler::CompileOptions options;
    options.initializers.Set(name, *std::move(tensor));
    return CompileProto(model, options).message;
  };
  const Ints one = {1}, two = {2}, three = {3};
  const auto make = [](DLDataType dtype, const Ints& shape) {
    return Tensor::Make(dtype, {shape.data(), shape.size()});
  };
  CHECK(message("v", make(kFloat32, two), Sum(false)) ==
        "model: the model has no initializer 'v'; the initializers: w");
  CHECK(message("w", make(kInt64, two), Sum(false)) ==
        "model: initializer 'w' is given as i64[2], expected f32");
  // Another shape is one of the operator's business.
  CHECK(message("w", make(kFloat32, one), Sum(false)).empty());
  CHECK_THAT(message("w", make(kFloat32, three), Sum(false)),
             Catch::Contains("1 of 1 nodes are not supported"));
  std::vector<float> apart = {1, 0, 2, 0};
  const Ints stride = {2};
  const TensorView strided(apart.data(), kFloat32, {two.data(), 1}, kHost, {stride.data(), 1});
  CHECK(message("w", Tensor::Wrap(strided, nullptr), Sum(false)) ==
        "model: initializer 'w' is given as f32[2] with strides, expected compact elements");
  const TensorView elsewhere(apart.data(), kFloat32, {two.data(), 1}, {kDLOpenCL, 0});
  CHECK(message("w", Tensor::Wrap(elsewhere, nullptr), Sum(false)) ==
        "model: initializer 'w' is given as f32[2], expected it in host memory");
  onnx::ModelProto strings = Sum(false);
  onnx::TensorProto* text = AddWeight(strings.mutable_graph(), "t", onnx::TensorProto::STRING, {2});
  text->add_string_data("a");
  text->add_string_data("b");
  CHECK(message("t", make(kInt64, two), strings) ==
        "model: initializer 't' is given as i64[2], expected STRING");

  compiler::CompileOptions options;
  options.overridden = {"x"};
  CHECK(CompileProto(Sum(true), options).message ==
        "model: the model has no initializer 'x' that is an input, too; the initializers that are inputs: w");
  options.overridden = {"w"};
  CHECK_THAT(CompileProto(Sum(false), options).message,
             Catch::Contains("the model has no initializer 'w' that is an input, too"));
  options.initializers = InitializersOf(Sum(true).graph());
  CHECK(CompileProto(Sum(true), options).message ==
        "model: initializer 'w' is overridden by each run, and its elements are given, too; leave it out of "
        "one "
        "of the two");
}

TEST_CASE("initializers: in C") {
  const std::string model = ExternalSum().SerializeAsString(), inputs = Sum(true).SerializeAsString();
  const auto compile = [](const std::string& bytes, const RewireCompileOptions& options) {
    RewireExecutable* executable = nullptr;
    const RewireStatus status =
        rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, nullptr, &executable);
    return std::pair(status, executable);
  };
  const auto sum = [](RewireExecutable* executable, std::uint32_t given) {
    RewireProgram* program = nullptr;
    RewireVm* vm = nullptr;
    REQUIRE(rewire_program_link(executable, nullptr, &program) == kRewireOk);
    REQUIRE(rewire_vm_make(program, nullptr, &vm) == kRewireOk);
    std::vector<float> sum(2);
    float x[2] = {1, 2}, w[2] = {100, 200};
    const TensorView views[] = {TensorView(x, {2}), TensorView(w, {2})};
    for (std::uint32_t i = 0; i < given; ++i)
      REQUIRE(rewire_vm_set_input_by_index(vm, i, &views[i].dl(), kRewireBorrow) == kRewireOk);
    DLTensor y{};
    REQUIRE(rewire_vm_invoke(vm, nullptr) == kRewireOk);
    REQUIRE(rewire_vm_output_tensor(vm, 0, &y) == kRewireOk);
    std::memcpy(sum.data(), y.data, 2 * sizeof(float));
    rewire_vm_destroy(vm);
    rewire_program_destroy(program);
    rewire_executable_destroy(executable);
    return sum;
  };
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  float file[] = {-1, 30, 40};
  const RewireExternalFile files[] = {{"weights.bin", file, sizeof file}};
  options.external_files = files;
  options.external_file_count = 1;
  auto [status, executable] = compile(model, options);
  REQUIRE(status == kRewireOk);
  file[1] = 0;
  CHECK(sum(executable, 1) == std::vector<float>{31, 42});

  // A set of tensors, which goes before the file. It may be destroyed behind the call.
  float own[] = {5, 6};
  const TensorView view(own, {2});
  RewireValue* value = nullptr;
  RewireParameterSet* set = nullptr;
  REQUIRE(rewire_value_copy_tensor(&view.dl(), &value) == kRewireOk);
  REQUIRE(rewire_parameter_set_make(&set) == kRewireOk);
  REQUIRE(rewire_parameter_set_add(set, "w", value) == kRewireOk);
  rewire_value_destroy(value);
  options.initializers = set;
  std::tie(status, executable) = compile(model, options);
  rewire_parameter_set_destroy(set);
  REQUIRE(status == kRewireOk);
  CHECK(sum(executable, 1) == std::vector<float>{6, 8});

  // One that runs give, and who says which may be.
  std::string told;
  options.initializers = nullptr;
  options.external_file_count = 0;
  options.context = &told;
  options.overridable = [](void* context, const RewireOverridableInitializer* initializer) {
    *static_cast<std::string*>(context) += std::string(initializer->name) + " " + initializer->element_type;
    for (int i = 0; i < initializer->rank; ++i)
      *static_cast<std::string*>(context) += " " + std::to_string(initializer->dims[i]);
  };
  std::tie(status, executable) = compile(inputs, options);
  REQUIRE(status == kRewireOk);
  CHECK(told == "w f32 2");
  rewire_executable_destroy(executable);
  told.clear();
  const char* const names[] = {"w"};
  options.overridden = names;
  options.overridden_count = 1;
  std::tie(status, executable) = compile(inputs, options);
  REQUIRE(status == kRewireOk);
  CHECK(told.empty());
  CHECK(sum(executable, 2) == std::vector<float>{101, 202});
  const RewireExternalFile nameless[] = {{nullptr, own, sizeof own}};
  options.external_files = nameless;
  options.external_file_count = 1;
  CHECK(compile(inputs, options).first == kRewireInvalidArgument);
  CHECK_THAT(rewire_last_error_message(), Catch::Contains("location"));
}

}  // namespace
}  // namespace rewire::test
