// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/loader/tvm_runtime/call_function.h"

#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/loader/tvm_functions.h"

namespace rewire::test {
namespace {

struct TvmCall {
  ClassicFunction function = nullptr;
  std::vector<ClassicValue> values;
  std::vector<int> codes;
};

int RunCall(void* handle, const RewireFFIAny* /*args*/, std::int32_t /*count*/, RewireFFIAny* result) {
  auto& call = *static_cast<TvmCall*>(handle);
  ClassicValue returned{};
  int code = kClassicNull;
  result->type_index = kRewireFFIInt;
  return call.function(call.values.data(), call.codes.data(), static_cast<int>(call.values.size()), &returned,
                       &code, nullptr);
}

}  // namespace

std::string CallTvmFunction(const std::string& name, const std::vector<TensorView>& tensors,
                            const std::vector<std::variant<std::int64_t, const char*>>& rest) {
  TvmCall call;
  const Result<Span<const tvm_runtime::Function>> functions = TvmFunctions();
  if (!functions) return functions.error().message();
  for (const tvm_runtime::Function& function : *functions) {
    if (function.name == name) call.function = function.call;
  }
  if (call.function == nullptr) return "there is no function " + name;
  const auto add = [&](ClassicValue value, int code) {
    call.values.push_back(value);
    call.codes.push_back(code);
  };
  for (const TensorView& tensor : tensors) {
    ClassicValue value;
    value.v_handle = const_cast<DLTensor*>(&tensor.dl());
    add(value, kClassicDLTensor);
  }
  for (const auto& each : rest) {
    ClassicValue value;
    if (const auto* text = std::get_if<const char*>(&each)) {
      value.v_str = *text;
      add(value, kClassicStr);
    } else {
      value.v_int64 = std::get<std::int64_t>(each);
      add(value, kClassicInt);
    }
  }
  KernelSet kernels;
  PackedFunction function;
  function.call = &RunCall;
  function.handle = &call;
  kernels.AddFunction("call", function);
  return MessageOf(RunKernel(kernels, "call", {}));
}

}  // namespace rewire::test
