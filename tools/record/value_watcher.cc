// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/value_watcher.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/tools/io/register_text.h"

namespace rewire::tools {
namespace {

// The registers that a kernel call has filled: written arguments in order, then the result. Arguments that
// are trees count as their fields.
std::vector<std::uint32_t> Filled(const std::uint32_t* instruction, Span<const RewireFFIAny> registers) {
  std::uint32_t outputs = 0, result = kNone;
  std::vector<std::uint32_t> arguments;
  ForEachOperand(instruction,
                 [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
                   const RegisterUse use = TraitsOf(operand.kind).use;
                   if (operand.kind == OperandKind::kImm32) {
                     outputs = *words;
                   } else if (use == RegisterUse::kWrite) {
                     result = *words;
                   } else if (use == RegisterUse::kRead) {
                     arguments.assign(words, words + count);
                   }
                 });
  std::vector<std::uint32_t> filled;
  std::uint64_t found = 0;
  while (!arguments.empty() && found < outputs) {
    found += std::max(1U, ShareRegister(registers[arguments.back()]).field_count());
    filled.push_back(arguments.back());
    arguments.pop_back();
  }
  std::reverse(filled.begin(), filled.end());
  if (result != kNone) filled.push_back(result);
  return filled;
}

}  // namespace

void ValueWatcher::OnInstruction(const Instruction& instruction) {
  const Module& module = instruction.module;
  const bool same_call = depth_ == instruction.depth && function_ == instruction.function;
  const std::uint32_t maker = pc_;
  function_ = instruction.function;
  pc_ = instruction.pc;
  depth_ = instruction.depth;
  if (!same_call) return;
  const auto pass = [&](std::uint32_t reg, const std::string& name, bool channels_last) {
    sink_({module, function_, maker, reg, name, channels_last, ShareRegister(instruction.registers[reg])});
  };
  const Span<const NamedRegister> named = names_.At(function_, pc_);
  for (const NamedRegister& value : named) pass(value.reg, value.name, value.channels_last);
  const std::uint32_t* made_by = module.functions[function_].code.data() + maker;
  if (OpcodeOf(*made_by) != Opcode::kInvokePacked) return;
  for (const std::uint32_t reg : Filled(made_by, instruction.registers)) {
    const bool has_name =
        std::any_of(named.begin(), named.end(), [&](const NamedRegister& value) { return value.reg == reg; });
    if (!has_name) pass(reg, std::string(), false);
  }
}

HostTensor ChannelsFirst(const HostTensor& tensor) {
  if (tensor.shape.size() < 3) return tensor;
  HostTensor moved;
  moved.dtype = tensor.dtype;
  moved.shape = tensor.shape;
  std::rotate(moved.shape.begin() + 1, moved.shape.end() - 1, moved.shape.end());
  const std::size_t step = ElementBytes(tensor.dtype);
  const auto batch = static_cast<std::size_t>(moved.shape[0]),
             channels = static_cast<std::size_t>(moved.shape[1]);
  const std::size_t plane = batch * channels == 0 ? 0 : tensor.bytes.view.size() / step / batch / channels;
  std::byte* to = nullptr;
  moved.bytes = AllocateBytes(tensor.bytes.view.size(), &to);
  for (std::size_t image = 0; image < batch; ++image) {
    const std::byte* from = tensor.bytes.view.data() + image * channels * plane * step;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (std::size_t i = 0; i < plane; ++i, to += step) {
        std::memcpy(to, from + (i * channels + channel) * step, step);
      }
    }
  }
  return moved;
}

std::vector<ValueLeaf> LeavesOf(const Value& value) {
  std::vector<ValueLeaf> leaves, open;
  open.push_back({"", value});
  while (!open.empty()) {
    ValueLeaf next = std::move(open.back());
    open.pop_back();
    if (next.value.kind() != ValueKind::kAdt) {
      leaves.push_back(std::move(next));
      continue;
    }
    for (std::uint32_t i = next.value.field_count(); i-- > 0;)
      open.push_back({next.path + "." + std::to_string(i), next.value.field(i)});
  }
  return leaves;
}

}  // namespace rewire::tools
