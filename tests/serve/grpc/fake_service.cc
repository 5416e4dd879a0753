// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/serve/grpc/fake_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/dtype.h"

namespace rewire::test {

using serve::Request;

class FakeService::FakeLane : public serve::Lane {
 public:
  explicit FakeLane(FakeService* service) : service_(service) {}
  void Run() override {
    for (Request* request : std::exchange(service_->waiting_, {})) service_->Answer(request);
  }

 private:
  FakeService* service_;
};

std::unique_ptr<serve::Lane> FakeService::MakeLane() { return std::make_unique<FakeLane>(this); }

void FakeService::Submit(Request* request, serve::Lane*) {
  if (!request->inputs.empty()) last_input_ = request->inputs[0].data;
  if (request->model == "hold") return held_.push_back(request);
  if (request->model == "double" || request->held != nullptr) return waiting_.push_back(request);
  request->status = request->model == "fail"
                        ? Fail(StatusCode::kKernelFailed, "a kernel failed: 100 % \xc3\xa9\n")
                        : CheckReady(request->model, request->version);
  request->Finish();
}

void FakeService::Cancel(Request* request) {
  for (std::vector<Request*>* list : {&waiting_, &held_}) {
    const auto found = std::find(list->begin(), list->end(), request);
    if (found == list->end()) continue;
    list->erase(found);
    ++cancelled;
    request->status = Fail(StatusCode::kCancelled, "cancelled");
    return request->Finish();
  }
}

void FakeService::Answer(Request* request) {
  ++answered;
  if (request->deadline <= serve::Clock::now()) {
    request->status = Fail(StatusCode::kDeadlineExceeded, "too late");
    return request->Finish();
  }
  if (request->inputs.empty()) {
    request->status = Fail(StatusCode::kInvalidArgument, "input 'x' is missing");
    return request->Finish();
  }
  const serve::InputTensor& x = request->inputs[0];
  // As a real service does: bytes of a text would not be as many numbers as the shape says.
  if (x.dtype != kFloat32) {
    request->status = Fail(StatusCode::kInvalidArgument, "input 'x': datatype FP32 expected");
    return request->Finish();
  }
  const bool placed = !request->wanted.empty() && !request->wanted[0].place.empty();
  std::byte* const memory =
      placed ? request->wanted[0].place.data() : request->memory.Allocate(x.data.size() + 1);
  for (std::size_t i = 0; i + sizeof(float) <= x.data.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, x.data.data() + i, sizeof value);
    value *= 2;
    std::memcpy(memory + i, &value, sizeof value);
  }
  request->used_model = "double";
  request->used_version = "1";
  request->results.push_back({"y", kFloat32, x.shape, memory, x.data.size(), 0});
  request->Finish();
}

void FakeService::Release() {
  for (Request* request : std::exchange(held_, {})) Answer(request);
}

Status FakeService::CheckReady(std::string_view model, std::string_view) const {
  if (model == "double" || model == "hold") return {};
  return Fail(StatusCode::kNotFound, "there is no model '" + std::string(model) + "'");
}

Result<serve::ModelDescription> FakeService::Describe(std::string_view model,
                                                      std::string_view version) const {
  if (Status ready = CheckReady(model, version); !ready) return Forward(ready);
  serve::ModelDescription description;
  description.name = std::string(model);
  description.versions = {"1"};
  description.platform = "rewire_rwx";
  description.inputs = {{"x", kFloat32, {-1, 4}, "N,4"}};
  description.outputs = {{"y", kFloat32, {-1, 4}, "N,4"}};
  description.batching.max_batch_size = 8;
  description.batching.preferred_sizes = {4, 8};
  return description;
}

Result<std::vector<serve::ModelStatistics>> FakeService::Statistics(std::string_view model,
                                                                    std::string_view) const {
  if (Status ready = CheckReady(model.empty() ? "double" : model, {}); !ready) return Forward(ready);
  serve::ModelStatistics statistics;
  statistics.name = "double";
  statistics.version = "1";
  statistics.execution_count = answered;
  statistics.success = {answered, 1000};
  statistics.batches = {{4, {1, 2}, {3, 4}, {5, 6}}};
  return std::vector<serve::ModelStatistics>{statistics};
}

std::vector<serve::ModelIndexEntry> FakeService::Index(bool) const {
  return {{"double", "1", serve::ModelState::kReady, ""}};
}

}  // namespace rewire::test
