// SPDX-License-Identifier: Apache-2.0
// Queues, batches, deadlines and cancellation of the service.
#include <time.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/vm/host_function.h"

namespace rewire::serve::test {
namespace {

// A service whose model waits at a gate.
class GatedService {
 public:
  explicit GatedService(ModelSettings model) {
    ServeSettings settings = SettingsOf(WriteModel(folder_, "double.rwx", DoubleProgram("test.gate")));
    settings.defaults = std::move(model);
    service_ = ServiceOf(std::move(settings), gate.Kernels());
  }
  ~GatedService() { gate.Open(); }
  Service* operator->() { return service_.get(); }

  Gate gate;

 private:
  rewire::test::TempFolder folder_;
  std::unique_ptr<Service> service_;
};

ModelSettings OneInstance(std::int64_t max_batch = 0) {
  ModelSettings settings;
  settings.instances = 1;
  settings.batching.max_batch_size = max_batch;
  settings.batching.always = true;  // whatever the runs at a gate take
  return settings;
}

using Requests = std::vector<std::unique_ptr<TestRequest>>;

Requests Make(const std::vector<std::int64_t>& rows) {
  Requests requests;
  for (const std::int64_t count : rows) {
    requests.push_back(std::make_unique<TestRequest>(count, 100.0F * static_cast<float>(requests.size())));
  }
  return requests;
}

// Lets one request run at the gate, so that those behind it wait.
void Block(GatedService* service, TestRequest* request) {
  service->gate.Shut();
  (*service)->Submit(request, nullptr);
  service->gate.WaitForRuns(1);
}

TEST_CASE("requests that wait are run together, and each gets its own rows, bit for bit") {
  GatedService service(OneInstance(8));
  TestRequest first(1, 0);
  Block(&service, &first);
  const Requests requests = Make({1, 2, 3, 2, 1});
  for (const auto& request : requests) service->Submit(request.get(), nullptr);
  service.gate.Open();
  for (const auto& request : requests) {
    request->Wait();
    CHECK(request->message().empty());
    CHECK(request->Floats() == request->Doubled());
    CHECK(request->results[0].shape == request->inputs[0].shape);
  }
  CHECK(service.gate.rows() == std::vector<std::int64_t>{1, 8, 1});
  // Parts of one batch, side by side: nothing was copied out of it.
  CHECK(requests[1]->results[0].data == requests[0]->results[0].data + 16);
  const ModelStatistics statistics = (*service->Statistics("double", ""))[0];
  CHECK(statistics.inference_count == 10);
  CHECK(statistics.execution_count == 3);
  CHECK(statistics.success.count == 6);
}

TEST_CASE("a request that fails takes none of its batch with it") {
  GatedService service(OneInstance(8));
  TestRequest first(1, 0);
  Block(&service, &first);
  TestRequest good(1, 1);
  TestRequest bad(1, -5);
  TestRequest also_good(2, 9);
  for (TestRequest* request : {&good, &bad, &also_good}) service->Submit(request, nullptr);
  service.gate.Open();
  for (TestRequest* request : {&good, &bad, &also_good}) request->Wait();
  CHECK(good.Floats() == good.Doubled());
  CHECK(also_good.Floats() == also_good.Doubled());
  CHECK(bad.status.code() == StatusCode::kKernelFailed);
  CHECK_THAT(bad.message(), Catch::Contains("an element is negative"));
}

TEST_CASE("sizes that are not allowed are filled up, and nobody sees it") {
  ModelSettings settings = OneInstance(8);
  settings.batching.allowed_sizes = {4, 8};
  GatedService service(settings);
  TestRequest request(3, 1);
  service->Submit(&request, nullptr);
  request.Wait();
  CHECK(service.gate.rows() == std::vector<std::int64_t>{4});
  CHECK(request.Floats() == request.Doubled());
}

TEST_CASE("no request waits while an instance is idle") {
  ModelSettings settings;
  settings.instances = 3;
  GatedService service(settings);
  service.gate.Shut();
  const Requests requests = Make({1, 1, 1});
  for (const auto& request : requests) service->Submit(request.get(), nullptr);
  service.gate.WaitForRuns(3);  // at once: none has ended
  service.gate.Open();
  for (const auto& request : requests) request->Wait();
}

TEST_CASE("a full queue refuses, with a code that lets clients try again") {
  ModelSettings settings = OneInstance();
  settings.max_queue_size = 2;
  GatedService service(settings);
  const Requests requests = Make({1, 1, 1, 1});
  Block(&service, requests[0].get());
  for (int i = 1; i < 4; ++i) service->Submit(requests[static_cast<std::size_t>(i)].get(), nullptr);
  CHECK(requests[3]->is_finished());
  CHECK(requests[3]->status.code() == StatusCode::kBusy);
  CHECK_THAT(requests[3]->message(), Catch::Contains("the queue of model 'double' is full: 2 requests wait"));
  service.gate.Open();
  for (int i = 0; i < 3; ++i) requests[static_cast<std::size_t>(i)]->Wait();
  CHECK((*service->Statistics("double", ""))[0].rejected == 1);
  CHECK(service->in_flight() == 0);
}

TEST_CASE("a request whose time is over ends while it waits, and those behind it do not") {
  GatedService service(OneInstance());
  const Requests requests = Make({1, 1, 1});
  Block(&service, requests[0].get());
  requests[1]->deadline = Clock::now() + std::chrono::milliseconds(20);
  service->Submit(requests[1].get(), nullptr);
  service->Submit(requests[2].get(), nullptr);
  requests[1]->Wait();  // the gate is still shut
  CHECK(requests[1]->status.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(requests[1]->message(), Catch::Contains("has waited until its time was over"));
  service.gate.Open();
  requests[2]->Wait();
  CHECK(requests[2]->Floats() == requests[2]->Doubled());
}

TEST_CASE("a request that ends too late is late") {
  GatedService service(OneInstance());
  // A busy machine may not even begin a run in so short a time. Then the next request has more of it.
  bool has_begun = false;
  for (std::chrono::milliseconds allowed(30); !has_begun; allowed *= 4) {
    TestRequest request(1, 0);
    request.deadline = Clock::now() + allowed;
    service.gate.Shut();
    service->Submit(&request, nullptr);
    while (!request.is_finished() && service.gate.rows().empty()) std::this_thread::yield();
    has_begun = !service.gate.rows().empty();
    std::this_thread::sleep_until(request.deadline);
    service.gate.Open();
    request.Wait();
    CHECK(request.status.code() == StatusCode::kDeadlineExceeded);
    CHECK(request.results.empty());
  }
}

TEST_CASE("a cancelled request leaves the queue, and its run stops") {
  GatedService service(OneInstance());
  const Requests requests = Make({1, 1});
  Block(&service, requests[0].get());
  service->Submit(requests[1].get(), nullptr);
  service->Cancel(requests[1].get());
  CHECK(requests[1]->is_finished());
  CHECK(requests[1]->status.code() == StatusCode::kCancelled);
  service->Cancel(requests[0].get());
  service.gate.Open();
  requests[0]->Wait();
  CHECK(requests[0]->status.code() == StatusCode::kCancelled);
  CHECK((*service->Statistics("double", ""))[0].cancel.count == 2);
}

TEST_CASE("with a delay, requests wait for others, and run when it is over") {
  ModelSettings settings = OneInstance(4);
  settings.batching.max_queue_delay_us = 50000;
  GatedService service(settings);
  TestRequest alone(1, 0);
  const Clock::time_point begin = Clock::now();
  service->Submit(&alone, nullptr);
  alone.Wait();
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(50));
  const Requests requests = Make({1, 1, 1, 1});
  for (const auto& request : requests) service->Submit(request.get(), nullptr);
  for (const auto& request : requests) request->Wait();
  CHECK(service.gate.rows() == std::vector<std::int64_t>{1, 4});
}

TEST_CASE("on a lane, what arrives in one turn is one batch") {
  GatedService service(OneInstance(64));
  const std::unique_ptr<Lane> lane = service->MakeLane();
  for (int turn = 0; turn < 20; ++turn) {
    const Requests requests = Make(std::vector<std::int64_t>(64, 1));
    for (const auto& request : requests) service->Submit(request.get(), lane.get());
    lane->Run();
    for (const auto& request : requests) {
      request->Wait();
      CHECK(request->Floats() == request->Doubled());
    }
  }
  CHECK(service.gate.rows() == std::vector<std::int64_t>(20, 64));
}

// A kernel for DoubleProgram whose rows take the thread 200 us alone, and 2 ms each in a batch.
class SlowBatches {
 public:
  KernelSet Kernels() {
    KernelSet kernels;
    kernels.AddFunction("test.slow", MakePackedFunction([this](kernel::TensorView x, kernel::TensorView,
                                                               kernel::TensorView y) -> kernel::Status {
                          const std::int64_t rows = x.dim(0);
                          const std::int64_t end = CpuMicroseconds() + (rows == 1 ? 200 : 2000 * rows);
                          for (std::int64_t i = 0; i < rows * 4; ++i)
                            y.data<float>()[i] = 2 * x.data<const float>()[i];
                          while (CpuMicroseconds() < end) {
                          }
                          runs[rows].fetch_add(1);
                          return {};
                        }));
    return kernels;
  }
  // Runs in which so many requests ran together.
  std::array<std::atomic<int>, 9> runs{};

