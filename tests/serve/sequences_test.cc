// SPDX-License-Identifier: Apache-2.0
// Sequences of requests whose state the server keeps.
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/sequence_models.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

TEST_CASE("sequences: many that are interleaved give, bit for bit, what each gives alone") {
  SequenceModels models;
  std::mt19937 random(7);
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back(std::to_string(i + 1));
  // A number and a text with its digits are two ids.
  const auto id = [&](std::size_t i) -> std::variant<std::int64_t, std::string_view> {
    if (i % 2 == 0) return std::int64_t{1} + static_cast<std::int64_t>(i / 2);
    return std::string_view(names[i / 2]);
  };
  std::vector<std::vector<float>> given(16), found(16);
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (int step = 0; step < 20; ++step) given[i].push_back(static_cast<float>(random() % 1000) / 7);
  }
  std::vector<std::unique_ptr<StepRequest>> requests;
  for (std::size_t step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      requests.push_back(std::make_unique<StepRequest>(id(i), given[i][step],
                                                       step == 0    ? "s"
                                                       : step == 19 ? "e"
                                                                    : ""));
      models.service()->Submit(requests.back().get(), nullptr);
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->Wait();
    INFO(requests[i]->message());
    REQUIRE(requests[i]->status);
    for (const float y : requests[i]->Floats()) found[i % given.size()].push_back(y);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    SequenceModels alone;
    std::vector<float> expected;
    for (std::size_t step = 0; step < 20; ++step) {
      for (const float y : alone.Step(1, given[i][step], step == 0 ? "s" : "")) expected.push_back(y);
    }
    CHECK(found[i] == expected);
  }
  CHECK(models.Statistics().active == 0);
  CHECK(models.Statistics().bytes == 0);
  CHECK(models.Statistics().started == 16);
}

TEST_CASE("sequences: the state is donated from step to step, and a client gets it only if it asks") {
  SequenceModels models;
  for (int step = 0; step < 5; ++step) (void)models.Step(1, 1, step == 0 ? "s" : "");
  const auto pasts = models.kernels.pasts(), presents = models.kernels.presents();
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(pasts[i] == pasts[0]);
    CHECK(presents[i] == pasts[0]);
  }
  CHECK(models.Statistics().bytes == 16);
  StepRequest request(1, 100);
  request.wanted.push_back({"present", 0, {}, nullptr});
  request.wanted.push_back({"y", 0, {}, nullptr});
  models.Run(&request);
  REQUIRE(request.status);
  CHECK(request.Floats(0) == std::vector<float>{105, 111, 117, 123});
  CHECK(request.Floats(1) == request.Floats(0));
  CHECK(reinterpret_cast<const void*>(request.results[0].data) != models.kernels.presents().back());
  // Without an id, the model is as it is, and all inputs are the client's.
  StepRequest plain(0, 1);
  models.Run(&plain);
  CHECK_THAT(plain.message(), Contains("input 'past' is missing"));
  plain.inputs.push_back(plain.inputs[0]);
  plain.inputs[1].name = "past";
  StepRequest whole(0, 1);
  whole.inputs.push_back(whole.inputs[0]);
  whole.inputs[1].name = "past";
  models.Run(&whole);
  REQUIRE(whole.status);
  CHECK(whole.results.size() == 2);
  CHECK(whole.Floats(1) == whole.Doubled());
}

