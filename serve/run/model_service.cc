// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/model_service.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "rewire/base/near_names.h"
#include "rewire/serve/models/model_files.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/held_sequence.h"
#include "rewire/serve/run/metrics.h"
#include "rewire/serve/run/model_queue.h"
#include "rewire/serve/run/worker_pool.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kMostWorkers = 256;

struct Model {
  std::vector<std::shared_ptr<ModelQueue>> versions;  // the newest last
  ModelState state = ModelState::kUnavailable;
  std::string reason;
};

class LoopLane : public Lane {
 public:
  void Add(const std::shared_ptr<ModelQueue>& queue) {
    if (std::find(queues_.begin(), queues_.end(), queue) == queues_.end()) queues_.push_back(queue);
  }
  void Run() override {
    // Finish does not submit, so nothing is added meanwhile.
    for (const std::shared_ptr<ModelQueue>& queue : queues_) queue->Start(true);
    queues_.clear();
  }

 private:
  std::vector<std::shared_ptr<ModelQueue>> queues_;
};

class ModelService : public Service {
 public:
  ModelService(ServeSettings settings, const ServiceHooks& hooks)
      : settings_(std::move(settings)),
        log_(hooks.server_log),
        traces_(settings_.trace_file, log_),
        loader_(hooks.log, hooks.kernels, settings_.cache),
        workers_(kMostWorkers) {
    runners_.workers = &workers_;
    runners_.alarms = &alarms_;
    runners_.traces = &traces_;
    runners_.log = log_;
    runners_.evicted = hooks.sequence_evicted;
  }

  Status LoadAll() {
    const auto found = FindModels(settings_);
    if (!found) return Forward(found);
    std::string errors;
    StatusCode code = StatusCode::kOk;
    for (const auto& [name, files] : *found) {
      if (Status loaded = LoadFiles(name, files); !loaded) {
        if (!errors.empty()) errors += "\n";
        errors += loaded.error().message();
        if (code == StatusCode::kOk) code = loaded.code();
      }
    }
    if (code != StatusCode::kOk) return Fail(code, errors);
    return {};
  }

  void Submit(Request* request, Lane* lane) override {
    runners_.in_flight.fetch_add(1, std::memory_order_relaxed);
    Result<std::shared_ptr<ModelQueue>> queue = request->held != nullptr
                                                    ? static_cast<const HeldSequence&>(*request->held).queue()
                                                    : Find(request->model, request->version);
    if (queue && runners_.draining) {
      queue = Fail(StatusCode::kBusy, "the server is ending and takes no more requests");
    }
    if (!queue) {
      request->status = Forward(queue);
      runners_.in_flight.fetch_sub(1, std::memory_order_relaxed);
      request->Finish();
      return;
    }
    request->program = *queue;
    if (!(*queue)->Enqueue(request)) return;
    if (lane != nullptr) {
      static_cast<LoopLane*>(lane)->Add(*queue);
    } else {
      (*queue)->Start(false);
    }
  }

  void Cancel(Request* request) override {
    if (request->program == nullptr) return;
    const std::shared_ptr<const void> queue = request->program;  // Finish may let go of it
    const_cast<ModelQueue*>(static_cast<const ModelQueue*>(queue.get()))->Cancel(request);
  }

  Result<std::shared_ptr<HeldModel>> HoldGenerator(std::string_view model) override {
    const Result<std::shared_ptr<ModelQueue>> queue = Find(model, {});
    if (!queue) return Forward(queue);
    if ((*queue)->model().generator == nullptr) {
      return Fail(StatusCode::kUnsupported,
                  "model '{}' makes no tokens: its settings have no generator (docs/serving.md)", model);
    }
    Result<std::shared_ptr<Sequence>> sequence = (*queue)->BeginHeld();
    if (!sequence) return Forward(sequence);
    return std::shared_ptr<HeldModel>(std::make_shared<HeldSequence>(*queue, *std::move(sequence)));
  }

  std::unique_ptr<Lane> MakeLane() override { return std::make_unique<LoopLane>(); }

