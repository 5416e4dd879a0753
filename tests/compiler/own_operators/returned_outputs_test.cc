// SPDX-License-Identifier: Apache-2.0
// Operators whose kernels return their outputs, with shapes that show when they run, and operators whose
// kernels get the whole node.
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/attributes.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Schema = OperatorSchema;
using Floats = std::vector<float>;

constexpr DLDevice kHost{kDLCPU, 0};

onnx::ModelProto ReturningModel() {
  onnx::ModelProto model = EmptyModel();
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain("com.acme");
  opset->set_version(3);
  return model;
}

onnx::NodeProto* AddOwn(onnx::GraphProto* graph, const std::string& type,
                        const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  onnx::NodeProto* node = AddNode(graph, type, inputs, outputs[0]);
  for (std::size_t i = 1; i < outputs.size(); ++i) node->add_output(outputs[i]);
  node->set_domain("com.acme");
  return node;
}

int NewTensor(DLDataType dtype, const std::vector<std::int64_t>& shape, RewireFFIAny* result) {
  return KernelApi()->new_tensor(dtype, static_cast<std::int32_t>(shape.size()), shape.data(), kHost, result);
}

// The elements of x above 2.5, and their positions.
Schema AboveSchema() {
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Above";
  schema.inputs = {{"x", {"f32"}, Schema::Shape{"N", "C"}}};
  schema.outputs = {{"values", "x", Schema::Shape{"?"}}, {"at", "i64", Schema::Shape{"?", "2"}}};
  schema.returns = true;
  return schema;
}

PackedFunction AboveKernel() {
  return MakePackedFunction([](kernel::TensorView x, RewireFFIAny* result) -> kernel::Status {
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (x.data<float>()[i] > 2.5F) found.push_back(i);
    }
    const auto count = static_cast<std::int64_t>(found.size());
    RewireFFIAny fields[2]{};
    if (NewTensor(kFloat32, {count}, &fields[0]) != 0) return kernel::Status::AlreadySet();
    if (NewTensor(kInt64, {count, 2}, &fields[1]) != 0) return kernel::Status::AlreadySet();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = found[static_cast<std::size_t>(i)];
      static_cast<float*>(RewireTensorOf(&fields[0])->data)[i] = x.data<float>()[at];
      auto* const place = static_cast<std::int64_t*>(RewireTensorOf(&fields[1])->data) + 2 * i;
      place[0] = at / x.dim(1);
      place[1] = at % x.dim(1);
    }
    const bool made = KernelApi()->new_adt(0, 2, fields, result) == 0;
    for (const RewireFFIAny& field : fields) Value::Adopt(field);
    return made ? kernel::Status() : kernel::Status::AlreadySet();
  });
}

struct Ran {
  std::string error;
  std::vector<Tensor> outputs;
};

// Compiles and runs a model with the input x: 0, 1, 2, ... under this shape.
class OwnProgram {
 public:
  OwnProgram(const onnx::ModelProto& model, const std::vector<Schema>& schemas, LinkOptions link) {
    CompileOptions options;
    options.operators = schemas;
    const Outcome outcome = CompileProto(model, options);
    outputs_ = static_cast<std::uint32_t>(model.graph().output_size());
    error_ = outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
    if (!error_.empty()) return;
    const Result<Program> program =
        Program::Link(*Executable::FromModule(outcome.compiled.module), std::move(link));
    if (!program) {
      error_ = program.error().message();
      return;
    }
    vm_.emplace(*program);
  }

  Ran Run(const std::vector<std::int64_t>& shape) {
    Ran ran;
    ran.error = error_;
    if (!vm_) return ran;
    std::size_t size = 1;
    for (const std::int64_t dim : shape) size *= static_cast<std::size_t>(dim);
    Floats x(size);
    std::iota(x.begin(), x.end(), 0.0F);
    REQUIRE(vm_->TrySetInput("x", TensorView(x.data(), kFloat32, {shape.data(), shape.size()})));
    const Status done = vm_->TryInvoke();
    if (!done) {
      ran.error = done.error().message();
      return ran;
    }
    for (std::uint32_t i = 0; i < outputs_; ++i) ran.outputs.push_back(vm_->Output(i));
    return ran;
  }

