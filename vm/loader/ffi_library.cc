// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/ffi_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"
#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/loader/context_functions.h"
#include "rewire/vm/loader/ffi_runtime.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/library_bin.h"
#include "rewire/vm/loader/load_library.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire {
namespace {

constexpr char kPrefix[] = "__tvm_ffi_";  // in front of a function's name
constexpr char kMetadataPrefix[] = "__tvm_ffi__metadata_";
constexpr char kDocumentationPrefix[] = "__tvm_ffi__doc_";

bool IsFfiFunction(std::string_view name) {
  return name.starts_with("TVMFFI") || name.starts_with("TVMBackend");
}

bool NamesRuntime(const ElfFile& elf) {
  return std::ranges::any_of(elf.needed(),
                             [](std::string_view name) { return name.starts_with("libtvm_ffi.so"); });
}

bool NeedsRuntime(const ElfFile& elf) {
  return NamesRuntime(elf) || elf.DefinesPrefix("__TVM") ||
         std::ranges::any_of(elf.undefined(), &IsFfiFunction);
}

// Checks that the runtime has every function that the library needs. A missing function would end the process
// at its first call, perhaps already in the library's initializers.
Status ProvideRuntime(const ElfFile& elf) {
  if (!NeedsRuntime(elf)) return {};
  if (Status status = EnsureFfiRuntime(); !status)
    return NamesRuntime(elf) ? Status() : status;  // it may bring one
  const bool brings_more = std::ranges::any_of(elf.needed(), [](std::string_view name) {
    return name.starts_with("libtvm") && !name.starts_with("libtvm_ffi.so");
  });
  if (brings_more) return {};
  for (std::string_view name : elf.undefined()) {
    if (!IsFfiFunction(name) || dlsym(RTLD_DEFAULT, std::string(name).c_str()) != nullptr) continue;
    return Fail(StatusCode::kUnsupported,
                "it calls the function {}, which the tvm-ffi runtime of this process does not have", name);
  }
  return {};
}

// Reads the device code that the library contains besides its own functions. Refuses what there is no loader
// for. A Relax executable is ignored: it is a model that uses the functions, and they work without it.
Result<Array<std::unique_ptr<DeviceCode>>> ReadModules(const ElfFile& elf) {
  if (!elf.Defines("__tvm_ffi__library_bin")) return Array<std::unique_ptr<DeviceCode>>();
  const Result<Span<const std::byte>> bytes = elf.SymbolBytes("__tvm_ffi__library_bin");
  if (!bytes) return Forward(bytes);
  const Result<Array<LibraryModule>> modules = ParseLibraryBin(*bytes);
  if (!modules) return Forward(modules);
  std::string kinds;
  Array<tvm::DeviceModule> device_modules;
  for (const LibraryModule& module : *modules) {
    if (module.kind == kOwnFunctionsKind || module.kind.starts_with("relax.")) continue;
    if (tvm::IsDeviceModule(module.kind)) {
      ByteReader reader(module.content);
      Result<tvm::DeviceModule> read =
          tvm::ReadDeviceModule(module.kind, tvm::DeviceModuleForm::kTvmFfi, reader);
      if (!read) return Forward(read);
      device_modules.push_back(std::move(*read));
      continue;
    }
    kinds += Format("{}{}' ({} bytes)", kinds.empty() ? "'" : ", '", module.kind, module.content.size());
  }
  if (kinds.empty()) return MakeDeviceCode(device_modules);
  return RefuseModules(kinds);
}

// A function object for code of the library that looks one up by name.
struct FunctionByName {
  RewireFFIFunctionObject object;
  void* handle;
  RewirePackedFunction function;

