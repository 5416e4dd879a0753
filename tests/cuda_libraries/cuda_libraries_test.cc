// SPDX-License-Identifier: Apache-2.0
//
// Kernels of devices that use cuBLASLt and cuDNN, by simulations of both on the simulated driver.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/kernels/cuda_libraries/cublas_abi.h"
#include "rewire/kernels/cuda_libraries/cudnn_abi.h"
#include "rewire/tests/cuda_libraries/simulation.h"
#include "rewire/tests/devices/current_context.h"
#include "rewire/tests/devices/stock_call.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

constexpr int kAnyStatus = 13;

class Library {
 public:
  explicit Library(const char* name) : library_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
    Find(simulated_libraries::kLive, &live);
    Find(simulated_libraries::kCalls, &calls);
    Find(simulated_libraries::kFail, &fail);
  }
  simulated_libraries::LiveFunction live = nullptr;
  simulated_libraries::CallsFunction calls = nullptr;
  simulated_libraries::FailFunction fail = nullptr;

 private:
  template <typename F>
  void Find(const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(library_, name));
    REQUIRE(*function != nullptr);  // otherwise it is no simulation
  }
  void* library_;
};

Library& Blas() {
  static Library library("libcublasLt.so.13");
  return library;
}
Library& Dnn() {
  static Library library("libcudnn.so.9");
  return library;
}

// Whether the call is right, and how often it called the function.
std::uint64_t CallsWhile(Library& library, const char* function, const StockCall& call) {
  const std::uint64_t before = library.calls(function);
  CHECK(OpenCudaDriver().cuCtxSetCurrent(nullptr) == cuda::CUDA_SUCCESS);
  CheckAlike(call);
  CHECK(CurrentCudaContext() == nullptr);  // the thread's context is the host's
  CHECK(library.live() == 0);
  return library.calls(function) - before;
}

const std::vector<StockCall>& Products() {
  static const std::vector<StockCall> kCalls = {
      {"matmul", "", {{"f32", {5, 7}}, {"f32", {7, 9}}}, {{"f32", {5, 9}}}},
      {"matmul", "", {{"f32", {2, 3, 5, 7}}, {"f32", {2, 3, 7, 9}}}, {{"f32", {2, 3, 5, 9}}}},
      {"matmul", "", {{"f32", {2, 3, 5, 7}}, {"f32", {7, 9}}}, {{"f32", {2, 3, 5, 9}}}},
      {"matmul", "", {{"f32", {5, 7}}, {"f32", {4, 7, 9}}}, {{"f32", {4, 5, 9}}}},
      {"matmul", "", {{"f32", {7}}, {"f32", {7, 9}}}, {{"f32", {9}}}},
      {"gemm", "alpha = 0.5", {{"f32", {5, 7}}, {"f32", {7, 9}}}, {{"f32", {5, 9}}}},
      {"gemm", "transA = 1", {{"f32", {7, 5}}, {"f32", {7, 9}}}, {{"f32", {5, 9}}}},
      {"gemm", "transB = 1", {{"f32", {5, 7}}, {"f32", {9, 7}}, {"f32", {9}}}, {{"f32", {5, 9}}}},
      {"gemm",
       "transA = 1, transB = 1, alpha = 2.0",
       {{"f32", {7, 5}}, {"f32", {9, 7}}, {"f32", {1, 9}}},
       {{"f32", {5, 9}}}},
      {"gemm", "beta = 0.25", {{"f32", {5, 7}}, {"f32", {7, 9}}, {"f32", {5, 9}}}, {{"f32", {5, 9}}}},
  };
  return kCalls;
}

