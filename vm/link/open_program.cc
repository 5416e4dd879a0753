// SPDX-License-Identifier: Apache-2.0
//
// Apart from program.cc, so that a program has the reader and the verifier only if it opens files.
#include <utility>

#include "rewire/vm/program.h"

namespace rewire {

Result<Program> Program::TryOpen(const std::string& path, LinkOptions options) {
  const Result<Executable> executable = Executable::Open(path);
  if (!executable) return Forward(executable);
  return Link(*executable, std::move(options));
}

}  // namespace rewire
