// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/triton_model.h"

#include <sys/stat.h>

#include <cstdint>
#include <utility>

#include "rewire/integrations/triton/status.h"
#include "rewire/serve/core/sequence_step.h"

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

}  // namespace rewire::triton
