// SPDX-License-Identifier: Apache-2.0
//
// Device code that an executable holds, on the device that REWIRE_TEST_DEVICE names.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/link/link_device_code.h"
#include "rewire/vm/parameter_set.h"

namespace rewire::test {
namespace {

std::string FormOf(const TestDevice& device) {
  return device.api.device_type == kDLCUDA ? "cuda_cpp" : "opencl_c";
}

// Two kernels as an executable would declare them.
constexpr char kKernels[] = R"(
    .device_kernel test.scale(x: f32[n] on gpu) -> (y: f32[n] on gpu) = test scale groups(ceildiv(n, 64)) threads(64) args(x, y, f32 2.5, i32 n)
    .device_kernel test.sums(x: f32[n] on gpu) -> (y: f32[m] on gpu) = test group_sums groups(div(n, 64)) threads(64) args(x, y)
)";

// main gives 2.5 x, and sums adds 64 elements up at a time.
constexpr char kFunctions[] = R"(
    .kernel test.scale
    .kernel test.sums
    .func main(x: f32[n] on gpu) -> y: f32[n] on gpu
      %shape = shape_of %x
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %y = alloc_tensor_reg %s, _, %shape, f32
      invoke_packed test.scale(%x, %y), outputs=1
      ret %y
    .end
    .func sums(x: f32[n] on gpu) -> y: f32[?] on gpu
      %s = alloc_storage _, alignment=256, f32[2], gpu
      %y = alloc_tensor %s, _, f32[2]
      invoke_packed test.sums(%x, %y), outputs=1
      ret %y
    .end
)";

std::string CodeText(const std::string& source, const std::string& codec = "") {
  return "    .code source " + codec + " = text " + QuoteText(source) + "\n";
}

struct Parts {
  std::string blobs, kernels = kKernels, functions = kFunctions;
};

Parts GoodParts(const TestDevice& device, const std::string& codec = "") {
  return {CodeText(device.Source(kTestKernels), codec) + "    .device_code test " + FormOf(device) +
          " = source\n"};
}

std::string TextOf(const TestDevice& device, const Parts& parts) {
  return "    .device gpu = " + std::string(device.api.name) + ":0\n" + parts.blobs + parts.kernels +
         parts.functions;
}

LinkOptions Trusting() {
  LinkOptions options;
  options.trust_device_code = true;
  return options;
}

std::string LinkErrorOf(const TestDevice& device, const Parts& parts) {
  return MessageOf(Program::Link(ExecutableOf(TextOf(device, parts)), Trusting()));
}

std::vector<float> ResultOf(const Program& program, const std::string& function, const Value& x) {
  const Result<Value> result = program.TryRun(function, {&x, 1});
  if (!result) FAIL(result.error().message());
  return FloatsOf(*CopyToHost(result->tensor()));
}

std::string RunErrorOf(const Program& program, const std::string& function, const Value& x) {
  return MessageOf(program.TryRun(function, {&x, 1}));
}

TEST_CASE("an executable's own kernels run on its device, also compressed and out of a file") {
  const TestDevice device;
  for (const char* codec : {"", "codec=zstd"}) {
    const Result<Module> module = Assemble(TextOf(device, GoodParts(device, codec)), {});
    REQUIRE(MessageOf(module).empty());
    CHECK(module->constants[0].codec == (*codec == 0 ? kCodecNone : kCodecZstd));
    const Result<std::vector<std::byte>> bytes = SerializeModule(*module);
    REQUIRE(bytes);
    const Result<Executable> executable = Executable::FromBytes(*AlignedCopy(*bytes));
    REQUIRE(MessageOf(executable).empty());
    const Result<Program> program = Program::Link(*executable, Trusting());
    REQUIRE(MessageOf(program).empty());
    for (const std::size_t count : {std::size_t{256}, std::size_t{100}, std::size_t{1}}) {
      const std::vector<float> y = ResultOf(*program, "main", Floats(Ramp(count)));
      REQUIRE(y.size() == count);
      for (std::size_t i = 0; i < count; ++i) CHECK(y[i] == 2.5f * static_cast<float>(i + 1));
    }
    CHECK(ResultOf(*program, "sums", Floats(Ramp(128))) == std::vector<float>{2080, 2080 + 64 * 64});
    // A dimension of zero means no groups, and no launch.
    const Value none = *Tensor::Make(kFloat32, {0});
    CHECK(RunErrorOf(*program, "main", none).empty());
    // The blob is no tensor of the program.
    const Result<Program> again = program->Rebind({});
    REQUIRE(MessageOf(again).empty());
    CHECK(ResultOf(*again, "main", Floats({2}))[0] == 5);
    LinkOptions shared = Trusting();
    shared.parameters.push_back(ParameterSet::Of(*program));
    CHECK(MessageOf(Program::Link(*executable, shared)).empty());
  }
}

