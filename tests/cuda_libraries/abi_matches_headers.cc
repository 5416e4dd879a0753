// SPDX-License-Identifier: Apache-2.0
// Compiled where NVIDIA's headers are found: our constants, layouts and signatures are theirs.
#include <cublasLt.h>
#include <cudnn.h>

#include <cstddef>
#include <type_traits>

#include "rewire/kernels/cuda_libraries/cublas_abi.h"
#include "rewire/kernels/cuda_libraries/cudnn_abi.h"

namespace {

namespace ours = rewire::kernel::cuda_libraries;

#define REWIRE_SAME_VALUE(name, value, theirs) static_assert(ours::name == static_cast<int>(theirs));
REWIRE_CUBLAS_VALUES(REWIRE_SAME_VALUE)
REWIRE_CUDNN_VALUES(REWIRE_SAME_VALUE)
static_assert(ours::kCublasSuccess == static_cast<int>(CUBLAS_STATUS_SUCCESS));
static_assert(ours::kCudnnSuccess == static_cast<int>(CUDNN_STATUS_SUCCESS));
static_assert(static_cast<int>(CUBLAS_OP_N) == 0);

#define REWIRE_SAME_MEMBER(our_type, our_member, their_type, their_member)                   \
  static_assert(offsetof(ours::our_type, our_member) == offsetof(their_type, their_member)); \
  static_assert(sizeof(ours::our_type::our_member) == sizeof(their_type::their_member));
static_assert(sizeof(ours::MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(ours::MatmulHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
REWIRE_SAME_MEMBER(MatmulHeuristic, algorithm, cublasLtMatmulHeuristicResult_t, algo)
REWIRE_SAME_MEMBER(MatmulHeuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize)
REWIRE_SAME_MEMBER(MatmulHeuristic, state, cublasLtMatmulHeuristicResult_t, state)
REWIRE_SAME_MEMBER(MatmulHeuristic, waves, cublasLtMatmulHeuristicResult_t, wavesCount)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static_assert(sizeof(ours::ConvolutionHeuristic) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
REWIRE_SAME_MEMBER(ConvolutionHeuristic, algorithm, cudnnConvolutionFwdAlgoPerf_t, algo)
REWIRE_SAME_MEMBER(ConvolutionHeuristic, status, cudnnConvolutionFwdAlgoPerf_t, status)
REWIRE_SAME_MEMBER(ConvolutionHeuristic, time, cudnnConvolutionFwdAlgoPerf_t, time)
REWIRE_SAME_MEMBER(ConvolutionHeuristic, workspace_bytes, cudnnConvolutionFwdAlgoPerf_t, memory)
REWIRE_SAME_MEMBER(ConvolutionHeuristic, determinism, cudnnConvolutionFwdAlgoPerf_t, determinism)
REWIRE_SAME_MEMBER(ConvolutionHeuristic, math, cudnnConvolutionFwdAlgoPerf_t, mathType)

// A parameter of ours passes where theirs is expected: pointers for handles, integers of one size for enums.
template <typename Ours, typename Theirs>
constexpr bool kPasses =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> ==
                                          std::is_pointer_v<Theirs>&& std::is_floating_point_v<Ours> ==
                                          std::is_floating_point_v<Theirs>;

template <typename Ours, typename Theirs>
struct SameCall;
template <typename R, typename... A, typename S, typename... B>
struct SameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool Parameters() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return (kPasses<A, B> && ...);
    else
      return false;
  }
  static constexpr bool kValue = sizeof(R) == sizeof(S) && Parameters();
};

#define REWIRE_SAME_CUBLAS_CALL(name, parameters) \
  static_assert(SameCall<decltype(ours::CublasFunctions::name), decltype(&::name)>::kValue, #name);
REWIRE_CUBLAS_FUNCTIONS(REWIRE_SAME_CUBLAS_CALL)
REWIRE_SAME_CUBLAS_CALL(cublasLtGetVersion, ())
#define REWIRE_SAME_CUDNN_CALL(name, parameters) \
  static_assert(SameCall<decltype(ours::CudnnFunctions::name), decltype(&::name)>::kValue, #name);
REWIRE_CUDNN_FUNCTIONS(REWIRE_SAME_CUDNN_CALL)
REWIRE_SAME_CUDNN_CALL(cudnnGetVersion, ())

}  // namespace