  ServerDescription Describe() const override {
    return {"rewire",
            REWIRE_VERSION,
            {"binary_tensor_data", "classification", "generate", "logging", "model_configuration",
             "model_repository", "parameters", "schedule_policy", "sequence", "statistics",
             "system_shared_memory", "trace"}};
  }

  bool Ready() const override { return !runners_.draining; }

  Status CheckReady(std::string_view model, std::string_view version) const override {
    const auto queue = Find(model, version);
    return queue ? Status() : Forward(queue);
  }

  Result<ModelDescription> Describe(std::string_view model, std::string_view version) const override {
    const Result<std::shared_ptr<ModelQueue>> queue = Find(model, version);
    if (!queue) return Forward(queue);
    const ModelVersion& of = (*queue)->model();
    ModelDescription description;
    description.name = of.name;
    description.version = of.version;
    description.platform = of.platform;
    description.inputs = DescribeInputs(of.signature);
    description.outputs = DescribeOutputs(of.signature);
    description.batching = of.settings.batching;
    description.sequence = of.settings.sequence;
    description.sequence.state.clear();  // its patterns have become names
    for (const StatePair& pair : of.state) {
      description.sequence.state[of.signature.outputs[pair.output].name] =
          of.signature.inputs[pair.input].name;
    }
    description.generates = of.generator != nullptr;
    description.batchable = of.signature.batch_symbol.has_value();
    description.instances = (*queue)->instance_count();
    description.max_queue_size = of.settings.max_queue_size;
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    if (const auto found = models_.find(of.name); found != models_.end()) {
      for (const auto& one : found->second.versions) description.versions.push_back(one->model().version);
    }
    return description;
  }

