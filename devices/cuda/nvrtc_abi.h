// SPDX-License-Identifier: Apache-2.0
// The part of NVRTC's binary interface that Rewire uses, in the form of driver_functions.h.
#pragma once

#include <cstddef>

namespace rewire::cuda {

// NOLINTBEGIN(readability-identifier-naming)
using nvrtcProgram = struct _nvrtcProgram*;

// X(name, value)
#define REWIRE_NVRTC_RESULTS(X)                           \
  X(NVRTC_SUCCESS, 0)                                     \
  X(NVRTC_ERROR_OUT_OF_MEMORY, 1)                         \
  X(NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2)              \
  X(NVRTC_ERROR_INVALID_INPUT, 3)                         \
  X(NVRTC_ERROR_INVALID_PROGRAM, 4)                       \
  X(NVRTC_ERROR_INVALID_OPTION, 5)                        \
  X(NVRTC_ERROR_COMPILATION, 6)                           \
  X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7)             \
  X(NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, 8) \
  X(NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, 9)   \
  X(NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, 10)            \
  X(NVRTC_ERROR_INTERNAL_ERROR, 11)

#define REWIRE_CUDA_ROW(name, value) name = value,
enum nvrtcResult : unsigned { REWIRE_NVRTC_RESULTS(REWIRE_CUDA_ROW) };
#undef REWIRE_CUDA_ROW

// X(name, result type, parameters)
#define REWIRE_NVRTC_FUNCTIONS(X)                                                                           \
  X(nvrtcVersion, nvrtcResult, (int* major, int* minor))                                                    \
  X(nvrtcGetErrorString, const char*, (nvrtcResult result))                                                 \
  X(nvrtcCreateProgram, nvrtcResult,                                                                        \
    (nvrtcProgram * program, const char* source, const char* name, int header_count,                        \
     const char* const* headers, const char* const* include_names))                                         \
  X(nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))                                             \
  X(nvrtcCompileProgram, nvrtcResult, (nvrtcProgram program, int option_count, const char* const* options)) \
  X(nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, std::size_t * bytes))                            \
  X(nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char* cubin))                                        \
  X(nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, std::size_t * bytes))                              \
  X(nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char* ptx))                                            \
  X(nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, std::size_t * bytes))                       \
  X(nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char* log))                                     \
  X(nvrtcAddNameExpression, nvrtcResult, (nvrtcProgram program, const char* expression))                    \
  X(nvrtcGetLoweredName, nvrtcResult, (nvrtcProgram program, const char* expression, const char** name))

struct Nvrtc {
#define REWIRE_CUDA_ROW(name, result, parameters) result(*name) parameters = nullptr;
  REWIRE_NVRTC_FUNCTIONS(REWIRE_CUDA_ROW)
#undef REWIRE_CUDA_ROW
};
// NOLINTEND(readability-identifier-naming)

}  // namespace rewire::cuda
