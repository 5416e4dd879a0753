// SPDX-License-Identifier: Apache-2.0
// Opening a bundle costs in proportion to its models, however many of their constants are one blob.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/bundle.h"
#include "rewire/tests/vm/link_cost/cpu_seconds.h"
#include "rewire/tests/vm/link_cost/growing_modules.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace rewire::test {
namespace {

constexpr std::uint32_t kConstants = 16;     // of a model, all with the same bytes
constexpr std::uint32_t kFewestModels = 64;  // models

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || !defined(NDEBUG)
constexpr std::uint32_t kOfOneBlob = 256;
constexpr double kMostOpenSeconds = 30;
#else
constexpr std::uint32_t kOfOneBlob = 1024;
constexpr double kMostOpenSeconds = 1;
#endif

// Bundles of models that all have the same constants.
class Bundles {
 public:
  explicit Bundles(std::uint64_t constant_bytes)
      : data_(std::make_shared<std::vector<std::byte>>(constant_bytes, std::byte{1})) {
    Module module = GrowingModules().front().make(kConstants);
    for (Constant& constant : module.constants) {
      constant.type = TensorType(kUInt8, {static_cast<std::int64_t>(constant_bytes)}).nodes[0];
      constant.raw_bytes = constant_bytes;
      constant.stored = {{data_->data(), data_->size()}, data_};
      constant.checksum = 0;  // the writer's to say
    }
    model_ = Executable::FromModule(std::move(module));
    REQUIRE(model_);
  }

  SharedBytes With(std::uint32_t models) const {
    std::vector<BundledExecutable> bundle;
    for (std::uint32_t i = 0; i < models; ++i) bundle.push_back({std::to_string(i), *model_});
    Result<std::vector<std::byte>> bytes = SerializeBundle(bundle);
    if (!bytes) FAIL(bytes.error().message());
    const auto file = std::make_shared<const std::vector<std::byte>>(*std::move(bytes));
    return {{file->data(), file->size()}, file};
  }

 private:
  std::shared_ptr<std::vector<std::byte>> data_;
  Result<Executable> model_ = Fail(StatusCode::kInternal, "not made");
};

bool Opens(const SharedBytes& file, std::uint64_t verifier_steps) {
  OpenOptions options;
  options.limits.verifier_steps = verifier_steps;
  return BundleFromBytes(file, options).has_value();
}

// The work that opening takes: the least that suffices.
std::uint64_t WorkToOpen(const SharedBytes& file) {
  std::uint64_t enough = 1;
  while (!Opens(file, enough)) enough *= 2;
  for (std::uint64_t too_little = enough / 2; too_little + 1 < enough;) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2;
    (Opens(file, middle) ? enough : too_little) = middle;
  }
  return enough;
}

TEST_CASE("one meter counts for all models of a bundle, and they cost as much as they are many") {
  const Bundles bundles(64);
  const std::uint64_t few = WorkToOpen(bundles.With(kFewestModels));
  const std::uint64_t many = WorkToOpen(bundles.With(4 * kFewestModels));
  CHECK(few >= kFewestModels * kConstants);
  CHECK(many >= 3 * few);  // what one model costs is not allowed to each of them
  CHECK(static_cast<double>(many) <= 4 * kTolerance * static_cast<double>(few));
}

TEST_CASE("a blob is looked at once, however many constants it is") {
  const SharedBytes file = Bundles(1 << 20).With(kOfOneBlob);
  OpenOptions options;
  options.verify_data = true;
  const double begin = CpuSeconds();
  const Result<Array<BundledExecutable>> bundle = BundleFromBytes(file, options);
  CHECK(CpuSeconds() - begin < kMostOpenSeconds);
  REQUIRE(bundle);
  CHECK(bundle->size() == kOfOneBlob);
}

}  // namespace
}  // namespace rewire::test
