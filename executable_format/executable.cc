// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/executable.h"

#include <algorithm>
#include <utility>

#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/verifier.h"

namespace rewire {
namespace {

Status ReadVerified(const SharedBytes& bytes, const OpenOptions& options, Module* module) {
  if (Status read = ReadModuleInto(bytes, nullptr, options, module); !read) return read;
  return VerifyModule(*module, options.limits);
}

// A module refers to the file only for its constants, and only they need alignment. Without constants nothing
// is copied.
Status AlignConstants(const SharedBytes& file, Module* module) {
  const auto is_stored = [](const Constant& constant) { return !constant.stored.view.empty(); };
  if (std::ranges::none_of(module->constants, is_stored)) return {};
  const Result<SharedBytes> copy = AlignedCopy(file.view);
  if (!copy) return Forward(copy);
  for (Constant& constant : module->constants) {
    if (!is_stored(constant)) continue;
    const Span<const std::byte> view = constant.stored.view;
    constant.stored = {{copy->view.data() + (view.data() - file.view.data()), view.size()}, copy->owner};
  }
  return {};
}

}  // namespace

Result<Executable> Executable::Open(const std::string& path, const OpenOptions& options) {
  Result<SharedBytes> bytes = options.copy ? ReadFile(path) : MapFile(path);
  if (!bytes) return Forward(bytes);
  auto module = std::make_shared<Module>();
  if (Status read = ReadVerified(*bytes, options, module.get()); !read) return Forward(read, path);
  return Executable(std::move(module));
}

Result<Executable> Executable::FromBytes(const SharedBytes& bytes, const OpenOptions& options) {
  Result<SharedBytes> used = options.copy ? AlignedCopy(bytes.view) : bytes;
  if (!used) return Forward(used);
  auto module = std::make_shared<Module>();
  if (Status read = ReadVerified(*used, options, module.get()); !read) return read;
  if (!IsAligned(used->view, kDataAlignment)) {
    if (Status moved = AlignConstants(*used, module.get()); !moved) return moved;
  }
  return Executable(std::move(module));
}

Result<Executable> Executable::FromModule(Module module, const FormatLimits& limits) {
  if (Status verified = VerifyModule(module, limits); !verified) return Forward(verified);
  for (Constant& constant : module.constants) {
    // A checksum that a file has is kept: the constant's bytes need not be read for that.
    if (constant.checksum == 0) constant.checksum = Hash64(constant.stored.view);
  }
  return Executable(std::make_shared<const Module>(std::move(module)));
}

}  // namespace rewire