TEST_CASE("sequences: a state grows with its steps, and begins as the settings or the first step say") {
  SequenceModels models;
  const auto step = [&](float first, bool start, std::vector<float>* begin = nullptr) {
    StepRequest request(3, first, start ? "s" : "");
    request.model = "growing";
    request.wanted.push_back({"present", 0, {}, nullptr});
    if (begin != nullptr) {
      InputTensor& past = request.inputs.emplace_back();
      past.name = "past";
      past.dtype = kFloat32;
      past.shape = {static_cast<std::int64_t>(begin->size() / 4), 4};
      past.data = {reinterpret_cast<const std::byte*>(begin->data()), begin->size() * sizeof(float)};
    }
    models.Run(&request);
    INFO(request.message());
    REQUIRE(request.status);
    return request.Floats();
  };
  std::vector<float> expected;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 4; ++k) expected.push_back(static_cast<float>(10 * i + k));
    CHECK(step(static_cast<float>(10 * i), i == 0) == expected);
  }
  std::vector<float> begin = {9, 8, 7, 6};
  CHECK(step(1, true, &begin) == std::vector<float>{9, 8, 7, 6, 1, 2, 3, 4});
  begin.clear();
  CHECK(step(5, false) == std::vector<float>{9, 8, 7, 6, 1, 2, 3, 4, 5, 6, 7, 8});
  SequenceSettings sizes;
  ServeSettings settings = models.settings();
  settings.models["growing"].sequence.sizes = {{"P", 2}};
  const auto service = ServiceOf(settings, models.kernels.Set());
  StepRequest first(3, 1, "s");
  first.model = "growing";
  first.wanted.push_back({"present", 0, {}, nullptr});
  service->Submit(&first, nullptr);
  first.Wait();
  REQUIRE(first.status);
  CHECK(first.Floats() == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4});
}

TEST_CASE("sequences: ids that have none, and how each has ended, are told") {
  SequenceModels models;
  CHECK_THAT(models.Refusal(5, StatusCode::kNotFound),
             Contains("there is no sequence 5 of model 'steps'; begin it anew with sequence_start"));
  CHECK(models.Step(5, 1, "s") == std::vector<float>{1, 2, 3, 4});
  CHECK(models.Step(5, 1) == std::vector<float>{2, 4, 6, 8});
  // Beginning anew forgets.
  CHECK(models.Step(5, 1, "s") == std::vector<float>{1, 2, 3, 4});
  CHECK(models.Step(5, 1, "e") == std::vector<float>{2, 4, 6, 8});
  CHECK_THAT(models.Refusal(5, StatusCode::kNotFound),
             Contains("sequence 5 of model 'steps' has ended with the step that had sequence_end"));
  CHECK(models.Step("five", 1, "se") == std::vector<float>{1, 2, 3, 4});
  CHECK_THAT(models.Refusal("five", StatusCode::kNotFound), Contains("sequence 'five' of model 'steps' has"));
  CHECK_THAT(models.Refusal(0, StatusCode::kInvalidArgument, "s"),
             Contains("sequence_start and sequence_end need a sequence_id other than 0"));
  // A wrong request changes nothing.
  (void)models.Step(5, 1, "s");
  StepRequest wrong(5, 1);
  wrong.inputs.push_back(wrong.inputs[0]);
  wrong.inputs[1].name = "past";
  models.Run(&wrong);
  CHECK_THAT(wrong.message(), Contains("input 'past' is the state of sequence 5, which the server has"));
  CHECK(models.Step(5, 1) == std::vector<float>{2, 4, 6, 8});
  // Another number of rows than the state has fails in the step, and ends the sequence.
  StepRequest rows(5, 1, "", 2);
  models.Run(&rows);
  CHECK_THAT(rows.message(), Contains("dimension 0 is 'N', which is 2 in an input before, and 1 here"));
  CHECK_THAT(models.Refusal(5, StatusCode::kNotFound), Contains("has ended, because a step failed: input"));
  SequenceModels without;
  ServeSettings settings = without.settings();
  settings.models.clear();
  const auto service = ServiceOf(settings, without.kernels.Set());
  StepRequest request(5, 1, "s");
  service->Submit(&request, nullptr);
  request.Wait();
  CHECK(request.status.code() == StatusCode::kUnsupported);
  CHECK_THAT(request.message(), Contains("model 'steps' keeps no state for sequences"));
}

