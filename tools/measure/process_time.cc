// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/measure/process_time.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace rewire::tools {
namespace {

std::chrono::nanoseconds OwnTime() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace

Result<std::chrono::nanoseconds> ProcessTime(std::optional<std::int32_t> process) {
  if (!process) return OwnTime();
  std::ifstream file(fmt::format("/proc/{}/stat", *process));
  std::string line;
  std::getline(file, line);
  // The name in parentheses may hold anything. Behind it, the first field is the state, which is number 3
  // (proc(5)), and the times are 14 and 15.
  const std::size_t end = line.rfind(')');
  if (!file || end == std::string::npos)
    return Fail(StatusCode::kNotFound, fmt::format("there is no process {}", *process));
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  std::int64_t user = 0, system = 0;
  fields >> user >> system;
  return std::chrono::nanoseconds((user + system) * (1'000'000'000 / sysconf(_SC_CLK_TCK)));
}

}  // namespace rewire::tools
