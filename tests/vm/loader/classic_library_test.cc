// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/classic_library.h"

#include <catch2/catch.hpp>

#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/thread_pool.h"

namespace rewire {
namespace {

using test::Load;
using test::MessageOf;
using test::RunKernel;
using test::TestLibrary;

PackedFunction Resolve(const KernelSet& kernels, const std::string& name) {
  KernelImport import;
  import.name = name;
  return *kernels.Resolve(import);
}

// An argument over the caller's tensor.
RewireFFIAny TensorArg(const TensorView& view) {
  RewireFFIAny arg{};
  arg.type_index = kRewireFFIDLTensorPtr;
  arg.v_ptr = const_cast<DLTensor*>(&view.dl());
  return arg;
}

struct Called {
  int status;
  RewireFFIAny result;
  std::string error;
};
Called Call(const PackedFunction& function, const std::vector<RewireFFIAny>& args) {
  Called called{};
  called.status =
      function.call(function.handle, args.data(), static_cast<std::int32_t>(args.size()), &called.result);
  if (called.status != 0) called.error = TakeErrorText(function);
  return called;
}

TEST_CASE("a classic library offers its functions, and nothing of the libraries below it") {
  const KernelSet kernels = Load("classic");
  CHECK(kernels.sources()[0]->Description() == "classic.so (classic TVM ABI)");
  CHECK(kernels.sources()[0]->Names() ==
        std::vector<std::string>{"classic_add", "classic_argsort", "classic_call", "classic_call_missing",
                                 "classic_describe", "classic_matmul", "classic_matmul_transposed",
                                 "classic_parallel", "classic_return_float", "classic_return_object",
                                 "classic_sort_down", "classic_sum", "classic_top2"});
  KernelImport import;
  import.name = "malloc";
  CHECK(MessageOf(kernels.Resolve(import)) == "kernel 'malloc' is not in: classic.so (classic TVM ABI)");
}

TEST_CASE("functions of a library without any mark are found under the names that the program has for them") {
  const KernelSet kernels = Load("unmarked");
  CHECK(kernels.sources()[0]->Description() == "unmarked.so (classic TVM ABI, for want of any mark)");
  CHECK(kernels.sources()[0]->Names() ==
        std::vector<std::string>{"tvmgen_default_fused_add", "vm_mod_fused_add"});
  CHECK(Resolve(kernels, "vm_mod_fused_add"));
  KernelImport import;
  import.name = "fused_add";
  CHECK(MessageOf(kernels.Resolve(import)) ==
        "kernel 'fused_add' is not in: unmarked.so (classic TVM ABI, for want of any mark)");
}

TEST_CASE("classic functions run inside a VM: results, errors, the entry symbol") {
  const KernelSet kernels = Load("classic");
  CHECK(RunKernel(kernels, "classic_add", {40, 2}) == 42);
  CHECK(RunKernel(kernels, "__tvm_main__", {40, 2}) == 42);
  CHECK_THAT(MessageOf(RunKernel(kernels, "classic_add", {1})),
             Catch::EndsWith(": Assert fail: num_args == 2, classic_add: num_args should be 2"));
  CHECK(RunKernel(kernels, "classic_call", {1, 2}) == 3);
  CHECK_THAT(MessageOf(RunKernel(kernels, "classic_call_missing", {})),
             Catch::EndsWith("RuntimeError: the library calls the function 'tvm.contrib.no.such', which is "
                             "neither in it nor in the function registry"));
  std::vector<std::int64_t> many(100);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i);
  CHECK(RunKernel(kernels, "classic_sum", many) == 4950);
}

TEST_CASE("tasks of classic functions run on the pool with the VM's memory") {
  const KernelSet kernels = Load("classic");
  for (std::int32_t threads : {1, 3}) {
    const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
    CHECK(RunKernel(kernels, "classic_parallel", {5}, pool) == 15);
    CHECK_THAT(MessageOf(RunKernel(kernels, "classic_parallel", {6}, pool)),
               Catch::EndsWith(": task 5 says no"));
  }
}

TEST_CASE("arguments take the classic form: uint1 booleans, no strides that say nothing") {
  const KernelSet kernels = Load("classic");
  const PackedFunction describe = Resolve(kernels, "classic_describe");
  const float numbers[6] = {};
  const bool flags[2] = {};
  // Digits: type code, dtype code, dtype bits (2), strides given, rank, type code of the next argument (2).
  CHECK(Call(describe, {TensorArg(TensorView(numbers, {2, 3}))}).result.v_int64 == 723202);
  CHECK(Call(describe, {TensorArg(TensorView(flags, {2}))}).result.v_int64 == 710101);
  const std::vector<std::int64_t> shape = {3, 2}, transposed = {1, 3}, row = {1, 6}, odd = {7, 1};
  float* data = const_cast<float*>(numbers);
  CHECK(Call(describe, {TensorArg(TensorView(data, kFloat32, shape, kHost, transposed))}).result.v_int64 ==
        723212);
  CHECK(Call(describe, {TensorArg(TensorView(data, kFloat32, row, kHost, odd))}).result.v_int64 == 723202);

  const auto code = [&](RewireFFIAny arg) {
    return Call(describe, {TensorArg(TensorView(numbers, {6})), arg}).result.v_int64 % 100;
  };
  RewireFFIAny arg{};
  CHECK(code(arg) == 4);
  for (const auto& [type_index, classic] :
       {std::pair{kRewireFFIInt, 0}, std::pair{kRewireFFIBool, 0}, std::pair{kRewireFFIFloat, 2},
        std::pair{kRewireFFIOpaquePtr, 3}, std::pair{kRewireFFIDataType, 5}, std::pair{kRewireFFIDevice, 6},
        std::pair{kRewireFFIRawStr, 11}}) {
    arg.type_index = type_index;
    CHECK(code(arg) == classic);
  }
}

TEST_CASE("what the classic ABI or the VM cannot take is refused") {
  const KernelSet kernels = Load("classic");
  RewireFFIAny shape{};
  shape.type_index = kRewireFFIShape;
  CHECK(Call(Resolve(kernels, "classic_add"), {shape}).error ==
        "TypeError: argument 0: a function of the classic TVM ABI takes no shape");
  CHECK(Call(Resolve(kernels, "classic_return_object"), {}).error ==
        "TypeError: it returned a value of the classic type code 8; functions that TVM compiled return a "
        "number or "
        "nothing");
  const Called returned = Call(Resolve(kernels, "classic_return_float"), {});
  CHECK(returned.result.type_index == kRewireFFIFloat);
  CHECK(returned.result.v_float64 == 2.5);
}

TEST_CASE("the wording of its checks tells what alignment a classic library relies on") {
  CHECK(Resolve(Load("classic"), "classic_add").alignment == 64);  // as TVM words them from 0.12 on
  CHECK(Resolve(Load("classic_undefined"), "half_plus_one").alignment == 0);
}

TEST_CASE("functions that a classic library names are provided, or missed before anything runs") {
  const KernelSet kernels = Load("classic_undefined");
  CHECK(RunKernel(kernels, "half_plus_one", {0x4200}) == 0x4400);  // 3 + 1
  CHECK_THAT(MessageOf(RunKernel(kernels, "half_plus_one", {1, 2})),
             Catch::EndsWith(": half_plus_one: expected 1 argument"));

  KernelSet none;
  const Status missing = none.AddLibrary(TestLibrary("classic_missing"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == StatusCode::kIo);
  CHECK_THAT(missing.error().message(), Catch::Contains("undefined symbol: some_function_of_nobody"));
}

}  // namespace
}  // namespace rewire
