// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/classic_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/loader/classic_blob.h"
#include "rewire/vm/loader/classic_call.h"
#include "rewire/vm/loader/ffi_runtime.h"
#include "rewire/vm/loader/load_library.h"
#include "rewire/vm/loader/tvm_contrib.h"

namespace rewire {
namespace {

constexpr char kMain[] = "__tvm_main__";

// How every function that TVM from 0.12 on compiled words its first check; before, the condition stood in
// parentheses. Those functions rely on 64 bytes, the ones up to 0.9 on 128.
constexpr char kNewCheck[] = "Assert fail: num_args == ";
constexpr std::uint32_t kNewAlignment = 64;

// TVM's functions, and conversions of float16 that TVM up to 0.13 has its runtime provide.
bool IsClassicFunction(std::string_view name) {
  return name.substr(0, 3) == "TVM" || name == "__gnu_h2f_ieee" || name == "__gnu_f2h_ieee";
}

Status CheckBlob(const ElfFile& elf) {
  if (!elf.Defines("__tvm_dev_mblob")) return {};
  const Result<Span<const std::byte>> bytes = elf.SymbolBytes("__tvm_dev_mblob");
  if (!bytes) return Forward(bytes);
  return CheckClassicBlob(*bytes);
}

}  // namespace

Result<std::shared_ptr<const KernelSource>> ClassicLibrary::Load(const std::string& path,
                                                                 const ElfFile& elf) {
  if (Status status = CheckBlob(elf); !status) return Forward(status);
  if (std::any_of(elf.undefined().begin(), elf.undefined().end(), &IsClassicFunction)) {
    if (Status status = EnsureFfiRuntime(); !status) return Forward(status);
  }
  // Now: a function that is missing when it is first called would end the process.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Fail(StatusCode::kIo, dlerror());
  const std::shared_ptr<ClassicLibrary> library(new ClassicLibrary(path, handle));
  if (Status status = library->Initialise(elf); !status) return Forward(status);
  return library;
}

ClassicLibrary::~ClassicLibrary() {
  const std::lock_guard<std::recursive_mutex> lock(LoadingMutex());
  // The file may stay loaded through a handle of somebody else's.
  if (context_ != nullptr && *context_ == static_cast<LibraryContext*>(this)) *context_ = nullptr;
  dlclose(handle_);
}

Status ClassicLibrary::Initialise(const ElfFile& elf) {
  for (const std::string& name : elf.NamesAfter("__TVM")) {
    const std::string function = Format("TVM{}", name);
    void* value = ContextFunction(function.c_str());
    if (value == nullptr) {
      return Fail(StatusCode::kUnsupported, "it calls back the function {}, which is not provided", function);
    }
    *static_cast<void**>(dlsym(handle_, Format("__{}", function).c_str())) = value;
  }
  if (elf.HasText(kNewCheck)) alignment_ = kNewAlignment;
  context_ = static_cast<void**>(dlsym(handle_, "__tvm_module_ctx"));
  if (context_ != nullptr) *context_ = static_cast<LibraryContext*>(this);
  if (const auto* name = static_cast<const char*>(dlsym(handle_, kMain)); name != nullptr) main_ = name;
  for (std::string_view name : elf.functions()) {
    if (name.front() == '_') continue;  // the compiler's and the linker's
    Entry entry{std::string(name), nullptr};
    entry.function = reinterpret_cast<ClassicFunction>(dlsym(handle_, entry.name.c_str()));
    if (entry.function != nullptr) entries_.push_back(std::move(entry));
  }
  for (const TvmContribFunction& each : TvmContribFunctions()) {
    runtime_.push_back({std::string(each.name), each.function});
  }
  return {};
}

const ClassicLibrary::Entry* ClassicLibrary::FindEntry(const std::string& name) const {
  const std::string& symbol = name == kMain ? main_ : name;
  const auto entry =
      std::lower_bound(entries_.begin(), entries_.end(), symbol,
                       [](const Entry& e, const std::string& wanted) { return e.name < wanted; });
  return entry != entries_.end() && entry->name == symbol ? &*entry : nullptr;
}

KernelSource::Found ClassicLibrary::Find(const std::string& name) const {
  const Entry* entry = FindEntry(name);
  if (entry == nullptr) return {};
  Found found;
  found.function.call = &CallClassic;
  found.function.handle = const_cast<Entry*>(entry);  // the ABI has no handle to const
  found.function.owner = shared_from_this();
  found.function.alignment = alignment_;
  return found;
}

Array<std::string> ClassicLibrary::Names() const {
  Array<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

std::string ClassicLibrary::Description() const {
  return Format("{} (classic TVM ABI)", path_.substr(path_.rfind('/') + 1));
}

void* ClassicLibrary::LookUp(const std::string& name) const {
  const Entry* found = FindEntry(name);
  for (const Entry& entry : runtime_) {
    if (found == nullptr && entry.name == name) found = &entry;
  }
  return const_cast<Entry*>(found);
}

}  // namespace rewire
