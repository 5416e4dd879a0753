// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/triton_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "rewire/integrations/triton/status.h"
#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/run/batch_rule.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::triton {
namespace {

bool IsFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<std::string> FileOf(const std::string& folder, const std::string& given) {
  if (!given.empty()) return folder + "/" + given;
  for (const char* name : {"model.rwx", "model.onnx"}) {
    if (std::string path = folder + "/" + name; IsFile(path)) return path;
  }
  return Fail(StatusCode::kNotFound, "{}: model.rwx or model.onnx is expected, or default_model_filename",
              folder);
}

Result<std::string> ConfigOf(TRITONBACKEND_Model* handle) {
  TRITONSERVER_Message* message = nullptr;
  if (Status got = Taken(TRITONBACKEND_ModelConfig(handle, 1, &message)); !got) return Forward(got);
  const char* text = nullptr;
  std::size_t size = 0;
  const Status got = Taken(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
  std::string json;
  if (got) json.assign(text, size);
  LogError(TRITONSERVER_MessageDelete(message));
  if (!got) return Forward(got);
  return json;
}

Status SetConfig(TRITONBACKEND_Model* handle, const std::string& json) {
  TRITONSERVER_Message* message = nullptr;
  if (Status made = Taken(TRITONSERVER_MessageNewFromSerializedJson(&message, json.data(), json.size()));
      !made)
    return made;
  Status set = Taken(TRITONBACKEND_ModelSetConfig(handle, 1, message));
  LogError(TRITONSERVER_MessageDelete(message));
  return set;
}

std::uint64_t Nanoseconds(serve::Clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

}  // namespace

Result<std::unique_ptr<TritonModel>> TritonModel::Load(TritonBackend* backend, TRITONBACKEND_Model* handle) {
  const char* name = nullptr;
  const char* repository = nullptr;
  std::uint64_t version = 0;
  int kind = 0;
  bool complete = false;
  if (Status got = Taken(TRITONBACKEND_ModelName(handle, &name)); !got) return Forward(got);
  if (Status got = Taken(TRITONBACKEND_ModelVersion(handle, &version)); !got) return Forward(got);
  if (Status got = Taken(TRITONBACKEND_ModelRepository(handle, &kind, &repository)); !got)
    return Forward(got);
  if (Status got = Taken(TRITONBACKEND_ModelAutoCompleteConfig(handle, &complete)); !got) return Forward(got);
  const std::string folder = std::string(repository) + "/" + std::to_string(version);
  Result<std::string> json = ConfigOf(handle);
  if (!json) return Forward(json);
  const Result<ModelConfig> config = ReadModelConfig(*json, folder);
  if (!config) return Forward(config);
  Result<std::string> path = FileOf(folder, config->file);
  if (!path) return Forward(path);
  auto settings = std::make_unique<const serve::ModelSettings>(config->settings);
  Result<std::shared_ptr<const serve::ModelVersion>> loaded =
      backend->loader->Load(name, {static_cast<std::int64_t>(version), *std::move(path)}, *settings);
  if (!loaded) return Forward(loaded);
  if (complete) {
    json = CompleteConfig(*json, **loaded, backend->settings.default_max_batch_size);
    if (!json) return Forward(json);
    if (Status set = SetConfig(handle, *json); !set) return Forward(set);
  }
  Result<ModelConfig> completed = ReadModelConfig(*json, folder);
  if (!completed) return Forward(completed);
  if (Status good = CheckConfig(*json, *completed, **loaded); !good) return Forward(good);
  return std::unique_ptr<TritonModel>(
      new TritonModel(backend, std::move(settings), *std::move(loaded), *std::move(completed)));
}

Status TritonModel::Join(TritonRequest* request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sequences_.EndIdle(serve::Clock::now());
  if (Status joined = sequences_.Join(request); !joined) return joined;
  if (serve::Sequences::MayRun(*request)) {
    serve::Sequences::Begin(request);
    return {};
  }
  request->status = Fail(StatusCode::kBusy, "sequence {} of model '{}' runs another step",
                         serve::SequenceName(request->step), version_->name);
  sequences_.Leave(request, false, serve::Clock::now());
  return request->status;
}

void TritonModel::Leave(TritonRequest* request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sequences_.Leave(request, true, serve::Clock::now());
}

void TritonInstance::Execute(TRITONBACKEND_Request** requests, std::uint32_t count) {
  while (requests_.size() < count) requests_.push_back(std::make_unique<TritonRequest>());
  const serve::ModelVersion& version = model_->version();
  waiting_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    TritonRequest& request = *requests_[i];
    request.status = Admit(&request, requests[i]);
    if (!request.status) {
      const serve::Clock::time_point now = serve::Clock::now();
      End(&request, {now, now, now, now});
    } else if (steps_ > 0) {
      RunSteps(&request);
    } else {
      waiting_.push_back(&request);
    }
  }
  while (!waiting_.empty()) {
    if (waiting_.size() == 1) {
      auto* const request = static_cast<TritonRequest*>(waiting_.front());
      waiting_.clear();
      End(request, RunOne(request, RowsOf(*request)));
      return;
    }
    // The queue is Triton's: what has come together runs together, if the shapes let it. Steps of sequences
    // run alone.
    serve::Batch batch;
    batch.members = {0};
    if (version.state.empty()) {
      const serve::BatchSettings& settings = model_->config().settings.batching;
      batch = serve::ChooseBatch(settings, settings.max_batch_size, waiting_);
    }
    members_.clear();
    for (const std::size_t i : batch.members) members_.push_back(std::exchange(waiting_[i], nullptr));
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), nullptr), waiting_.end());
    if (members_.size() > 1) {
      RunBatch(batch.rows);
    } else {
      auto* const request = static_cast<TritonRequest*>(members_[0]);
      End(request, RunOne(request, RowsOf(*request)));
    }
  }
}

