// SPDX-License-Identifier: Apache-2.0
// The simulated NVRTC: source in, an image for the simulated driver out.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

// Kernels of each form that names can have; a comment with __global__ void wrong(int) { and a string.
constexpr char kSource[] = R"(
#include <cuda_fp16.h>
#include <given.h>
// __global__ void wrong(int) {
const char* text = "__global__ void wrong(int) {";
template <typename T> __global__ void fill(T* out, T value) { out[threadIdx.x] = value; }
namespace inner { __global__ void negate(float* x) { x[threadIdx.x] = -x[threadIdx.x]; } }
extern "C" __global__ void __launch_bounds__(64) reverse(float* x, int n) {
  extern __shared__ __align__(16) float kept[];
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = kept[n - 1 - threadIdx.x] * FACTOR + GIVEN;
}
extern "C" {
__global__ void halves(const half* in, float* out) { out[threadIdx.x] = __half2float(in[threadIdx.x]); }
}
)";

std::string Log(const Nvrtc& nvrtc, nvrtcProgram program) {
  std::size_t bytes = 0;
  CHECK(nvrtc.nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS);
  std::vector<char> log(bytes);
  CHECK(nvrtc.nvrtcGetProgramLog(program, log.data()) == NVRTC_SUCCESS);
  return log.data();
}

TEST_CASE("source is compiled, and its kernels run by plain and lowered names") {
  Session session;
  const Nvrtc nvrtc = OpenNvrtc(13);
  nvrtcProgram program = nullptr;
  const char* headers[] = {"#define GIVEN 100\n"};
  const char* names[] = {"given.h"};
  REQUIRE(nvrtc.nvrtcCreateProgram(&program, kSource, "kernels.cu", 1, headers, names) == NVRTC_SUCCESS);
  CHECK(nvrtc.nvrtcAddNameExpression(program, "fill<int>") == NVRTC_SUCCESS);
  CHECK(nvrtc.nvrtcAddNameExpression(program, "&inner::negate") == NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=sm_90", "-DFACTOR=2", "--std=c++17"};
  const nvrtcResult compiled = nvrtc.nvrtcCompileProgram(program, 3, options);
  INFO(Log(nvrtc, program));
  REQUIRE(compiled == NVRTC_SUCCESS);
  const char* fill_name = nullptr;
  const char* negate_name = nullptr;
  CHECK(nvrtc.nvrtcGetLoweredName(program, "fill<int>", &fill_name) == NVRTC_SUCCESS);
  CHECK(nvrtc.nvrtcGetLoweredName(program, "&inner::negate", &negate_name) == NVRTC_SUCCESS);
  const std::string fill = fill_name, negate = negate_name;
  CHECK(nvrtc.nvrtcGetLoweredName(program, "fill<char>", &fill_name) ==
        NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
  std::size_t bytes = 0;
  CHECK(nvrtc.nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS);
  std::vector<char> image(bytes);
  CHECK(nvrtc.nvrtcGetCUBIN(program, image.data()) == NVRTC_SUCCESS);
  CHECK(nvrtc.nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);

  CUmodule module = nullptr;
  REQUIRE(Driver().cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS);
  const auto launch = [&](const std::string& name, std::vector<void*> arguments, unsigned shared) {
    CUfunction function = nullptr;
    REQUIRE(Driver().cuModuleGetFunction(&function, module, name.c_str()) == CUDA_SUCCESS);
    CHECK(Driver().cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, shared, nullptr, arguments.data(), nullptr) ==
          CUDA_SUCCESS);
  };
  CUdeviceptr x = session.Upload(std::vector<float>{1, 2, 3, 4}), i = session.Upload(std::vector<int>(4)),
              h = session.Upload(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3800, 0});
  int n = 4, value = 11;
  launch("reverse", {&x, &n}, 16);
  CHECK(session.Download<float>(x, 4) == std::vector<float>{108, 106, 104, 102});
  launch(negate, {&x}, 0);
  CHECK(session.Download<float>(x, 4) == std::vector<float>{-108, -106, -104, -102});
  launch(fill, {&i, &value}, 0);
  CHECK(session.Download<int>(i, 4) == std::vector<int>(4, 11));
  launch("halves", {&h, &x}, 0);
  CHECK(session.Download<float>(x, 4) == std::vector<float>{1, -2, 0.5F, 0});
  CHECK(Driver().cuModuleUnload(module) == CUDA_SUCCESS);
}

TEST_CASE("source that does not compile is told with its line") {
  const Nvrtc nvrtc = OpenNvrtc(12);
  int major = 0, minor = 0;
  CHECK(nvrtc.nvrtcVersion(&major, &minor) == NVRTC_SUCCESS);
  CHECK(major == 12);
  nvrtcProgram program = nullptr;
  REQUIRE(nvrtc.nvrtcCreateProgram(&program, "\n__global__ void f() { nothing(); }\n", "bad.cu", 0, nullptr,
                                   nullptr) == NVRTC_SUCCESS);
  CHECK(nvrtc.nvrtcCompileProgram(program, 0, nullptr) == NVRTC_ERROR_COMPILATION);
  CHECK_THAT(Log(nvrtc, program), Catch::Contains("bad.cu:2"));
  std::size_t bytes = 0;
  CHECK(nvrtc.nvrtcGetPTXSize(program, &bytes) == NVRTC_ERROR_INVALID_PROGRAM);
  const char* wrong[] = {"no option"};
  CHECK(nvrtc.nvrtcCompileProgram(program, 1, wrong) == NVRTC_ERROR_INVALID_OPTION);
  CHECK(std::string(nvrtc.nvrtcGetErrorString(NVRTC_ERROR_COMPILATION)) == "NVRTC_ERROR_COMPILATION");
  CHECK(nvrtc.nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
