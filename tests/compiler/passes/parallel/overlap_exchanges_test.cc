// SPDX-License-Identifier: Apache-2.0
// Sums over ranks on a device, and the work that runs beside them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {
namespace {

struct Call {
  std::string kernel;  // without "rewire.device."
  std::string source;  // the model's node
};

// The calls of kernels in a rank's program for CUDA's devices, in order.
std::vector<Call> CallsOfRank(const onnx::ModelProto& model, std::int64_t rank = 0, bool overlaps = true) {
  compiler::CompileOptions options;
  options.shards = 2;
  options.rank = rank;
  options.shard_goal = ShardGoal::kMemory;
  options.device = "cuda";
  options.least_device_work = 0;
  options.check_passes = true;
  if (!overlaps) options.disabled_passes.insert("overlap-exchanges");
  std::string last;
  options.dump = [&](const std::string&, const std::string& text) { last = text; };
  const Outcome outcome = CompileProto(model, options);
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  std::vector<Call> calls;
  std::istringstream lines(last);
  for (std::string line; std::getline(lines, line);) {
    static constexpr std::string_view kBegin = "rewire.device.";
    const std::size_t at = line.find(kBegin);
    if (at == std::string::npos) continue;
    const std::size_t from = at + kBegin.size();
    calls.push_back(
        {line.substr(from, line.find_first_of(" (", from) - from), line.substr(line.find("  ; "))});
  }
  return calls;
}

std::vector<std::string> KernelsOfRank(const onnx::ModelProto& model) {
  std::vector<std::string> kernels;
  for (const Call& call : CallsOfRank(model)) kernels.push_back(call.kernel);
  return kernels;
}

std::size_t CountOf(const std::vector<std::string>& kernels, const std::string& name) {
  return static_cast<std::size_t>(std::count(kernels.begin(), kernels.end(), name));
}

constexpr char kBegin[] = "collective.begin_all_reduce";
constexpr char kWait[] = "collective.wait";
constexpr char kSum[] = "collective.all_reduce";

TEST_CASE("overlap-exchanges: the products of one tower run while the sum of another is exchanged") {
  const std::vector<std::string> kernels = KernelsOfRank(Towers());
  const auto begin = std::find(kernels.begin(), kernels.end(), kBegin);
  const auto wait = std::find(kernels.begin(), kernels.end(), kWait);
  REQUIRE(begin != kernels.end());
  REQUIRE(wait != kernels.end());
  const std::vector<std::string> between(begin + 1, wait);
  CHECK(CountOf(between, "matmul") + CountOf(between, "gemm") >= 2);
  CHECK(CountOf(kernels, kBegin) == CountOf(kernels, kWait));
  CHECK(CountOf(kernels, kBegin) + CountOf(kernels, kSum) == 2);
}

TEST_CASE(
    "overlap-exchanges: what stands behind the first reader of a sum, and needs none, is moved before it") {
  onnx::ModelProto model = ModelOfTokens(6);
  Layers layers(&model, 3);
  layers.Node("Softmax", {layers.Network("x", 256, "a")}, "s");
  layers.Node("Tanh", {"x"}, "t");
  layers.Node("Mul", {"s", "t"}, "y");
  const std::vector<std::string> kernels = KernelsOfRank(model);
  REQUIRE(kernels.size() > 5);
  const std::vector<std::string> end(kernels.end() - 5, kernels.end());
  CHECK(end == std::vector<std::string>{kBegin, "tanh", kWait, "softmax", "mul"});
}

TEST_CASE("overlap-exchanges: a sum whose readers are all that follows stays one call") {
  const std::vector<std::string> kernels = KernelsOfRank(Encoder(1));
  CHECK(CountOf(kernels, kSum) == 2);
  CHECK(CountOf(kernels, kBegin) == 0);
}

TEST_CASE("overlap-exchanges: all ranks keep the order of their exchanges") {
  onnx::ModelProto model = ModelOfTokens(6);
  Layers layers(&model, 3);
  std::string sum = "x";
  for (const char* name : {"a", "b", "c", "d"}) {
    sum =
        layers.Add(sum, layers.Network(name[0] % 2 == 0 ? "x" : sum, 256, name), std::string(name) + "_sum");
  }
  layers.Node("Tanh", {sum}, "y");
  // The model's nodes whose sums are exchanged.
  std::size_t begun = 0;
  const auto sums = [&](std::int64_t rank, bool overlaps) {
    std::vector<std::string> nodes;
    for (const Call& call : CallsOfRank(model, rank, overlaps)) {
      if (call.kernel == kBegin) ++begun;
      if (call.kernel == kBegin || call.kernel == kSum) nodes.push_back(call.source);
    }
    return nodes;
  };
  const std::vector<std::string> in_order = sums(0, false);
  CHECK(begun == 0);
  CHECK(in_order.size() > 2);
  CHECK(sums(0, true) == in_order);
  CHECK(sums(1, true) == in_order);
  CHECK(begun > 1);
}

}  // namespace
}  // namespace rewire::test
