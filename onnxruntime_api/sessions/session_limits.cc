// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/session_limits.h"

#include <charconv>
#include <cstdint>

namespace rewire::onnxruntime_api {
namespace {

constexpr std::uint64_t kMostMilliseconds = std::uint64_t{1} << 31;

// Leaves `number` as it is if the session has no such entry.
Status Read(const std::map<std::string, std::string>& config, const std::string& key, std::uint64_t most,
            std::uint64_t* number) {
  const auto found = config.find(key);
  if (found == config.end()) return {};
  const std::string& text = found->second;
  std::uint64_t read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc() || end != text.data() + text.size() || read > most)
    return Fail(StatusCode::kInvalidArgument,
                "the session config entry '{}' is '{}', expected a number up to {}", key, text, most);
  *number = read;
  return {};
}

}  // namespace

Result<SessionLimits> ReadLimits(const std::map<std::string, std::string>& config) {
  SessionLimits limits;
  std::uint64_t run_ms = 0, load_ms = 0, zero = 0;
  struct Entry {
    const char* key;
    std::uint64_t most;
    std::uint64_t* number;
  };
  const Entry entries[] = {{"session.rewire_max_bytes", UINT64_MAX, &limits.run.bytes},
                           {"session.rewire_max_steps", UINT64_MAX, &limits.run.steps},
                           {"session.rewire_max_run_ms", kMostMilliseconds, &run_ms},
                           {"session.rewire_max_load_ms", kMostMilliseconds, &load_ms},
                           {"session.rewire_zero_memory", 1, &zero}};
  for (const auto& [key, most, number] : entries) {
    if (Status read = Read(config, key, most, number); !read) return Forward(read);
  }
  limits.run_time = std::chrono::milliseconds(run_ms);
  limits.load_time = std::chrono::milliseconds(load_ms);
  limits.zero_memory = zero != 0;
  return limits;
}

}  // namespace rewire::onnxruntime_api
