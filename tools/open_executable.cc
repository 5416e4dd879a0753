// SPDX-License-Identifier: Apache-2.0
#include "tools/open_executable.h"

#include <utility>

#include "executable_format/text/assembler.h"

namespace rewire::tools {

Result<Executable> OpenExecutable(const std::string& path, const OpenOptions& options) {
  if (!path.ends_with(".asm")) return Executable::Open(path, options);
  Result<Module> module = AssembleFile(path);
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module), options.limits);
  if (!executable) return Forward(executable, path);
  return executable;
}

}  // namespace rewire::tools
