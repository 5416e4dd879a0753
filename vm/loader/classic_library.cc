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
#include "rewire/vm/loader/library_abi.h"
#include "rewire/vm/loader/load_library.h"
#include "rewire/vm/loader/tvm_functions.h"

namespace rewire {
namespace {

constexpr char kMain[] = "__tvm_main__";
constexpr char kBlob[] = "__tvm_dev_mblob";

// How every function that TVM from 0.12 on compiled words its first check; before, the condition stood in
// parentheses. Those functions rely on 64 bytes, the ones up to 0.9 on 128.
constexpr char kNewCheck[] = "Assert fail: num_args == ";
constexpr std::uint32_t kNewAlignment = 64;

// TVM's functions, and conversions of float16 that TVM up to 0.13 has its runtime provide.
bool IsClassicFunction(std::string_view name) {
  return name.substr(0, 3) == "TVM" || name == "__gnu_h2f_ieee" || name == "__gnu_f2h_ieee";
}

// Host code calls this before it launches a kernel: (device type, device id).
int SetDevice(ClassicValue* args, int* /*codes*/, int num_args, ClassicValue* /*result*/,
              int* /*result_code*/, void* /*resource*/) {
  if (num_args == 2) {
    ChooseLaunchDevice(static_cast<std::int32_t>(args[0].v_int64),
                       static_cast<std::int32_t>(args[1].v_int64));
  }
  return 0;
}

}  // namespace

Result<std::shared_ptr<const KernelSource>> ClassicLibrary::Load(const std::string& path, const ElfFile& elf,
                                                                 const char* abi) {
  Array<std::unique_ptr<DeviceCode>> device_code;
  if (elf.Defines(kBlob)) {
    const Result<Span<const std::byte>> blob = elf.SymbolBytes(kBlob);
    if (!blob) return Forward(blob);
    const Result<Array<tvm::DeviceModule>> modules = ReadClassicBlob(*blob);
    if (!modules) return Forward(modules);
    Result<Array<std::unique_ptr<DeviceCode>>> made = MakeDeviceCode(*modules);
    if (!made) return Forward(made);
    device_code = std::move(*made);
  }
  if (std::ranges::any_of(elf.undefined(), &IsClassicFunction)) {
    if (Status status = EnsureFfiRuntime(); !status) return Forward(status);
  }
  // Now: a function that is missing when it is first called would end the process.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Fail(StatusCode::kIo, dlerror());
  const std::shared_ptr<ClassicLibrary> library(
      new ClassicLibrary(path, abi, std::move(device_code), handle));
  if (Status status = library->Initialize(elf); !status) return Forward(status);
  return library;
}

ClassicLibrary::~ClassicLibrary() {
  const std::lock_guard<std::recursive_mutex> lock(LoadingMutex());
  // The file may stay loaded through a handle of somebody else's.
  if (context_ != nullptr && *context_ == static_cast<LibraryContext*>(this)) *context_ = nullptr;
  dlclose(handle_);
}

Status ClassicLibrary::Initialize(const ElfFile& elf) {
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
    if (!IsPlainName(name)) continue;
    Entry entry{std::string(name), nullptr};
    entry.function = reinterpret_cast<ClassicFunction>(dlsym(handle_, entry.name.c_str()));
    if (entry.function != nullptr) entries_.push_back(std::move(entry));
  }
  for (const std::unique_ptr<DeviceCode>& code : device_code_) {
    for (const std::string& name : code->Names()) runtime_.push_back({name, nullptr, code->Find(name)});
  }
  runtime_.push_back({kSetDeviceFunction, &SetDevice});
  if (elf.HasText(tvm_runtime::kPrefix)) {
    const Result<Span<const tvm_runtime::Function>> functions = TvmFunctions();
    if (!functions) return Forward(functions);
    for (const tvm_runtime::Function& each : *functions) runtime_.push_back({each.name, each.call});
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
  return Format("{} ({}{})", path_.substr(path_.rfind('/') + 1), abi_, DeviceCodeText(device_code_));
}

void* ClassicLibrary::LookUp(const std::string& name) const {
  const Entry* found = FindEntry(name);
  for (const Entry& entry : runtime_) {
    if (found == nullptr && entry.name == name) found = &entry;
  }
  return const_cast<Entry*>(found);
}

}  // namespace rewire
