// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/device/call/programs.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "rewire/kernels/device/call/device_code.h"
#include "rewire/kernels/device/call/device_images.h"

namespace rewire::kernel::device {
namespace {

struct Entry {
  const RewireDeviceApi* api;
  std::int32_t device_id;
  Program program;
  Form form;
  void* module;
  struct Kernel {
    const char* name;
    void* kernel;
  };
  std::vector<Kernel> kernels;
};

// Never destroyed: device libraries stay until the process ends.
struct Table {
  std::shared_mutex mutex;
  std::vector<std::unique_ptr<Entry>> entries;

  static Table& Instance() {
    static auto* const kTable = new Table();
    return *kTable;
  }
  Entry* Find(const RewireDeviceApi& api, DLDevice device, Program program, Form form) {
    for (const std::unique_ptr<Entry>& entry : entries) {
      if (entry->api == &api && entry->device_id == device.device_id && entry->program == program &&
          entry->form == form) {
        return entry.get();
      }
    }
    return nullptr;
  }
};

void* KernelOf(const Entry& entry, const char* name) {
  for (const Entry::Kernel& kernel : entry.kernels) {
    if (kernel.name == name || std::strcmp(kernel.name, name) == 0) return kernel.kernel;
  }
  return nullptr;
}

const char* CodeOf(Program program) {
  switch (program) {
    case Program::kElementwise:
      return kElementwiseText;
    case Program::kMovement:
      return kMovementText;
    case Program::kProduct:
      return kProductText;
    case Program::kWindow:
      return kWindowText;
    case Program::kReduction:
      return kReductionText;
    case Program::kQuantization:
      return kQuantizationText;
    case Program::kInteger:
      return kIntegerText;
    case Program::kLines:
      return kLinesText;
    case Program::kRecurrent:
      return kRecurrentText;
    case Program::kIndexing:
      return kIndexingText;
    case Program::kScatter:
      return kScatterText;
    case Program::kTrees:
      return kTreesText;
    case Program::kAttention:
      return kAttentionText;
  }
  return "";
}

const char* OptionsOf(Form form) {
  switch (form) {
    case Form::kF32:
      return "";
    case Form::kF16:
      return "-DREWIRE_F16";
    case Form::kBytes1:
      return "-DWORD=u8";
    case Form::kBytes2:
      return "-DWORD=ushort";
    case Form::kBytes4:
      return "-DWORD=uint";
    case Form::kBytes8:
      return "-DWORD=ulong";
  }
  return "";
}

Status Failure(const RewireDeviceApi& api, DLDevice device) {
  return RuntimeError("device ", api.name, ":", device.device_id, ": ", api.error(api.context));
}

Status Load(const RewireDeviceApi& api, DLDevice device, Entry* entry) {
  if (api.load_module == nullptr) {
    return RuntimeError("device ", api.name, ":", device.device_id, " takes no device code");
  }
  const DeviceImage* image = FindImage(entry->program, entry->form);
  if (api.device_type == kDLCUDA && image != nullptr) {
    const auto bytes = static_cast<std::uint64_t>(image->end - image->begin);
    const int loaded = api.load_module(api.context, device, REWIRE_DEVICE_CODE_FATBIN, image->begin, bytes,
                                       "", nullptr, &entry->module);
    // A driver that is older than the image, and a lost device, fail here. NVRTC's code suits the driver.
    if (loaded == REWIRE_DEVICE_OK) return Status();
  }
  const std::string source =
      std::string(kFunctionsText) + kArgumentsText + kDialectText + kTilesText + CodeOf(entry->program);
  const std::uint32_t form =
      api.device_type == kDLCUDA ? REWIRE_DEVICE_CODE_CUDA_CPP : REWIRE_DEVICE_CODE_OPENCL_C;
  const int code =
      api.load_module(api.context, device, form, source.data(), source.size(), OptionsOf(entry->form),
                      std::getenv("REWIRE_DEVICE_CACHE"), &entry->module);
  return code == REWIRE_DEVICE_OK ? Status() : Failure(api, device);
}

}  // namespace

namespace {

// A thread remembers the kernels that it has found lately. They stay until the process ends, so no entry is
// ever wrong.
struct Recent {
  const RewireDeviceApi* api;
  std::int32_t device_id;
  Program program;
  Form form;
  const char* name;  // compared as a pointer
  void* kernel;
};
constexpr std::size_t kRecent = 64;

Recent* RecentOf(const char* name, Form form) {
  thread_local Recent recent[kRecent] = {};
  const auto place = reinterpret_cast<std::uintptr_t>(name) / 4 + static_cast<std::uintptr_t>(form) * 7;
  return &recent[place % kRecent];
}

Status FindInTable(const RewireDeviceApi& api, DLDevice device, Program program, Form form, const char* name,
                   void** kernel) {
  Table& table = Table::Instance();
  {
    const std::shared_lock<std::shared_mutex> lock(table.mutex);
    const Entry* entry = table.Find(api, device, program, form);
    if (entry != nullptr) *kernel = KernelOf(*entry, name);
    if (entry != nullptr && *kernel != nullptr) return Status();
  }
  const std::unique_lock<std::shared_mutex> lock(table.mutex);
  Entry* entry = table.Find(api, device, program, form);
  if (entry == nullptr) {
    auto made = std::make_unique<Entry>(Entry{&api, device.device_id, program, form, nullptr, {}});
    if (Status s = Load(api, device, made.get()); !s.ok()) return s;
    entry = made.get();
    table.entries.push_back(std::move(made));
  }
  *kernel = KernelOf(*entry, name);
  if (*kernel != nullptr) return Status();
  const int code = api.find_kernel(api.context, device, entry->module, name, kernel);
  if (code != REWIRE_DEVICE_OK) return Failure(api, device);
  entry->kernels.push_back({name, *kernel});
  return Status();
}

}  // namespace

Status FindKernel(const RewireDeviceApi& api, DLDevice device, Program program, Form form, const char* name,
                  void** kernel) {
  Recent* recent = RecentOf(name, form);
  if (recent->name == name && recent->api == &api && recent->device_id == device.device_id &&
      recent->program == program && recent->form == form) {
    *kernel = recent->kernel;
    return Status();
  }
  Status found = FindInTable(api, device, program, form, name, kernel);
  if (found.ok()) *recent = {&api, device.device_id, program, form, name, *kernel};
  return found;
}

}  // namespace rewire::kernel::device
