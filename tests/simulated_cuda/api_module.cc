// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: modules, functions, launches.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "rewire/tests/simulated_cuda/block_runner.h"
#include "rewire/tests/simulated_cuda/module.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

constexpr std::size_t kMostThreads = 1024;
constexpr int kMostDynamicShared = 227 << 10;
// The words that `extra` of a launch is made of.
void* const kExtraEnd = nullptr;
constexpr std::uintptr_t kExtraPointer = 1, kExtraSize = 2;

std::shared_ptr<Module> FindModule(const Call& call, CUmodule handle) {
  const auto found = call.simulator().modules.find(handle);
  return found == call.simulator().modules.end() ? nullptr : found->second;
}

// The function with the module that it is of, which stays open while work has it.
std::shared_ptr<Function> FindFunction(const Call& call, CUfunction handle) {
  const auto found = call.simulator().functions.find(handle);
  if (found == call.simulator().functions.end()) return nullptr;
  return {found->second->shared_from_this(), reinterpret_cast<Function*>(handle)};
}

// The arguments of a launch, copied. Device addresses are those of the second mapping, which kernels may
// touch.
struct Arguments {
  std::vector<std::byte> bytes;
  std::vector<void*> pointers;
};

CUresult CopyArguments(Simulator& simulator, const SimulatedKernel& kernel, void** parameters, void** extra,
                       Arguments* arguments, std::vector<MemoryUse>* uses) {
  std::vector<std::size_t> offsets;
  std::size_t size = 0;
  for (unsigned i = 0; i < kernel.parameter_count; ++i) {
    const std::size_t bytes = kernel.parameters[i].size;
    const std::size_t alignment =
        std::min<std::size_t>(16, bytes & -bytes);  // of CUDA's types, a power of two in it
    size = (size + alignment - 1) / alignment * alignment;
    offsets.push_back(size);
    size += bytes;
  }
  const char* packed = nullptr;
  if (extra != nullptr) {
    std::size_t given = 0;
    for (; *extra != kExtraEnd; extra += 2) {
      if (reinterpret_cast<std::uintptr_t>(*extra) == kExtraPointer)
        packed = static_cast<const char*>(extra[1]);
      if (reinterpret_cast<std::uintptr_t>(*extra) == kExtraSize)
        given = *static_cast<const std::size_t*>(extra[1]);
    }
    if (packed == nullptr || given < size) return CUDA_ERROR_INVALID_VALUE;
  } else if (parameters == nullptr && kernel.parameter_count > 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  arguments->bytes.resize(size + 16);
  for (unsigned i = 0; i < kernel.parameter_count; ++i) {
    const SimulatedParameter& parameter = kernel.parameters[i];
    std::byte* to = arguments->bytes.data() + offsets[i];
    std::memcpy(to, packed != nullptr ? packed + offsets[i] : parameters[i], parameter.size);
    arguments->pointers.push_back(to);
    const bool is_pointer = parameter.kind != kSimulatedValue;
    if (!is_pointer && parameter.size <= 8) continue;
    for (std::size_t at = 0; at + 8 <= parameter.size; at += 8) {
      std::uint64_t address = 0;
      std::memcpy(&address, to + at, 8);
      if (is_pointer && address != 0)
        uses->push_back({address, 0, parameter.kind == kSimulatedPointer, false});
      if (simulator.DeviceOf(address) == nullptr) continue;
      void* touchable = simulator.Touchable(address);
      std::memcpy(to + at, &touchable, 8);
    }
  }
  return CUDA_SUCCESS;
}

CUresult ResultOf(KernelEnd end, const std::string& name) {
  if (end == KernelEnd::kDone) return CUDA_SUCCESS;
  Simulator& simulator = Simulator::The();
  const std::lock_guard lock(simulator.mutex);
  switch (end) {
    case KernelEnd::kDone:
      break;
    case KernelEnd::kTrapped:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case KernelEnd::kFaulted:
      simulator.Violation(fmt::format("{}: an access outside of all memory", name));
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case KernelEnd::kStuck:
      simulator.Violation(
          fmt::format("{}: threads wait at a barrier or shuffle for others that do not come", name));
      return CUDA_ERROR_LAUNCH_TIMEOUT;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult Launch(const Call& call, CUfunction handle, const LaunchShape& shape, CUstream stream_handle,
                void** parameters, void** extra) {
  const std::shared_ptr<Function> function = FindFunction(call, handle);
  Stream* stream = call.FindStream(stream_handle);
  if (function == nullptr || stream == nullptr || function->module->device != stream->device)
    return CUDA_ERROR_INVALID_HANDLE;
  const std::size_t threads = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  const bool in_range = shape.grid.x <= 0x7fffffff && shape.grid.y <= 65535 && shape.grid.z <= 65535 &&
                        shape.block.x <= 1024 && shape.block.y <= 1024 && shape.block.z <= 64;
  if (std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z == 0 || threads == 0 ||
      threads > kMostThreads || !in_range ||
      shape.dynamic_shared > static_cast<std::size_t>(function->most_dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = 'k';
  work.name = function->kernel->name;
  work.function = handle;
  auto arguments = std::make_shared<Arguments>();
  const CUresult result =
      CopyArguments(call.simulator(), *function->kernel, parameters, extra, arguments.get(), &work.uses);
  if (result != CUDA_SUCCESS) return result;
  work.run = [function, shape, arguments] {
    // A graph runs it several times, and a kernel may change its parameters.
    Arguments own = *arguments;
    for (void*& pointer : own.pointers)
      pointer = own.bytes.data() + (static_cast<std::byte*>(pointer) - arguments->bytes.data());
    return ResultOf(RunKernel(*function->module->image, *function->kernel, shape, own.pointers.data()),
                    function->kernel->name);
  };
  return call.simulator().Enqueue(stream, std::move(work));
}

CUresult LoadModule(const char* name, CUmodule* handle, const void* image) {
  Call call(name);
  if (call.Fails()) return call.result();
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Module> module;
  const CUresult result = OpenImage(image, &module);
  if (result != CUDA_SUCCESS) return result;
  module->device = call.device();
  *handle = reinterpret_cast<CUmodule>(module.get());
  call.simulator().modules[*handle] = std::move(module);
  return CUDA_SUCCESS;
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return LoadModule("cuModuleLoadData", module, image);
}

REWIRE_SIMULATED_EXPORT CUresult
cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                   CUjit_option* options,  // NOLINT(readability-non-const-parameter)
                   void** values) {
  const CUresult result = LoadModule("cuModuleLoadDataEx", module, image);
  for (unsigned i = 0; i < count; ++i) {
    const bool errors = options[i] == CU_JIT_ERROR_LOG_BUFFER;
    if (!errors && options[i] != CU_JIT_INFO_LOG_BUFFER) continue;
    std::size_t room = 0;
    for (unsigned j = 0; j < count; ++j)
      if (options[j] == (errors ? CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES : CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES))
        room = reinterpret_cast<std::size_t>(values[j]);
    const std::string_view text = errors && result == CUDA_ERROR_NO_BINARY_FOR_GPU
                                      ? "the simulated CUDA driver runs only images compiled for the host"
                                      : "";
    if (room == 0) continue;
    const std::size_t length = std::min(room - 1, text.size());
    std::memcpy(values[i], text.data(), length);
    static_cast<char*>(values[i])[length] = '\0';
  }
  return result;
}

REWIRE_SIMULATED_EXPORT CUresult cuModuleUnload(CUmodule handle) {
  Call call("cuModuleUnload", Call::kRelease);
  const auto found = call.simulator().modules.find(handle);
  if (found == call.simulator().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
  Device* device = found->second->device;
  call.simulator().WaitForDevice(call.lock(), device);
  const std::shared_ptr<Module> ended = std::move(found->second);
  for (const auto& [name, function] : ended->functions)
    call.simulator().functions.erase(reinterpret_cast<CUfunction>(function.get()));
  call.simulator().modules.erase(handle);
  return call.Returns(CUDA_SUCCESS);
}

REWIRE_SIMULATED_EXPORT CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle,
                                                     const char* name) {
  Call call("cuModuleGetFunction");
  if (call.Fails()) return call.result();
  const std::shared_ptr<Module> module = FindModule(call, module_handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::unique_ptr<Function>& function = module->functions[name];
  if (function == nullptr) {
    const SimulatedKernel* kernel = module->image->kernels;
    while (kernel != nullptr && std::strcmp(kernel->name, name) != 0) kernel = kernel->next;
    if (kernel == nullptr) {
      module->functions.erase(name);
      return CUDA_ERROR_NOT_FOUND;
    }
    function = std::make_unique<Function>();
    function->kernel = kernel;
    function->module = module.get();
  }
  *handle = reinterpret_cast<CUfunction>(function.get());
  call.simulator().functions[*handle] = module.get();
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes,
                                                      CUmodule module_handle, const char* name) {
  Call call("cuModuleGetGlobal");
  if (call.Fails()) return call.result();
  const std::shared_ptr<Module> module = FindModule(call, module_handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  void* address = dlsym(module->library, name);
  Dl_info info;
  void* row = nullptr;
  if (address == nullptr || dladdr1(address, &info, &row, RTLD_DL_SYMENT) == 0 || row == nullptr)
    return CUDA_ERROR_NOT_FOUND;
  const auto* symbol = static_cast<const ElfW(Sym)*>(row);
  if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) return CUDA_ERROR_NOT_FOUND;
  if (pointer != nullptr) *pointer = reinterpret_cast<CUdeviceptr>(address);
  if (bytes != nullptr) *bytes = symbol->st_size;
  call.simulator().module_globals[reinterpret_cast<std::uint64_t>(address)] = symbol->st_size;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                                    CUfunction handle) {
  Call call("cuFuncGetAttribute");
  if (call.Fails()) return call.result();
  const std::shared_ptr<Function> function = FindFunction(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(kMostThreads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:  // is not known: it is memory of the thread's
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = function->module->device->major * 10 + function->module->device->minor;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->most_dynamic_shared;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

REWIRE_SIMULATED_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute,
                                                    int value) {
  Call call("cuFuncSetAttribute");
  if (call.Fails()) return call.result();
  const std::shared_ptr<Function> function = FindFunction(call, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > kMostDynamicShared)
    return CUDA_ERROR_INVALID_VALUE;
  function->most_dynamic_shared = value;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, CUfunction handle, int block_size, std::size_t dynamic_shared_bytes) {
  Call call("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (call.Fails()) return call.result();
  if (FindFunction(call, handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const int by_threads = block_size > static_cast<int>(kMostThreads) ? 0 : 2048 / block_size;
  const std::size_t by_shared =
      dynamic_shared_bytes == 0 ? 32 : (std::size_t{228} << 10) / dynamic_shared_bytes;
  *blocks = std::min({by_threads, static_cast<int>(std::min<std::size_t>(by_shared, 32)), 32});
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                                unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                void** parameters, void** extra) {
  Call call("cuLaunchKernel");
  if (call.Fails()) return call.result();
  return Launch(call, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                parameters, extra);
}

REWIRE_SIMULATED_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                                  void** parameters, void** extra) {
  Call call("cuLaunchKernelEx");
  if (call.Fails()) return call.result();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Attributes are hints here, but a cluster would be a promise.
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_ERROR_NOT_SUPPORTED;
  return Launch(call, function,
                {{config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes},
                config->hStream, parameters, extra);
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)
