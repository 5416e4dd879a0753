// SPDX-License-Identifier: Apache-2.0
// Operators of a host that read and make strings: each tensor of strings is three arguments of the kernel.
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/attributes.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Schema = OperatorSchema;
using Strings = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

constexpr onnx::TensorProto::DataType kString = onnx::TensorProto::STRING;

onnx::NodeProto* AddOwn(onnx::GraphProto* graph, const std::vector<std::string>& inputs) {
  onnx::NodeProto* node = AddNode(graph, "Longest", inputs, "y");
  node->set_domain("com.acme");
  return node;
}

// The strings of x that have two bytes and more, each twice, and how many bytes they have.
onnx::ModelProto StringModel(bool ranked = true) {
  onnx::ModelProto model = EmptyModel(20);
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain("com.acme");
  opset->set_version(1);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"}, kString);
  AddOwn(graph, {"x"})->add_output("lengths");
  if (ranked) SetValue(graph->add_value_info(), "y", {"M"}, kString);
  AddNode(graph, "StringConcat", {"y", "y"}, "twice");
  SetValue(graph->add_output(), "twice", {"M"}, kString);
  SetValue(graph->add_output(), "lengths", {"M"}, onnx::TensorProto::INT64);
  return model;
}

Schema LongestSchema() {
  Schema schema;
  schema.domain = "com.acme";
  schema.name = "Longest";
  schema.inputs = {{"x", {"string"}, Schema::Shape{"N"}}};
  schema.outputs = {{"y", "x", Schema::Shape{"?"}}, {"lengths", "i64", Schema::Shape{"?"}}};
  schema.returns = true;
  return schema;
}

Strings Read(const std::int64_t* positions, std::size_t count, const std::int64_t* offsets,
             const void* bytes) {
  Strings strings;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t* const ends = offsets + positions[i];
    const auto length = static_cast<std::size_t>(ends[1] - ends[0]);
    strings.emplace_back(length == 0 ? "" : static_cast<const char*>(bytes) + ends[0], length);
  }
  return strings;
}

// A fault of the kernel in the offsets that it returns.
enum class Fault : std::uint8_t { kNone, kOffsets, kDType };

PackedFunction LongestKernel(Fault fault = Fault::kNone) {
  return MakePackedFunction([fault](kernel::TensorView positions, kernel::TensorView offsets,
                                    kernel::TensorView bytes, RewireFFIAny* result) -> kernel::Status {
    Ints numbers, ends = {0}, lengths;
    std::string text;
    for (const std::string& each :
         Read(positions.data<std::int64_t>(), static_cast<std::size_t>(positions.size()),
              offsets.data<std::int64_t>(), bytes.data<std::uint8_t>())) {
      if (each.size() < 2) continue;
      numbers.push_back(static_cast<std::int64_t>(numbers.size()));
      text += each;
      ends.push_back(static_cast<std::int64_t>(text.size()) + (fault == Fault::kOffsets ? 1000 : 0));
      lengths.push_back(static_cast<std::int64_t>(each.size()));
    }
    RewireFFIAny fields[4]{};
    bool made = true;
    const auto put = [&](std::size_t i, DLDataType dtype, const void* data, std::size_t count,
                         std::size_t size) {
      const auto shape = static_cast<std::int64_t>(count);
      made = made && KernelApi()->new_tensor(dtype, 1, &shape, DLDevice{kDLCPU, 0}, &fields[i]) == 0;
      if (made && count != 0) std::memcpy(RewireTensorOf(&fields[i])->data, data, count * size);
    };
    put(0, kInt64, numbers.data(), numbers.size(), 8);
    put(1, fault == Fault::kDType ? kFloat64 : kInt64, ends.data(), ends.size(), 8);
    put(2, kUInt8, text.data(), text.size(), 1);
    put(3, kInt64, lengths.data(), lengths.size(), 8);
    made = made && KernelApi()->new_adt(0, 4, fields, result) == 0;
    for (const RewireFFIAny& field : fields) Value::Adopt(field);
    return made ? kernel::Status() : kernel::Status::AlreadySet();
  });
}

struct StringRun {
  std::string error;
  Strings twice;
  Ints lengths;
};