  Result<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                  std::string_view version) const override {
    if (!model.empty() && !version.empty()) {
      const Result<std::shared_ptr<ModelQueue>> queue = Find(model, version);
      if (!queue) return Forward(queue);
      return std::vector<ModelStatistics>{(*queue)->Statistics()};
    }
    std::vector<ModelStatistics> list;
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      for (const auto& [name, entry] : models_) {
        if (!model.empty() && name != model) continue;
        for (const auto& queue : entry.versions) list.push_back(queue->Statistics());
      }
    }
    if (list.empty() && !model.empty()) return Forward(Find(model, version));
    return list;
  }

  std::vector<ModelIndexEntry> Index(bool ready_only) const override {
    std::vector<ModelIndexEntry> list;
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    for (const auto& [name, model] : models_) {
      for (const auto& queue : model.versions) {
        list.push_back({name, queue->model().version, ModelState::kReady, ""});
      }
      if (model.versions.empty() && !ready_only) list.push_back({name, "", model.state, model.reason});
    }
    return list;
  }

  Status Load(std::string_view model) override {
    if (Status allowed = CheckClientsLoad(); !allowed) return allowed;
    const std::lock_guard<std::mutex> one_at_a_time(loading_);
    const auto found = FindModels(settings_);
    if (!found) return Forward(found);
    const std::string name(model);
    const auto files = found->find(name);
    if (files == found->end()) return Unknown(model);
    return LoadFiles(name, files->second);
  }

  Status Unload(std::string_view model) override {
    if (Status allowed = CheckClientsLoad(); !allowed) return allowed;
    std::vector<std::shared_ptr<ModelQueue>> old;  // goes after the lock
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto found = models_.find(model);
    if (found == models_.end()) return UnknownOf(model);
    old.swap(found->second.versions);
    found->second.state = ModelState::kUnavailable;
    found->second.reason = "unloaded";
    WriteLog(log_, ServerLogLevel::kInfo, [&] { return "model " + std::string(model) + ": unloaded"; });
    return {};
  }

  SharedRegions& regions() override { return regions_; }
  Traces& traces() override { return traces_; }
  ServerLog* log() override { return log_; }

  void WriteMetrics(std::string* text) const override {
    const Result<std::vector<ModelStatistics>> statistics = Statistics({}, {});
    if (statistics) AppendMetrics(*statistics, text);
  }

  void StartDraining() override { runners_.draining = true; }
  std::size_t in_flight() const override { return runners_.in_flight; }

 private:
  Status CheckClientsLoad() const {
    if (settings_.let_clients_load) return {};
    return Fail(StatusCode::kUnsupported,
                "clients may not load or unload models here: start the server with --let-clients-load");
  }

  Status LoadFiles(const std::string& name, const std::vector<VersionFile>& files) {
    {
      const std::unique_lock<std::shared_mutex> lock(mutex_);
      Model& model = models_[name];
      if (model.versions.empty()) model.state = ModelState::kLoading;
    }
    std::vector<std::shared_ptr<ModelQueue>> versions;
    Status status;
    for (const VersionFile& file : files) {
      auto version = loader_.Load(name, file, settings_.Of(name));
      if (!version) {
        status = Forward(version);
        break;
      }
      versions.push_back(std::make_shared<ModelQueue>(*std::move(version), &runners_));
    }
    LogLoaded(name, versions, status);
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    Model& model = models_[name];
    if (status) {
      model.versions.swap(versions);
      model.state = ModelState::kReady;
      model.reason.clear();
    } else if (model.versions.empty()) {
      model.state = ModelState::kUnavailable;
      model.reason = status.error().message();
    }
    return status;
  }

  void LogLoaded(const std::string& name, const std::vector<std::shared_ptr<ModelQueue>>& versions,
                 const Status& status) const {
    if (!status) {
      WriteLog(log_, ServerLogLevel::kError,
               [&] { return "model " + name + ": cannot be loaded: " + status.error().message(); });
      return;
    }
    for (const auto& queue : versions) {
      const ModelVersion& model = queue->model();
      const std::string who = "model " + name + ", version " + model.version + ": ";
      WriteLog(log_, ServerLogLevel::kInfo,
               [&] { return who + "ready" + (model.origin.empty() ? "" : ", " + model.origin); });
      if (model.cache_problem.empty()) continue;
      WriteLog(log_, ServerLogLevel::kError, [&] { return who + model.cache_problem; });
    }
  }

  Status Unknown(std::string_view model) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return UnknownOf(model);
  }
  // With the lock.
  Status UnknownOf(std::string_view model) const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : models_) names.push_back(name);
    return Fail(StatusCode::kNotFound, "there is no model '{}'{}", model, KnownNames("models", model, names));
  }

  Result<std::shared_ptr<ModelQueue>> Find(std::string_view model, std::string_view version) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = models_.find(model);
    if (found == models_.end()) return UnknownOf(model);
    const auto& versions = found->second.versions;
    if (versions.empty()) {
      return Fail(StatusCode::kBusy, "model '{}' is not ready: {}", model,
                  found->second.reason.empty() ? std::string(ModelStateName(found->second.state))
                                               : found->second.reason);
    }
    if (version.empty()) return versions.back();
    for (const auto& queue : versions) {
      if (queue->model().version == version) return queue;
    }
    return Fail(StatusCode::kNotFound, "model '{}' has no version '{}' that is loaded; its newest is {}",
                model, version, versions.back()->model().version);
  }

  const ServeSettings settings_;
  ServerLog* const log_;
  Traces traces_;
  ModelLoader loader_;
  SharedRegions regions_;
  Runners runners_;
  mutable std::shared_mutex mutex_;
  std::mutex loading_;
  std::map<std::string, Model, std::less<>> models_;
  // Last, so that they end before what they use.
  Alarms alarms_;
  WorkerPool workers_;
};

}  // namespace

Result<std::unique_ptr<Service>> MakeService(ServeSettings settings, ServiceHooks hooks) {
  auto service = std::make_unique<ModelService>(std::move(settings), hooks);
  if (Status loaded = service->LoadAll(); !loaded) return Forward(loaded);
  return std::unique_ptr<Service>(std::move(service));
}

}  // namespace rewire::serve
