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

inline constexpr char kCompletions[] = "/v1/completions";

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

// As the first, for any number of texts, each with a row of state. `total` is the most positions of any of
// them.
inline constexpr char kTokenRows[] = R"(.kernel next = "test.rows"
.kernel keep = "test.keep"
.func main(tokens: i64[N, 1], past: i64[N, 16], total: i64[]) -> (logits: f32[N, 16], present: i64[N, 16])
  %shape = shape_of %past
  %bytes = load_consti 65536
  %one = alloc_storage %bytes, alignment=64, i64, cpu
  %sums = alloc_tensor_reg %one, _, %shape, i64
  %two = alloc_storage %bytes, alignment=64, f32, cpu
  %logits = alloc_tensor_reg %two, _, %shape, f32
  invoke_packed next(%tokens, %past, %total, %logits, %sums), outputs=2
  %three = alloc_storage %bytes, alignment=64, i64, cpu
  %present = alloc_tensor_reg %three, _, %shape, i64
  invoke_packed keep(%sums, %present), outputs=1
  %result = alloc_adt tag=0 (%logits, %present)
  ret %result
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

inline void WriteLogits(std::int64_t sum, float* logits) {
  for (std::int64_t i = 0; i < 16; ++i) {
    logits[i] = i == NextToken(sum) ? 2.0F : static_cast<float>(i % 3) / 2;
  }
}

// The models "steps", "rows" and "whole", and their kernels. Steps wait while the gate is shut, and fail if
// the sum is 1001.
class GeneratorModels {
 public:
  GeneratorModels() {
    (void)WriteModel(folder_, "steps.rwx", kTokenSteps);
    (void)WriteModel(folder_, "rows.rwx", kTokenRows);
    (void)WriteModel(folder_, "whole.rwx", kWholeTexts);
    (void)WriteModel(folder_, "double.rwx", DoubleProgram());
    settings = SettingsOf(folder_.path().string());
    ModelSettings& steps = settings.models["steps"];
    steps.sequence.state = {{"*resent", "*ast"}};  // the star stands for "p"
    steps.generator.tokens = "tokens";
    steps.generator.logits = "logits";
    steps.generator.end = {kEnd};
    ModelSettings& rows = settings.models["rows"];
    rows.sequence = steps.sequence;
    rows.generator = steps.generator;
    rows.generator.total = "total";
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
          Pass();
          const std::int64_t sum = *past.data<const std::int64_t>() + *tokens.data<const std::int64_t>();
          if (sum == 1001) return kernel::RuntimeError("the sum is 1001");
          *present.data<std::int64_t>() = sum;
          WriteLogits(sum, logits.data<float>());
          return {};
        }));
    set.AddFunction("test.rows",
                    MakePackedFunction([this](kernel::TensorView tokens, kernel::TensorView past,
                                              kernel::TensorView total, kernel::TensorView logits,
                                              kernel::TensorView sums) -> kernel::Status {
                      Pass();
                      return RunRows(tokens, past, *total.data<const std::int64_t>(), logits.data<float>(),
                                     sums.data<std::int64_t>());
                    }));
    set.AddFunction(
        "test.keep",
        MakePackedFunction([](kernel::TensorView sums, kernel::TensorView present) -> kernel::Status {
          std::copy_n(sums.data<const std::int64_t>(), sums.dim(0) * 16, present.data<std::int64_t>());
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
          WriteLogits(sum, logits.data<float>());
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

  // How many runs of more than one row have failed.
  int failed_batches() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failed_batches_;
  }

  ServeSettings settings;

 private:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++runs_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !shut_ || runs_ < shut_at_; });
  }
  // A row of state is the sum of a text's tokens, and how many they are. The logits are those of `steps`,
  // when `total` is the most that a text has.
  kernel::Status RunRows(kernel::TensorView tokens, kernel::TensorView past, std::int64_t total,
                         float* logits, std::int64_t* sums) {
    std::int64_t most = 0;
    for (std::int64_t row = 0; row < tokens.dim(0); ++row) {
      const std::int64_t* const state = past.data<const std::int64_t>() + row * 16;
      const std::int64_t sum = state[0] + tokens.data<const std::int64_t>()[row];
      most = std::max(most, state[1] + 1);
      std::fill_n(sums + row * 16, 16, 0);
      sums[row * 16] = sum;
      sums[row * 16 + 1] = state[1] + 1;
      WriteLogits(sum, logits + row * 16);
      if (sum == 1001) return FailedRows(tokens.dim(0), "the sum is 1001");
    }
    return most == total ? kernel::Status() : FailedRows(tokens.dim(0), "total is not the most positions");
  }
  kernel::Status FailedRows(std::int64_t rows, const char* why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_batches_ += rows > 1 ? 1 : 0;
    return kernel::RuntimeError(why);
  }

  const rewire::test::TempFolder folder_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int shut_at_ = 0;
  int runs_ = 0;
  int failed_batches_ = 0;
};

}  // namespace rewire::serve::test