std::int64_t TritonInstance::RowsOf(const TritonRequest& request) const {
  const bool counts =
      model_->version().state.empty() && model_->config().settings.batching.max_batch_size != 0;
  return counts ? std::max<std::int64_t>(1, request.rows) : 1;
}

Status TritonInstance::Admit(TritonRequest* request, TRITONBACKEND_Request* handle) {
  const serve::ModelVersion& version = model_->version();
  if (Status read = request->Read(version, handle); !read) return read;
  const Result<std::optional<std::uint64_t>> steps = request->Steps();
  if (!steps) return Forward(steps);
  steps_ = steps->value_or(0);
  if (steps_ > 0) {
    if (Status begun = BeginSteps(request); !begun) return begun;
  }
  const bool in_sequence = serve::IsOfSequence(request->step);
  const bool is_step = in_sequence || steps_ > 0;
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
  if (steps_ > config.most_steps) {
    return Fail(StatusCode::kInvalidArgument,
                "parameter 'steps': {} are the most (most_steps), {} are asked for", config.most_steps,
                steps_);
  }
  if (serve::IsOfSequence(request->step)) return {};
  // A sequence of the request's own, which no other one can name.
  request->step.start = true;
  request->sequence = std::make_shared<serve::Sequence>();
  request->sequence->listed = false;
  request->sequence->steps = 1;
  return {};
}

void TritonInstance::RunSteps(TritonRequest* request) {
  serve::RunTimes times = RunOne(request);
  const serve::RunTimes first = times;
  for (std::uint64_t left = steps_ - 1; request->status && left > 0 && !IsStopped(*request->sequence);
       --left) {
    request->Send(false);
    request->status = NextStep(request);
    if (request->status) times = RunOne(request);
  }
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

bool TritonInstance::IsStopped(const serve::Sequence& sequence) const {
  const serve::ModelVersion& version = model_->version();
  for (std::size_t i = 0; i < version.state.size(); ++i) {
    const auto stop = model_->config().stops.find(version.signature.outputs[version.state[i].output].name);
    if (stop == model_->config().stops.end()) continue;
    const serve::StateTensor& tensor = sequence.state[i];
    bool all = tensor.bytes > 0;
    for (std::uint64_t at = 0; all && at < tensor.bytes; at += sizeof stop->second)
      all = std::memcmp(tensor.data + at, &stop->second, sizeof stop->second) == 0;
    if (all) return true;
  }
  return false;
}

serve::RunTimes TritonInstance::RunOne(TritonRequest* request, std::int64_t rows) {
  serve::Request* const member = request;
  const CancelWatch::Run watched(model_->watch(), &instance_, request);
  const serve::RunTimes times = instance_.Run({&member, 1}, rows, rows);
  request->PlaceResults();
  ReportRun(rows, times);
  return times;
}

void TritonInstance::RunBatch(std::int64_t rows) {
  const serve::RunTimes times = instance_.Run(members_, rows, rows);
  ReportRun(rows, times);
  for (serve::Request* member : members_) {
    auto* const request = static_cast<TritonRequest*>(member);
    request->PlaceResults();
    End(request, times);
  }
}

void TritonInstance::End(TritonRequest* request, const serve::RunTimes& times) {
  if (request->sequence != nullptr) model_->Leave(request);
  // The client may ask for statistics as soon as it has its answer.
  LogError(TRITONBACKEND_ModelInstanceReportStatistics(
      handle_, request->handle(), static_cast<bool>(request->status), Nanoseconds(times.start),
      Nanoseconds(times.infer_start), Nanoseconds(times.infer_end), Nanoseconds(times.end)));
  request->Send(true);
  request->Release();
}

void TritonInstance::ReportRun(std::int64_t rows, const serve::RunTimes& times) {
  LogError(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      handle_, static_cast<std::uint64_t>(rows), Nanoseconds(times.start), Nanoseconds(times.infer_start),
      Nanoseconds(times.infer_end), Nanoseconds(times.end)));
}

}  // namespace rewire::triton
