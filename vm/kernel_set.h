// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel_set.h>.
//
// KernelSet: where a Program's packed functions (kernels) come from.
//
// A host adds functions of its process, static tables and shared libraries. Program::Link then looks up every
// import in the set.
//
// A library is loaded once per process, however many sets name it. It stays loaded while a set or a Program
// uses it. Loading a library runs its code, so only the caller decides which libraries are loaded, never the
// executable.
//
// Threads: fill a set on one thread. Resolve may run on many threads at once. Copies of a set share the
// sources that were added before the copy.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

// A place where kernels are found. There is one subclass per kind: host functions, a table, a tvm-ffi
// library, and so on.
class REWIRE_API KernelSource {
 public:
  virtual ~KernelSource() = default;

  struct Found {
    PackedFunction function;
    // The function is a factory even for an import without attributes. Tables set this by is_factory.
    bool is_factory = false;
  };
  // Returns a function without `call` if there is none of that name. Thread-safe.
  virtual Found Find(const std::string& name) const = 0;
  // Returns all names, sorted. Used for "did you mean" suggestions and by vm-inspect.
  virtual Array<std::string> Names() const = 0;
  // A text for messages, such as "librewire_kernels_cpu.so (tvm-ffi ABI)".
  virtual std::string Description() const = 0;

  // The notes of the source about one of its functions. Both texts are empty if it says nothing.
  struct Notes {
    std::string documentation;
    std::string metadata;  // JSON; {"type_schema": ...} from tvm-ffi's C++
  };
  virtual Notes Describe(const std::string& /*name*/) const { return {}; }
};

class REWIRE_API KernelSet {
 public:
  KernelSet();

  // Adds a function of this process. If a name is added twice, the later function is used.
  void AddFunction(const std::string& name, PackedFunction function);
  // Adds a table that has static storage, such as the table of the stock kernels when they are linked in.
  void AddTable(const RewireKernelTable& table, const std::string& description);
  // Loads a shared library. A name without a slash is searched in this set's `library_path`, then in the
  // directories of Rewire's own libraries, then as dlopen does.
  //
  // Errors:
  // - kNotFound, with every place that was tried;
  // - kInvalidFile if the file is no shared library;
  // - kUnsupported if the library has an unknown ABI, which is named, or if this is a build without dlopen;
  // - kBusy if the file was replaced while its former content is in use;
  // - kIo, with the text of dlerror.
  Status AddLibrary(const std::string& path);
  void AddSource(std::shared_ptr<const KernelSource> source);

  // Directories that AddLibrary searches, in this order.
  Array<std::string> library_path;

  const Array<std::shared_ptr<const KernelSource>>& sources() const { return sources_; }

  // Finds the function for an import. The source that was added last is asked first. If the import has
  // attributes, or the function is a factory, the factory is called, and the function object that it returns
  // is the kernel.
  //
  // Errors: kNotFound, with similar names, if no source has the function; kKernelFailed with the factory's
  // message.
  Result<PackedFunction> Resolve(const KernelImport& import) const;

 private:
  Array<std::shared_ptr<const KernelSource>> sources_;
};

}  // namespace rewire