 private:
  static std::int64_t CpuMicroseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
  }
};

constexpr int kTurns = 100;

// How many batches of eight there are, when so many arrive in each turn.
int BatchesOf(bool always, ModelStatistics* statistics) {
  rewire::test::TempFolder folder;
  SlowBatches kernel;
  ServeSettings settings = SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram("test.slow")));
  settings.defaults = OneInstance(8);
  settings.defaults.batching.always = always;
  const std::unique_ptr<Service> service = ServiceOf(std::move(settings), kernel.Kernels());
  const std::unique_ptr<Lane> lane = service->MakeLane();
  for (int turn = 0; turn < kTurns; ++turn) {
    const Requests requests = Make(std::vector<std::int64_t>(8, 1));
    for (const auto& request : requests) service->Submit(request.get(), lane.get());
    lane->Run();
    for (const auto& request : requests) {
      request->Wait();
      CHECK(request->Floats() == request->Doubled());
    }
  }
  *statistics = (*service->Statistics("double", ""))[0];
  std::string metrics;
  service->WriteMetrics(&metrics);
  CHECK_THAT(metrics, Catch::Contains("rewire_batches_declined_total{model=\"double\",version=\"1\"} " +
                                      std::to_string(statistics->batching.declined) + "\n"));
  return kernel.runs[8];
}

