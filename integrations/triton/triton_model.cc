// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/triton_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
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
  Result<std::shared_ptr<const serve::ModelVersion>> loaded =
      backend->loader->Load(name, {static_cast<std::int64_t>(version), *std::move(path)}, config->settings);
  if (!loaded) return Forward(loaded);
  if (complete) {
    json = CompleteConfig(*json, **loaded, backend->settings.default_max_batch_size);
    if (!json) return Forward(json);
    if (Status set = SetConfig(handle, *json); !set) return Forward(set);
  }
  if (Status good = CheckConfig(*json, **loaded); !good) return Forward(good);
  const Result<ModelConfig> completed = ReadModelConfig(*json, folder);
  if (!completed) return Forward(completed);
  std::unique_ptr<TritonModel> model(new TritonModel(backend, *std::move(loaded)));
  model->batching_ = completed->settings.batching;
  return model;
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
    if (request.status) {
      waiting_.push_back(&request);
    } else {
      Refuse(&request);
    }
  }
  while (!waiting_.empty()) {
    // The queue is Triton's: what has come together runs together, if the shapes let it.
    const serve::Batch batch =
        version.state.empty() ? serve::ChooseBatch(model_->batching(), waiting_) : serve::Batch{{0}};
    members_.clear();
    for (const std::size_t i : batch.members) members_.push_back(std::exchange(waiting_[i], nullptr));
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), nullptr), waiting_.end());
    RunTogether(members_, std::max<std::int64_t>(1, batch.rows));
  }
}

Status TritonInstance::Admit(TritonRequest* request, TRITONBACKEND_Request* handle) {
  const serve::ModelVersion& version = model_->version();
  if (Status read = request->Read(version, handle); !read) return read;
  const bool is_step = serve::IsOfSequence(request->step);
  if (is_step) {
    if (Status added = serve::AddStateInputs(version, request); !added) return added;
  }
  // A request that is wrong by itself changes nothing, so it is no step of its sequence yet.
  if (Status good = serve::CheckRequest(version.signature, request, &sizes_, !is_step); !good) return good;
  if (is_step) {
    if (Status joined = model_->Join(request); !joined) return joined;
  }
  return request->MakeResponse(version, sizes_);
}

void TritonInstance::RunTogether(const std::vector<serve::Request*>& members, std::int64_t rows) {
  serve::RunTimes times;
  if (members.size() == 1) {
    const CancelWatch::Run watched(model_->watch(), &instance_, static_cast<TritonRequest*>(members[0]));
    times = instance_.Run(members, rows, rows);
  } else {
    times = instance_.Run(members, rows, rows);
  }
  for (serve::Request* member : members) {
    auto* const request = static_cast<TritonRequest*>(member);
    if (request->sequence != nullptr) model_->Leave(request);
    request->Send();
    Report(request, times);
    request->Release();
  }
  LogError(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      handle_, static_cast<std::uint64_t>(rows), Nanoseconds(times.start), Nanoseconds(times.infer_start),
      Nanoseconds(times.infer_end), Nanoseconds(times.end)));
}

void TritonInstance::Refuse(TritonRequest* request) {
  if (request->sequence != nullptr) model_->Leave(request);
  request->Send();
  const serve::Clock::time_point now = serve::Clock::now();
  Report(request, {now, now, now, now});
  request->Release();
}

void TritonInstance::Report(TritonRequest* request, const serve::RunTimes& times) {
  LogError(TRITONBACKEND_ModelInstanceReportStatistics(
      handle_, request->handle(), static_cast<bool>(request->status), Nanoseconds(times.start),
      Nanoseconds(times.infer_start), Nanoseconds(times.infer_end), Nanoseconds(times.end)));
}

}  // namespace rewire::triton
