// SPDX-License-Identifier: Apache-2.0
//
// The log of the process that serves, and the extension "logging" of the Open Inference Protocol.
#pragma once

#include <cstdint>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

enum class ServerLogLevel : std::uint8_t { kOff, kError, kInfo, kDebug };

// The host's log, with a level that clients may set. Thread-safe.
class ServerLog {
 public:
  virtual ~ServerLog() = default;
  // Entries above the level are not written. It is asked for each request, so it is cheap.
  virtual ServerLogLevel level() const = 0;
  virtual void SetLevel(ServerLogLevel level) = 0;
  virtual void Write(ServerLogLevel level, std::string_view text) = 0;
};

// Writes a text if there is a log and its level is high enough. `text` makes it only then.
template <typename Text>
void WriteLog(ServerLog* log, ServerLogLevel level, const Text& text) {
  if (log != nullptr && log->level() >= level) log->Write(level, text());
}

// The settings as the protocol has them. Not among them, because they have one value here: log_file is empty,
// log_format is "default".
struct LogSettings {
  bool error = false;
  bool warning = false;  // as `error`: there are no warnings
  bool info = false;
  std::uint32_t verbose = 0;  // 1: each request
};
LogSettings SettingsOfLog(const ServerLog& log);

// Sets the level that the settings ask for. A flag that is set turns on those below it, unless they are
// turned off beside it. Errors: kUnsupported without a log, for settings that no level stands for, and for a
// file or format. kInvalidArgument for a setting that does not exist, and for a value of another kind.
Status ChangeLog(Span<const Parameter> changes, ServerLog* log);

}  // namespace rewire::serve
