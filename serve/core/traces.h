// SPDX-License-Identifier: Apache-2.0
//
// The extension "trace" of the Open Inference Protocol: the times of requests, in a file.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/server_log.h"

namespace rewire::serve {

// A setting as the protocol has it: trace_level, trace_rate and so on.
struct TraceSetting {
  std::string name;
  std::vector<std::string> values;  // one, but for trace_level; none: clear it
};

// The times of one request.
struct RequestTimes {
  Clock::time_point start;  // it has arrived and waits
  Clock::time_point compute_start;
  Clock::time_point infer_start;
  Clock::time_point infer_end;
  Clock::time_point compute_end;
};

// Thread-safe.
class Traces {
 public:
  // Requests are traced into this file, which is written anew when the first ones are asked for. Empty: none
  // can be. The log, if there is one, is told of an error of writing, which ends all tracing.
  explicit Traces(std::string file, ServerLog* log = nullptr) : file_path_(std::move(file)), log_(log) {}
  // Ends the file's list, so that it is JSON.
  ~Traces();
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // The settings of a model, or those of all models that have none of their own if the name is empty.
  std::vector<TraceSetting> Settings(std::string_view model) const;
  // Changes all of them or, on an error, none. Errors: kInvalidArgument for a setting that does not exist and
  // for a wrong value; kUnsupported for what this server does not trace; kIo for a file that cannot be
  // opened.
  Status Change(std::string_view model, Span<const TraceSetting> changes);

  // Counts a request, and writes its times if it is the one in trace_rate.
  void Record(std::string_view model, std::string_view version, std::string_view id,
              const RequestTimes& times);

 private:
  static constexpr std::int64_t kUnset = -2;  // a model has the value of all models
  struct Values {
    std::int64_t timestamps = kUnset;  // 0 or 1
    std::int64_t rate = kUnset;
    std::int64_t count = kUnset;  // that are still to be traced; -1: no limit
    std::int64_t seen = 0;        // requests since the last change
  };
  static std::int64_t Chosen(std::int64_t own, std::int64_t of_all) { return own == kUnset ? of_all : own; }
  Status ChangeOne(const TraceSetting& change, bool of_model, Values* values) const;
  Status Open();
  void Write(std::string_view model, std::string_view version, std::string_view id,
             const RequestTimes& times);
  void Stop();

  const std::string file_path_;
  ServerLog* const log_;
  std::atomic<bool> active_{false};  // some level is not OFF
  mutable std::mutex mutex_;
  Values all_{0, 1000, -1, 0};
  std::map<std::string, Values, std::less<>> models_;
  std::FILE* file_ = nullptr;
  std::uint64_t written_ = 0;
};

}  // namespace rewire::serve
