// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/executable.h>.
//
// Executable: a module that the verifier has accepted.
//
// It is immutable, and any number of threads, Programs and VMs may share it. Copying the handle only adds a
// reference. An Executable touches no device and loads no kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/limits.h"
#include "rewire/executable_format/module.h"

namespace rewire {

struct OpenOptions {
  FormatLimits limits;
  // Checks every constant's checksum while opening. Otherwise a checksum is checked when its constant is
  // copied or decompressed, and constants that are used in place are never checked.
  bool verify_data = false;
  // Copies the whole file into memory. For hosts that cannot risk SIGBUS when a mapped file shrinks, or whose
  // bytes do not outlive the executable.
  bool copy = false;
};

class REWIRE_API Executable {
 public:
  // Maps (or reads) a file, parses it and verifies it. Errors: kNotFound, kIo, kInvalidFile, kUnsupported,
  // kVerificationFailed.
  static Result<Executable> Open(const std::string& path, const OpenOptions& options = {});
  // The same from memory. The bytes must not change. `bytes.owner` is kept for as long as a constant lies in
  // them.
  //
  // Kernels read constants in place and rely on the file's alignment. So if the bytes do not start at a
  // multiple of 64 and hold constants, they are copied, and the original is not used after this returns.
  // Errors: also kOutOfMemory.
  static Result<Executable> FromBytes(const SharedBytes& bytes, const OpenOptions& options = {});
  // Verifies a module that was made in this process.
  static Result<Executable> FromModule(Module module, const FormatLimits& limits = {});

  const Module& module() const { return *module_; }
  std::optional<std::uint32_t> FindFunction(std::string_view name) const;

  // True if both handles refer to the same executable.
  bool operator==(const Executable& other) const { return module_ == other.module_; }

 private:
  friend class BundleReader;
  explicit Executable(std::shared_ptr<const Module> module) : module_(std::move(module)) {}
  std::shared_ptr<const Module> module_;
};

}  // namespace rewire