const std::vector<StockCall>& Convolutions() {
  static const std::vector<StockCall> kCalls = {
      {"conv", "", {{"f32", {2, 3, 9, 8}}, {"f32", {4, 3, 3, 2}}}, {{"f32", {2, 4, 7, 7}}}},
      {"conv",
       "group = 2, strides = [2, 3], dilations = [2, 1], pads = [1, 2, 1, 2]",
       {{"f32", {2, 4, 9, 8}}, {"f32", {6, 2, 3, 2}}, {"f32", {6}}},
       {{"f32", {2, 6, 4, 4}}}},
      {"conv", "pads = [2, 2]", {{"f32", {2, 3, 9}}, {"f32", {4, 3, 5}}, {"f32", {4}}}, {{"f32", {2, 4, 9}}}},
      {"conv",
       "strides = [1, 2, 1]",
       {{"f32", {1, 2, 4, 5, 6}}, {"f32", {3, 2, 2, 2, 3}}, {"f32", {3}}},
       {{"f32", {1, 3, 3, 2, 4}}}},
      // The pads behind the image differ, but no window reaches them.
      {"conv",
       "strides = [2], pads = [0, 1]",
       {{"f32", {1, 2, 7}}, {"f32", {3, 2, 3}}},
       {{"f32", {1, 3, 3}}}},
  };
  return kCalls;
}

TEST_CASE("products are made by cuBLASLt where it is") {
  for (const StockCall& call : Products()) {
    INFO(TextOf(call, "cuda"));
    CHECK(CallsWhile(Blas(), "cublasLtMatmul", call) == 1);
  }
  // A layer's inputs are one product, here of one direction with its bias.
  const StockCall layer{"rnn",
                        "",
                        {{"f32", {3, 2, 5}}, {"f32", {1, 4, 5}}, {"f32", {1, 4, 4}}, {"f32", {1, 8}}},
                        {{"f32", {3, 1, 2, 4}}, {"f32", {1, 2, 4}}}};
  CHECK(CallsWhile(Blas(), "cublasLtMatmul", layer) == 1);
}

TEST_CASE("what cuBLASLt cannot do is done by the device's own kernels") {
  const std::vector<StockCall> calls = {
      // The steps of the batches are not one.
      {"matmul", "", {{"f32", {2, 1, 5, 7}}, {"f32", {1, 3, 7, 9}}}, {{"f32", {2, 3, 5, 9}}}},
      {"gemm", "", {{"f32", {5, 7}}, {"f32", {7, 9}}, {"f32", {5, 1}}}, {{"f32", {5, 9}}}},
      {"gemm", "beta = 0.5", {{"f32", {5, 7}}, {"f32", {7, 9}}, {"f32", {9}}}, {{"f32", {5, 9}}}},
      {"matmul", "", {{"f32", {5, 0}}, {"f32", {0, 9}}}, {{"f32", {5, 9}}}},
  };
  for (const StockCall& call : calls) CHECK(CallsWhile(Blas(), "cublasLtMatmul", call) == 0);
}

TEST_CASE("activations follow products in one call") {
  const StockCall plain{"gemm", "", {{"f32", {5, 7}}, {"f32", {7, 9}}, {"f32", {9}}}, {{"f32", {5, 9}}}};
  const std::vector<double> sums = ResultsOf(plain, "")[0];
  for (const std::string activation : {"relu", "gelu_tanh"}) {
    StockCall call = plain;
    call.attributes = "activation = \"" + activation + "\"";
    const auto check = [&] {
      const std::vector<double> given = ResultsOf(call, "cuda")[0];
      REQUIRE(given.size() == sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const double x = sums[i];
        const double gelu = 0.5 * x * (1 + std::tanh(0.79788456 * (x + 0.044715 * x * x * x)));
        CHECK(given[i] == Approx(activation == "relu" ? std::fmax(x, 0) : gelu).margin(1e-4));
      }
    };
    const std::uint64_t before = Blas().calls("cublasLtMatmul");
    check();
    CHECK(Blas().calls("cublasLtMatmul") == before + 1);
    // The device's own kernel does the same.
    Blas().fail("cublasLtCreate", kAnyStatus);
    check();
    CHECK(Blas().calls("cublasLtMatmul") == before + 1);
  }
}