TEST_CASE("requests that wait run one by one where a batch takes longer, unless the settings say always") {
  ModelStatistics statistics;
  CHECK(BatchesOf(false, &statistics) < kTurns / 5);
  CHECK(statistics.batching.declined > 3 * kTurns);
  CHECK(statistics.batching.alone_row_ns >= 200000);
  CHECK(statistics.batching.batch_row_ns >= 2000000);
  CHECK(BatchesOf(true, &statistics) == kTurns);
  CHECK(statistics.batching.declined == 0);
}

TEST_CASE("requests that do not fit the model are refused before they wait") {
  GatedService service(OneInstance(4));
  struct Row {
    void (*change)(TestRequest*);
    const char* words;
  };
  const std::vector<Row> rows = {
      {[](TestRequest* r) { r->model = "duble"; }, "there is no model 'duble'; did you mean 'double'?"},
      {[](TestRequest* r) { r->version = "7"; },
       "model 'double' has no version '7' that is loaded; its newest is 1"},
      {[](TestRequest* r) { r->inputs.clear(); }, "input 'x' is missing"},
      {[](TestRequest* r) { r->inputs[0].name = "X"; }, "the model has no input 'X'; did you mean 'x'?"},
      {[](TestRequest* r) { r->inputs.push_back(r->inputs[0]); }, "input 'x' is given twice"},
      {[](TestRequest* r) {
         r->inputs.push_back(r->inputs[0]);
         r->inputs[1].name = "z";
       },
       "the model has no input 'z'"},
      {[](TestRequest* r) { r->inputs[0].dtype = kInt32; }, "input 'x': datatype FP32 expected, INT32 given"},
      {[](TestRequest* r) { r->inputs[0].shape = {4}; }, "input 'x': shape [N,4] expected, [4] given"},
      {[](TestRequest* r) {
         r->inputs[0].shape = {1, 5};
       },
       "input 'x': shape [N,4] expected, [1,5] given"},
      {[](TestRequest* r) {
         r->inputs[0].shape = {-1, 4};
       },
       "input 'x': shape [N,4] expected, [-1,4] given"},
      {[](TestRequest* r) {
         r->inputs[0].shape = {2, 4};
       },
       "shape [2,4] of FP32 takes 32 bytes, 16 given"},
      {[](TestRequest* r) {
         r->inputs[0].shape = {std::int64_t{1} << 62, 4};
       },
       "has more bytes than there are"},
      {[](TestRequest* r) {
         r->wanted.push_back({"q", 0, {}, nullptr});
       },
       "the model has no output 'q'"},
      {[](TestRequest* r) {
         r->wanted = {{"y", 0, {}, nullptr}, {"y", 0, {}, nullptr}};
       },
       "output 'y' is asked for twice"},
  };
  for (const Row& row : rows) {
    TestRequest request(1, 0);
    row.change(&request);
    service->Submit(&request, nullptr);
    CHECK(request.is_finished());
    CHECK_THAT(request.message(), Catch::Contains(row.words));
  }
  TestRequest large(5, 0);
  service->Submit(&large, nullptr);
  CHECK_THAT(large.message(),
             Catch::Contains("the batch has 5 rows, and max_batch_size of model 'double' is 4"));
  CHECK(service->in_flight() == 0);
}

TEST_CASE("a server that drains takes no more requests") {
  GatedService service(OneInstance());
  TestRequest first(1, 0);
  Block(&service, &first);
  service->StartDraining();
  TestRequest late(1, 0);
  service->Submit(&late, nullptr);
  CHECK(late.status.code() == StatusCode::kBusy);
  CHECK_THAT(late.message(), Catch::Contains("the server is ending and takes no more requests"));
  service.gate.Open();
  first.Wait();
  CHECK(first.Floats() == first.Doubled());
}

}  // namespace
}  // namespace rewire::serve::test
