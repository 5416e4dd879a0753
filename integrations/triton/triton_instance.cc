// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/triton_instance.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "rewire/integrations/triton/status.h"
#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::triton {
namespace {

std::uint64_t Nanoseconds(serve::Clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

}  // namespace

TritonInstance::TritonInstance(TritonModel* model, TRITONBACKEND_ModelInstance* handle)
    : model_(model), handle_(handle), instance_(model->version(), model->placing()) {
  instance_.Prepare();
  if (model_->config().decoupled && !model_->version().state.empty())
    thread_ = std::thread([this] { RunSteps(); });
}

TritonInstance::~TritonInstance() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TritonInstance::Execute(Span<TRITONBACKEND_Request* const> requests) {
  if (!thread_.joinable()) {
    Take(requests);
    while (!running_.empty()) RunRound();
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    arrived_.insert(arrived_.end(), requests.begin(), requests.end());
  }
  wake_.notify_one();
}

void TritonInstance::RunSteps() {
  std::vector<TRITONBACKEND_Request*> taken;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !arrived_.empty() || !running_.empty(); });
      if (arrived_.empty() && running_.empty()) return;
      taken.swap(arrived_);
    }
    Take(taken);
    taken.clear();
    RunRound();
  }
}

void TritonInstance::Take(Span<TRITONBACKEND_Request* const> requests) {
  for (TRITONBACKEND_Request* const handle : requests) {
    if (unused_.empty()) unused_.push_back(std::make_unique<TritonRequest>());
    std::unique_ptr<TritonRequest> request = std::move(unused_.back());
    unused_.pop_back();
    request->status = Admit(request.get(), handle);
    TritonRequest* const admitted = request.get();
    running_.push_back(std::move(request));
    const serve::Clock::time_point now = serve::Clock::now();
    if (!admitted->status) End(admitted, {now, now, now, now});
  }
}

Status TritonInstance::Admit(TritonRequest* request, TRITONBACKEND_Request* handle) {
  const serve::ModelVersion& version = model_->version();
  request->first_run.reset();
  request->steps_left = 0;
  if (Status read = request->Read(version, handle); !read) return read;
  const Result<std::optional<std::uint64_t>> steps = request->Steps();
  if (!steps) return Forward(steps);
  if (*steps) {
    request->steps_left = **steps;
    if (Status begun = BeginSteps(request); !begun) return begun;
  }
  const bool in_sequence = serve::IsOfSequence(request->step);
  const bool is_step = in_sequence || *steps;
  if (in_sequence && !model_->config().sequences) {
    return Fail(StatusCode::kUnsupported,
                "sequence {} of model '{}': sequences need sequence_batching in its configuration",
                serve::SequenceName(request->step), version.name);
  }
  if (is_step) {
    if (Status added = serve::AddStateInputs(version, request); !added) return added;
  }
  // A request that is wrong by itself changes nothing, so it is no step of its sequence yet.
  if (Status good = serve::CheckRequest(version.signature, request, &sizes_, !is_step); !good) return good;
  if (in_sequence) {
    if (Status joined = model_->Join(request); !joined) return joined;
  }
  return request->MakeResponse(version, sizes_);
}

Status TritonInstance::BeginSteps(TritonRequest* request) {
  const ModelConfig& config = model_->config();
  if (!config.decoupled || model_->version().state.empty()) {
    return Fail(StatusCode::kUnsupported,
                "parameter 'steps': model '{}' gives one response a request; several take "
                "model_transaction_policy {{ decoupled: true }} and state",
                model_->version().name);
  }
  if (request->steps_left > config.most_steps) {
    return Fail(StatusCode::kInvalidArgument,
                "parameter 'steps': {} are the most (most_steps), {} are asked for", config.most_steps,
                request->steps_left);
  }
  if (serve::IsOfSequence(request->step)) return {};
  // A sequence of the request's own, which no other one can name.
  request->step.start = true;
  request->sequence = std::make_shared<serve::Sequence>();
  request->sequence->listed = false;
  request->sequence->steps = 1;
  return {};
}

void TritonInstance::RunRound() {
  // The usual case, without the rule of batches.
  if (running_.size() == 1) {
    serve::Request* const request = running_.front().get();
    return RunBatch({&request, 1}, RowsOf(*running_.front()));
  }
  waiting_.clear();
  for (const std::unique_ptr<TritonRequest>& request : running_) waiting_.push_back(request.get());
  while (!waiting_.empty()) {
    const serve::Batch batch = NextBatch();
    members_.clear();
    for (const std::size_t i : batch.members) members_.push_back(std::exchange(waiting_[i], nullptr));
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), nullptr), waiting_.end());
    RunBatch(members_,
             members_.size() > 1 ? batch.rows : RowsOf(static_cast<const TritonRequest&>(*members_.front())));
  }
}

