// SPDX-License-Identifier: Apache-2.0
// A kernel library of the classic TVM ABI, behind packed functions.
#pragma once

#include <memory>
#include <string>

#include "rewire/base/array.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/loader/context_functions.h"
#include "rewire/vm/loader/device_code.h"
#include "rewire/vm/loader/elf_file.h"
#include "rewire/vm/loader/tvm_runtime/classic_abi.h"

namespace rewire {

class ClassicLibrary : public KernelSource,
                       public LibraryContext,
                       public std::enable_shared_from_this<ClassicLibrary> {
 public:
  // A function of the library. Code compiled by TVM holds pointers to these as function handles.
  struct Entry {
    std::string name;
    ClassicFunction function;
    const DeviceCode::Kernel* kernel = nullptr;  // device code, in place of a function
  };

  // Loads `path`, whose symbols are in `elf`, and sets the variables through which it calls back. `abi` is
  // for the description. Errors: kUnsupported if it needs something that is not provided; kIo with the text
  // of dlerror.
  static Result<std::shared_ptr<const KernelSource>> Load(const std::string& path, const ElfFile& elf,
                                                          const char* abi = "classic TVM ABI");
  ~ClassicLibrary() override;

  Found Find(const std::string& name) const override;
  Array<std::string> Names() const override;
  std::string Description() const override;

  // Returns an Entry: the library's own function, its device code, or else a function of TVM's runtime
  // (vm/loader/tvm_functions.h).
  void* LookUp(const std::string& name) const override;

 private:
  ClassicLibrary(std::string path, const char* abi, Array<std::unique_ptr<DeviceCode>> device_code,
                 void* handle)
      : path_(std::move(path)), abi_(abi), device_code_(std::move(device_code)), handle_(handle) {}
  Status Initialize(const ElfFile& elf);
  const Entry* FindEntry(const std::string& name) const;

  std::string path_;
  const char* abi_;
  Array<std::unique_ptr<DeviceCode>> device_code_;
  void* handle_;
  void** context_ = nullptr;     // the library's __tvm_module_ctx
  Array<Entry> entries_;         // sorted by name
  Array<Entry> runtime_;         // its device code, and functions of TVM's runtime
  std::string main_;             // what __tvm_main__ names; may be empty
  std::uint32_t alignment_ = 0;  // alignment in bytes that its functions rely on; 0: unknown
};

}  // namespace rewire
