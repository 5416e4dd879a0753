// SPDX-License-Identifier: Apache-2.0
// KernelSet: where a Program's packed functions come from. Functions of the host process, static tables and
// shared libraries are added to it; Program::Link then resolves every import against it.
//
// A library is loaded once per process however many sets name it, and stays loaded while a set or a Program
// uses it. Loading a library runs its code: whether that is acceptable is the caller's decision, never the
// executable's. Threads: fill a set on one thread; Resolve may run on many at once. Copies share what has
// been added so far.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/export.h"
#include "base/status.h"
#include "executable_format/module.h"
#include "vm/kernel/kernel.h"
#include "vm/packed_function.h"

namespace rewire {

// Something that kernels can be found in. One subclass a kind: host functions, a table, a tvm-ffi library,
// ...
class REWIRE_API KernelSource {
 public:
  virtual ~KernelSource() = default;

  struct Found {
    PackedFunction function;
    // The function is a factory also when an import has no attributes (a table's is_factory).
    bool is_factory = false;
  };
  // A function without `call` when there is none of that name. Thread-safe.
  virtual Found Find(const std::string& name) const = 0;
  // The names it offers, for "did you mean" and vm-inspect; sorted.
  virtual Array<std::string> Names() const = 0;
  // "librewire_kernels_cpu.so (tvm-ffi ABI)": for messages.
  virtual std::string Description() const = 0;

  // What the source says about one of its functions; both empty when it says nothing.
  struct Notes {
    std::string documentation;
    std::string metadata;  // JSON; {"type_schema": ...} from tvm-ffi's C++
  };
  virtual Notes Describe(const std::string& /*name*/) const { return {}; }
};

class REWIRE_API KernelSet {
 public:
  KernelSet();

  // A function of this process. A name added twice: the later one wins.
  void AddFunction(const std::string& name, PackedFunction function);
  // A table of static storage, such as the stock kernels' when linked in.
  void AddTable(const RewireKernelTable& table, const std::string& description);
  // Loads a shared library. A name without a slash is looked up in the directories of `library_path` of this
  // set, then in the directories of Rewire's own libraries, then as dlopen does. Errors: kNotFound with every
  // place tried, kInvalidFile for what is no shared library, kUnsupported for an ABI that is not spoken
  // (naming it) and in builds without dlopen, kBusy when the file was replaced while its former content is in
  // use, kIo with dlerror's text.
  Status AddLibrary(const std::string& path);
  void AddSource(std::shared_ptr<const KernelSource> source);

  // Directories searched by AddLibrary, first one first.
  Array<std::string> library_path;

  const Array<std::shared_ptr<const KernelSource>>& sources() const { return sources_; }

  // The function for an import, sources asked from the last added to the first. With attributes (or for a
  // factory) the factory is called and the function object that it returns is the kernel. kNotFound, with
  // near names, when no source has it; kKernelFailed with the factory's message.
  Result<PackedFunction> Resolve(const KernelImport& import) const;

 private:
  Array<std::shared_ptr<const KernelSource>> sources_;
};

}  // namespace rewire