TEST_CASE("sequences: the one that was used longest ago gives its place and its memory, and is told") {
  SequenceSettings settings;
  settings.max_sequences = 2;
  SequenceModels models(settings);
  (void)models.Step(1, 1, "s");
  (void)models.Step(2, 1, "s");
  (void)models.Step(1, 1);
  (void)models.Step(3, 1, "s");
  CHECK_THAT(
      models.Refusal(2, StatusCode::kNotFound),
      Contains("sequence 2 of model 'steps' has given its place to a new one, because 2 are the most"));
  CHECK(models.Step(1, 1) == std::vector<float>{3, 6, 9, 12});
  CHECK(models.Statistics().evicted == 1);
  CHECK(models.Statistics().active == 2);
  // A sequence with a step that runs or waits keeps its place.
  models.kernels.SetShut(true);
  StepRequest first(1, 1), second(3, 1);
  models.service()->Submit(&first, nullptr);
  models.service()->Submit(&second, nullptr);
  CHECK_THAT(models.Refusal(4, StatusCode::kBusy, "s"),
             Contains("has 2 sequences, the most that it may have, and each has a step that waits or runs"));
  models.kernels.SetShut(false);
  first.Wait();
  second.Wait();
  CHECK(first.status);
  (void)models.Step(4, 1, "s");

  settings.max_sequences = 100;
  settings.max_bytes = 3 * 16;
  SequenceModels small(settings);
  for (std::int64_t id = 1; id <= 4; ++id) (void)small.Step(id, 1, "s");
  CHECK_THAT(small.Refusal(1, StatusCode::kNotFound),
             Contains("sequence 1 of model 'steps' has been evicted with its state of 16 bytes, because "
                      "sequences may have 48 (max_bytes)"));
  CHECK(small.Step(2, 1) == std::vector<float>{2, 4, 6, 8});
  CHECK(small.Statistics().bytes == 48);
}

TEST_CASE(
    "sequences: a host is told of each that gives its place or memory to others, or was idle for too long") {
  std::mutex mutex;
  std::vector<std::string> told;
  std::unique_ptr<Service> service;
  SequenceModels models;
  ServiceHooks hooks;
  hooks.kernels = models.kernels.Set();
  hooks.sequence_evicted = [&](const std::string& model, const std::string& sequence,
                               const std::string& why) {
    const std::size_t active =
        (*service->Statistics(model, ""))[0].sequences.active;  // it may ask the service
    const std::lock_guard<std::mutex> lock(mutex);
    told.push_back(sequence + " beside " + std::to_string(active) + ": " + why);
  };
  const auto start = [&](std::int64_t id) {
    StepRequest request(id, 1, "s");
    service->Submit(&request, nullptr);
    request.Wait();
    CHECK(request.status);
  };
  const auto take = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(told, {});
  };
  ServeSettings settings = models.settings();
  SequenceSettings& sequence = settings.models["steps"].sequence;
  sequence.max_sequences = 2;
  service = *MakeService(settings, hooks);
  for (std::int64_t id = 1; id <= 3; ++id) start(id);
  std::vector<std::string> now = take();
  REQUIRE(now.size() == 1);
  CHECK_THAT(now[0], Contains("1 beside 2: sequence 1 of model 'steps' has given its place to a new one"));
  sequence.max_sequences = 100;
  sequence.max_bytes = 48;
  service = *MakeService(settings, hooks);
  for (std::int64_t id = 1; id <= 4; ++id) start(id);
  now = take();
  REQUIRE(now.size() == 1);
  CHECK_THAT(now[0], Contains("sequence 1 of model 'steps' has been evicted with its state of 16 bytes"));
  sequence.idle_us = 1000;
  service = *MakeService(settings, hooks);
  start(1);
  for (int i = 0; i < 6000 && now.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (std::string& one : take()) now.push_back(std::move(one));
  }
  CHECK_THAT(now.back(), Contains("sequence 1 of model 'steps' has ended, because no step came for 1000 us"));
  // A sequence that ends by itself is not told.
  StepRequest whole(2, 1, "se");
  service->Submit(&whole, nullptr);
  whole.Wait();
  CHECK(take().empty());
}

