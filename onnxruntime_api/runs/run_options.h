// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/vm/virtual_machine.h"

struct OrtRunOptions {
  std::string tag;
  std::string profile_prefix;  // empty: no profile of the run
  std::map<std::string, std::string> config;
  int log_verbosity = 0;
  int log_severity = -1;  // that of the session
  std::atomic<bool> terminate{false};

  // VMs that run under these options, so that another thread can end them.
  mutable std::mutex mutex;
  mutable std::vector<rewire::VirtualMachine*> running;
};

namespace rewire::onnxruntime_api {

// While this lives, the VM ends when a thread sets terminate. `options` may be null.
class RunUnder {
 public:
  RunUnder(const OrtRunOptions* options, VirtualMachine* vm);
  ~RunUnder();
  RunUnder(const RunUnder&) = delete;
  RunUnder& operator=(const RunUnder&) = delete;

  bool terminated() const { return options_ != nullptr && options_->terminate.load(); }

 private:
  const OrtRunOptions* options_;
  VirtualMachine* vm_;
};

}  // namespace rewire::onnxruntime_api
