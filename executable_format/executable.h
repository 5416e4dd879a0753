// SPDX-License-Identifier: Apache-2.0
// Executable: a module that the verifier accepted. Immutable, shared by any number of threads, Programs and
// VMs; a copy of the handle is a reference. It touches no device and loads no kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/limits.h"
#include "executable_format/module.h"

namespace rewire {

struct OpenOptions {
  FormatLimits limits;
  // Checks every constant's checksum while opening. Otherwise each is checked when it is copied or
  // decompressed, and constants used from the mapping are not read at all.
  bool verify_data = false;
  // Takes a copy of the whole, for hosts that cannot risk SIGBUS from a mapped file that shrinks, or whose
  // bytes do not outlive the executable.
  bool copy = false;
};

class REWIRE_API Executable {
 public:
  // Maps (or reads) a file, parses and verifies it.
  // Errors: kNotFound, kIo, kInvalidFile, kUnsupported, kVerificationFailed.
  static Result<Executable> Open(const std::string& path, const OpenOptions& options = {});
  // The same from memory. The bytes must not change; `bytes.owner` is kept as long as a constant lies in
  // them. Kernels read constants where they lie, at the file's alignment: bytes that do not start on a
  // multiple of 64 are copied where there are some, and not used after this returns. Also kOutOfMemory.
  static Result<Executable> FromBytes(const SharedBytes& bytes, const OpenOptions& options = {});
  // Verifies a module made in this process.
  static Result<Executable> FromModule(Module module, const FormatLimits& limits = {});

  const Module& module() const { return *module_; }
  std::optional<std::uint32_t> FindFunction(std::string_view name) const;

  // Equal for handles of one executable.
  bool operator==(const Executable& other) const { return module_ == other.module_; }

 private:
  explicit Executable(std::shared_ptr<const Module> module) : module_(std::move(module)) {}
  std::shared_ptr<const Module> module_;
};

}  // namespace rewire