// The queue is Triton's: what is here has come together.
serve::Batch TritonInstance::NextBatch() const {
  const serve::ModelVersion& version = model_->version();
  const serve::BatchSettings& batching = model_->config().settings.batching;
  if (version.state.empty()) return serve::ChooseBatch(batching, batching.max_batch_size, waiting_);
  serve::Batch batch;
  batch.members = {0};
  if (batching.max_batch_size == 0 || !serve::MayShareRun(version, *waiting_.front())) return batch;
  // Each is a step of another sequence.
  std::vector<serve::Request*> steps;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (!serve::MayShareRun(version, *waiting_[i])) continue;
    steps.push_back(waiting_[i]);
    places.push_back(i);
  }
  batch = serve::ChooseBatch(batching, batching.max_batch_size, steps);
  for (std::size_t& member : batch.members) member = places[member];
  return batch;
}

std::int64_t TritonInstance::RowsOf(const TritonRequest& request) const {
  const bool counts =
      model_->version().state.empty() && model_->config().settings.batching.max_batch_size != 0;
  return counts ? std::max<std::int64_t>(1, request.rows) : 1;
}

void TritonInstance::RunBatch(Span<serve::Request* const> members, std::int64_t rows) {
  std::optional<CancelWatch::Run> watched;
  if (members.size() == 1)
    watched.emplace(model_->watch(), &instance_, static_cast<TritonRequest*>(members[0]));
  const serve::RunTimes times = instance_.Run(members, rows, rows);
  watched.reset();
  LogError(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      handle_, static_cast<std::uint64_t>(rows), Nanoseconds(times.start), Nanoseconds(times.infer_start),
      Nanoseconds(times.infer_end), Nanoseconds(times.end)));
  for (serve::Request* const member : members) {
    auto* const request = static_cast<TritonRequest*>(member);
    request->PlaceResults();
    GoOn(request, times);
  }
}

void TritonInstance::GoOn(TritonRequest* request, const serve::RunTimes& times) {
  if (!request->first_run) request->first_run = times;
  if (request->status && request->steps_left > 1 && !IsStopped(*request->sequence)) {
    --request->steps_left;
    request->Send(false);
    request->status = NextStep(request);
    if (request->status) return;
  }
  const serve::RunTimes& first = *request->first_run;
  End(request, {first.start, first.infer_start, times.infer_end, times.end});
}

Status TritonInstance::NextStep(TritonRequest* request) {
  const serve::ModelVersion& version = model_->version();
  std::shared_ptr<serve::Sequence> sequence = request->sequence;
  Status read = request->Read(version, request->handle());
  request->sequence = std::move(sequence);
  if (!read) return read;
  // The client may have given the state at its beginning.
  request->step.start = false;
  const auto is_state = [&](const serve::InputTensor& input) {
    return std::any_of(version.state.begin(), version.state.end(), [&](const serve::StatePair& pair) {
      return version.signature.inputs[pair.input].name == input.name;
    });
  };
  auto& inputs = request->inputs;
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), is_state), inputs.end());
  if (Status added = serve::AddStateInputs(version, request); !added) return added;
  if (Status good = serve::CheckRequest(version.signature, request, &sizes_, false); !good) return good;
  return request->MakeResponse(version, sizes_);
}

bool TritonInstance::IsStopped(const serve::Sequence& sequence) {
  const serve::ModelVersion& version = model_->version();
  for (std::size_t i = 0; i < version.state.size(); ++i) {
    const auto stop = model_->config().stops.find(version.signature.outputs[version.state[i].output].name);
    if (stop == model_->config().stops.end()) continue;
    const std::uint64_t bytes = sequence.state[i].bytes;
    const std::byte* const data = instance_.StateOf(sequence, i);
    bool all = bytes > 0;
    for (std::uint64_t at = 0; all && at < bytes; at += sizeof stop->second)
      all = std::memcmp(data + at, &stop->second, sizeof stop->second) == 0;
    if (all) return true;
  }
  return false;
}

void TritonInstance::End(TritonRequest* request, const serve::RunTimes& times) {
  if (request->sequence != nullptr) model_->Leave(request);
  // The client may ask for statistics as soon as it has its answer.
  LogError(TRITONBACKEND_ModelInstanceReportStatistics(
      handle_, request->handle(), static_cast<bool>(request->status), Nanoseconds(times.start),
      Nanoseconds(times.infer_start), Nanoseconds(times.infer_end), Nanoseconds(times.end)));
  request->Send(true);
  request->Release();
  const auto place =
      std::find_if(running_.begin(), running_.end(), [&](const auto& one) { return one.get() == request; });
  unused_.push_back(std::move(*place));
  running_.erase(place);
}

}  // namespace rewire::triton