  static RewireFFIObject* New(const void* handle, RewirePackedFunction function) {
    // The function's type has no handle to const.
    auto* made = new FunctionByName{{{kNewObjectCount, kRewireFFIFunction, 0, &Delete}, {&Call, nullptr}},
                                    const_cast<void*>(handle),
                                    function};
    return &made->object.header;
  }
  static int Call(void* self, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
    const auto* own = static_cast<const FunctionByName*>(self);
    return own->function(own->handle, args, num_args, result);
  }
  static void Delete(void* self, int flags) {
    if ((flags & kRewireFFIWeakGone) != 0) delete static_cast<FunctionByName*>(self);
  }
};

// Host code calls this before it launches a kernel: (device type, device id).
int SetDevice(void* /*handle*/, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* /*result*/) {
  if (num_args == 2) {
    ChooseLaunchDevice(static_cast<std::int32_t>(args[0].v_int64),
                       static_cast<std::int32_t>(args[1].v_int64));
  }
  return 0;
}

int LaunchKernel(void* kernel, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* /*result*/) {
  std::uint64_t values[DeviceCode::kMostArguments];
  for (std::int32_t i = 0; i < std::min(num_args, DeviceCode::kMostArguments); ++i) {
    std::memcpy(&values[i], &args[i].v_int64, sizeof(values[i]));
  }
  return DeviceCode::Launch(*static_cast<const DeviceCode::Kernel*>(kernel), values, num_args);
}

}  // namespace

Result<std::shared_ptr<const KernelSource>> FfiLibrary::Load(const std::string& path, const ElfFile& elf) {
  Result<Array<std::unique_ptr<DeviceCode>>> device_code = ReadModules(elf);
  if (!device_code) return Forward(device_code);
  if (Status status = ProvideRuntime(elf); !status) return Forward(status);
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return Fail(StatusCode::kIo, dlerror());
  const std::shared_ptr<FfiLibrary> library(new FfiLibrary(path, *std::move(device_code), handle));
  if (Status status = library->Initialize(elf); !status) return Forward(status);
  return library;
}

FfiLibrary::FfiLibrary(std::string path, Array<std::unique_ptr<DeviceCode>> device_code, void* handle)
    : path_(std::move(path)),
      device_code_(std::move(device_code)),
      handle_(handle),
      move_from_raised_(
          reinterpret_cast<void (*)(void**)>(FfiRuntimeSymbol(handle, "TVMFFIErrorMoveFromRaised"))) {}

FfiLibrary::~FfiLibrary() {
  const std::lock_guard<std::recursive_mutex> lock(LoadingMutex());
  for (const auto& [name, object] : looked_up_) ReleaseObject(object);
  // The file may stay loaded through somebody else's handle.
  if (context_ != nullptr && *context_ == static_cast<LibraryContext*>(this)) *context_ = nullptr;
  dlclose(handle_);
}

Status FfiLibrary::Initialize(const ElfFile& elf) {
  // The library's own variable, and the program's, which the library's code uses if there is one.
  for (void* where : {handle_, RTLD_DEFAULT}) {
    auto* variable = static_cast<const RewireKernelApi**>(dlsym(where, "__rewire_kernel_api"));
    if (variable != nullptr && *variable == nullptr) *variable = KernelApi();
  }
  for (const std::string& name : elf.NamesAfter("__TVM")) {
    const std::string function = Format("TVM{}", name);
    void* value = ContextFunction(function.c_str());
    if (value == nullptr) value = FfiRuntimeSymbol(handle_, function.c_str());
    if (value == nullptr) {
      return Fail(StatusCode::kUnsupported, "it calls back the function {}, which is not provided", function);
    }
    *static_cast<void**>(dlsym(handle_, Format("__{}", function).c_str())) = value;
  }
  context_ = static_cast<void**>(dlsym(handle_, "__tvm_ffi__library_ctx"));
  if (context_ != nullptr) *context_ = static_cast<LibraryContext*>(this);

  if (const void* table = dlsym(handle_, "__rewire_kernel_table"); table != nullptr) {
    const auto& kernels = *static_cast<const RewireKernelTable*>(table);
    if (kernels.struct_size < KernelTableIndex::kLeastSize) {
      return Fail(StatusCode::kUnsupported, "its __rewire_kernel_table has {} bytes, expected at least {}",
                  kernels.struct_size, KernelTableIndex::kLeastSize);
    }
    table_.emplace(kernels);
  }
  symbols_ = elf.NamesAfter(kPrefix);
  // Names with one more underscore are the ABI's own variables, metadata and documentation.
  symbols_.erase(std::remove_if(symbols_.begin(), symbols_.end(),
                                [](const std::string& name) { return name.compare(0, 1, "_") == 0; }),
                 symbols_.end());
  return {};
}

