// SPDX-License-Identifier: Apache-2.0
// Operators of foreign domains: one by C++ and C, with attributes, sizes by expressions, and sizes that only
// the run knows.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/c_api/machine.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Schema = OperatorSchema;
using Floats = std::vector<float>;

void Import(onnx::ModelProto* model, const std::string& domain) {
  onnx::OperatorSetIdProto* opset = model->add_opset_import();
  opset->set_domain(domain);
  opset->set_version(1);
}

// y = Above(Every(x)): every `step`-th row of x times `factor`, and then the elements above `least`. The
// first has a dimension by an expression, the second one by a function.
onnx::ModelProto TwiceModel() {
  onnx::ModelProto model = EmptyModel();
  Import(&model, "com.acme");
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  SetValue(graph->add_output(), "y", {""});
  SetValue(graph->add_output(), "rows", {"", 2});
  onnx::NodeProto* every = AddNode(graph, "Every", {"x"}, "rows");
  every->set_domain("com.acme");
  AddInt(every, "step", 2);
  onnx::NodeProto* above = AddNode(graph, "Above", {"rows"}, "y");
  above->set_domain("com.acme");
  AddFloat(above, "least", 3.5F);
  return model;
}

constexpr const char kSchemas[] = R"json({"operators": [
  {"domain": "com.acme", "name": "Every", "kernel": "acme.every",
   "inputs": [{"name": "x", "dtype": "f32", "shape": ["N", "rest..."]}],
   "outputs": [{"name": "y", "shape": ["ceil(N / step)", "rest..."]}],
   "attributes": [{"name": "step", "type": "int"}, {"name": "factor", "type": "float", "default": 1}]},
  {"domain": "com.acme", "name": "Above", "kernel": "acme.above",
   "inputs": [{"name": "x"}],
   "outputs": [{"name": "y", "dtype": "x", "shape": ["?"], "shape_function": "acme.above.shape"}],
   "attributes": [{"name": "least", "type": "float"}]}]})json";

// The same in C++.
std::vector<Schema> Schemas() {
  Schema every;
  every.domain = "com.acme";
  every.name = "Every";
  every.kernel = "acme.every";
  every.inputs = {{"x", {"f32"}, Schema::Shape{"N", "rest..."}}};
  every.outputs = {{"y", "", Schema::Shape{"ceil(N / step)", "rest..."}}};
  every.attributes = {{"step", std::int64_t{1}, true}, {"factor", 1.0}};
  Schema above;
  above.domain = "com.acme";
  above.name = "Above";
  above.kernel = "acme.above";
  above.inputs = {{"x"}};
  above.outputs = {{"y", "x", Schema::Shape{"?"}, "acme.above.shape"}};
  above.attributes = {{"least", 0.0, true}};
  return {every, above};
}

void Every(kernel::TensorView x, kernel::TensorView step, kernel::TensorView factor, kernel::TensorView y) {
  const std::int64_t columns = x.dim(1);
  for (std::int64_t row = 0; row < y.dim(0); ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      y.data<float>()[row * columns + i] =
          *factor.data<float>() * x.data<float>()[row * *step.data<std::int64_t>() * columns + i];
    }
  }
}

std::int64_t CountAbove(const float* x, std::int64_t size, float least, float* above) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    if (x[i] <= least) continue;
    if (above != nullptr) above[count] = x[i];
    ++count;
  }
  return count;
}

void AddKernels(KernelSet* kernels) {
  kernels->AddFunction("acme.every", MakePackedFunction(&Every));
  kernels->AddFunction("acme.above", MakePackedFunction([](kernel::TensorView x, kernel::TensorView least,
                                                           kernel::TensorView y) {
                         CountAbove(x.data<float>(), x.size(), *least.data<float>(), y.data<float>());
                       }));
  kernels->AddFunction(
      "acme.above.shape",
      MakePackedFunction([](kernel::TensorView x, kernel::TensorView least, kernel::TensorView shape) {
        *shape.data<std::int64_t>() = CountAbove(x.data<float>(), x.size(), *least.data<float>(), nullptr);
      }));
}

