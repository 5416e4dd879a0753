// SPDX-License-Identifier: Apache-2.0
//
// Profile writes a file of what sessions and kernels took, as ONNX Runtime does. Its format is the Trace
// Event Format, as an array: chrome://tracing and ui.perfetto.dev open it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/vm/observer.h"

namespace rewire::onnxruntime_api {

// Several threads may add to one.
class Profile {
 public:
  // Begins now. The file is called PREFIX_YYYY-MM-DD_HH-MM-SS_mmm.json, by the local time.
  explicit Profile(const std::string& prefix);

  // When it began, as nanoseconds since 1970.
  std::uint64_t start_ns() const { return start_ns_; }

  // Nanoseconds of the clock that events have.
  static std::int64_t Now();

  // Adds what a session did, such as "model_run".
  void AddSession(const char* name, std::int64_t begin_ns, std::int64_t end_ns);
  void AddKernel(const Observer::KernelCall& call);

  // Writes the file and gives its name. Later calls write nothing and give an empty name.
  OrtStatus* Finish(std::string* file);

 private:
  struct Event {
    const char* category;
    std::string name;
    std::int64_t begin_ns, end_ns;
    long thread;
    std::string kernel;     // of a kernel: its name
    std::string arguments;  // and the types and shapes of its arguments, as JSON
  };
  void Add(Event event);

  const std::string file_;
  const std::uint64_t start_ns_;
  const std::int64_t origin_ns_;
  std::mutex mutex_;
  bool finished_ = false;
  std::size_t dropped_ = 0;
  std::vector<Event> events_;
};

}  // namespace rewire::onnxruntime_api
