// SPDX-License-Identifier: Apache-2.0
// A kernel library of the classic TVM ABI, behind packed functions.
#pragma once

#include <memory>
#include <string>

#include "base/array.h"
#include "vm/loader/classic_abi.h"
#include "vm/loader/context_functions.h"
#include "vm/loader/elf_file.h"
#include "vm/loader/kernel_set.h"

namespace rewire {

class ClassicLibrary : public KernelSource,
                       public LibraryContext,
                       public std::enable_shared_from_this<ClassicLibrary> {
 public:
  // A function of the library. Code compiled by TVM holds pointers to these as function handles.
  struct Entry {
    std::string name;
    ClassicFunction function;
  };

  // Loads `path`, whose symbols are in `elf`, and fills in the variables through which it calls back.
  // kUnsupported when it needs something that is not provided, kIo with dlerror's text.
  static Result<std::shared_ptr<const KernelSource>> Load(const std::string& path, const ElfFile& elf);
  ~ClassicLibrary() override;

  Found Find(const std::string& name) const override;
  Array<std::string> Names() const override;
  std::string Description() const override;

  // An Entry.
  void* LookUp(const std::string& name) const override;

 private:
  ClassicLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  Status Initialise(const ElfFile& elf);
  const Entry* FindEntry(const std::string& name) const;

  std::string path_;
  void* handle_;
  void** context_ = nullptr;     // the library's __tvm_module_ctx
  Array<Entry> entries_;         // sorted by name
  std::string main_;             // what __tvm_main__ names; may be empty
  std::uint32_t alignment_ = 0;  // what its functions rely on in arguments, bytes; 0: not known
};

}  // namespace rewire
