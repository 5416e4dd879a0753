// SPDX-License-Identifier: Apache-2.0
//
// CUDA C++ to cubin by NVRTC.
#include <sstream>
#include <vector>

#include "rewire/devices/cuda/state.h"

namespace rewire::cuda {
namespace {

constexpr std::size_t kMostLog = 4000;  // characters of the compiler's log in a message

int FailCompiling(const Nvrtc& nvrtc, const char* function, nvrtcResult result, const std::string& log) {
  std::string words = std::string(function) + ": " + nvrtc.nvrtcGetErrorString(result);
  if (!log.empty()) words += "\n" + log.substr(0, kMostLog);
  return FailWith(REWIRE_DEVICE_FAILED, std::move(words));
}

std::string LogOf(const Nvrtc& nvrtc, nvrtcProgram program) {
  std::size_t bytes = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) != NVRTC_SUCCESS || bytes == 0) return {};
  std::string log(bytes, '\0');
  nvrtc.nvrtcGetProgramLog(program, log.data());
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  return log;
}

}  // namespace

int Compile(const State& state, const Device& device, const std::string& source, const char* options,
            std::string* cubin) {
  if (!state.nvrtc_reason.empty()) return FailWith(REWIRE_DEVICE_UNSUPPORTED, state.nvrtc_reason);
  const Nvrtc& nvrtc = state.nvrtc;
  std::vector<std::string> texts = {"--gpu-architecture=" + device.architecture};
  std::istringstream list(options);
  for (std::string each; list >> each;) texts.push_back(each);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  nvrtcProgram program = nullptr;
  nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, source.c_str(), "device.cu", 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return FailCompiling(nvrtc, "nvrtcCreateProgram", result, {});
  result = nvrtc.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());
  int code = REWIRE_DEVICE_OK;
  if (result != NVRTC_SUCCESS)
    code = FailCompiling(nvrtc, "nvrtcCompileProgram", result, LogOf(nvrtc, program));
  std::size_t bytes = 0;
  if (code == REWIRE_DEVICE_OK) {
    result = nvrtc.nvrtcGetCUBINSize(program, &bytes);
    cubin->resize(bytes);
    if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetCUBIN(program, cubin->data());
    if (result != NVRTC_SUCCESS) code = FailCompiling(nvrtc, "nvrtcGetCUBIN", result, {});
  }
  nvrtc.nvrtcDestroyProgram(&program);
  return code;
}

}  // namespace rewire::cuda