TEST_CASE("convolutions are made by cuDNN where it is") {
  for (const StockCall& call : Convolutions()) {
    INFO(TextOf(call, "cuda"));
    CHECK(CallsWhile(Dnn(), "cudnnConvolutionForward", call) == 1);
  }
  // A pad on one side that a window reaches.
  const StockCall uneven{
      "conv", "pads = [0, 2]", {{"f32", {1, 2, 7}}, {"f32", {3, 2, 3}}}, {{"f32", {1, 3, 7}}}};
  CHECK(CallsWhile(Dnn(), "cudnnConvolutionForward", uneven) == 0);
}

// Fails each function once: the call is right by the device's own kernels, or there is an error that names
// the function, and nothing is left.
void FailEach(Library& library, const std::vector<const char*>& functions, const std::string& device_call,
              const StockCall& call) {
  const std::vector<double> expected = ResultsOf(call, "")[0];
  for (const char* function : functions) {
    INFO(function);
    LinkOptions options;
    REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
    library.fail(function, kAnyStatus);
    const bool is_work = function == device_call || function == std::string_view("cudnnAddTensor");
    if (is_work) {
      VirtualMachine vm(ProgramOf(TextOf(call, "cuda"), std::move(options)));
      const std::string message = MessageOf(vm.TryInvoke("main", InputsOf(call)));
      CHECK(message.find(function) != std::string::npos);
      CHECK(message.find(std::to_string(kAnyStatus)) != std::string::npos);
      CHECK(MessageOf(vm.TryInvoke("main", InputsOf(call))).empty());
    } else {
      CheckAlike(call);
    }
    library.fail(nullptr, 0);
    CHECK(library.live() == 0);
  }
}

TEST_CASE("each function of cuBLASLt may fail") {
  std::vector<const char*> functions;
#define REWIRE_NAME(name, parameters) functions.push_back(#name);
  REWIRE_CUBLAS_FUNCTIONS(REWIRE_NAME)
#undef REWIRE_NAME
  const StockCall call{
      "gemm", "transA = 1, transB = 1", {{"f32", {7, 5}}, {"f32", {9, 7}}, {"f32", {9}}}, {{"f32", {5, 9}}}};
  FailEach(Blas(), functions, "cublasLtMatmul", call);
}

TEST_CASE("each function of cuDNN may fail") {
  std::vector<const char*> functions;
#define REWIRE_NAME(name, parameters) functions.push_back(#name);
  REWIRE_CUDNN_FUNCTIONS(REWIRE_NAME)
#undef REWIRE_NAME
  FailEach(Dnn(), functions, "cudnnConvolutionForward", Convolutions()[1]);
}

// f calls matmul on what lies on the device.
constexpr char kProduct[] = R"(
.device gpu = cuda:0
.kernel k = "rewire.device.matmul"
.func f(x: f32[4, 6], w: f32[6, 5]) -> value
%dx = device_copy %x, cpu, gpu
%dw = device_copy %w, cpu, gpu
%ys = alloc_storage _, alignment=64, f32[4, 5], gpu
%y = alloc_tensor %ys, _, f32[4, 5]
invoke_packed k(%dx, %dw, %y), outputs=1
%h = device_copy %y, gpu, cpu
ret %h
.end
)";