StringRun Run(const onnx::ModelProto& model, const Schema& schema, PackedFunction kernel, const Strings& x) {
  StringRun ran;
  CompileOptions options;
  options.operators = {schema};
  const Outcome outcome = CompileProto(model, options);
  ran.error = outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
  if (!ran.error.empty()) return ran;
  LinkOptions link;
  link.kernels.AddFunction("com.acme.Longest", std::move(kernel));
  const Result<Program> program =
      Program::Link(*Executable::FromModule(outcome.compiled.module), std::move(link));
  REQUIRE(program);
  Ints positions, offsets = {0};
  std::string bytes;
  for (const std::string& each : x) {
    positions.push_back(static_cast<std::int64_t>(positions.size()));
    bytes += each;
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  VirtualMachine vm(*program);
  const auto shape = [](std::size_t size) { return Ints{static_cast<std::int64_t>(size)}; };
  const Ints counts[] = {shape(positions.size()), shape(offsets.size()), shape(bytes.size())};
  std::int64_t none = 0;
  vm.SetInput("x", TensorView(positions.empty() ? &none : positions.data(), kInt64,
                              Span<const std::int64_t>(counts[0])));
  vm.SetInput("x.offsets", TensorView(offsets.data(), kInt64, Span<const std::int64_t>(counts[1])));
  vm.SetInput("x.bytes", TensorView(bytes.empty() ? static_cast<void*>(&none) : bytes.data(), kUInt8,
                                    Span<const std::int64_t>(counts[2])));
  if (const Status done = vm.TryInvoke(); !done) {
    ran.error = done.error().message();
    return ran;
  }
  const Tensor twice = vm.Output("twice"), ends = vm.Output("twice.offsets"), text = vm.Output("twice.bytes");
  ran.twice = Read(twice.data<std::int64_t>(), static_cast<std::size_t>(twice.view().size()),
                   ends.data<std::int64_t>(), text.data<std::uint8_t>());
  const Tensor lengths = vm.Output("lengths");
  const auto* const numbers = lengths.data<std::int64_t>();
  ran.lengths.assign(numbers, numbers + lengths.view().size());
  return ran;
}

TEST_CASE("own strings: a kernel reads strings and makes others, which another operator reads") {
  const bool ranked = GENERATE(true, false);
  for (const Strings& x : {Strings{"ab", "c", "", "h\xc3\xa9"}, Strings{"a"}, Strings{}}) {
    const StringRun ran = Run(StringModel(ranked), LongestSchema(), LongestKernel(), x);
    CHECK(ran.error == "");
    const bool some = x.size() > 1;
    CHECK(ran.twice == (some ? Strings{"abab", "h\xc3\xa9h\xc3\xa9"} : Strings{}));
    CHECK(ran.lengths == (some ? Ints{2, 3} : Ints{}));
  }
}

TEST_CASE("own strings: what a kernel returns is checked") {
  const Strings x = {"ab"};
  CHECK_THAT(Run(StringModel(), LongestSchema(), LongestKernel(Fault::kOffsets), x).error,
             Catch::Contains("offset"));
  CHECK_THAT(Run(StringModel(), LongestSchema(), LongestKernel(Fault::kDType), x).error,
             Catch::Contains("output 'y' of kernel 'com.acme.Longest'"));
}

TEST_CASE("own strings: a schema must ask for them") {
  const auto error_of = [](const Schema& schema) {
    return Run(StringModel(), schema, LongestKernel(), {"ab"}).error;
  };
  Schema schema = LongestSchema();
  schema.inputs[0].dtypes = {"i64", "f32"};
  CHECK(error_of(schema) == "input 'x' is string, its schema has i64, f32");
  schema.inputs[0].dtypes = {};
  CHECK(error_of(schema) == "input 'x' is string, its schema has all dtypes but strings");
  schema = LongestSchema();
  schema.returns = false;
  schema.outputs = {{"y", "x", Schema::Shape{"N"}}, {"lengths", "i64", Schema::Shape{"N"}}};
  CHECK(error_of(schema) == "output 'y' is strings, which only a kernel that returns its outputs can make");
  schema.outputs[0].dtype = "string";
  CHECK(error_of(schema) ==
        "operator 'Longest' of domain 'com.acme': output 'y': strings are made by a kernel that returns its "
        "outputs (returns)");
}

TEST_CASE("own strings: a kernel that gets the node is told which of its values are strings") {
  Schema schema = LongestSchema();
  schema.inputs[0].dtypes = {};
  schema.attributes_as = Schema::AttributesAs::kNode;
  CompileOptions options;
  options.operators = {schema};
  const Outcome outcome = CompileProto(StringModel(), options);
  REQUIRE(outcome.message == "");
  std::string text;
  for (const KernelImport& import : outcome.compiled.module.kernels) {
    for (const Attribute& attribute : import.attributes)
      if (attribute.name == "onnx.node") text = std::get<std::string>(attribute.value);
  }
  const nlohmann::json node = nlohmann::json::parse(text, nullptr, false);
  CHECK(node["inputs"][0]["dtype"] == "string");
  CHECK(node["outputs"][0]["dtype"] == "string");
  CHECK(node["outputs"][1]["dtype"] == "i64");
}

}  // namespace
}  // namespace rewire::test
