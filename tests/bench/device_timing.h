// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of devices share this: they stop with a message at the first failure.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/bench/statistics.h"
#include "rewire/vm/vm.h"

namespace rewire::bench {

[[noreturn]] inline void Stop(const std::string& message) {
  fmt::print(stderr, "bench-device: {}\n", message);
  std::exit(1);
}

inline void Check(bool ok, const char* what) {
  if (!ok) Stop(fmt::format("{} failed", what));
}

template <typename T>
T Taken(Result<T> result) {
  if (!result) Stop(result.error().message());
  return *std::move(result);
}

inline void Done(const Status& status) {
  if (!status) Stop(status.error().message());
}

inline double Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

template <typename Body>
double Timed(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return Nanoseconds(std::chrono::steady_clock::now() - start);
}

inline std::string Text(const Summary& is, double scale, const char* unit) {
  return fmt::format("{:.3g} {} ({:.3g} to {:.3g})", is.median / scale, unit, is.low / scale,
                     is.high / scale);
}

inline Program ProgramOf(const std::string& text) {
  return Taken(Program::Link(Taken(Executable::FromModule(Taken(Assemble(text))))));
}

}  // namespace rewire::bench