TEST_CASE("a second call of one shape makes nothing, and a recorded one is replayed") {
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
  VirtualMachine vm(ProgramOf(kProduct, std::move(options)));
  std::vector<float> x(24, 1.0f), w(30, 2.0f), y(20);
  vm.SetInput(*vm.program().FindInput("x", "f"), TensorView(x.data(), {4, 6}));
  vm.SetInput(*vm.program().FindInput("w", "f"), TensorView(w.data(), {6, 5}));
  vm.SetOutput(*vm.program().FindOutput(0u, "f"), TensorView(y.data(), {4, 5}));
  vm.Invoke("f");
  CHECK(y[19] == 12.0f);
  const std::uint64_t asked = Blas().calls("cublasLtMatmulAlgoGetHeuristic");
  const std::uint64_t live = Blas().live(), multiplied = Blas().calls("cublasLtMatmul");
  vm.Invoke("f");
  CHECK(Blas().calls("cublasLtMatmul") == multiplied + 1);
  CHECK(Blas().calls("cublasLtMatmulAlgoGetHeuristic") == asked);
  CHECK(Blas().live() == live);
  // It runs once, is recorded once, and then the driver replays it.
  REQUIRE(MessageOf(vm.TryRecord("f")) == "");
  CHECK(Blas().calls("cublasLtMatmul") == multiplied + 3);
  for (int i = 1; i <= 3; ++i) {
    x[23] = static_cast<float>(i);
    vm.Invoke("f");
    CHECK(y[19] == 10.0f + 2.0f * static_cast<float>(i));
  }
  CHECK(Blas().calls("cublasLtMatmul") == multiplied + 3);
}

TEST_CASE("a kernel that is called with many shapes in turn asks the library once for each") {
  constexpr int kShapes = 20;
  std::string inputs, body;
  for (int n = 1; n <= kShapes; ++n) {
    const std::string i = std::to_string(n);
    inputs += "x" + i + ": f32[" + i + ", 6], ";
    body += "%d" + i + " = device_copy %x" + i + ", cpu, gpu\n%s" + i +
            " = alloc_storage _, alignment=64, f32[" + i + ", 5], gpu\n%y" + i + " = alloc_tensor %s" + i +
            ", _, f32[" + i + ", 5]\ninvoke_packed k(%d" + i + ", %dw, %y" + i + "), outputs=1\n";
  }
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
  VirtualMachine vm(ProgramOf(".device gpu = cuda:0\n.kernel k = \"rewire.device.matmul\"\n.func f(" +
                                  inputs + "w: f32[6, 5]) -> value\n%dw = device_copy %w, cpu, gpu\n" + body +
                                  "%h = device_copy %y" + std::to_string(kShapes) +
                                  ", gpu, cpu\nret %h\n.end\n",
                              std::move(options)));
  std::vector<float> x(6 * kShapes, 1.0f), w(30, 2.0f);
  for (int n = 1; n <= kShapes; ++n) {
    vm.SetInput(*vm.program().FindInput("x" + std::to_string(n), "f"), TensorView(x.data(), {n, 6}));
  }
  vm.SetInput(*vm.program().FindInput("w", "f"), TensorView(w.data(), {6, 5}));
  const std::uint64_t asked = Blas().calls("cublasLtMatmulAlgoGetHeuristic");
  for (int run = 0; run < 3; ++run) {
    vm.Invoke("f");
    CHECK(vm.result().tensor().data<float>()[5 * kShapes - 1] == 12.0f);
    CHECK(Blas().calls("cublasLtMatmulAlgoGetHeuristic") == asked + kShapes);
  }
}

// Products of two shapes, one after the other.
constexpr char kTwoProducts[] = R"(
.device gpu = cuda:0
.const shape: i64[2] = {6, 4}
.kernel k = "rewire.device.matmul"
.func f(x: f32[4, 6], w: f32[6, 5]) -> value
%dx = device_copy %x, cpu, gpu
%dw = device_copy %w, cpu, gpu
%ys = alloc_storage _, alignment=64, f32[4, 5], gpu
%y = alloc_tensor %ys, _, f32[4, 5]
invoke_packed k(%dx, %dw, %y), outputs=1
%t = load_const shape
%n = reshape_tensor %dx, %t
%zs = alloc_storage _, alignment=64, f32[6, 5], gpu
%z = alloc_tensor %zs, _, f32[6, 5]
invoke_packed k(%n, %y, %z), outputs=1
%h = device_copy %z, gpu, cpu
ret %h
.end
)";

