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
  Makers makers;
  AddElementwiseCases(&makers);
  AddProductCases(&makers);
  AddMovementCases(&makers);
  AddStatisticsCases(&makers);
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
        CallC(*library.Find<CFunctionInfo>("k" + std::to_string(i) + "_functions"), nullptr, inputs);
    REQUIRE(given.code == 0);
    REQUIRE(given.is_within);
    const auto* const bytes = static_cast<const std::byte*>(expected.view().data());
    const std::vector<std::byte>& result = given.outputs.at(0);
    if (std::equal(result.begin(), result.end(), bytes, bytes + expected.view().bytes())) continue;
    REQUIRE((expected.view().dtype() == kFloat32));
    CheckClose<float>(expected, result, all[i].call.bound);
  }
}

}  // namespace
}  // namespace rewire::test
