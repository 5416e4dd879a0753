// SPDX-License-Identifier: Apache-2.0
//
// One version of a model, loaded: a Program and what a server must know to run it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/generate/generator.h"
#include "rewire/serve/models/cache_layout.h"
#include "rewire/serve/models/model_files.h"
#include "rewire/serve/models/settings.h"
#include "rewire/serve/models/signature.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/program.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::serve {

struct ModelVersion {
  std::string name;
  std::string version;
  std::string platform;
  const ModelSettings& settings;  // lives as long as the service
  Program program;
  ModelSignature signature;
  std::vector<StatePair> state;                // empty: it keeps none
  Limits limits;                               // of one run
  std::unique_ptr<const Generator> generator;  // null: it makes no tokens
  std::optional<CacheLayout> cache;            // of the generator's state
  std::string origin;                          // of a model of ONNX: CompiledOnnx's; else empty
  std::string cache_problem;                   // the same
};

// Loads versions. What several of them use is in memory once: mapped files, sets of parameters, pools of
// threads. Thread-safe.
class ModelLoader {
 public:
  // `cache` is the folder of compiled models; empty: there is none.
  ModelLoader(LogSink log, KernelSet kernels, std::string cache = {})
      : log_(log), kernels_(std::move(kernels)), cache_(std::move(cache)) {}
  // Reads an executable, or compiles a model of ONNX, and links it. The settings must outlive the version.
  // Errors name the file. kInvalidArgument also if the settings ask for batches of a model that has no
  // dimension for them, or name state that it does not have.
  Result<std::shared_ptr<const ModelVersion>> Load(const std::string& name, const VersionFile& file,
                                                   const ModelSettings& settings);

 private:
  Result<Executable> Compiled(const std::string& path, const std::vector<std::string>& kernels,
                              std::string* origin, std::string* cache_problem) const;
  Result<ParameterSet> Parameters(const std::string& path);
  std::shared_ptr<ThreadPool> Threads(std::int32_t count);

  const LogSink log_;
  const KernelSet kernels_;
  const std::string cache_;
  std::mutex mutex_;
  std::map<std::string, ParameterSet> parameters_;
  std::map<std::int32_t, std::weak_ptr<ThreadPool>> pools_;
};

}  // namespace rewire::serve
