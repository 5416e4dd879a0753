// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/cuda_libraries/simulated_library.h"

#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "rewire/tests/cuda_libraries/simulation.h"
#include "rewire/tests/simulated_cuda/opened_driver.h"

namespace rewire::simulated_libraries {
namespace {

using namespace rewire::cuda;  // NOLINT(google-build-using-namespace)

struct State {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t live = 0;
  std::string failing;
  int status = 0;
};

State& TheState() {
  static auto* const kState = new State();
  return *kState;
}

}  // namespace

int Begin(const char* function) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.calls[function];
  if (state.failing != function) return 0;
  state.failing.clear();
  return state.status;
}

void CountLive(int change) {
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.live += static_cast<std::uint64_t>(change);
}

void* LoadKernels() {
  std::ifstream file(REWIRE_SIMULATED_IMAGE, std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CUmodule module = nullptr;
  return test::OpenedDriver().cuModuleLoadData(&module, image.c_str()) == CUDA_SUCCESS ? module : nullptr;
}

void UnloadKernels(void* module) { test::OpenedDriver().cuModuleUnload(static_cast<CUmodule>(module)); }

bool LaunchKernel(void* module, const char* name, std::int64_t threads, void** parameters, void* stream) {
  constexpr unsigned kGroup = 64;
  CUfunction function = nullptr;
  const auto groups = static_cast<unsigned>((threads + kGroup - 1) / kGroup);
  return test::OpenedDriver().cuModuleGetFunction(&function, static_cast<CUmodule>(module), name) ==
             CUDA_SUCCESS &&
         test::OpenedDriver().cuLaunchKernel(function, groups, 1, 1, kGroup, 1, 1, 0,
                                             static_cast<CUstream>(stream), parameters,
                                             nullptr) == CUDA_SUCCESS;
}

}  // namespace rewire::simulated_libraries

REWIRE_SIMULATED_EXPORT std::uint64_t rewire_simulated_library_live() {
  auto& state = rewire::simulated_libraries::TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.live;
}

REWIRE_SIMULATED_EXPORT std::uint64_t rewire_simulated_library_calls(const char* function) {
  auto& state = rewire::simulated_libraries::TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.calls[function];
}

REWIRE_SIMULATED_EXPORT void rewire_simulated_library_fail(const char* function, int status) {
  auto& state = rewire::simulated_libraries::TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.failing = function != nullptr ? function : "";
  state.status = status;
}
