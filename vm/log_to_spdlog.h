// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/log_to_spdlog.h>.
//
// Forwards what Rewire logs (LinkOptions::log) to a logger of spdlog:
//
//     options.log = rewire::LogToSpdlog(*spdlog::default_logger());
//
// Rewire does not use spdlog, and no other public header includes this one. A host that includes it compiles
// and links spdlog itself.
#pragma once

#include <spdlog/logger.h>

#include <cstddef>

#include "rewire/vm/program.h"

namespace rewire {

// Each message becomes an entry of this level. The logger is borrowed: it must stay until the last Program
// that was linked with the sink is gone. Several threads may log at once, so the logger's sinks must be those
// of spdlog that end in `_mt`. What a sink throws goes to the logger's error handler.
template <spdlog::level::level_enum Level = spdlog::level::info>
LogSink LogToSpdlog(spdlog::logger& logger) {
  LogSink sink;
  sink.context = &logger;
  sink.write = [](void* context, const char* message, std::size_t size) {
    static_cast<spdlog::logger*>(context)->log(Level, spdlog::string_view_t(message, size));
  };
  return sink;
}

}  // namespace rewire
