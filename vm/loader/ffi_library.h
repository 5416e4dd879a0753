// SPDX-License-Identifier: Apache-2.0
// A kernel library of the tvm-ffi ABI.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/array.h"
#include "vm/loader/context_functions.h"
#include "vm/loader/elf_file.h"
#include "vm/loader/kernel_set.h"
#include "vm/loader/kernel_table.h"

namespace rewire {

class FfiLibrary : public KernelSource,
                   public LibraryContext,
                   public std::enable_shared_from_this<FfiLibrary> {
 public:
  // Loads `path`, whose symbols are in `elf`, and fills in the variables through which it calls back.
  // kUnsupported when it needs something that is not provided, kIo with dlerror's text.
  static Result<std::shared_ptr<const KernelSource>> Load(const std::string& path, const ElfFile& elf);
  ~FfiLibrary() override;

  Found Find(const std::string& name) const override;
  Array<std::string> Names() const override;
  std::string Description() const override;
  Notes Describe(const std::string& name) const override;

  // A function object: the library's own function or, failing that, one of the runtime's registry.
  void* LookUp(const std::string& name) const override;

 private:
  FfiLibrary(std::string path, void* handle);
  Status Initialise(const ElfFile& elf);
  RewirePackedFunction Function(const std::string& symbol) const;
  std::string CallForText(const std::string& symbol) const;
  static KernelError TakeError(const void* library);

  std::string path_;
  void* handle_;
  void (*move_from_raised_)(void** error);  // the runtime's; null when there is none
  void** context_ = nullptr;                // the library's __tvm_ffi__library_ctx
  std::optional<KernelTableIndex> table_;
  const RewireKernelWorkspaces* workspaces_ = nullptr;  // null when it declares none
  Array<std::string> symbols_;                          // functions exported one by one
  mutable std::mutex mutex_;
  mutable std::map<std::string, RewireFFIObject*> looked_up_;
};

}  // namespace rewire
