// SPDX-License-Identifier: Apache-2.0
// A function of a constant, computed while compiling, has the bits that a run computes of an input: for each
// elementwise operator of one input, and for floats of 16 and 32 bits.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/compiler/lower/registry.h"
#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct FloatType {
  onnx::TensorProto::DataType onnx;
  DLDataType dtype;
  std::size_t bytes;
};
const FloatType kTypes[] = {{onnx::TensorProto::FLOAT16, MakeDType(kFloat, 16), 2},
                            {onnx::TensorProto::BFLOAT16, MakeDType(kBFloat, 16), 2},
                            {onnx::TensorProto::FLOAT, MakeDType(kFloat, 32), 4}};

// All numbers of 16 bits, or of 32 bits those with the same upper half.
Bytes AllNumbers(const FloatType& type) {
  Bytes bytes;
  for (std::uint32_t upper = 0; upper < 65536; upper += type.bytes == 2 ? 1 : 7) {
    const std::uint32_t bits = type.bytes == 2 ? upper : upper << 16 | 0x2A55;
    for (std::size_t i = 0; i < type.bytes; ++i) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  return bytes;
}

// The operators one after the other, of an input or of a constant.
onnx::ModelProto Chain(const std::vector<std::string>& operators, const FloatType& type, const Bytes& numbers,
                       bool constant) {
  const auto count = static_cast<std::int64_t>(numbers.size() / type.bytes);
  onnx::ModelProto model = EmptyModel(24);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {count}, type.onnx);
  if (constant) AddWeight(graph, "c", type.onnx, {count})->set_raw_data(numbers.data(), numbers.size());
  std::string last = constant ? "c" : "x";
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string next = i + 1 == operators.size() ? "y" : "v" + std::to_string(i);
    AddNode(graph, operators[i], {last}, next);
    last = next;
  }
  SetValue(graph->add_output(), "y", {count}, type.onnx);
  return model;
}

// The bytes of y; none if the model does not compile for this type.
Bytes BytesOf(const onnx::ModelProto& model, const FloatType& type, const Bytes& numbers,
              const compiler::CompileOptions& options) {
  Outcome outcome = CompileProto(model, options);
  if (!outcome.message.empty()) return {};
  const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  Bytes x = numbers;
  const Shape shape = {static_cast<std::int64_t>(numbers.size() / type.bytes)};
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), type.dtype, shape)));
  REQUIRE(vm.TryInvoke());
  const Tensor y = vm.result().tensor();
  Bytes result(numbers.size());
  std::memcpy(result.data(), y.view().data(), result.size());
  return result;
}

std::uint32_t BitsAt(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
  return bits;
}
bool IsNaN(std::uint32_t bits, const FloatType& type) {
  if (type.bytes == 4) return (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return (bits & 0x7FFFU) > (type.onnx == onnx::TensorProto::FLOAT16 ? 0x7C00U : 0x7F80U);
}

void CheckSame(const std::vector<std::string>& operators, const FloatType& type,
               const compiler::CompileOptions& options) {
  const Bytes numbers = AllNumbers(type);
  const Bytes run = BytesOf(Chain(operators, type, numbers, false), type, numbers, options);
  const Bytes folded = BytesOf(Chain(operators, type, numbers, true), type, numbers, options);
  REQUIRE(run.size() == folded.size());
  for (std::size_t at = 0; at < run.size(); at += type.bytes) {
    const std::uint32_t given = BitsAt(folded, at, type.bytes), expected = BitsAt(run, at, type.bytes);
    if (given == expected || (IsNaN(given, type) && IsNaN(expected, type))) continue;
    // CPUs with instructions for bf16 make 0 of numbers below the least normal one.
    if (type.onnx == onnx::TensorProto::BFLOAT16 && given >> 15 == expected >> 15 &&
        (given & 0x7FFF) <= 0x80 && (expected & 0x7F80) == 0)
      continue;
    CAPTURE(BitsAt(numbers, at, type.bytes), given, expected);
    FAIL_CHECK("the constant differs from what a run computes");
    return;
  }
}

// Operators of one input without attributes that must be given, whose output has the input's type.
std::vector<std::string> Functions() {
  std::vector<std::string> names;
  for (const compiler::Operator& row : compiler::ElementwiseOperators()) {
    if (row.least_inputs != 1 || row.most_inputs < 1 || row.until != 0 || row.kernel == nullptr) continue;
    const std::string name = row.type;
    if (name == "BitCast" || name == "IsNaN" || name == "IsInf" || name == "Not" || name == "BitwiseNot")
      continue;
    names.push_back(name);
  }
  return names;
}

TEST_CASE("folded functions have the bits of a run") {
  const std::vector<std::string> functions = Functions();
  REQUIRE(functions.size() > 30);
  for (const std::string& function : functions) {
    for (const FloatType& type : kTypes) {
      CAPTURE(function, DTypeName(type.dtype));
      CheckSame({function}, type, {});
    }
  }
}

// Without strict a run does not round between functions that compute in f32 (keep-f32).
TEST_CASE("folded chains have the bits of a strict run") {
  compiler::CompileOptions strict;
  strict.strict = true;
  for (const FloatType& type : kTypes) {
    CAPTURE(DTypeName(type.dtype));
    CheckSame({"Exp", "Softplus", "Log", "Mish", "Gelu", "HardSwish"}, type, strict);
    CheckSame({"Abs", "Sqrt", "Reciprocal", "Sigmoid", "Tanh", "Elu", "Clip"}, type, strict);
  }
}

}  // namespace
}  // namespace rewire::test
