// SPDX-License-Identifier: Apache-2.0
// log [MODEL]: links the model with a log that goes to a logger of spdlog, and prints what that got.
#include <rewire/vm/log_to_spdlog.h>
#include <rewire/vm/vm.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cstdio>
#include <memory>
#include <sstream>

int main(int argc, char** argv) try {
  std::ostringstream text;
  spdlog::logger logger("model", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  logger.set_pattern("%n: %l: %v");
  const rewire::LogSink sink = rewire::LogToSpdlog(logger);
  sink.write(sink.context, "{} is no placeholder; this is cut", 20);
  if (text.str() != "model: info: {} is no placeholder\n") return 1;
  if (argc < 2) return 0;

  text.str("");
  rewire::LinkOptions options;
  options.log = rewire::LogToSpdlog<spdlog::level::warn>(logger);
  const rewire::Program program = rewire::Program::Open(argv[1], options);
  std::printf("%s", text.str().c_str());
  return 0;
} catch (const rewire::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
