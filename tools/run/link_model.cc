// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/link_model.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/log.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::tools {
Result<Program> LinkModel(const OpenedModel& model, const std::string& file, const LinkChoices& choices) {
  LinkOptions link;
  link.init_sharing = ShareInitResults();
  link.kernels = model.host_kernels;
  if (model.allocator) link.allocator = *model.allocator;
  std::vector<std::string> libraries = model.kernels;
  libraries.insert(libraries.end(), choices.kernels.begin(), choices.kernels.end());
  for (const std::string& library : libraries) {
    // A file of this name in the working folder is meant, as with every other option that takes a file.
    const bool is_file = library.find('/') == std::string::npos && access(library.c_str(), F_OK) == 0;
    if (Status added = link.kernels.AddLibrary(is_file ? "./" + library : library); !added)
      return Forward(added);
  }
  for (const std::string& path : model.has_parameters ? std::vector<std::string>() : choices.parameters) {
    Result<ParameterSet> set = ReadParameters(path);
    if (!set) return Forward(set);
    link.parameters.push_back(*std::move(set));
  }
  const auto cores = static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  link.threads = ThreadPool::Make(choices.threads == 0 ? cores : choices.threads);
  link.log = ProgramLog();
  link.storage_fill = choices.storage_fill;
  link.init_limits = choices.limits;
  link.trust_device_code = choices.trust_device_code;
  // 0 stands for the default there, no limit here.
  if (choices.limits.bytes != Limits().bytes)
    link.limits.bytes = std::max<std::uint64_t>(1, choices.limits.bytes);
  if (choices.deadline) link.limits.deadline = std::chrono::steady_clock::now() + *choices.deadline;
  Result<Program> program = Program::Link(model.executable, std::move(link));
  if (!program) return Forward(program, file);
  const Module& module = model.executable.module();
  Detail(fmt::format("linked {}: {} functions, {} kernels, {} constants", file, module.functions.size(),
                     module.kernels.size(), module.constants.size()));
  return program;
}

}  // namespace rewire::tools
