// SPDX-License-Identifier: Apache-2.0
//
// Modules, kernels and launches.
#include <memory>
#include <mutex>
#include <vector>

#include "rewire/base/standalone/private_folder.h"
#include "rewire/devices/cuda/state.h"

namespace rewire::cuda {
namespace {

constexpr std::size_t kLogBytes = 4096;           // of the just-in-time compiler
constexpr std::uint32_t kUsualShared = 48 << 10;  // dynamic shared memory that every kernel may have
constexpr std::uint32_t kMostArguments = 64;

struct Module {
  CUmodule module = nullptr;
  std::mutex mutex;  // of `kernels`
  std::vector<std::unique_ptr<Kernel>> kernels;
};

// The cubin of source text, from the folder of compiled code if it is there.
int CubinOf(const State& state, const Device& device, const std::string& source, const char* options,
            const char* cache, std::string* cubin) {
  std::string key;
  const PrivateFolder folder(cache == nullptr ? "" : cache);
  if (folder.is_open()) {
    int major = 0;
    int minor = 0;
    if (state.nvrtc_reason.empty()) state.nvrtc.nvrtcVersion(&major, &minor);
    key = device.architecture + "\nNVRTC " + std::to_string(major) + "." + std::to_string(minor) + '\n' +
          options + '\n' + source;
    *cubin = folder.Read(key);
    if (!cubin->empty()) return REWIRE_DEVICE_OK;
  }
  const int code = Compile(state, device, source, options, cubin);
  if (code == REWIRE_DEVICE_OK && folder.is_open()) (void)folder.Write(key, *cubin);
  return code;
}

int LoadModule(void* context, DLDevice device, std::uint32_t form, const void* code, std::uint64_t bytes,
               const char* options, const char* cache, void** module) {
  State& state = State::Of(context);
  int failed = REWIRE_DEVICE_OK;
  const Entered found = state.Enter(device, &failed);
  if (!found) return failed;
  if (form < REWIRE_DEVICE_CODE_CUDA_CPP || form > REWIRE_DEVICE_CODE_FATBIN) {
    return FailWith(
        REWIRE_DEVICE_UNSUPPORTED,
        "CUDA takes CUDA C++, PTX, cubin and fatbin, and no device code of form " + std::to_string(form));
  }
  // PTX must end with a zero byte, which a string has.
  std::string image(static_cast<const char*>(code), bytes);
  if (form == REWIRE_DEVICE_CODE_CUDA_CPP) {
    std::string cubin;
    failed = CubinOf(state, *found, image, options == nullptr ? "" : options, cache, &cubin);
    if (failed != REWIRE_DEVICE_OK) return failed;
    image = std::move(cubin);
  }
  char log[kLogBytes] = {};
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(std::uintptr_t{kLogBytes - 1})};
  auto loaded = std::make_unique<Module>();
  const CUresult error = state.driver.cuModuleLoadDataEx(&loaded->module, image.c_str(), 2, names, values);
  if (error != CUDA_SUCCESS) {
    failed = FailIn(state.driver, "cuModuleLoadDataEx", error);
    return log[0] == 0 ? failed : FailWith(failed, std::string(LastWords()) + "\n" + log);
  }
  *module = loaded.release();
  return REWIRE_DEVICE_OK;
}

int UnloadModule(void* context, DLDevice device, void* module) {
  State& state = State::Of(context);
  const Entered entered = state.EnterToRelease(device);
  if (!entered) return REWIRE_DEVICE_FAILED;
  const std::unique_ptr<Module> own(static_cast<Module*>(module));
  return CodeOf(state.driver, "cuModuleUnload", state.driver.cuModuleUnload(own->module));
}

int FindKernel(void* context, DLDevice device, void* module, const char* name, void** kernel) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  auto* own = static_cast<Module*>(module);
  const std::lock_guard<std::mutex> lock(own->mutex);
  for (const std::unique_ptr<Kernel>& known : own->kernels) {
    if (known->name == name) {
      *kernel = known.get();
      return REWIRE_DEVICE_OK;
    }
  }
  auto made = std::make_unique<Kernel>();
  made->name = name;
  const CUresult error = state.driver.cuModuleGetFunction(&made->function, own->module, name);
  if (error != CUDA_SUCCESS) {
    code = FailIn(state.driver, "cuModuleGetFunction", error);
    return FailWith(code, std::string(LastWords()) + ", the module has no kernel '" + name + "'");
  }
  *kernel = made.get();
  own->kernels.push_back(std::move(made));
  return REWIRE_DEVICE_OK;
}

// Lets launches of the kernel have so much dynamic shared memory. All threads share the driver's limit of a
// kernel, so it is only raised: another thread's launch may need what it has been allowed before.
int AllowShared(const State& state, Kernel* kernel, std::uint32_t bytes) {
  if (bytes <= kUsualShared) return REWIRE_DEVICE_OK;
  const std::lock_guard<std::mutex> lock(kernel->mutex);
  if (bytes <= kernel->allowed_shared) return REWIRE_DEVICE_OK;
  const int code =
      CodeOf(state.driver, "cuFuncSetAttribute",
             state.driver.cuFuncSetAttribute(
                 kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)));
  if (code == REWIRE_DEVICE_OK) kernel->allowed_shared = bytes;
  return code;
}

int Launch(void* context, DLDevice device, const RewireLaunch* launch, void* stream) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  auto* kernel = static_cast<Kernel*>(launch->kernel);
  if (launch->argument_count > kMostArguments) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED,
                    "kernel '" + kernel->name + "' is given " + std::to_string(launch->argument_count) +
                        " arguments, at most " + std::to_string(kMostArguments) + " are supported");
  }
  void* parameters[kMostArguments];
  for (std::uint32_t i = 0; i < launch->argument_count; ++i) {
    const RewireLaunchArgument& argument = launch->arguments[i];
    if (argument.kind > REWIRE_LAUNCH_VALUE) {
      return FailWith(REWIRE_DEVICE_FAILED, "argument " + std::to_string(i) + " is of kind " +
                                                std::to_string(argument.kind) + ", which CUDA does not have");
    }
    parameters[i] = argument.kind == REWIRE_LAUNCH_VALUE ? const_cast<void*>(argument.u.value)
                                                         : const_cast<void**>(&argument.u.address);
  }
  code = AllowShared(state, kernel, launch->shared_bytes);
  if (code != REWIRE_DEVICE_OK) return code;
  const CUresult error = state.driver.cuLaunchKernel(
      kernel->function, launch->groups[0], launch->groups[1], launch->groups[2], launch->group_threads[0],
      launch->group_threads[1], launch->group_threads[2], launch->shared_bytes, StreamOf(stream), parameters,
      nullptr);
  if (error == CUDA_SUCCESS) return REWIRE_DEVICE_OK;
  code = FailIn(state.driver, "cuLaunchKernel", error);
  return FailWith(code, std::string(LastWords()) + " for kernel '" + kernel->name + "'");
}

}  // namespace

void AddModules(RewireDeviceApi* api) {
  api->load_module = LoadModule;
  api->unload_module = UnloadModule;
  api->find_kernel = FindKernel;
  api->launch = Launch;
}

}  // namespace rewire::cuda
