// SPDX-License-Identifier: Apache-2.0
// Steps of different sequences that run together.
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/sequence_models.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

BatchSettings UpTo(std::int64_t rows, std::vector<std::int64_t> allowed = {}) {
  BatchSettings settings;
  settings.max_batch_size = rows;
  settings.allowed_sizes = std::move(allowed);
  return settings;
}

// The first element of each answer of a sequence of steps, alone.
std::vector<float> Alone(const std::vector<float>& given) {
  std::vector<float> found;
  float sum = 0;
  for (const float x : given) found.push_back(sum += x);
  return found;
}

TEST_CASE(
    "sequence batches: steps of different sequences that wait run together, and each has its own state") {
  SequenceModels models({}, 1, UpTo(8));
  // One is started alone, and the others wait for it.
  models.kernels.SetShut(true);
  std::vector<std::unique_ptr<StepRequest>> steps;
  const auto submit = [&](std::int64_t id, float first, const std::string& flags) {
    steps.push_back(std::make_unique<StepRequest>(id, first, flags));
    models.service()->Submit(steps.back().get(), nullptr);
  };
  submit(1, 1, "s");
  models.kernels.WaitForRuns(1);
  for (std::int64_t id = 2; id <= 6; ++id) submit(id, static_cast<float>(id), "s");
  // The second step of a sequence is not in the batch of its first one.
  submit(2, 20, "");
  submit(1, 10, "");
  models.kernels.SetShut(false);
  for (const auto& step : steps) {
    step->Wait();
    REQUIRE(step->status);
    CHECK(step->results.size() == 1);
  }
  for (std::size_t i = 0; i < 6; ++i) CHECK(steps[i]->Floats()[0] == static_cast<float>(i + 1));
  CHECK(steps[6]->Floats() == std::vector<float>{22, 24, 26, 28});
  CHECK(steps[7]->Floats() == std::vector<float>{11, 13, 15, 17});
  // 2 to 6 with the second step of 1, and then that of 2.
  CHECK(models.RunsOf(6) == 1);
  CHECK((*models.service()->Statistics("steps", ""))[0].execution_count == 3);
  CHECK(models.Statistics().bytes == 6 * 16);
}

TEST_CASE("sequence batches: steps of several rows run alone, with all rows of their state") {
  SequenceModels models({}, 1, UpTo(8));
  models.kernels.SetShut(true);
  std::vector<std::unique_ptr<StepRequest>> steps;
  const auto submit = [&](std::int64_t id, float first, const std::string& flags, std::int64_t rows) {
    steps.push_back(std::make_unique<StepRequest>(id, first, flags, rows));
    models.service()->Submit(steps.back().get(), nullptr);
  };
  submit(1, 1, "s", 1);
  models.kernels.WaitForRuns(1);
  // Two steps of two rows wait among two of one row.
  for (std::int64_t id = 2; id <= 5; ++id) submit(id, static_cast<float>(id), "s", id % 2 == 0 ? 2 : 1);
  for (std::int64_t id = 2; id <= 5; ++id) submit(id, static_cast<float>(10 * id), "", id % 2 == 0 ? 2 : 1);
  models.kernels.SetShut(false);
  for (const auto& step : steps) {
    step->Wait();
    CHECK(step->message().empty());
  }
  for (std::size_t i = 5; i < steps.size(); ++i) {
    std::vector<float> sums(steps[i]->Doubled().size());
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = static_cast<float>(11 * (i - 3) + 2 * j);
    CHECK(steps[i]->Floats() == sums);
  }
  CHECK(models.RunsOf(2) >= 4);
}

// A step that threads of clients wait for, where Catch checks nothing.
class ClientStep : public StepRequest {
 public:
  using StepRequest::StepRequest;
  void Finish() override {
    StepRequest::Finish();
    const std::lock_guard<std::mutex> lock(finishing_);
    is_done_ = true;
    done_.notify_all();
  }
  void WaitUnchecked() {
    std::unique_lock<std::mutex> lock(finishing_);
    done_.wait(lock, [this] { return is_done_; });
  }

 private:
  std::mutex finishing_;
  std::condition_variable done_;
  bool is_done_ = false;
};

TEST_CASE("sequence batches: 16 that come and go at random give, bit for bit, what each gives alone") {
  for (const std::uint32_t instances : {1U, 3U}) {
    for (const bool padded : {false, true}) {
      SequenceSettings sequence;
      sequence.max_sequences = 40;
      SequenceModels models(sequence, instances, padded ? UpTo(8, {2, 5, 8}) : UpTo(8));
      (void)models.service();
      std::atomic<int> wrong{0}, failed{0}, ended{0};
      std::vector<std::thread> clients;
      for (int client = 0; client < 16; ++client) {
        clients.emplace_back([&, client] {
          std::mt19937 random(static_cast<unsigned>(client) * 7 + instances);
          for (int turn = 0; turn < 12; ++turn) {
            const std::string id = std::to_string(client) + "." + std::to_string(turn);
            std::vector<float> given(1 + random() % 12), found;
            for (float& x : given) x = static_cast<float>(random() % 1000) / 7;
            const std::size_t bad = random() % 40;  // a step that fails, in some
            if (bad < given.size()) given[bad] = -1;
            bool goes_on = true;
            for (std::size_t i = 0; i < given.size() && goes_on; ++i) {
              ClientStep step(std::string_view(id), given[i],
                              std::string(i == 0 ? "s" : "") + (i + 1 == given.size() ? "e" : ""));
              const bool cancels = random() % 50 == 0;
              models.service()->Submit(&step, nullptr);
              if (cancels) models.service()->Cancel(&step);
              step.WaitUnchecked();
              goes_on = static_cast<bool>(step.status);
              if (goes_on) {
                found.push_back(*reinterpret_cast<const float*>(step.results.front().data));
              } else {
                const bool expected =
                    given[i] < 0 ? step.message().find("negative") != std::string::npos : false;
                wrong += expected || cancels ? 0 : 1;
                ++failed;
              }
            }
            std::vector<float> expected = Alone(given);
            expected.resize(found.size());
            wrong += found == expected ? 0 : 1;
            ++ended;
          }
        });
      }
      for (std::thread& client : clients) client.join();
      CAPTURE(instances, padded);
      CHECK(wrong == 0);
      CHECK(failed > 0);
      CHECK(ended == 16 * 12);
      CHECK(models.Statistics().active == 0);
      CHECK(models.Statistics().bytes == 0);
    }
  }
}