// Rows 0, 2 and 4 of 0 ... 9 are 0 1, 4 5 and 8 9.
const Floats kAbove = {4, 5, 8, 9};
Floats Counts() {
  Floats x(10);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

TEST_CASE("own operators: by C++ with attributes and sizes of a run") {
  CompileOptions options;
  SECTION("by schemas") { options.operators = Schemas(); }
  SECTION("by JSON") { options.operators = *ParseOperatorSchemas(kSchemas, "here"); }
  const std::string bytes = TwiceModel().SerializeAsString();
  const Result<Compilation> compiled = rewire::CompileBytes(
      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "", "model", options);
  REQUIRE(compiled);
  LinkOptions link;
  AddKernels(&link.kernels);
  const Program program = *Program::Link(compiled->executable, std::move(link));
  VirtualMachine vm(program);
  const Floats x = Counts();
  vm.SetInput("x", TensorView(x.data(), {5, 2}));
  vm.Invoke();
  const Tensor y = vm.Output("y"), rows = vm.Output("rows");
  CHECK(Floats(y.data<float>(), y.data<float>() + y.view().size()) == kAbove);
  CHECK(rows.view().shape()[0] == 3);
  // Another size of the same program.
  vm.SetInput("x", TensorView(x.data(), {2, 2}));
  vm.Invoke();
  CHECK(vm.Output("rows").view().shape()[0] == 1);
  CHECK(vm.Output("y").view().size() == 0);
}

// The same kernels as C functions.
extern "C" {

int EveryInC(void* /*handle*/, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* /*result*/) {
  if (count != 4) return -1;
  Every(kernel::TensorView(RewireTensorOf(&args[0])), kernel::TensorView(RewireTensorOf(&args[1])),
        kernel::TensorView(RewireTensorOf(&args[2])), kernel::TensorView(RewireTensorOf(&args[3])));
  return 0;
}

// With a handle it computes the shape.
int AboveInC(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* /*result*/) {
  if (count != 3) return -1;
  const kernel::TensorView x(RewireTensorOf(&args[0])), out(RewireTensorOf(&args[2]));
  const auto* least = static_cast<const float*>(RewireTensorOf(&args[1])->data);
  float* above = handle == nullptr ? out.data<float>() : nullptr;
  const std::int64_t size = CountAbove(x.data<float>(), x.size(), *least, above);
  if (handle != nullptr) *out.data<std::int64_t>() = size;
  return 0;
}
}

TEST_CASE("own operators: by C with attributes and sizes of a run") {
  const std::string bytes = TwiceModel().SerializeAsString();
  RewireCompileOptions compile{};
  compile.struct_size = sizeof(compile);
  compile.operators = kSchemas;
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &compile, nullptr,
                                &executable) == kRewireOk);
  RewireLinkOptions* link = nullptr;
  RewireProgram* program = nullptr;
  RewireVm* vm = nullptr;
  int of_shape = 0;
  REQUIRE(rewire_link_options_make(&link) == kRewireOk);
  REQUIRE(rewire_link_options_add_kernel(link, "acme.every", EveryInC, nullptr, nullptr) == kRewireOk);
  REQUIRE(rewire_link_options_add_kernel(link, "acme.above", AboveInC, nullptr, nullptr) == kRewireOk);
  REQUIRE(rewire_link_options_add_kernel(link, "acme.above.shape", AboveInC, &of_shape, nullptr) ==
          kRewireOk);
  REQUIRE(rewire_program_link(executable, link, &program) == kRewireOk);
  REQUIRE(rewire_vm_make(program, nullptr, &vm) == kRewireOk);
  Floats x = Counts();
  std::int64_t shape[] = {5, 2};
  DLTensor tensor{};
  tensor.data = x.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 2;
  tensor.dtype = kFloat32;
  tensor.shape = shape;
  REQUIRE(rewire_vm_set_input_by_name(vm, "x", &tensor, kRewireBorrow) == kRewireOk);
  REQUIRE(rewire_vm_invoke(vm, nullptr) == kRewireOk);
  DLTensor y{};
  REQUIRE(rewire_vm_output_tensor(vm, 0, &y) == kRewireOk);
  const auto* above = static_cast<const float*>(y.data);
  CHECK(Floats(above, above + y.shape[0]) == kAbove);
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_link_options_destroy(link);
  rewire_executable_destroy(executable);
  SECTION("JSON that is wrong is refused, and names the place") {
    compile.operators = R"({"operators": [{"domain": "a", "name": "B", "inputs": 3, "outputs": []}]})";
    REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &compile, nullptr,
                                  &executable) == kRewireInvalidArgument);
    CHECK(std::string(rewire_last_error_message()) ==
          "operators.operators[0].inputs: expected a list, given 3");
  }
}

