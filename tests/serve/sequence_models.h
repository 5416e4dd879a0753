// SPDX-License-Identifier: Apache-2.0
// Models that keep state for sequences of requests, and what tests ask them.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/vm/host_function.h"

namespace rewire::serve::test {

// y = x + past, which is the next past. The first kernel is the last that reads the past, so that the next
// one may write in its place.
inline constexpr char kSteps[] = R"(.kernel sum = "test.sum"
.kernel keep = "test.keep"
.func main(x: f32[N, 4], past: f32[N, 4]) -> (y: f32[N, 4], present: f32[N, 4])
  %shape = shape_of %x
  %bytes = load_consti 65536
  %first = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %first, _, %shape, f32
  invoke_packed sum(%x, %past, %y), outputs=1
  %second = alloc_storage %bytes, alignment=64, f32, cpu
  %present = alloc_tensor_reg %second, _, %shape, f32
  invoke_packed keep(%y, %present), outputs=1
  %result = alloc_adt tag=0 (%y, %present)
  ret %result
.end
)";

// present = past with the row x behind it; its size is known only in the run.
inline constexpr char kGrowing[] = R"(.const one: i64[2] = {1, 0}
.kernel add = "rewire.add"
.kernel append = "test.append"
.func main(x: f32[1, 4], past: f32[P, 4]) -> present: f32[?, 4]
  %shape = shape_of %past
  %few = alloc_storage _, alignment=64, i64[2], cpu
  %longer = alloc_tensor %few, _, i64[2]
  %one = load_const one
  invoke_packed add(%shape, %one, %longer), outputs=1
  %bytes = load_consti 65536
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %present = alloc_tensor_reg %storage, _, %longer, f32
  invoke_packed append(%past, %x, %present), outputs=1
  ret %present
.end
)";

inline void CopyFloats(kernel::TensorView from, float* to) {
  const std::int64_t count = from.dim(0) * from.dim(1);
  if (count > 0) std::memcpy(to, from.data<const float>(), static_cast<std::size_t>(count) * sizeof(float));
}

// The kernels of these models. `sum` waits while the gate is shut, and fails for a row whose first element is
// negative.
class SequenceKernels {
 public:
  KernelSet Set() {
    KernelSet set;
    set.AddFunction("test.sum", MakePackedFunction([this](kernel::TensorView x, kernel::TensorView past,
                                                          kernel::TensorView y) -> kernel::Status {
                      const auto *const a = x.data<const float>(), *const b = past.data<const float>();
                      {
                        std::unique_lock<std::mutex> lock(mutex_);
                        pasts_.push_back(b);
                        ++runs_;
                        changed_.notify_all();
                        changed_.wait(lock, [this] { return !shut_; });
                      }
                      for (std::int64_t i = 0; i < x.dim(0); ++i) {
                        if (a[i * 4] < 0) return kernel::RuntimeError("an element is negative");
                      }
                      for (std::int64_t i = 0; i < x.dim(0) * 4; ++i) y.data<float>()[i] = a[i] + b[i];
                      return {};
                    }));
    set.AddFunction("test.keep", MakePackedFunction([this](kernel::TensorView y,
                                                           kernel::TensorView present) -> kernel::Status {
                      CopyFloats(y, present.data<float>());
                      const std::lock_guard<std::mutex> lock(mutex_);
                      presents_.push_back(present.data<float>());
                      return {};
                    }));
    set.AddFunction("test.append", MakePackedFunction([](kernel::TensorView past, kernel::TensorView x,
                                                         kernel::TensorView present) -> kernel::Status {
                      CopyFloats(past, present.data<float>());
                      CopyFloats(x, present.data<float>() + past.dim(0) * 4);
                      return {};
                    }));
    return set;
  }
  void SetShut(bool shut) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = shut;
    changed_.notify_all();
  }
  void WaitForRuns(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return runs_ >= count; }));
  }
  int runs() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return runs_;
  }
  // The addresses at which each run has read the state, and written it.
  std::vector<const float*> pasts() { return pasts_; }
  std::vector<const float*> presents() { return presents_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int runs_ = 0;
  std::vector<const float*> pasts_, presents_;
};

class StepRequest : public TestRequest {
 public:
  StepRequest(std::variant<std::int64_t, std::string_view> id, float first, const std::string& flags = "",
              std::int64_t rows = 1)
      : TestRequest(rows, first) {
    model = "steps";
    step = {id, flags.find('s') != std::string::npos, flags.find('e') != std::string::npos};
  }
};

// A service of both models.
class SequenceModels {
 public:
  explicit SequenceModels(SequenceSettings sequence = {}, std::uint32_t instances = 2,
                          BatchSettings batching = {}) {
    (void)WriteModel(folder_, "steps.rwx", kSteps);
    (void)WriteModel(folder_, "growing.rwx", kGrowing);
    settings_ = SettingsOf(folder_.path().string());
    ModelSettings& model = settings_.models["steps"];
    model.sequence = std::move(sequence);
    model.sequence.state = {{"present", "past"}};
    model.instances = instances;
    model.batching = std::move(batching);
    settings_.models["growing"].sequence.state = {{"present", "past"}};
  }
  Service* service() {
    if (service_ == nullptr) service_ = ServiceOf(settings_, kernels.Set());
    return service_.get();
  }
  const ServeSettings& settings() const { return settings_; }
  void Run(TestRequest* request) {
    service()->Submit(request, nullptr);
    request->Wait();
  }
  // The answer of a step with one row that begins with this element.
  std::vector<float> Step(std::variant<std::int64_t, std::string_view> id, float first,
                          const std::string& flags = "") {
    StepRequest request(id, first, flags);
    Run(&request);
    INFO(request.message());
    REQUIRE(request.status);
    REQUIRE(request.results.size() == 1);
    return request.Floats();
  }
  std::string Refusal(std::variant<std::int64_t, std::string_view> id, StatusCode code,
                      const std::string& flags = "") {
    StepRequest request(id, 1, flags);
    Run(&request);
    REQUIRE_FALSE(request.status);
    CHECK(request.status.code() == code);
    return request.message();
  }
  SequenceStatistics Statistics() { return (*service()->Statistics("steps", ""))[0].sequences; }
  // How many runs had so many rows.
  std::uint64_t RunsOf(std::uint64_t rows) {
    const ModelStatistics all = (*service()->Statistics("steps", ""))[0];
    for (const BatchStatistics& batch : all.batches) {
      if (batch.batch_size == rows) return batch.compute_infer.count;
    }
    return 0;
  }

  SequenceKernels kernels;

 private:
  const rewire::test::TempFolder folder_;
  ServeSettings settings_;
  std::unique_ptr<Service> service_;
};

}  // namespace rewire::serve::test