TEST_CASE("sequence batches: a step that fails ends its own sequence, and none of those that ran with it") {
  SequenceModels models({}, 1, UpTo(8));
  for (std::int64_t id = 1; id <= 4; ++id) (void)models.Step(id, 5, "s");
  // Twice, so that the sequences are rows of a block the second time.
  for (int turn = 0; turn < 2; ++turn) {
    const int begun = models.kernels.runs();
    models.kernels.SetShut(true);
    StepRequest first(1, 1), second(2, turn == 0 ? 1.0F : -1.0F), third(3, 1), fourth(4, 1);
    models.service()->Submit(&first, nullptr);
    models.kernels.WaitForRuns(begun + 1);
    for (StepRequest* step : {&second, &third, &fourth}) models.service()->Submit(step, nullptr);
    models.kernels.SetShut(false);
    for (StepRequest* step : {&first, &second, &third, &fourth}) step->Wait();
    CHECK(first.status);
    CHECK(static_cast<bool>(second.status) == (turn == 0));
    CHECK(third.Floats()[0] == static_cast<float>(6 + turn));
    CHECK(fourth.Floats()[0] == static_cast<float>(6 + turn));
  }
  CHECK_THAT(models.Refusal(2, StatusCode::kNotFound, ""),
             Contains("a step failed: ") && Contains("an element is negative"));
  CHECK(models.Step(3, 1)[0] == 8);
}

TEST_CASE("sequence batches: a row moves only when sequences come or go, and a client still gets its state") {
  SequenceModels models({}, 1, UpTo(4));
  for (std::int64_t id = 1; id <= 3; ++id) (void)models.Step(id, 1, "s");
  const auto together = [&](const std::vector<std::int64_t>& ids, std::int64_t asking = 0) {
    const int begun = models.kernels.runs();
    models.kernels.SetShut(true);
    StepRequest blocker(9, 1, "s");
    models.service()->Submit(&blocker, nullptr);
    models.kernels.WaitForRuns(begun + 1);
    std::vector<std::unique_ptr<StepRequest>> steps;
    for (const std::int64_t id : ids) {
      steps.push_back(std::make_unique<StepRequest>(id, 1));
      if (id == asking) steps.back()->wanted.push_back({"present", 0, {}, nullptr});
      models.service()->Submit(steps.back().get(), nullptr);
    }
    models.kernels.SetShut(false);
    blocker.Wait();
    std::vector<float> found;
    for (const auto& step : steps) {
      step->Wait();
      REQUIRE(step->status);
      found.push_back(step->Floats()[0]);
    }
    return found;
  };
  CHECK(together({1, 2, 3}) == std::vector<float>{2, 2, 2});
  CHECK(together({3, 1, 2}) == std::vector<float>{3, 3, 3});
  CHECK(together({2, 3}) == std::vector<float>{4, 4});
  CHECK(together({1, 3}) == std::vector<float>{4, 5});
  // A client that wants the state gets a copy, from a run of its own or with others.
  StepRequest asks(3, 1);
  asks.wanted.push_back({"present", 0, {}, nullptr});
  models.Run(&asks);
  REQUIRE(asks.status);
  CHECK(asks.Floats()[0] == 6);
  CHECK(together({1, 2, 3}, 3) == std::vector<float>{5, 5, 7});
  CHECK(together({2, 1}, 1) == std::vector<float>{6, 6});
  CHECK(models.RunsOf(3) == 3);
  CHECK(models.RunsOf(2) == 3);
}

// Its state is the last input.
constexpr char kReplaced[] = R"(.func main(x: f32[N, Q], past: f32[N, P]) -> present: f32[N, Q]
  ret %x
.end
)";

TEST_CASE("sequence batches: a model whose state changes its shape is refused") {
  const rewire::test::TempFolder folder;
  ServeSettings settings = SettingsOf(WriteModel(folder, "replaced.rwx", kReplaced));
  settings.models["replaced"].sequence.state = {{"present", "past"}};
  CHECK(MakeService(settings, {}));
  settings.models["replaced"].batching.max_batch_size = 4;
  const Result<std::unique_ptr<Service>> service = MakeService(settings, {});
  REQUIRE_FALSE(service);
  CHECK_THAT(
      service.error().message(),
      Contains(
          "output 'present' has other dimensions than input 'past', so the state does not keep its shape"));
}

}  // namespace
}  // namespace rewire::serve::test
