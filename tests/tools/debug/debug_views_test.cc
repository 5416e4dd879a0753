// SPDX-License-Identifier: Apache-2.0
// How the debugger shows tensors in half a line, and how it finds places.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tools/debug/places.h"
#include "rewire/tools/debug/tensor_summary.h"

namespace rewire::tools {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
HostTensor Vector(DLDataType dtype, const std::vector<T>& elements) {
  return {dtype,
          {static_cast<std::int64_t>(elements.size())},
          CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)})};
}

TEST_CASE("a sparkline spans its numbers, and marks what is not finite") {
  CHECK(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, true) == "▁▂▃▄▅▆▇█");
  CHECK(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, false) == "_.,-=+*#");
  CHECK(Sparkline({5, 5}, false) == "__");
  CHECK(Sparkline({1, kNaN, -1, kInf}, false) == "#!_!");
  CHECK(Sparkline({kNaN}, false) == "!");
  const double most = std::numeric_limits<double>::max();
  CHECK(Sparkline({-most, 0, most}, false) == "_=#");
}

TEST_CASE("summaries leave NaN and infinities out, and count them") {
  const TensorSummary summary = Summarize(Vector<double>(kFloat64, {kNaN, 1, kInf, 3, -kInf, 8, 4}), 3);
  CHECK(summary.count == 7);
  CHECK(summary.nans == 1);
  CHECK(summary.infinities == 2);
  CHECK(summary.minimum == 1);
  CHECK(summary.maximum == 8);
  CHECK(summary.mean == 4);
  // Three parts of 3, 2 and 2 elements.
  CHECK(summary.parts == std::vector<double>{1, 3, 6});
  CHECK(Summarize(Vector<double>(kFloat64, {}), 3).parts.empty());
  CHECK(std::isnan(Summarize(Vector<double>(kFloat64, {kNaN}), 3).parts[0]));
  CHECK(Summarize(Vector<std::int8_t>(kInt8, {-128, 127}), 2).minimum == -128);
  CHECK(Summarize(Vector<std::uint8_t>(kUInt8, {255, 1}), 2).maximum == 255);
  CHECK(Summarize(Vector<std::uint16_t>(kFloat16, {0x3C00, 0xC000}), 2).parts == std::vector<double>{1, -2});
}

TEST_CASE("few elements are numbers, more are a picture") {
  CHECK(SummaryText(Vector<float>(kFloat32, {1, 2.5F}), false) == "[  1, 2.5]");
  CHECK(SummaryText(Vector<std::int64_t>(kInt64, {0, 1, 2, 3, 4, 5, 6, 7, 8}), false) ==
        "_.,-=+*##  min 0  max 8  mean 4");
  std::vector<float> wild(40, 1);
  wild[3] = static_cast<float>(kNaN);
  wild[39] = static_cast<float>(kInf);
  CHECK(SummaryText(Vector(kFloat32, wild), false) == "________________  min 1  max 1  mean 1  nan 1  inf 1");
}

TEST_CASE("a place is a function, an instruction, or the stretches of a node") {
  const Result<Module> module = Assemble(R"(
.func conv() -> y: integer
  %a = load_consti 1 @ "Conv 'one'"
  %a = load_consti 2 @ "Conv 'one'"
  %a = load_consti 3 @ "Conv 'two'"
  %a = load_consti 4 @ "Conv 'one'"
  %a = load_consti 5 @ "plain"
  ret %a
.end
)");
  REQUIRE(module.has_value());
  const auto pcs = [&](const char* place) {
    std::vector<std::uint32_t> found;
    const Result<std::vector<Site>> sites = FindPlace(*module, place, 0);
    REQUIRE(sites.has_value());
    for (const Site& site : *sites) found.push_back(site.pc);
    return found;
  };
  using Pcs = std::vector<std::uint32_t>;
  CHECK(InstructionStarts(module->functions[0]) == Pcs{0, 4, 8, 12, 16, 20});
  CHECK(pcs("conv") == Pcs{0});
  CHECK(pcs("conv@8") == Pcs{8});
  CHECK(pcs("@8") == Pcs{8});
  CHECK(pcs("20") == Pcs{20});
  CHECK(pcs("one") == Pcs{0, 12});
  CHECK(pcs("Conv") == Pcs{0, 8, 12});
  CHECK(pcs("Conv 'two'") == Pcs{8});
  CHECK(pcs("plain") == Pcs{16});
  CHECK(PlaceNames(*module) == std::vector<std::string>{"conv", "one", "plain", "two"});
  CHECK(!FindPlace(*module, "@8", std::nullopt));
  CHECK(!FindPlace(*module, "", 0));
}

}  // namespace
}  // namespace rewire::tools
