// SPDX-License-Identifier: Apache-2.0
//
// The part of cuBLASLt's binary interface that Rewire calls, so that building needs no header of NVIDIA's.
// tests/cuda_libraries compares it with those headers where they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::kernel::cuda_libraries {

// cublasStatus_t: 0 is success.
using CublasStatus = int;
inline constexpr CublasStatus kCublasSuccess = 0;

// X(name, value, NVIDIA's name)
#define REWIRE_CUBLAS_VALUES(X)                                           \
  X(kReal32, 0, CUDA_R_32F)                                               \
  X(kReal16, 2, CUDA_R_16F)                                               \
  X(kCompute32, 68, CUBLAS_COMPUTE_32F)                                   \
  X(kOperationT, 1, CUBLAS_OP_T)                                          \
  X(kLayoutBatchCount, 5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)             \
  X(kLayoutBatchOffset, 6, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)   \
  X(kMatmulTransA, 3, CUBLASLT_MATMUL_DESC_TRANSA)                        \
  X(kMatmulTransB, 4, CUBLASLT_MATMUL_DESC_TRANSB)                        \
  X(kMatmulEpilogue, 7, CUBLASLT_MATMUL_DESC_EPILOGUE)                    \
  X(kMatmulBiasPointer, 8, CUBLASLT_MATMUL_DESC_BIAS_POINTER)             \
  X(kMatmulBiasType, 26, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)             \
  X(kEpilogueNone, 1, CUBLASLT_EPILOGUE_DEFAULT)                          \
  X(kEpilogueRelu, 2, CUBLASLT_EPILOGUE_RELU)                             \
  X(kEpilogueBias, 4, CUBLASLT_EPILOGUE_BIAS)                             \
  X(kEpilogueGelu, 32, CUBLASLT_EPILOGUE_GELU)                            \
  X(kPreferenceWorkspace, 1, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)    \
  X(kPreferenceAlignmentA, 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) \
  X(kPreferenceAlignmentB, 6, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) \
  X(kPreferenceAlignmentC, 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) \
  X(kPreferenceAlignmentD, 8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)

#define REWIRE_CUBLAS_VALUE(name, value, theirs) inline constexpr int name = value;
REWIRE_CUBLAS_VALUES(REWIRE_CUBLAS_VALUE)
#undef REWIRE_CUBLAS_VALUE

struct MatmulAlgorithm {
  std::uint64_t data[8];
};
// cublasLtMatmulHeuristicResult_t
struct MatmulHeuristic {
  MatmulAlgorithm algorithm;
  std::size_t workspace_bytes;
  CublasStatus state;
  float waves;
  int reserved[4];
};

// Handles and descriptors are pointers. X(name, parameters)
#define REWIRE_CUBLAS_FUNCTIONS(X)                                                                           \
  X(cublasLtCreate, (void** handle))                                                                         \
  X(cublasLtDestroy, (void* handle))                                                                         \
  X(cublasLtMatmulDescCreate, (void** desc, int compute, int scale))                                         \
  X(cublasLtMatmulDescDestroy, (void* desc))                                                                 \
  X(cublasLtMatmulDescSetAttribute, (void* desc, int attribute, const void* value, std::size_t bytes))       \
  X(cublasLtMatrixLayoutCreate,                                                                              \
    (void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading))              \
  X(cublasLtMatrixLayoutDestroy, (void* layout))                                                             \
  X(cublasLtMatrixLayoutSetAttribute, (void* layout, int attribute, const void* value, std::size_t bytes))   \
  X(cublasLtMatmulPreferenceCreate, (void** preference))                                                     \
  X(cublasLtMatmulPreferenceDestroy, (void* preference))                                                     \
  X(cublasLtMatmulPreferenceSetAttribute,                                                                    \
    (void* preference, int attribute, const void* value, std::size_t bytes))                                 \
  X(cublasLtMatmulAlgoGetHeuristic, (void* handle, void* desc, void* a, void* b, void* c, void* d,           \
                                     void* preference, int requested, MatmulHeuristic* results, int* found)) \
  X(cublasLtMatmul,                                                                                          \
    (void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,              \
     void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,               \
     const MatmulAlgorithm* algorithm, void* workspace, std::size_t workspace_bytes, void* stream))

struct CublasFunctions {
#define REWIRE_CUBLAS_MEMBER(name, parameters) CublasStatus(*name) parameters = nullptr;
  REWIRE_CUBLAS_FUNCTIONS(REWIRE_CUBLAS_MEMBER)  // NOLINT(readability-identifier-naming)
#undef REWIRE_CUBLAS_MEMBER
  std::size_t (*cublasLtGetVersion)() = nullptr;  // NOLINT(readability-identifier-naming)
};

}  // namespace rewire::kernel::cuda_libraries