TEST_CASE("device code of an executable needs the host's permission") {
  const TestDevice device;
  const Executable executable = ExecutableOf(TextOf(device, GoodParts(device)));
  const Result<Program> program = Program::Link(executable, {});
  REQUIRE_FALSE(program);
  CHECK(program.error().code() == StatusCode::kLinkFailed);
  CHECK(
      program.error().message() ==
      "the executable has 2 kernels of its own for devices, such as 'test.scale': native code, which nothing "
      "checks; if you trust it, set LinkOptions::trust_device_code (--trust-device-code)");
}

TEST_CASE("the best blob is taken, and the next one if the driver refuses it") {
  const TestDevice device;
  const std::string good = GoodParts(device).blobs;
  const std::string wrong = "    .code wrong = text \"this is no code\"\n";
  // For another device alone.
  Parts parts;
  parts.blobs = good + wrong + "    .device_code test " + FormOf(device) + " \"none of this name\" = wrong\n";
  CHECK(LinkErrorOf(device, parts).empty());
  // For this device alone, and so the first to be tried.
  const std::string own = device.properties().architecture;
  parts.blobs = good + wrong + "    .device_code test " + FormOf(device) + " \"" + own + "\" = wrong\n";
  CHECK(LinkErrorOf(device, parts).empty());
  parts.blobs = wrong + "    .device_code test " + FormOf(device) + " \"" + own + "\" = wrong\n";
  CHECK_THAT(LinkErrorOf(device, parts),
             Catch::Contains("kernel 'test.scale' of the executable: " + std::string(device.api.name) +
                             ":0 takes none of the code 'test' (" + FormOf(device) + " for " + own + ")") &&
                 Catch::Contains("\n    " + FormOf(device) + ": device " + device.api.name));
  parts.blobs = wrong + "    .device_code test form=2 \"nobody\" = wrong\n";
  CHECK_THAT(LinkErrorOf(device, parts), Catch::Contains("takes none of the code 'test' (spirv for nobody)"));
  parts.blobs = good;
  parts.kernels = std::string(kKernels).replace(std::string(kKernels).find("group_sums"), 10, "no_sums");
  CHECK_THAT(LinkErrorOf(device, parts), Catch::Contains("kernel 'test.sums' of the executable: device "));
}

TEST_CASE("machine code runs on its generation, PTX on later ones, and source text last") {
  RewireDeviceProperties device{};
  device.architecture = "sm_90";
  const auto fit = [&](DeviceCodeForm form, const char* architecture) {
    DeviceCodeEntry entry;
    entry.form = static_cast<std::uint32_t>(form);
    entry.architecture = architecture;
    return FitOfDeviceCode(entry, device);
  };
  const std::vector<std::uint32_t> best_first = {
      fit(DeviceCodeForm::kCubin, "sm_90"),   fit(DeviceCodeForm::kFatbin, ""),
      fit(DeviceCodeForm::kPtx, "sm_89"),     fit(DeviceCodeForm::kPtx, "sm_80"),
      fit(DeviceCodeForm::kPtx, ""),          fit(DeviceCodeForm::kSpirV, ""),
      fit(DeviceCodeForm::kCudaCpp, "sm_90"), fit(DeviceCodeForm::kCudaCpp, "")};
  for (std::size_t i = 1; i < best_first.size(); ++i) CHECK(best_first[i - 1] > best_first[i]);
  CHECK(best_first.back() > 0);
  for (const char* other : {"sm_80", "sm_91", "sm_100", "sm_90a", "gfx90a", ""}) {
    CHECK(fit(DeviceCodeForm::kCubin, other) == 0);
  }
  for (const char* other : {"sm_91", "sm_100", "sm_80a", "gfx"}) CHECK(fit(DeviceCodeForm::kPtx, other) == 0);
  CHECK(fit(DeviceCodeForm::kOpenClC, "opencl-3.0") == 0);
  device.architecture = "sm_89";
  CHECK(fit(DeviceCodeForm::kCubin, "sm_80") > fit(DeviceCodeForm::kFatbin, ""));
  CHECK(fit(DeviceCodeForm::kCubin, "sm_86") > fit(DeviceCodeForm::kCubin, "sm_80"));
  device.code_forms = 1u << REWIRE_DEVICE_CODE_OPENCL_C;
  CHECK(fit(DeviceCodeForm::kCubin, "sm_80") == 0);
  CHECK(fit(DeviceCodeForm::kOpenClC, "") > 0);
}