TEST_CASE("sequences: the last 10,000 that have ended are told, also one that has ended twice") {
  SequenceModels models;
  const auto end = [&](std::int64_t id) { (void)models.Step(id, 1, "se"); };
  end(1), end(1);
  for (std::int64_t id = 2; id <= 10000; ++id) end(id);
  CHECK_THAT(models.Refusal(1, StatusCode::kNotFound),
             Contains("sequence 1 of model 'steps' has ended with the step"));
  end(2);
  CHECK_THAT(models.Refusal(1, StatusCode::kNotFound), Contains("there is no sequence 1 of model 'steps'"));
}

TEST_CASE("sequences: those that are idle for too long end without a request, and are told") {
  SequenceSettings settings;
  settings.idle_us = 20000;
  SequenceModels models(settings);
  for (std::int64_t id = 1; id <= 50; ++id) (void)models.Step(id, 1, "s");
  // Nobody asks the model, so the server itself ends them.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (models.Statistics().active > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(models.Statistics().active == 0);
  CHECK(models.Statistics().bytes == 0);
  CHECK(models.Statistics().timed_out == 50);
  CHECK_THAT(models.Refusal(50, StatusCode::kNotFound),
             Contains("has ended, because no step came for 20000 us"));
  std::string metrics;
  models.service()->WriteMetrics(&metrics);
  CHECK_THAT(metrics, Contains("rewire_sequences_timed_out_total{model=\"steps\",version=\"1\"} 50\n"));
  CHECK_THAT(metrics, Contains("rewire_sequences{model=\"steps\",version=\"1\"} 0\n"));
}

