// SPDX-License-Identifier: Apache-2.0
// A simulation of cuBLASLt: the functions that Rewire calls, which compute by kernels of the simulated
// driver.
#include <cstring>

#include "rewire/kernels/cuda_libraries/cublas_abi.h"
#include "rewire/tests/cuda_libraries/parameters.h"
#include "rewire/tests/cuda_libraries/simulated_library.h"

namespace {

namespace abi = rewire::kernel::cuda_libraries;
using namespace rewire::simulated_libraries;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kWorkspace = 1024;

struct Desc {
  int a_transposed = 0, b_transposed = 0, epilogue = abi::kEpilogueNone, bias_type = -1;
  void* bias = nullptr;
};
struct Layout {
  int type;
  std::int64_t rows, columns, leading;
  std::int32_t batch = 1;
  std::int64_t step = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
};

template <typename T>
int Make(const char* function, void** made, T value) {
  if (const int status = Begin(function); status != 0) return status;
  *made = new T(value);
  CountLive(1);
  return 0;
}
template <typename T>
int Drop(const char* function, void* object) {
  Begin(function);
  delete static_cast<T*>(object);
  CountLive(-1);
  return 0;
}
template <typename T>
int Set(T* to, const void* value, std::size_t bytes) {
  if (bytes != sizeof(T)) return kFailed;
  std::memcpy(to, value, bytes);
  return 0;
}

}  // namespace

REWIRE_SIMULATED_EXPORT std::size_t cublasLtGetVersion() { return 130000; }

REWIRE_SIMULATED_EXPORT int cublasLtCreate(void** handle) {
  if (const int status = Begin("cublasLtCreate"); status != 0) return status;
  *handle = LoadKernels();
  if (*handle == nullptr) return kFailed;
  CountLive(1);
  return 0;
}
REWIRE_SIMULATED_EXPORT int cublasLtDestroy(void* handle) {
  Begin("cublasLtDestroy");
  UnloadKernels(handle);
  CountLive(-1);
  return 0;
}

REWIRE_SIMULATED_EXPORT int cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
  if (compute != abi::kCompute32 || scale != abi::kReal32) return kFailed;
  return Make("cublasLtMatmulDescCreate", desc, Desc());
}
REWIRE_SIMULATED_EXPORT int cublasLtMatmulDescDestroy(void* desc) {
  return Drop<Desc>("cublasLtMatmulDescDestroy", desc);
}
REWIRE_SIMULATED_EXPORT int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* value,
                                                           std::size_t bytes) {
  if (const int status = Begin("cublasLtMatmulDescSetAttribute"); status != 0) return status;
  auto* given = static_cast<Desc*>(desc);
  switch (attribute) {
    case abi::kMatmulTransA:
      return Set(&given->a_transposed, value, bytes);
    case abi::kMatmulTransB:
      return Set(&given->b_transposed, value, bytes);
    case abi::kMatmulEpilogue:
      return Set(&given->epilogue, value, bytes);
    case abi::kMatmulBiasPointer:
      return Set(&given->bias, value, bytes);
    case abi::kMatmulBiasType:
      return Set(&given->bias_type, value, bytes);
    default:
      return kFailed;
  }
}

REWIRE_SIMULATED_EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows,
                                                       std::uint64_t columns, std::int64_t leading) {
  return Make("cublasLtMatrixLayoutCreate", layout,
              Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
}
REWIRE_SIMULATED_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  return Drop<Layout>("cublasLtMatrixLayoutDestroy", layout);
}
REWIRE_SIMULATED_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value,
                                                             std::size_t bytes) {
  if (const int status = Begin("cublasLtMatrixLayoutSetAttribute"); status != 0) return status;
  auto* given = static_cast<Layout*>(layout);
  if (attribute == abi::kLayoutBatchCount) return Set(&given->batch, value, bytes);
  return attribute == abi::kLayoutBatchOffset ? Set(&given->step, value, bytes) : kFailed;
}