// The error of linking or running with one part of a kernel's line replaced.
std::string ErrorWith(const TestDevice& device, const std::string& old_text, const std::string& new_text,
                      const Value& x) {
  Parts parts = GoodParts(device);
  const std::size_t at = parts.kernels.find(old_text);
  REQUIRE(at != std::string::npos);
  parts.kernels.replace(at, old_text.size(), new_text);
  const Result<Program> program = Program::Link(ExecutableOf(TextOf(device, parts)), Trusting());
  if (!program) return program.error().message();
  return RunErrorOf(*program, "main", x);
}

TEST_CASE("calls that a kernel does not take say what is given and what is expected") {
  const TestDevice device;
  const Value x = Floats(Ramp(100));
  const auto error = [&](const std::string& old_text, const std::string& new_text) {
    return ErrorWith(device, old_text, new_text, x);
  };
  const std::string head = "device kernel 'test.scale': ";
  CHECK_THAT(error("scale(x: f32[n]", "scale(x: f32[7]"),
             Catch::Contains(head + "argument 0 ('x') is f32[100], expected f32[7], where a name stands for "
                                    "one size in all arguments"));
  CHECK_THAT(error("scale(x: f32[n]", "scale(x: i32[n]"),
             Catch::Contains(head + "argument 0 ('x') is f32[100], expected i32[n]"));
  CHECK_THAT(error("scale(x: f32[n]", "scale(x: f32[n, 1]"),
             Catch::Contains(head + "argument 0 ('x') is f32[100], expected f32[n, 1]"));
  CHECK_THAT(error("groups(ceildiv(n, 64))", "groups(sub(n, 200))"),
             Catch::Contains(head + "its launch has a size of -100, expected 0 to 2^31 - 1"));
  CHECK_THAT(
      error("threads(64)", "threads(div(n, sub(n, 100)))"),
      Catch::Contains(head + "its launch has a size of more than 2^63, or divided by 0, expected 1 to"));
  CHECK_THAT(error("i32 n", "i8 add(n, 28)"),
             Catch::Contains(head + "argument 3 of its launch is 128, which i8 cannot hold"));
  CHECK(error("i32 n", "i8 add(n, 27)") == error("i32 n", "i8 n"));  // whatever the driver says of the size
  CHECK_THAT(error("i32 n", "u64 sub(n, 101)"), Catch::Contains("which u64 cannot hold"));
  CHECK_THAT(error("i32 n", "i32 mul(n, 9223372036854775807)"),
             Catch::Contains("argument 3 of its launch is more than 2^63, or divided by 0, which i32"));
  CHECK_THAT(error("threads(64)", "threads(1000000)"), Catch::Contains(head + "device "));
  CHECK_THAT(error("scale(x: f32[n] on gpu)", "scale(x: f32[n] on gpu, z: f32[n] on gpu)"),
             Catch::Contains("2 arguments") || Catch::Contains("2 are given") ||
                 Catch::Contains("2 arguments are given, expected 3"));
  Parts parts = GoodParts(device);
  parts.functions.replace(parts.functions.find(".kernel test.scale"), 18, ".kernel test.scale {axis=1}");
  CHECK_THAT(LinkErrorOf(device, parts),
             Catch::Contains("executable: its import has attributes, which device code does not take"));
  // The row of the kernel says what it writes.
  parts = GoodParts(device);
  const std::string call = "test.scale(%x, %y), outputs=1";
  parts.functions.replace(parts.functions.find(call), call.size(), "test.scale(%x, %y), outputs=0");
  CHECK_THAT(LinkErrorOf(device, parts), Catch::Contains("0 outputs are declared, expected 1"));
}

TEST_CASE("a kernel's tensors must be on its device, without gaps") {
  const TestDevice device;
  Parts parts = GoodParts(device);
  parts.functions = R"(
    .kernel test.scale
    .func main(x: f32[n]) -> y: f32[n] on gpu
      %shape = shape_of %x
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %y = alloc_tensor_reg %s, _, %shape, f32
      invoke_packed test.scale(%x, %y), outputs=1
      ret %y
    .end
    .func same(x: f32[n] on gpu) -> y: f32[n] on gpu
      %shape = shape_of %x
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %y = alloc_tensor_reg %s, _, %shape, f32
      invoke_packed test.scale(%x, %y), outputs=1
      invoke_packed test.scale(%y, %y), outputs=1
      ret %y
    .end)";
  const Program program = ProgramOf(TextOf(device, parts), Trusting());
  CHECK_THAT(RunErrorOf(program, "main", Floats({1})),
             Catch::Contains("argument 0 ('x') is on cpu, expected " + std::string(device.api.name) + ":0"));
  CHECK_THAT(RunErrorOf(program, "same", Floats({1})),
             Catch::Contains("overlap") || Catch::Contains("share"));
}

}  // namespace
}  // namespace rewire::test