RewirePackedFunction FfiLibrary::Function(const std::string& symbol) const {
  return reinterpret_cast<RewirePackedFunction>(dlsym(handle_, symbol.c_str()));
}

KernelSource::Found FfiLibrary::Find(const std::string& name) const {
  Found found;
  if (const RewireKernelEntry* entry = table_ ? table_->Find(name) : nullptr; entry != nullptr) {
    found.function = table_->FunctionOf(entry);
    found.is_factory = entry->is_factory != 0;
  } else if (std::binary_search(symbols_.begin(), symbols_.end(), name)) {
    found.function.call = Function(kPrefix + name);
  }
  if (!found.function) return {};
  found.function.take_error = &TakeError;
  found.function.error_context = this;
  found.function.owner = shared_from_this();
  return found;
}

Array<std::string> FfiLibrary::Names() const {
  if (!table_) return symbols_;
  const Array<std::string> rows = table_->Names();
  Array<std::string> names;
  std::set_union(rows.begin(), rows.end(), symbols_.begin(), symbols_.end(), std::back_inserter(names));
  return names;
}

std::string FfiLibrary::Description() const {
  return Format("{} (tvm-ffi ABI{})", path_.substr(path_.rfind('/') + 1), DeviceCodeText(device_code_));
}

KernelSource::Notes FfiLibrary::Describe(const std::string& name) const {
  return {CallForText(kDocumentationPrefix + name), CallForText(kMetadataPrefix + name)};
}

// The text that a function without arguments returns. Empty if there is no such function or it fails.
std::string FfiLibrary::CallForText(const std::string& symbol) const {
  const RewirePackedFunction function = Function(symbol);
  if (function == nullptr) return {};
  RewireFFIAny result{};
  if (function(nullptr, nullptr, 0, &result) != 0) {
    TakeError(this);
    return {};
  }
  std::string text(kernel::StringOf(result).value_or(""));
  ReleaseAny(&result);
  return text;
}

const DeviceCode::Kernel* FfiLibrary::FindDeviceKernel(const std::string& name) const {
  for (const std::unique_ptr<DeviceCode>& code : device_code_) {
    if (const DeviceCode::Kernel* kernel = code->Find(name); kernel != nullptr) return kernel;
  }
  return nullptr;
}

void* FfiLibrary::LookUp(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = looked_up_.find(name); known != looked_up_.end()) return known->second;
  RewireFFIObject* object = nullptr;
  const auto get_global = reinterpret_cast<int (*)(const RewireFFIByteArray*, void**)>(
      FfiRuntimeSymbol(handle_, "TVMFFIFunctionGetGlobal"));
  if (const PackedFunction own = Find(name).function; own) {
    object = FunctionByName::New(nullptr, own.call);
  } else if (name == kSetDeviceFunction) {
    object = FunctionByName::New(nullptr, &SetDevice);
  } else if (const DeviceCode::Kernel* kernel = FindDeviceKernel(name); kernel != nullptr) {
    object = FunctionByName::New(kernel, &LaunchKernel);
  } else if (get_global != nullptr) {
    const RewireFFIByteArray key = {name.data(), name.size()};
    void* global = nullptr;
    if (get_global(&key, &global) != 0) TakeError(this);
    object = static_cast<RewireFFIObject*>(global);
  }
  if (object != nullptr) looked_up_.emplace(name, object);
  return object;
}

KernelError FfiLibrary::TakeError(const void* library) {
  return TakeFfiError(static_cast<const FfiLibrary*>(library)->move_from_raised_);
}

}  // namespace rewire