TEST_CASE("sequences: a step that fails, is late or is cancelled ends its sequence and its state") {
  SequenceModels models;
  const auto begin = [&](std::int64_t id) {
    CHECK(models.Step(id, 1, "s") == std::vector<float>{1, 2, 3, 4});
  };
  begin(1);
  StepRequest negative(1, -5);
  models.Run(&negative);
  CHECK_THAT(negative.message(), Contains("an element is negative"));
  CHECK_THAT(models.Refusal(1, StatusCode::kNotFound), Contains("has ended, because a step failed: "));
  begin(1);

  // Late while it runs, and while it waits behind that.
  const int runs = models.kernels.runs();
  models.kernels.SetShut(true);
  StepRequest late(1, 1), waits(1, 1), later(1, 1);
  late.deadline = waits.deadline = Clock::now() + std::chrono::milliseconds(20);
  for (StepRequest* request : {&late, &waits, &later}) models.service()->Submit(request, nullptr);
  models.kernels.WaitForRuns(runs + 1);
  std::this_thread::sleep_until(late.deadline);
  models.kernels.SetShut(false);
  for (StepRequest* request : {&late, &waits, &later}) request->Wait();
  CHECK(late.status.code() == StatusCode::kDeadlineExceeded);
  CHECK_FALSE(waits.status);
  CHECK_THAT(later.message(), Contains("sequence 1 of model 'steps' has ended, because a step failed: "));
  begin(1);

  // Cancelled while it waits: those behind it end at once, although nothing else happens.
  models.kernels.SetShut(true);
  StepRequest busy(1, 1), cancelled(1, 1), behind(1, 1), other(2, 1, "s");
  const int before = models.kernels.runs();
  for (StepRequest* request : {&busy, &cancelled, &behind}) models.service()->Submit(request, nullptr);
  models.kernels.WaitForRuns(before + 1);
  models.service()->Cancel(&cancelled);
  cancelled.Wait();
  behind.Wait();
  CHECK(cancelled.status.code() == StatusCode::kCancelled);
  CHECK_THAT(behind.message(), Contains("has ended, because a step failed: the client has cancelled"));
  models.service()->Submit(&other, nullptr);
  models.kernels.WaitForRuns(before + 2);  // another sequence passes by
  models.kernels.SetShut(false);
  busy.Wait();
  other.Wait();
  CHECK(busy.status);
  begin(1);
  CHECK(models.Step(2, 1) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("sequences: a request that is refused before it waits changes nothing") {
  SequenceModels models;
  ServeSettings settings = models.settings();
  settings.models["steps"].instances = 1;
  settings.models["steps"].max_queue_size = 1;
  const auto service = ServiceOf(settings, models.kernels.Set());
  const auto submit = [&](StepRequest* request) { service->Submit(request, nullptr); };
  StepRequest first(1, 1, "s");
  submit(&first);
  first.Wait();
  StepRequest wrong(1, 1);
  wrong.inputs[0].name = "other";
  submit(&wrong);
  wrong.Wait();
  CHECK(wrong.status.code() == StatusCode::kInvalidArgument);
  models.kernels.SetShut(true);
  StepRequest busy(2, 1, "s"), waits(2, 1), full(1, 1);
  submit(&busy);
  models.kernels.WaitForRuns(2);
  submit(&waits);
  submit(&full);
  full.Wait();
  CHECK(full.status.code() == StatusCode::kBusy);
  models.kernels.SetShut(false);
  busy.Wait();
  waits.Wait();
  StepRequest next(1, 1);
  submit(&next);
  next.Wait();
  REQUIRE(next.status);
  CHECK(next.Floats() == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("sequences: settings that do not fit the model are refused") {
  SequenceModels models;
  const auto refused = [&](const SequenceSettings& sequence, const std::string& words) {
    ServeSettings settings = models.settings();
    settings.models["steps"].sequence = sequence;
    const Result<std::unique_ptr<Service>> service = MakeService(settings, {{}, models.kernels.Set()});
    REQUIRE_FALSE(service);
    CHECK_THAT(service.error().message(), Contains(words));
  };
  SequenceSettings sequence;
  sequence.state = {{"presen", "past"}};
  refused(sequence, "sequence.state: the model has no output 'presen'; did you mean 'present'?");
  sequence.state = {{"present", "x1"}};
  refused(sequence, "sequence.state: the model has no input 'x1'");
  sequence.state = {{"present", "past"}, {"y", "past"}};
  refused(sequence, "sequence.state: input 'past' is that of two outputs");
  sequence.state = {{"present", "past"}};
  sequence.sizes = {{"M", 1}};
  refused(sequence, "sequence.sizes: the model has no dimension 'M'");
}

TEST_CASE("sequences: over HTTP, parameters say the step, and the configuration says the state") {
  SequenceModels models;
  TestServer server(models.settings(), {}, models.kernels.Set());
  TestClient client(server.port());
  const auto step = [&](const std::string& parameters) {
    return client.Post(
        "/v2/models/steps/infer",
        R"({"parameters": {)" + parameters +
            R"(}, "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})");
  };
  CHECK_THAT(step(R"("sequence_id": 7, "sequence_start": true)").body, Contains("[1,2,3,4]"));
  CHECK_THAT(step(R"("sequence_id": "7", "sequence_start": true)").body, Contains("[1,2,3,4]"));
  CHECK_THAT(step(R"("sequence_id": 7, "sequence_start": false, "sequence_end": true)").body,
             Contains("[2,4,6,8]"));
  const auto gone = step(R"("sequence_id": 7)");
  CHECK(gone.status == 404);
  CHECK_THAT(gone.body, Contains("sequence 7 of model 'steps' has ended"));
  for (const auto& [wrong, words] : std::vector<std::pair<std::string, std::string>>{
           {R"("sequence_id": 1.5)", "'sequence_id' must be a whole number of 64 bits or a text"},
           {R"("sequence_id": ")" + std::string(129, 'a') + "\"", "a text of at most 128 bytes"},
           {R"("sequence_id": 7, "sequence_start": 1)", "'sequence_start' must be true or false"}}) {
    const auto refused = step(wrong);
    CHECK(refused.status == 400);
    CHECK_THAT(refused.body, Contains(words));
  }
  const auto config = nlohmann::json::parse(client.Get("/v2/models/steps/config").body);
  CHECK(config["sequence_batching"]["state"][0]["input_name"] == "past");
  CHECK(config["sequence_batching"]["state"][0]["output_name"] == "present");
}

}  // namespace
}  // namespace rewire::serve::test
