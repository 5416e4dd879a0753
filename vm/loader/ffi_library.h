// SPDX-License-Identifier: Apache-2.0
// A kernel library of the tvm-ffi ABI.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "rewire/base/array.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/loader/context_functions.h"
#include "rewire/vm/loader/device_code.h"
#include "rewire/vm/loader/elf_file.h"
#include "rewire/vm/loader/kernel_table.h"

namespace rewire {

class FfiLibrary : public KernelSource,
                   public LibraryContext,
                   public std::enable_shared_from_this<FfiLibrary> {
 public:
  // Loads `path`, whose symbols are in `elf`, and sets the variables through which it calls back. Errors:
  // kUnsupported if it needs something that is not provided; kIo with the text of dlerror.
  static Result<std::shared_ptr<const KernelSource>> Load(const std::string& path, const ElfFile& elf);
  ~FfiLibrary() override;

  Found Find(const std::string& name) const override;
  Array<std::string> Names() const override;
  std::string Description() const override;
  Notes Describe(const std::string& name) const override;

  // Returns a function object: the library's own function, its device code, or else a function of the
  // runtime's registry.
  void* LookUp(const std::string& name) const override;

 private:
  FfiLibrary(std::string path, Array<std::unique_ptr<DeviceCode>> device_code, void* handle);
  Status Initialize(const ElfFile& elf);
  RewirePackedFunction Function(const std::string& symbol) const;
  const DeviceCode::Kernel* FindDeviceKernel(const std::string& name) const;
  std::string CallForText(const std::string& symbol) const;
  static KernelError TakeError(const void* library);

  std::string path_;
  Array<std::unique_ptr<DeviceCode>> device_code_;
  void* handle_;
  void (*move_from_raised_)(void** error);  // of the runtime; null if it has none
  void** context_ = nullptr;                // the library's __tvm_ffi__library_ctx
  std::optional<KernelTableIndex> table_;
  Array<std::string> symbols_;  // functions exported one by one
  mutable std::mutex mutex_;
  mutable std::map<std::string, RewireFFIObject*> looked_up_;
};

}  // namespace rewire