TEST_CASE("own operators: each type of attribute reaches the kernel both given and by default") {
  using Value = Schema::Attribute::Value;
  struct Case {
    Value value;
    std::string given, by_default;
  };
  const std::vector<Case> cases = {{std::int64_t{7}, "i64 []: 3", "i64 []: 7"},
                                   {0.5, "f32 []: 1.5", "f32 []: 0.5"},
                                   {std::string("ab"), "u8 [3]: 120 121 122", "u8 [2]: 97 98"},
                                   {std::vector<std::int64_t>{1, 2}, "i64 [1]: 9", "i64 [2]: 1 2"},
                                   {std::vector<double>{0.25}, "f32 [2]: 2 3", "f32 [1]: 0.25"}};
  for (const Case& one : cases) {
    for (const bool given : {false, true}) {
      onnx::ModelProto model = EmptyModel();
      Import(&model, "com.acme");
      SetValue(model.mutable_graph()->add_input(), "x", {1});
      SetValue(model.mutable_graph()->add_output(), "y", {1});
      onnx::NodeProto* node = AddNode(model.mutable_graph(), "Seen", {"x"}, "y");
      node->set_domain("com.acme");
      if (given) {
        if (one.value.index() == 0) AddInt(node, "a", 3);
        if (one.value.index() == 1) AddFloat(node, "a", 1.5F);
        if (one.value.index() == 2) AddString(node, "a", "xyz");
        if (one.value.index() == 3) AddIntList(node, "a", {9});
        if (one.value.index() == 4) {
          onnx::AttributeProto* list = node->add_attribute();
          list->set_name("a");
          list->set_type(onnx::AttributeProto::FLOATS);
          list->add_floats(2);
          list->add_floats(3);
        }
      }
      Schema schema;
      schema.domain = "com.acme";
      schema.name = "Seen";
      schema.inputs = {{"x"}};
      schema.outputs = {{"y"}};
      schema.attributes = {{"a", one.value}};
      CompileOptions options;
      options.operators = {schema};
      std::string seen;
      LinkOptions link;
      link.kernels.AddFunction(
          "com.acme.Seen",
          MakePackedFunction([&](kernel::TensorView /*x*/, kernel::TensorView a, kernel::TensorView /*y*/) {
            seen = DTypeName(a.dtype()) + (a.ndim() == 0 ? " []:" : " [" + std::to_string(a.dim(0)) + "]:");
            for (std::int64_t i = 0; i < a.size(); ++i) {
              if (a.Is<float>()) seen += fmt::format(" {}", a.data<float>()[i]);
              if (a.Is<std::int64_t>()) seen += fmt::format(" {}", a.data<std::int64_t>()[i]);
              if (a.Is<std::uint8_t>()) seen += fmt::format(" {}", a.data<std::uint8_t>()[i]);
            }
          }));
      const Outcome outcome = CompileProto(model, options);
      REQUIRE(outcome.message.empty());
      const Program program =
          *Program::Link(*Executable::FromModule(outcome.compiled.module), std::move(link));
      VirtualMachine vm(program);
      const float x[] = {1};
      vm.SetInput("x", TensorView(x, {1}));
      vm.Invoke();
      CHECK(seen == (given ? one.given : one.by_default));
    }
  }
}

TEST_CASE("own operators: a factory gets the attributes when a program is linked") {
  onnx::ModelProto model = EmptyModel();
  Import(&model, "com.acme");
  SetValue(model.mutable_graph()->add_input(), "x", {2, 3});
  SetValue(model.mutable_graph()->add_output(), "y", {3, 2});
  onnx::NodeProto* node = AddNode(model.mutable_graph(), "Turn", {"x"}, "y");
  node->set_domain("com.acme");
  // A stock kernel will do as any other.
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Turn";
  schema.kernel = "rewire.transpose";
  schema.inputs = {{"x", {}, Schema::Shape{"A", "B"}}};
  schema.outputs = {{"y", "x", Schema::Shape{"B", "A"}}};
  schema.attributes = {{"perm", std::vector<std::int64_t>{1, 0}}};
  schema.attributes_as = Schema::AttributesAs::kFactory;
  CompileOptions options;
  options.operators = {schema};
  const Outcome outcome = CompileProto(model, options);
  REQUIRE(outcome.message.empty());
  const Answer answer = RunOnCounts(outcome.compiled.module, {2, 3});
  CHECK(answer.shape == Shape{3, 2});
  CHECK(answer.values == Floats{0, 3, 1, 4, 2, 5});
}

}  // namespace
}  // namespace rewire::test
