// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/driver.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "rewire/tests/support/paths.h"

namespace rewire::simulated_cuda::test {
namespace {

std::string OutputPath(const std::string& file) {
  return std::string(rewire::test::BuildDir()) + "/tests/simulated_cuda/" + file;
}

void* OpenLibrary(const std::string& file) {
  void* library = dlopen(OutputPath(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());  // NOLINT(concurrency-mt-unsafe)
  return library;
}

void* DriverLibrary() {
  static void* library = OpenLibrary("libcuda.so.1");
  return library;
}

// Only the last session to end may look for what is left.
int sessions_alive = 0;

CudaDriver OpenDriver() {
  CudaDriver driver;
#define REWIRE_ROW(name, symbol, parameters, need) \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(DriverLibrary(), #symbol));
  REWIRE_CUDA_FUNCTIONS(REWIRE_ROW)
#undef REWIRE_ROW
  driver.cuInit(0);
  return driver;
}

}  // namespace

const CudaDriver& Driver() {
  static const CudaDriver kDriver = OpenDriver();
  return kDriver;
}

const Control& Simulation() {
  static const Control kControl = [] {
    Control found;
    if (!found.Load([](const char* name) { return dlsym(DriverLibrary(), name); }))
      throw std::runtime_error("libcuda.so.1 is not the simulated one");
    return found;
  }();
  return kControl;
}

Nvrtc OpenNvrtc(int major) {
  void* library = OpenLibrary("libnvrtc.so." + std::to_string(major));
  Nvrtc nvrtc;
#define REWIRE_ROW(name, result, parameters) \
  nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(dlsym(library, #name));
  REWIRE_NVRTC_FUNCTIONS(REWIRE_ROW)
#undef REWIRE_ROW
  return nvrtc;
}

std::string ImageFile(const std::string& name) {
  std::ifstream file(OutputPath(name + ".simulated"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Session::Session(int device) : device_(device) {
  ++sessions_alive;
  Driver();
  Simulation().Reset();
  REQUIRE(Driver().cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  REQUIRE(Driver().cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

Session::~Session() {
  const auto untold = TakeViolations();
  CHECK(untold == std::vector<std::string>());
  Simulation().LoseDevice(device_, 0);
  for (CUstream stream : streams_) Driver().cuStreamDestroy(stream);
  for (const CUdeviceptr pointer : memory_) Driver().cuMemFree(pointer);
  if (module_ != nullptr) Driver().cuModuleUnload(module_);
  Driver().cuDevicePrimaryCtxRelease(device_);
  if (--sessions_alive > 0) return;
  const Counters left = Count();
  CHECK(left.device_allocations == 0);
  CHECK(left.device_bytes == 0);
  CHECK(left.pool_reserved_bytes == 0);
  CHECK(left.pinned_allocations == 0);
  CHECK(left.registered_ranges == 0);
  CHECK(left.streams == 0);
  CHECK(left.events == 0);
  CHECK(left.modules == 0);
  CHECK(left.graphs == 0);
  CHECK(left.graph_execs == 0);
  CHECK(left.retained_contexts == 0);
}

CUfunction Session::Kernel(const std::string& name) {
  if (module_ == nullptr) {
    static const std::string kImage = ImageFile("test_kernels");
    REQUIRE(Driver().cuModuleLoadData(&module_, kImage.data()) == CUDA_SUCCESS);
  }
  // Asked for once: work that has failed may already have lost the device.
  CUfunction& function = functions_[name];
  if (function == nullptr)
    REQUIRE(Driver().cuModuleGetFunction(&function, module_, name.c_str()) == CUDA_SUCCESS);
  return function;
}

std::vector<std::string> Session::TakeViolations() {
  std::vector<std::string> taken;
  while (const char* text = Simulation().Violation(violations_taken_)) {
    taken.emplace_back(text);
    ++violations_taken_;
  }
  return taken;
}

Counters Session::Count() const {
  Counters counters;
  Simulation().GetCounters(&counters);
  return counters;
}

CUstream Session::NewStream() {
  CUstream stream = nullptr;
  REQUIRE(Driver().cuStreamCreate(&stream, kStreamNonBlocking) == CUDA_SUCCESS);
  streams_.push_back(stream);
  return stream;
}

CUdeviceptr Session::Upload(const void* bytes, std::size_t size, CUstream stream) {
  CUdeviceptr pointer = 0;
  REQUIRE(Driver().cuMemAlloc(&pointer, size) == CUDA_SUCCESS);
  memory_.push_back(pointer);
  REQUIRE(Driver().cuMemcpyHtoDAsync(pointer, bytes, size, stream) == CUDA_SUCCESS);
  return pointer;
}

void Session::Download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  REQUIRE(Driver().cuMemcpyDtoHAsync(to, from, bytes, stream) == CUDA_SUCCESS);
}

CUresult Session::Launch(const std::string& kernel, unsigned grid, unsigned block,
                         std::initializer_list<void*> arguments, CUstream stream, unsigned shared) {
  std::vector<void*> list = arguments;
  return Driver().cuLaunchKernel(Kernel(kernel), grid, 1, 1, block, 1, 1, shared, stream, list.data(),
                                 nullptr);
}

}  // namespace rewire::simulated_cuda::test