REWIRE_SIMULATED_EXPORT int cublasLtMatmulPreferenceCreate(void** preference) {
  return Make("cublasLtMatmulPreferenceCreate", preference, Preference());
}
REWIRE_SIMULATED_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  return Drop<Preference>("cublasLtMatmulPreferenceDestroy", preference);
}
REWIRE_SIMULATED_EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute,
                                                                 const void* value, std::size_t bytes) {
  if (const int status = Begin("cublasLtMatmulPreferenceSetAttribute"); status != 0) return status;
  if (attribute != abi::kPreferenceWorkspace) return bytes == 4 ? 0 : kFailed;
  return Set(&static_cast<Preference*>(preference)->workspace, value, bytes);
}

REWIRE_SIMULATED_EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*,
                                                           void* preference, int requested,
                                                           abi::MatmulHeuristic* results, int* found) {
  *found = 0;
  if (const int status = Begin("cublasLtMatmulAlgoGetHeuristic"); status != 0) return status;
  if (requested < 1 || static_cast<Preference*>(preference)->workspace < kWorkspace) return 0;
  *results = {};
  results->workspace_bytes = kWorkspace;
  *found = 1;
  return 0;
}

REWIRE_SIMULATED_EXPORT int cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a,
                                           void* a_layout, const void* b, void* b_layout, const void* beta,
                                           const void* c, void* c_layout, void* d, void* d_layout,
                                           const abi::MatmulAlgorithm*, void* workspace,
                                           std::size_t workspace_bytes, void* stream) {
  if (const int status = Begin("cublasLtMatmul"); status != 0) return status;
  const auto& given = *static_cast<Desc*>(desc);
  const auto &left = *static_cast<Layout*>(a_layout), &right = *static_cast<Layout*>(b_layout),
             &addend = *static_cast<Layout*>(c_layout), &out = *static_cast<Layout*>(d_layout);
  const std::int64_t depth = given.a_transposed != 0 ? left.rows : left.columns;
  const bool fits = (given.a_transposed != 0 ? left.columns : left.rows) == out.rows &&
                    (given.b_transposed != 0 ? right.rows : right.columns) == out.columns &&
                    (given.b_transposed != 0 ? right.columns : right.rows) == depth &&
                    left.leading >= left.rows && right.leading >= right.rows && out.leading >= out.rows &&
                    left.batch == out.batch && right.batch == out.batch && addend.batch == out.batch &&
                    addend.rows == out.rows;
  const bool has_bias = (given.epilogue & abi::kEpilogueBias) != 0;
  if (!fits || workspace_bytes < kWorkspace ||
      (has_bias && (given.bias == nullptr || given.bias_type != out.type)))
    return kFailed;
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  MatmulParameters p{};
  p.half = out.type == abi::kReal16 ? 1 : 0;
  p.m = number(out.rows);
  p.n = number(out.columns);
  p.k = number(depth);
  p.batch = out.batch;
  p.a_transposed = given.a_transposed;
  p.b_transposed = given.b_transposed;
  p.a_leading = number(left.leading);
  p.b_leading = number(right.leading);
  p.c_leading = number(addend.leading);
  p.d_leading = number(out.leading);
  p.a_step = number(left.step);
  p.b_step = number(right.step);
  p.c_step = number(addend.step);
  p.d_step = number(out.step);
  p.epilogue = given.epilogue;
  std::memcpy(&p.alpha, alpha, sizeof(float));
  std::memcpy(&p.beta, beta, sizeof(float));
  const void* bias = has_bias ? given.bias : d;
  void* parameters[] = {&a, &b, &c, &d, &bias, &workspace, &p};
  const std::int64_t threads = out.rows * out.columns * out.batch;
  return LaunchKernel(handle, "simulated_matmul", threads, parameters, stream) ? 0 : kFailed;
}
