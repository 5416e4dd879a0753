// SPDX-License-Identifier: Apache-2.0
// Models that make tokens, and what they make.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/vm/host_function.h"

namespace rewire::serve::test {

// One token a step; the state is the sum of all tokens.
inline constexpr char kTokenSteps[] = R"(.kernel next = "test.next"
.func main(tokens: i64[1, 1], past: i64[1, 1]) -> (logits: f32[1, 16], present: i64[1, 1])
  %a = alloc_storage _, alignment=64, f32[1, 16], cpu
  %logits = alloc_tensor %a, _, f32[1, 16]
  %b = alloc_storage _, alignment=64, i64[1, 1], cpu
  %present = alloc_tensor %b, _, i64[1, 1]
  invoke_packed next(%tokens, %past, %logits, %present), outputs=2
  %result = alloc_adt tag=0 (%logits, %present)
  ret %result
.end
)";

// The same without a state: it gets all tokens, and their positions, whose kernel checks them.
inline constexpr char kWholeTexts[] = R"(.kernel whole = "test.whole"
.func main(tokens: i64[1, S], at: i32[S], mask: i64[1, S], last: i32[1], total: i64[]) -> logits: f32[1, 16]
  %a = alloc_storage _, alignment=64, f32[1, 16], cpu
  %logits = alloc_tensor %a, _, f32[1, 16]
  invoke_packed whole(%tokens, %at, %mask, %last, %total, %logits), outputs=1
  ret %logits
.end
)";

constexpr std::int64_t kEnd = 15;

// The likeliest token behind others with this sum.
inline std::int64_t NextToken(std::int64_t sum) { return (3 * sum + 1) % 16; }

// The tokens that are made without temperature.
inline std::vector<std::int64_t> TokensBehind(const std::vector<std::int64_t>& prompt, std::size_t most) {
  std::int64_t sum = std::accumulate(prompt.begin(), prompt.end(), std::int64_t{0});
  std::vector<std::int64_t> made;
  while (made.size() < most && NextToken(sum) != kEnd) {
    made.push_back(NextToken(sum));
    sum += made.back();
  }
  return made;
}

inline void WriteLogits(std::int64_t sum, kernel::TensorView logits) {
  for (std::int64_t i = 0; i < 16; ++i) {
    logits.data<float>()[i] = i == NextToken(sum) ? 2.0F : static_cast<float>(i % 3) / 2;
  }
}

// The models "steps" and "whole", and their kernels. Steps wait while the gate is shut, and fail if the sum
// is 1001.
class GeneratorModels {
 public:
  GeneratorModels() {
    (void)WriteModel(folder_, "steps.rwx", kTokenSteps);
    (void)WriteModel(folder_, "whole.rwx", kWholeTexts);
    (void)WriteModel(folder_, "double.rwx", DoubleProgram());
    settings = SettingsOf(folder_.path().string());
    ModelSettings& steps = settings.models["steps"];
    steps.sequence.state = {{"*resent", "*ast"}};  // the star stands for "p"
    steps.generator.tokens = "tokens";
    steps.generator.logits = "logits";
    steps.generator.end = {kEnd};
    GeneratorSettings& whole = settings.models["whole"].generator;
    whole = steps.generator;
    whole.positions = "at";
    whole.mask = "mask";
    whole.last = "last";
    whole.total = "total";
    whole.context = 24;
  }

  KernelSet Kernels() {
    KernelSet set;
    set.AddFunction(
        "test.next",
        MakePackedFunction([this](kernel::TensorView tokens, kernel::TensorView past,
                                  kernel::TensorView logits, kernel::TensorView present) -> kernel::Status {
          {
            std::unique_lock<std::mutex> lock(mutex_);
            ++runs_;
            changed_.notify_all();
            changed_.wait(lock, [this] { return !shut_ || runs_ < shut_at_; });
          }
          const std::int64_t sum = *past.data<const std::int64_t>() + *tokens.data<const std::int64_t>();
          if (sum == 1001) return kernel::RuntimeError("the sum is 1001");
          *present.data<std::int64_t>() = sum;
          WriteLogits(sum, logits);
          return {};
        }));
    set.AddFunction(
        "test.whole",
        MakePackedFunction([](kernel::TensorView tokens, kernel::TensorView at, kernel::TensorView mask,
                              kernel::TensorView last, kernel::TensorView total,
                              kernel::TensorView logits) -> kernel::Status {
          const std::int64_t count = tokens.dim(1);
          std::int64_t sum = 0;
          bool good =
              *last.data<const std::int32_t>() == count - 1 && *total.data<const std::int64_t>() == count;
          for (std::int64_t i = 0; i < count; ++i) {
            good = good && at.data<const std::int32_t>()[i] == i && mask.data<const std::int64_t>()[i] == 1;
            sum += tokens.data<const std::int64_t>()[i];
          }
          if (!good) return kernel::RuntimeError("positions or mask are wrong");
          WriteLogits(sum, logits);
          return {};
        }));
    return set;
  }

  // Runs wait from this one on.
  void ShutAt(int run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = true;
    shut_at_ = run;
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = false;
    changed_.notify_all();
  }
  void WaitForRuns(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return runs_ >= count; }));
  }
  int runs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return runs_;
  }

  ServeSettings settings;

 private:
  const rewire::test::TempFolder folder_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int shut_at_ = 0;
  int runs_ = 0;
};

}  // namespace rewire::serve::test
