// SPDX-License-Identifier: Apache-2.0
// rewire.fused: each program of elementwise operations becomes a row of the source.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/embedded/rows.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/kernels/contract/fused_operations.h"

namespace rewire::aot {
namespace {

// The C of an operand of a step: an input, an earlier result or a number.
std::string OperandText(std::string_view text) {
  if (text.size() > 1 && text[0] == 'x') return fmt::format("a{}", text.substr(1));
  if (text.size() > 1 && text[0] == 'r') return std::string(text);
  return FloatText(std::strtod(std::string(text).c_str(), nullptr));
}

std::string_view TakeWord(std::string_view* rest, char separator) {
  const std::size_t at = rest->find(separator);
  const std::string_view word = rest->substr(0, at);
  *rest = at == std::string_view::npos ? std::string_view() : rest->substr(at + 1);
  return word;
}

// "mul x0 x1" is "rewire_embedded_Mul(a0, a1)".
Result<std::string> StepText(const EmbeddedCall& call, std::string_view step) {
  struct Operation {
    const char* text;
    const char* function;
  };
  static constexpr Operation kOperations[] = {
#define REWIRE_AOT_OPERATION(name, text, ...) {text, #name},
      REWIRE_FUSED_OPERATIONS(REWIRE_AOT_OPERATION, REWIRE_AOT_OPERATION)
#undef REWIRE_AOT_OPERATION
  };
  const std::string_view name = TakeWord(&step, ' ');
  const auto* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                   [&](const Operation& each) { return name == each.text; });
  if (found == std::end(kOperations)) return call.Refuse(fmt::format("its program has a step {}", name));
  std::string operands;
  while (!step.empty()) {
    operands += (operands.empty() ? "" : ", ") + OperandText(TakeWord(&step, ' '));
  }
  return fmt::format("rewire_embedded_{}({})", found->function, operands);
}

Result<std::string> Fused(EmbeddedCall& call) {
  const DLDataType out = call.OutputValue().dtype;
  const bool to_bytes = out == kUInt8 || out == kInt8;
  if (Status need = call.NeedOutput(to_bytes ? out : kFloat32); !need) return need;
  std::string inputs;
  std::string reads;
  std::string steps;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const DLDataType dtype = call.InputValue(i).dtype;
    if (dtype != kFloat32 && dtype != kBool8 && dtype != kUInt8 && dtype != kInt8) {
      return call.Refuse(fmt::format("argument {} is {}", i, TensorText(call.InputValue(i))));
    }
    const std::string type = ElementType(dtype);
    inputs += fmt::format("  const {0} *x{1} = (const {0} *)x[{1}];\n", type, i);
    reads += fmt::format("    const float a{0} = (float)*x{0};\n", i);
    steps += fmt::format(", x{0} += steps[{0}]", i);
  }
  const std::string program = call.attributes.String("program", "");
  std::string_view rest = program;
  std::string lines;
  std::size_t step = 0;
  for (; !rest.empty(); ++step) {
    std::string_view text = TakeWord(&rest, ';');
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    const Result<std::string> line = StepText(call, text);
    if (!line) return line;
    lines += fmt::format("    const float r{} = {};\n", step, *line);
  }
  if (step == 0) return call.Refuse("it has no program");
  for (std::size_t i = 0; i < call.inputs(); ++i) lines += fmt::format("    (void)a{};\n", i);
  const std::string last = fmt::format("r{}", step - 1), type = ElementType(out);
  const char* range = out == kUInt8 ? "0, 255" : "-128, 127";
  const std::string result =
      to_bytes ? fmt::format("({})rewire_embedded_rounded({}, 0, {})", type, last, range) : last;
  const std::string row = call.definitions().Function(
      fmt::format("static REWIRE_EMBEDDED_ROW(NAME) {{\n{0}  {1} *to = ({1} *)out;\n"
                  "  for (; count > 0; --count{2}) {{\n{3}{4}    *to++ = {5};\n  }}\n}}\n",
                  inputs, type, steps, reads, lines, result));
  return RowCall(call, row);
}

constexpr EmbeddedKernel kFusedKernels[] = {{names::kFused, 1, 0, Fused}};

}  // namespace

std::span<const EmbeddedKernel> FusedKernels() { return kFusedKernels; }

}  // namespace rewire::aot
