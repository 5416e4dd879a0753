// SPDX-License-Identifier: Apache-2.0
//
// Programs and their kernels.
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/standalone/private_folder.h"
#include "rewire/devices/opencl/launch.h"

namespace rewire::opencl {
namespace {

struct Module {
  cl_program program = nullptr;
  std::mutex mutex;  // of `kernels`
  std::vector<std::unique_ptr<Kernel>> kernels;
};

constexpr std::size_t kMostLog = 4000;  // characters of a compiler's log in a message

std::string BuildLog(const State& state, cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  state.driver.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  state.driver.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log.resize(std::min(log.find('\0'), log.size()));
  if (log.size() > kMostLog) log.resize(kMostLog);
  return log;
}

int Build(const State& state, cl_program program, const Device& device, const char* options) {
  const cl_int error = state.driver.clBuildProgram(program, 1, &device.id, options, nullptr, nullptr);
  if (error == CL_SUCCESS) return REWIRE_DEVICE_OK;
  return FailWith(REWIRE_DEVICE_FAILED,
                  "clBuildProgram: " + ErrorName(error) + "\n" + BuildLog(state, program, device.id));
}

// Empty if the driver does not give it.
std::string BinaryOf(const State& state, cl_program program, cl_device_id device) {
  const auto get = [&](cl_program_info what, std::size_t bytes, void* to) {
    return state.driver.clGetProgramInfo(program, what, bytes, to, nullptr) == CL_SUCCESS;
  };
  cl_uint count = 0;
  if (!get(CL_PROGRAM_NUM_DEVICES, sizeof(count), &count)) return {};
  std::vector<cl_device_id> devices(count);
  std::vector<std::size_t> sizes(count);
  if (!get(CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data()) ||
      !get(CL_PROGRAM_BINARY_SIZES, count * sizeof(std::size_t), sizes.data())) {
    return {};
  }
  std::vector<std::string> binaries(count);
  std::vector<unsigned char*> places(count);
  for (cl_uint i = 0; i < count; ++i) {
    binaries[i].resize(sizes[i]);
    places[i] = reinterpret_cast<unsigned char*>(binaries[i].data());
  }
  if (!get(CL_PROGRAM_BINARIES, count * sizeof(unsigned char*), places.data())) return {};
  for (cl_uint i = 0; i < count; ++i) {
    if (devices[i] == device) return binaries[i];
  }
  return {};
}

// A program out of a binary that was kept; null if the driver does not take it.
cl_program FromBinary(const State& state, const Device& device, const std::string& binary,
                      const char* options) {
  if (binary.empty()) return nullptr;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int status = CL_SUCCESS;
  cl_int error = CL_SUCCESS;
  const cl_program program =
      state.driver.clCreateProgramWithBinary(device.context, 1, &device.id, &size, &bytes, &status, &error);
  if (error != CL_SUCCESS) return nullptr;
  if (status == CL_SUCCESS && Build(state, program, device, options) == REWIRE_DEVICE_OK) return program;
  state.driver.clReleaseProgram(program);
  return nullptr;
}

int LoadModule(void* context, DLDevice device, std::uint32_t form, const void* code, std::uint64_t bytes,
               const char* options, const char* cache, void** module) {
  State& state = State::Of(context);
  const Device* found = state.Find(device);
  if (found == nullptr) return REWIRE_DEVICE_FAILED;
  const bool source = form == REWIRE_DEVICE_CODE_OPENCL_C;
  if (form > 31 || (found->properties.code_forms >> form & 1) == 0) {
    return FailWith(
        REWIRE_DEVICE_UNSUPPORTED,
        found->name + " takes OpenCL C" +
            ((found->properties.code_forms >> REWIRE_DEVICE_CODE_SPIRV & 1) != 0 ? " and SPIR-V" : "") +
            ", and no device code of form " + std::to_string(form));
  }
  if (options == nullptr) options = "";
  std::string key;
  const PrivateFolder folder(cache == nullptr ? "" : cache);
  cl_program program = nullptr;
  if (folder.is_open()) {
    key = found->name + '\n' + found->driver + '\n' + options + '\n' +
          std::string(static_cast<const char*>(code), bytes);
    program = FromBinary(state, *found, folder.Read(key), options);
  }
  if (program == nullptr) {
    cl_int error = CL_SUCCESS;
    const auto* text = static_cast<const char*>(code);
    const std::size_t size = bytes;
    program = source ? state.driver.clCreateProgramWithSource(found->context, 1, &text, &size, &error)
                     : state.driver.clCreateProgramWithIL(found->context, code, size, &error);
    if (error != CL_SUCCESS) {
      return FailIn(source ? "clCreateProgramWithSource" : "clCreateProgramWithIL", error);
    }
    if (const int built = Build(state, program, *found, options); built != REWIRE_DEVICE_OK) {
      state.driver.clReleaseProgram(program);
      return built;
    }
    const std::string binary = folder.is_open() ? BinaryOf(state, program, found->id) : "";
    if (!binary.empty()) (void)folder.Write(key, binary);
  }
  auto loaded = std::make_unique<Module>();
  loaded->program = program;
  *module = loaded.release();
  return REWIRE_DEVICE_OK;
}

int UnloadModule(void* context, DLDevice, void* module) {
  State& state = State::Of(context);
  const std::unique_ptr<Module> own(static_cast<Module*>(module));
  own->kernels.clear();
  return CodeOf("clReleaseProgram", state.driver.clReleaseProgram(own->program));
}

int FindKernel(void* context, DLDevice, void* module, const char* name, void** kernel) {
  State& state = State::Of(context);
  auto* own = static_cast<Module*>(module);
  const std::lock_guard<std::mutex> lock(own->mutex);
  for (const std::unique_ptr<Kernel>& known : own->kernels) {
    if (known->name() == name) {
      *kernel = known.get();
      return REWIRE_DEVICE_OK;
    }
  }
  std::unique_ptr<Kernel> made(Kernel::Make(state, own->program, name));
  if (made == nullptr) return REWIRE_DEVICE_FAILED;
  *kernel = made.get();
  own->kernels.push_back(std::move(made));
  return REWIRE_DEVICE_OK;
}

int Launch(void*, DLDevice device, const RewireLaunch* launch, void* stream) {
  return static_cast<Kernel*>(launch->kernel)->Launch(device, *launch, stream);
}

}  // namespace

void AddModules(RewireDeviceApi* api) {
  api->load_module = LoadModule;
  api->unload_module = UnloadModule;
  api->find_kernel = FindKernel;
  api->launch = Launch;
}

}  // namespace rewire::opencl
