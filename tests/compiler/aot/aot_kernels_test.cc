// SPDX-License-Identifier: Apache-2.0
// Each kernel that C source calls in plain C, in drawn calls beside the VM with the stock kernel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/compiler/aot/kernel_cases.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

template <typename T>
void CheckClose(const Tensor& expected, const std::vector<std::byte>& given, double bound) {
  const auto count = given.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, given.data() + i * sizeof(T), sizeof(T));
    const auto a = static_cast<double>(value), b = static_cast<double>(expected.data<T>()[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    INFO("element " << i << " is " << a << ", in the VM " << b);
    REQUIRE(std::fabs(a - b) <= bound * std::max(1.0, std::fabs(b)));
  }
}

TEST_CASE("each kernel that source calls in plain C gives what the stock kernel gives") {
  constexpr int kDraws = 6;
  struct Drawn {
    std::string text;
    Case call;
    Executable executable;
  };
  std::vector<Drawn> all;
  CLibrary library;
  const Makers makers = AllMakers();
  std::uint32_t seed = 0;
  for (const std::string& kernel : aot::EmbeddedKernelNames()) {
    INFO(kernel);
    const auto maker = makers.find(kernel);
    REQUIRE(maker != makers.end());
    for (int i = 0; i < kDraws; ++i) {
      Random random(++seed);
      Case call = maker->second(random);
      for (std::size_t output = 0; output < call.outputs.size(); ++output) {
        const std::string text = ProgramText(kernel, call, output);
        Executable executable = Assembled(text);
        EmitCOptions options;
        options.prefix = "k" + std::to_string(all.size());
        const Result<CSource> source = EmitC(executable, options, options.prefix + ".h");
        INFO(text);
        if (!source) FAIL(source.error().message());
        library.Add(options.prefix, *source);
        all.push_back({text, call, std::move(executable)});
      }
    }
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile("-ffp-contract=off -DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD",
                  "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].text);
    const Tensor expected = RunInVm(all[i].executable, all[i].call.inputs);
    std::vector<const void*> inputs;
    for (const Tensor& input : all[i].call.inputs) inputs.push_back(input.view().data());
    const CResult given =
        CallC(*library.Find<RewireAotFunctionInfo>("k" + std::to_string(i) + "_functions"), nullptr, inputs);
    REQUIRE(given.code == 0);
    REQUIRE(given.is_within);
    const auto* const bytes = static_cast<const std::byte*>(expected.view().data());
    const std::vector<std::byte>& result = given.outputs.at(0);
    if (std::equal(result.begin(), result.end(), bytes, bytes + expected.view().bytes())) continue;
    REQUIRE((expected.view().dtype() == kFloat32));
    CheckClose<float>(expected, result, all[i].call.bound);
  }
}

// One step of an LSTM or GRU of one unit: x f32[1, 2, 3], two sequences of these lengths.
Case RecurrentCall(const std::string& attributes, std::int64_t gates, std::int32_t length) {
  Random random(1);
  Case call{attributes,
            {random.Floats({1, 2, 3}), random.Floats({1, gates, 3}), random.Floats({1, gates, 1}),
             random.Floats({1, 2 * gates}), random.Integers<std::int32_t>({2}, length, length)},
            {"f32[1, 1, 2, 1]", "f32[1, 2, 1]"}};
  if (gates == 4) call.outputs.emplace_back("f32[1, 2, 1]");
  return call;
}

TEST_CASE("recurrent layers fail in C as in the VM if a sequence is too long") {
  CLibrary library;
  std::vector<Case> calls;
  for (const std::int32_t length : {-1, 0, 1, 2}) {
    for (const std::int64_t gates : {3, 4}) {
      calls.push_back(RecurrentCall("", gates, length));
      const std::string kernel = gates == 4 ? "rewire.lstm" : "rewire.gru";
      EmitCOptions options;
      options.prefix = "r" + std::to_string(calls.size() - 1);
      const Result<CSource> source =
          EmitC(Assembled(ProgramText(kernel, calls.back(), 0)), options, options.prefix + ".h");
      REQUIRE(source);
      library.Add(options.prefix, *source);
    }
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile({}, "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::vector<const void*> inputs;
    for (const Tensor& input : calls[i].inputs) inputs.push_back(input.view().data());
    const CResult given =
        CallC(*library.Find<RewireAotFunctionInfo>("r" + std::to_string(i) + "_functions"), nullptr, inputs);
    const std::int32_t length = calls[i].inputs[4].data<std::int32_t>()[0];
    CHECK(given.code == (length < 0 || length > 1 ? static_cast<int>(StatusCode::kKernelFailed) : 0));
    CHECK(given.is_within);
  }
}

TEST_CASE("forms of recurrent layers that have no plain C are refused by name") {
  const auto refusal = [](const std::string& attributes, std::int64_t gates) {
    const std::string kernel = gates == 4 ? "rewire.lstm" : "rewire.gru";
    const Result<CSource> source = EmitC(
        Assembled(ProgramText(kernel, RecurrentCall(attributes, gates, 1), 0)), EmitCOptions(), "model.h");
    REQUIRE_FALSE(source);
    CHECK(source.error().code() == StatusCode::kUnsupported);
    return source.error().message();
  };
  CHECK_THAT(refusal("clip=1.0", 4),
             Catch::Contains("rewire.lstm has no plain C form here: its sums are clipped"));
  CHECK_THAT(refusal("activations=\"Relu,Tanh,Tanh\"", 4),
             Catch::Contains("its activations are not ONNX's default"));
  CHECK_THAT(refusal("input_forget=1", 4), Catch::Contains("its gates input and forget are one"));
  CHECK_THAT(refusal("packed=1", 3),
             Catch::Contains("its reset is in front of a product with packed weights"));
}

}  // namespace
}  // namespace rewire::test
