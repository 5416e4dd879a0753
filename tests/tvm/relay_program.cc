// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/tvm/relay_program.h"

#include <catch2/catch.hpp>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/vm/outputs/output_harness.h"

namespace rewire::test {
namespace {

template <typename T>
tvm::RelaySpec::Constant ConstantOf(DLDataType dtype, const std::vector<T>& values) {
  tvm::RelaySpec::Constant constant;
  constant.dtype = dtype;
  constant.shape = {static_cast<std::int64_t>(values.size())};
  constant.elements.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return constant;
}

}  // namespace

Code MakeTensor(std::int64_t dst, const std::vector<std::int64_t>& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  tvm::RelayWords storage = {kAllocStorage, 0, 64, 2, 32, 1, 0, rank, 60};
  tvm::RelayWords tensor = {kAllocTensor, 60, 61, 2, 32, 1, rank, dst};
  storage.insert(storage.end(), shape.begin(), shape.end());
  tensor.insert(tensor.end(), shape.begin(), shape.end());
  return {storage, {kLoadConst, kZero, 0, 61}, tensor};
}

tvm::RelayWords Call(std::int64_t kernel, const std::vector<std::int64_t>& arguments) {
  tvm::RelayWords words = {kInvokePacked, kernel, static_cast<std::int64_t>(arguments.size()), 1};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Code Join(const std::vector<Code>& parts) {
  Code code;
  for (const Code& part : parts) code.insert(code.end(), part.begin(), part.end());
  return code;
}

tvm::RelaySpec RelayOf(const std::vector<tvm::RelayFunctionSpec>& functions) {
  tvm::RelaySpec spec;
  spec.kernels = {"inc", "add", "fill_1"};
  spec.constants = {tvm::Scalar64(0), ConstantOf<std::int64_t>(kInt64, {3, 2}),
                    ConstantOf<float>(kFloat32, {1, 2, 3, 4, 5, 6})};
  spec.functions = functions;
  return spec;
}

tvm::RelayFunctionSpec FunctionOf(const std::string& name, std::vector<std::string> parameters, Code code) {
  return {name, "64", std::move(parameters), std::move(code), ""};
}

Program LinkRelay(const tvm::RelaySpec& spec) {
  Result<Module> module = tvm::ImportRelayExecutable(tvm::Share(WriteRelay(spec)));
  if (!module) FAIL(module.error().message());
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  LinkOptions options;
  AddTestKernels(&options.kernels, nullptr);
  options.storage_fill = StorageFill::kPoison;
  Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) FAIL(program.error().message());
  return *program;
}

Program LinkRelay(std::vector<std::string> parameters, Code code) {
  return LinkRelay(RelayOf({FunctionOf("main", std::move(parameters), std::move(code))}));
}

}  // namespace rewire::test