// The bound of f, and what a run of it held at most.
std::pair<MemoryBound, std::uint64_t> BoundAndPeak(const char* text) {
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
  const Program program = ProgramOf(text, std::move(options));
  const Result<MemoryBound> bound = program.TryMemoryBound("f");
  REQUIRE(bound);
  REQUIRE(bound->unbounded == "");
  CHECK(bound->undeclared_workspace.empty());
  VirtualMachine vm(program);
  std::vector<float> x(24, 1.0f), w(30, 2.0f);
  vm.SetInput(*program.FindInput("x", "f"), TensorView(x.data(), {4, 6}));
  vm.SetInput(*program.FindInput("w", "f"), TensorView(w.data(), {6, 5}));
  vm.Invoke("f");
  return {*bound, vm.bytes_peak()};
}

TEST_CASE("a bound of memory knows the library's scratch memory, which all calls share") {
  constexpr std::uint64_t kScratch = std::uint64_t{32} << 20;
  const std::uint64_t asked = Blas().calls("cublasLtMatmul");
  const auto [one, one_peak] = BoundAndPeak(kProduct);
  CHECK(one_peak == one.bytes);
  CHECK(one.workspace == kScratch);
  REQUIRE(one.devices.size() == 1);
  CHECK(one.devices[0].bytes > kScratch);
  const auto [two, two_peak] = BoundAndPeak(kTwoProducts);
  CHECK(two_peak == two.bytes);
  CHECK(two.devices[0].bytes < kScratch + 4096);
  CHECK(Blas().calls("cublasLtMatmul") == asked + 3);
}

TEST_CASE("a bound has the scratch memory of a convolution whose sizes nobody knows") {
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
  const Program program = ProgramOf(R"(
.device gpu = cuda:0
.kernel k = "rewire.device.conv" {pads = [1, 1, 1, 1]}
.func f(x: f32[*] on gpu, w: f32[16, 16, 3, 3] on gpu) -> f32[1, 16, 40, 40] on gpu
%s = alloc_storage _, alignment=256, f32[1, 16, 40, 40], gpu
%y = alloc_tensor %s, _, f32[1, 16, 40, 40]
invoke_packed k(%x, %w, %y), outputs=1
ret %y
.end
)",
                                    std::move(options));
  const Result<MemoryBound> bound = program.TryMemoryBound("f");
  REQUIRE(bound);
  CHECK(bound->workspace == std::uint64_t{32} << 20);
}

TEST_CASE("libraries that are off are not asked", "[.off]") {
  REQUIRE(std::getenv("REWIRE_CUDA_LIBRARIES") != nullptr);
  const auto [bound, peak] = BoundAndPeak(kProduct);
  CHECK(bound.workspace == 0);
  CHECK(peak == bound.bytes);
  for (const StockCall& call : Products()) CHECK(CallsWhile(Blas(), "cublasLtCreate", call) == 0);
  for (const StockCall& call : Convolutions()) CHECK(CallsWhile(Dnn(), "cudnnCreate", call) == 0);
}

TEST_CASE("cuDNN makes convolutions that are worth its call", "[.where_it_pays]") {
  REQUIRE(std::getenv("REWIRE_CUDA_LIBRARIES") == nullptr);
  // 64 * 64 * 16 elements, each of them a sum of as many products as there are channels.
  const auto of_channels = [](std::int64_t channels) {
    return StockCall{"conv",
                     "",
                     {{"f32", {1, channels, 64, 64}, 1, 2}, {"f32", {16, channels, 1, 1}, 1, 2}},
                     {{"f32", {1, 16, 64, 64}}}};
  };
  CHECK(CallsWhile(Dnn(), "cudnnConvolutionForward", of_channels(256)) == 0);  // 2^24 products
  CHECK(CallsWhile(Dnn(), "cudnnConvolutionForward", of_channels(257)) == 1);
}

}  // namespace
}  // namespace rewire::test