 private:
  std::uint32_t outputs_ = 0;
  std::string error_;
  std::optional<VirtualMachine> vm_;
};

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.view().size()};
}
std::vector<std::int64_t> ShapeOf(const Tensor& tensor) {
  const TensorView view = tensor.view();
  return {view.shape().begin(), view.shape().end()};
}

TEST_CASE("returned outputs: their shapes show when the kernel runs and what follows uses them") {
  onnx::ModelProto model = ReturningModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  SetValue(graph->add_output(), "at", {"", 2}, onnx::TensorProto::INT64);
  SetValue(graph->add_output(), "doubled", {""});
  AddOwn(graph, "Above", {"x"}, {"values", "at"});
  AddNode(graph, "Add", {"values", "values"}, "doubled");
  LinkOptions link;
  link.kernels.AddFunction("com.acme.Above", AboveKernel());
  OwnProgram program(model, {AboveSchema()}, std::move(link));
  const Ran three = program.Run({3, 2});
  REQUIRE(three.error.empty());
  CHECK(Elements<std::int64_t>(three.outputs[0]) == std::vector<std::int64_t>{1, 1, 2, 0, 2, 1});
  CHECK(ShapeOf(three.outputs[0]) == std::vector<std::int64_t>{3, 2});
  CHECK(Elements<float>(three.outputs[1]) == Floats{6, 8, 10});
  // Other values give another shape: also none.
  const Ran none = program.Run({1, 2});
  REQUIRE(none.error.empty());
  CHECK(ShapeOf(none.outputs[0]) == std::vector<std::int64_t>{0, 2});
  CHECK(ShapeOf(none.outputs[1]) == std::vector<std::int64_t>{0});
}

