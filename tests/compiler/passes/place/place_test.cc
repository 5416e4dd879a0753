// SPDX-License-Identifier: Apache-2.0
// The compiler says where kernels run, in C++, in C and by vm-compile. No device is needed for that.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

// The device has kernels for Softmax and Exp, and none for Det.
std::string ModelBytes() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {8, 8});
  AddNode(model.mutable_graph(), "Softmax", {"x"}, "s");
  AddNode(model.mutable_graph(), "Exp", {"s"}, "e");
  AddNode(model.mutable_graph(), "Det", {"e"}, "d");
  SetValue(model.mutable_graph()->add_output(), "d", {});
  return model.SerializeAsString();
}

Result<Compilation> CompileFor(const std::string& device, std::int64_t work,
                               const std::string& bytes = ModelBytes()) {
  CompileOptions options;
  options.device = device;
  options.least_device_work = work;
  options.check_passes = true;
  return CompileBytes({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "", "model", options);
}

struct Heard {
  std::string kernel, reason;
  std::uint64_t calls = 0;
};

TEST_CASE("kernel calls that stay on the host are listed with the reason") {
  const Result<Compilation> compiled = CompileFor("opencl", 0);
  REQUIRE(compiled);
  CHECK(compiled->report.device_calls == 2);
  REQUIRE(compiled->report.host_calls.size() == 1);
  CHECK(compiled->report.host_calls[0].kernel == "rewire.det");
  CHECK(compiled->report.host_calls[0].reason == "the device has no such kernel");
  CHECK(compiled->report.host_calls[0].calls == 1);

  const Result<Compilation> small = CompileFor("opencl", 1'000'000);
  REQUIRE(small);
  CHECK(small->report.device_calls == 0);
  REQUIRE(small->report.host_calls.size() == 3);
  CHECK(small->report.host_calls[1].reason == "too little work for launches and copies");

  const Result<Compilation> host = CompileFor("", 0);
  REQUIRE(host);
  CHECK(host->report.device_calls == 0);
  CHECK(host->report.host_calls.empty());
}

TEST_CASE("a kernel may write over what has been copied to the host") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {8, 8});
  AddNode(graph, "Softmax", {"x"}, "s");
  AddNode(graph, "Det", {"s"}, "d");
  AddNode(graph, "Exp", {"s"}, "e");
  for (const char* output : {"d", "e"}) SetValue(graph->add_output(), output, {});
  const Result<Compilation> compiled = CompileFor("opencl", 0, model.SerializeAsString());
  INFO((compiled ? std::string() : compiled.error().message()));
  REQUIRE(compiled);
  CHECK(compiled->report.device_calls == 2);
}

TEST_CASE("an activation between bytes is looked up on the device, and a list of bytes is no shape") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {24});
  AddFloats(graph, "scale", {}, {0.25F});
  AddNode(graph, "QuantizeLinear", {"x", "scale"}, "xq");
  AddNode(graph, "DequantizeLinear", {"xq", "scale"}, "xd");
  AddNode(graph, "Sigmoid", {"xd"}, "gate");
  AddNode(graph, "QuantizeLinear", {"gate", "scale"}, "yq");
  AddNode(graph, "DequantizeLinear", {"yq", "scale"}, "y");
  SetValue(graph->add_output(), "y", {24});
  const Result<Compilation> compiled = CompileFor("opencl", 0, model.SerializeAsString());
  REQUIRE(compiled);
  CHECK(compiled->report.device_calls == 3);
  CHECK(compiled->report.host_calls.empty());
}

// Lists the calls that stay on the host, and why, one a line.
std::string HostCallsOf(const onnx::ModelProto& model) {
  const Result<Compilation> compiled = CompileFor("opencl", 0, model.SerializeAsString());
  if (!compiled) return compiled.error().message();
  std::string lines;
  for (const HostCalls& calls : compiled->report.host_calls) {
    if (calls.kernel.starts_with("rewire.shape.")) continue;
    lines += std::to_string(calls.calls) + " " + calls.kernel + ": " + calls.reason + "\n";
  }
  return lines;
}

TEST_CASE("integers that vary with an input are computed on the device unless the host needs them") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N"});
  SetValue(graph->add_input(), "mask", {"N"}, onnx::TensorProto::INT64);
  SetValue(graph->add_input(), "rows", {"M", "N"}, onnx::TensorProto::INT64);
  SetValue(graph->add_input(), "least", {}, onnx::TensorProto::INT64);
  AddFloats(graph, "zero", {}, {0});
  AddNode(graph, "Less", {"least", "mask"}, "larger");
  AddInt(AddNode(graph, "Cast", {"mask"}, "given"), "to", onnx::TensorProto::BOOL);
  AddInt(AddNode(graph, "Cast", {"rows"}, "in_rows"), "to", onnx::TensorProto::BOOL);
  AddNode(graph, "And", {"larger", "given"}, "both");
  AddNode(graph, "And", {"both", "in_rows"}, "all");
  AddNode(graph, "Where", {"all", "x", "zero"}, "y");
  SetValue(graph->add_output(), "y", {"M", "N"});
  CHECK(HostCallsOf(model).empty());

  // The host reads `size` as a shape.
  AddInts(graph, "one", {1});
  AddNode(graph, "Add", {"least", "one"}, "size");
  AddNode(graph, "Expand", {"x", "size"}, "expanded");
  SetValue(graph->add_output(), "expanded", {""});
  CHECK(HostCallsOf(model) == "1 rewire.add: shapes and sizes, which the host reads\n");
}

TEST_CASE("what follows from shapes is computed on the host if the host reads it") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {""});
  AddFloats(graph, "zero", {}, {0});
  AddFloats(graph, "one", {}, {1});
  AddNode(graph, "Size", {"x"}, "size");
  AddInt(AddNode(graph, "Cast", {"size"}, "limit"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Range", {"zero", "limit", "one"}, "range");
  AddNode(graph, "Mul", {"range", "x"}, "y");
  SetValue(graph->add_output(), "y", {""});
  CHECK(HostCallsOf(model) ==
        "1 rewire.arange: the device has no such kernel\n"
        "1 rewire.cast: shapes and sizes, which the host reads\n");
}

TEST_CASE("C: a device, and what stays on the CPU") {
  const std::string bytes = ModelBytes();
  std::vector<Heard> heard;
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.context = &heard;
  options.device = "cuda:0";
  options.least_device_work = 1;
  options.stays_on_host = [](void* context, const RewireHostCalls* calls) {
    static_cast<std::vector<Heard>*>(context)->push_back({calls->kernel, calls->reason, calls->calls});
  };
  RewireCompileReport report{};
  report.struct_size = sizeof(report);
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, &report,
                                &executable) == kRewireOk);
  rewire_executable_destroy(executable);
  CHECK(report.device_calls == 2);
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].kernel == "rewire.det");
  CHECK(heard[0].reason == "the device has no such kernel");
  CHECK(heard[0].calls == 1);
  options.device = "gpu";
  CHECK(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, &report, &executable) ==
        kRewireInvalidArgument);
}

TEST_CASE("vm-compile lists what stays on the CPU, as text and as JSON") {
  const TempFolder folder;
  folder.Write("model.onnx", ModelBytes());
  const std::vector<std::string> arguments = {"model.onnx", "--device", "opencl:1", "--device-work", "0"};
  const Finished done = RunProgram("vm-compile", arguments, folder.path());
  CHECK(done.err.empty());
  CHECK_THAT(done.out, Catch::Contains("2 of 3 kernel calls run on opencl:1\n"
                                       "  1 of rewire.det stay on the CPU: the device has no such kernel\n"));
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const auto json = nlohmann::json::parse(RunProgram("vm-compile", as_json, folder.path()).out);
  CHECK(json["device_calls"] == 2);
  REQUIRE(json["host_calls"].size() == 1);
  CHECK(json["host_calls"][0]["kernel"] == "rewire.det");
  CHECK(json["host_calls"][0]["calls"] == 1);
  CHECK(json["host_calls"][0]["reason"] == "the device has no such kernel");
  const Finished host = RunProgram("vm-compile", {"model.onnx"}, folder.path());
  CHECK(host.out.find("kernel calls run on") == std::string::npos);
}

}  // namespace
}  // namespace rewire::test