TEST_CASE("returned outputs: one that nothing wants may be left out, and a name stands for one size") {
  onnx::ModelProto model = ReturningModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  SetValue(graph->add_output(), "sum", {"N", 2});
  AddOwn(graph, "Same", {"x"}, {"y"});
  AddNode(graph, "Add", {"x", "y"}, "sum");
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Same";
  schema.inputs = {{"x", {}, Schema::Shape{"N", "C"}}};
  schema.outputs = {{"y", "x", Schema::Shape{"N", "C"}}, {"more", "i64", Schema::Shape{}}};
  schema.returns = true;
  LinkOptions link;
  // It returns its argument.
  link.kernels.AddFunction("com.acme.Same",
                           MakePackedFunction([](const RewireFFIAny& x, RewireFFIAny* result) {
                             *result = x;
                             __atomic_fetch_add(&x.v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
                           }));
  OwnProgram program(model, {schema}, std::move(link));
  const Ran ran = program.Run({2, 2});
  REQUIRE(ran.error.empty());
  CHECK(Elements<float>(ran.outputs[0]) == Floats{0, 2, 4, 6});
}

TEST_CASE("returned outputs: without a shape in the schema the model says the rank or there is none") {
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Flat";
  schema.inputs = {{"x"}};
  schema.outputs = {{"y", "x"}};
  schema.returns = true;
  const auto kernels = [] {
    LinkOptions link;
    link.kernels.AddFunction(
        "com.acme.Flat", MakePackedFunction([](kernel::TensorView x, RewireFFIAny* result) {
          if (NewTensor(kFloat32, {x.size(), 1}, result) != 0) return;
          std::copy_n(x.data<float>(), x.size(), static_cast<float*>(RewireTensorOf(result)->data));
        }));
    return link;
  };
  onnx::ModelProto model = ReturningModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  AddOwn(graph, "Flat", {"x"}, {"y"});
  SECTION("elementwise operators take a tensor of any rank") {
    SetValue(graph->add_output(), "z", {"", ""});
    AddNode(graph, "Add", {"y", "y"}, "z");
    OwnProgram program(model, {schema}, kernels());
    const Ran ran = program.Run({2, 2});
    REQUIRE(ran.error.empty());
    CHECK(ShapeOf(ran.outputs[0]) == std::vector<std::int64_t>{4, 1});
    CHECK(Elements<float>(ran.outputs[0]) == Floats{0, 2, 4, 6});
  }
  SECTION("others need the rank that the model declares") {
    SetValue(graph->add_output(), "z", {"", ""});
    AddNode(graph, "Transpose", {"y"}, "z");
    OwnProgram without(model, {schema}, kernels());
    CHECK(without.Run({2, 2}).error.find("the rank of input 0, 'y', is not known") == 0);
    SetValue(graph->add_value_info(), "y", {"", ""});
    OwnProgram program(model, {schema}, kernels());
    const Ran ran = program.Run({2, 2});
    REQUIRE(ran.error.empty());
    CHECK(ShapeOf(ran.outputs[0]) == std::vector<std::int64_t>{1, 4});
  }
  SECTION("a rank that the model declares wrongly is an error of the run") {
    SetValue(graph->add_output(), "y", {""});
    OwnProgram program(model, {schema}, kernels());
    CHECK(program.Run({2, 2}).error.find(
              "output 'y' of kernel 'com.acme.Flat' is f32[4, 1], expected f32[?]") != std::string::npos);
  }
}

TEST_CASE("returned outputs: what does not fit the schema is an error that names output and kernel") {
  onnx::ModelProto model = ReturningModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  SetValue(graph->add_output(), "a", {"", 2});
  SetValue(graph->add_output(), "b", {""}, onnx::TensorProto::INT64);
  AddOwn(graph, "Two", {"x"}, {"a", "b"});
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Two";
  schema.kernel = "acme.two";
  schema.inputs = {{"x", {}, Schema::Shape{"N", "C"}}};
  schema.outputs = {{"a", "x", Schema::Shape{"?", "C"}}, {"b", "i64", Schema::Shape{"N"}}};
  schema.returns = true;
  const auto error_of = [&](auto make) {
    LinkOptions link;
    link.kernels.AddFunction("acme.two", MakePackedFunction([&](kernel::TensorView, RewireFFIAny* result) {
                               std::vector<RewireFFIAny> fields;
                               make(&fields);
                               (void)KernelApi()->new_adt(0, static_cast<std::int32_t>(fields.size()),
                                                          fields.data(), result);
                               for (const RewireFFIAny& field : fields) {
                                 if (field.type_index >= kRewireFFIObject) Value::Adopt(field);
                               }
                             }));
    OwnProgram program(model, {schema}, std::move(link));
    return program.Run({3, 2}).error;
  };
  const auto tensor = [](DLDataType dtype, const std::vector<std::int64_t>& shape) {
    RewireFFIAny made{};
    REQUIRE(NewTensor(dtype, shape, &made) == 0);
    return made;
  };
  const auto has = [](const std::string& error, const std::string& part) {
    INFO(error);
    return error.find(part) != std::string::npos;
  };
  using Fields = std::vector<RewireFFIAny>;
  CHECK(error_of([&](Fields* fields) { *fields = {tensor(kFloat32, {7, 2}), tensor(kInt64, {3})}; }).empty());
  CHECK(has(error_of([&](Fields* fields) {
              *fields = {tensor(kFloat64, {7, 2}), tensor(kInt64, {3})};
            }),
            "output 'a' of kernel 'acme.two' is f64[7, 2], expected f32[?, 2]"));
  CHECK(has(error_of([&](Fields* fields) {
              *fields = {tensor(kFloat32, {7, 3}), tensor(kInt64, {3})};
            }),
            "output 'a' of kernel 'acme.two' is f32[7, 3], expected f32[?, 2]"));
  CHECK(has(error_of([&](Fields* fields) {
              *fields = {tensor(kFloat32, {7, 2}), tensor(kInt64, {4})};
            }),
            "output 'b' of kernel 'acme.two' is i64[4], expected i64[3]"));
  CHECK(has(error_of([&](Fields* fields) {
              RewireFFIAny number{};
              number.type_index = kRewireFFIInt;
              *fields = {tensor(kFloat32, {7, 2}), number};
            }),
            "output 'b' of kernel 'acme.two' is an integer, expected i64[3]"));
  CHECK(has(error_of([&](Fields* fields) { *fields = {tensor(kFloat32, {7, 2})}; }), "field 1"));
}

TEST_CASE("whole nodes: a factory gets all attributes and the node in JSON") {
  onnx::ModelProto model = ReturningModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  SetValue(graph->add_output(), "y", {""});
  onnx::NodeProto* node = AddOwn(graph, "Own", {"x", "", "x"}, {"y"});
  node->set_name("n1");
  AddInt(node, "count", 7);
  AddString(node, "text", "abc");
  AddIntList(node, "list", {1, 2});
  onnx::AttributeProto* strings = node->add_attribute();
  strings->set_name("words");
  strings->set_type(onnx::AttributeProto::STRINGS);
  strings->add_strings("a");
  strings->add_strings("b");
  onnx::AttributeProto* tensor = node->add_attribute();
  tensor->set_name("table");
  tensor->set_type(onnx::AttributeProto::TENSOR);
  tensor->mutable_t()->set_data_type(onnx::TensorProto::INT16);
  tensor->mutable_t()->add_dims(2);
  tensor->mutable_t()->set_raw_data(std::string("\x01\x00\xFF\x7F", 4));
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Own";
  schema.inputs = {{"x", {"f32"}}, {"more", {}, {}, true, true}};
  schema.outputs = {{"y", "x", Schema::Shape{"?"}}};
  schema.attributes = {{"count", std::int64_t{1}}, {"scale", 0.5}};
  schema.attributes_as = Schema::AttributesAs::kNode;
  schema.returns = true;
  nlohmann::json seen;
  std::int64_t count = 0;
  double scale = 0;
  std::string text;
  std::vector<std::int64_t> list;
  std::int32_t arguments = 0;
  LinkOptions link;
  PackedFunction factory;
  struct Seen {
    std::function<void(kernel::Attributes&)> read;
    std::int32_t* arguments;
  } state{[&](kernel::Attributes& attributes) {
            count = attributes.Int("count", 0);
            scale = attributes.Float("scale", 0);
            text = attributes.String("text", "");
            list = attributes.Ints("list", {});
            seen = nlohmann::json::parse(attributes.String("onnx.node", ""));
            CHECK(attributes.Finish().ok());
          },
          &arguments};
  factory.handle = &state;
  factory.call = [](void* handle, const RewireFFIAny* args, std::int32_t size, RewireFFIAny* result) {
    kernel::Attributes attributes(args, size);
    static_cast<Seen*>(handle)->read(attributes);
    return KernelApi()->new_function(
        handle,
        [](void* of, const RewireFFIAny*, std::int32_t given, RewireFFIAny* made) {
          *static_cast<Seen*>(of)->arguments = given;
          return NewTensor(kFloat32, {0}, made);
        },
        nullptr, result);
  };
  link.kernels.AddFunction("com.acme.Own", std::move(factory));
  OwnProgram program(model, {schema}, std::move(link));
  const Ran ran = program.Run({3, 2});
  REQUIRE(ran.error.empty());
  CHECK(arguments == 3);
  CHECK(count == 7);
  CHECK(scale == 0.5);
  CHECK(text == "abc");
  CHECK(list == std::vector<std::int64_t>{1, 2});
  CHECK(seen == nlohmann::json::parse(R"({"name": "n1", "domain": "com.acme", "operator": "Own", "version": 3,
    "inputs": [{"name": "x", "dtype": "f32", "shape": [null, 2]}, {"name": ""},
               {"name": "x", "dtype": "f32", "shape": [null, 2]}],
    "outputs": [{"name": "y", "dtype": "f32", "shape": [null]}],
    "attributes": {"words": ["a", "b"], "table": {"dtype": "i16", "shape": [2], "data": "0100ff7f"}}})"));

  SECTION("attributes that no kernel can be given are refused by name") {
    onnx::AttributeProto* body = node->add_attribute();
    body->set_name("body");
    body->set_type(onnx::AttributeProto::GRAPH);
    body->mutable_g();
    OwnProgram refused(model, {schema}, {});
    CHECK(refused.Run({3, 2}).error == "attribute 'body' is of type GRAPH, which a kernel cannot be given");
  }
  SECTION("a text that is no UTF-8 is refused by name") {
    AddString(node, "bytes", "\xFF");
    OwnProgram refused(model, {schema}, {});
    CHECK(refused.Run({3, 2}).error == "attribute 'bytes' is no UTF-8");
  }
}

}  // namespace
}  // namespace rewire::test
