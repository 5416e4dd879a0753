// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/instruction_text.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "rewire/base/array.h"
#include "rewire/base/message.h"
#include "rewire/base/sort.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/instruction.h"

namespace rewire {
namespace {

// Libraries that have to be small show an instruction by its mnemonic; vm-dis shows the rest.
#if defined(REWIRE_SHORT_MESSAGES)
constexpr bool kMnemonicAlone = true;
#else
constexpr bool kMnemonicAlone = false;
#endif

constexpr char kHexDigits[] = "0123456789abcdef";

struct DeviceTypeSpelling {
  std::int32_t type;
  std::string_view name;
};
// DLPack's device types by number: Debian's dlpack 0.6 has no names for the last ones.
constexpr DeviceTypeSpelling kDeviceTypes[] = {
    {1, "cpu"},           {2, "cuda"},    {3, "cuda_host"}, {4, "opencl"},     {7, "vulkan"},
    {8, "metal"},         {9, "vpi"},     {10, "rocm"},     {11, "rocm_host"}, {12, "ext_dev"},
    {13, "cuda_managed"}, {14, "oneapi"}, {15, "webgpu"},   {16, "hexagon"},   {17, "maia"},
};

// Marks the entries that names refer to: of each name that is not empty, the first entry.
Array<std::uint8_t> FirstOfEachName(const Array<std::string_view>& names) {
  Array<std::uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0u);
  Sort(order, [&names](std::uint32_t a, std::uint32_t b) {
    const int compared = names[a].compare(names[b]);
    return compared != 0 ? compared < 0 : a < b;
  });
  Array<std::uint8_t> first(names.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string_view name = names[order[i]];
    first[order[i]] = !name.empty() && (i == 0 || names[order[i - 1]] != name);
  }
  return first;
}

std::string_view KernelName(const KernelImport& kernel) {
  return kernel.debug_name.empty() ? kernel.name : kernel.debug_name;
}

std::string IndexText(std::uint32_t index) { return Format("#{}", index); }

// A target inside the function is a label, any other its distance.
std::string TargetText(const Function& function, std::size_t pc, std::uint32_t word) {
  const std::int64_t distance = static_cast<std::int32_t>(word);
  const std::int64_t target = static_cast<std::int64_t>(pc) + distance;
  if (target >= 0 && target < static_cast<std::int64_t>(function.code.size())) return Format("L{}", target);
  return Format("{}{}", distance < 0 ? "" : "+", distance);
}

std::string BrokenText(const Function& function, std::size_t pc) {
  if (pc >= function.code.size()) return "(past the end of the code)";
  constexpr std::size_t kShown = 4;
  std::string text = ".words";
  const std::size_t end = std::min(function.code.size(), pc + kShown);
  for (std::size_t i = pc; i < end; ++i) {
    text += i == pc ? " 0x" : ", 0x";
    for (int shift = 28; shift >= 0; shift -= 4) text += kHexDigits[(function.code[i] >> shift) & 0xF];
  }
  if (end != function.code.size()) text += ", ...";
  return text;
}

}  // namespace

InstructionLayout LayoutOf(const OpcodeInfo& info) {
  InstructionLayout layout;
  const auto append = [&layout](std::size_t operand, std::string_view before) {
    layout.items[layout.item_count++] = {static_cast<std::uint8_t>(operand), before};
  };
  const std::size_t last = info.operand_count - std::size_t{1};
  const bool has_list = info.operand_count != 0 && IsList(info.operands[last].kind);
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    const OperandKind kind = info.operands[i].kind;
    if (IsResult(kind)) {
      layout.dst = static_cast<int>(i);
      continue;
    }
    if (IsList(kind)) continue;
    const bool first = layout.item_count == 0;
    std::string_view before = first ? "" : ", ";
    if (info.flow == Flow::kBranch && !first) {
      const bool first_target = info.operands[i - 1].kind != OperandKind::kTarget;
      before = kind != OperandKind::kTarget ? " == " : first_target ? " goto " : " else ";
    }
    append(i, before);
    if (!has_list) continue;
    const bool owns_registers = IsRegister(info.operands[last].kind) && first;
    const bool owns_dims = !IsRegister(info.operands[last].kind) && kind == OperandKind::kDType;
    if (owns_registers || owns_dims) append(last, kind == OperandKind::kImm32 ? " " : "");
  }
  return layout;
}

bool LocateOperands(const Array<std::uint32_t>& code, std::size_t pc,
                    std::array<std::size_t, kMaxOperands>* words) {
  if (pc >= code.size() || !IsOpcode(code[pc] & 0xFF)) return false;
  const std::size_t length = WordsOf(code[pc]);
  const OpcodeInfo& info = Info(OpcodeOf(code[pc]));
  if (length < MinWords(info.opcode) || length > code.size() - pc) return false;
  std::size_t word = 1;
  for (std::size_t i = 0; i < info.operand_count; ++i) {
    (*words)[i] = pc + word;
    if (IsList(info.operands[i].kind)) {
      word += 1 + std::size_t{code[pc + word]} * OperandWords(info.operands[i].kind);
    } else {
      word += OperandWords(info.operands[i].kind);
    }
  }
  return word == length;
}

bool IsIdentifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '/';
  };
  if (text.empty() || !letter(text.front()) || text == "_") return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

std::string QuoteText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += "\\x";
      quoted += kHexDigits[byte >> 4];
      quoted += kHexDigits[byte & 0xF];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string NameText(std::string_view name) {
  return IsIdentifier(name) ? std::string(name) : QuoteText(name);
}

std::string RegisterText(const Function& function, std::uint32_t reg) {
  if (reg < function.inputs.size() && IsIdentifier(function.inputs[reg].name)) {
    return Format("%{}", function.inputs[reg].name);
  }
  return Format("%{}", reg);
}

std::string_view DeviceTypeName(std::int32_t type) {
  for (const DeviceTypeSpelling& spelling : kDeviceTypes) {
    if (spelling.type == type) return spelling.name;
  }
  return {};
}

std::optional<std::int32_t> ParseDeviceTypeName(std::string_view name) {
  for (const DeviceTypeSpelling& spelling : kDeviceTypes) {
    if (spelling.name == name) return spelling.type;
  }
  return std::nullopt;
}

std::string SourceTextAt(const Function& function, std::uint32_t pc) {
  const auto note = std::lower_bound(function.notes.begin(), function.notes.end(), pc,
                                     [](const SourceNote& a, std::uint32_t b) { return a.pc < b; });
  return note != function.notes.end() && note->pc == pc ? note->text : std::string();
}

std::string DeviceText(const DeviceEntry& device) {
  if (device == DeviceEntry{}) return "cpu";
  const std::string_view type = DeviceTypeName(device.type);
  std::string text = type.empty() ? Format("device{}", device.type) : std::string(type);
  Append(&text, {":{}", device.id});
  if (!device.memory_scope.empty()) Append(&text, {" {}", QuoteText(device.memory_scope)});
  return text;
}

InstructionPrinter::InstructionPrinter(const Module& module) : module_(module) {
  if constexpr (kMnemonicAlone) return;
  Array<std::string_view> names;
  for (const Constant& constant : module.constants) names.push_back(constant.name);
  constants_ = FirstOfEachName(names);
  names.clear();
  for (const Function& function : module.functions) names.push_back(function.name);
  functions_ = FirstOfEachName(names);
  names.clear();
  for (const KernelImport& kernel : module.kernels) names.push_back(KernelName(kernel));
  kernels_ = FirstOfEachName(names);
  strings_ = FirstOfEachName({module.strings.begin(), module.strings.end()});
  Array<std::string> devices;
  devices.reserve(module.devices.size());
  for (const DeviceEntry& device : module.devices) devices.push_back(rewire::DeviceText(device));
  devices_ = FirstOfEachName({devices.begin(), devices.end()});
}

template <typename NameAt>
bool InstructionPrinter::HasName(const Array<std::uint8_t>& named, std::size_t count, std::uint32_t index,
                                 const NameAt& name_at) const {
  if (!searches_) return index < named.size() && named[index];
  if (index >= count || name_at(index).empty()) return false;
  for (std::uint32_t i = 0; i < index; ++i) {
    if (name_at(i) == name_at(index)) return false;
  }
  return true;
}

std::string InstructionPrinter::ConstantText(std::uint32_t index) const {
  const auto name = [&](std::uint32_t i) -> std::string_view { return module_.constants[i].name; };
  return HasName(constants_, module_.constants.size(), index, name) ? NameText(name(index))
                                                                    : IndexText(index);
}
std::string InstructionPrinter::FunctionText(std::uint32_t index) const {
  const auto name = [&](std::uint32_t i) -> std::string_view { return module_.functions[i].name; };
  return HasName(functions_, module_.functions.size(), index, name) ? NameText(name(index))
                                                                    : IndexText(index);
}
std::string InstructionPrinter::KernelText(std::uint32_t index) const {
  const auto name = [&](std::uint32_t i) { return KernelName(module_.kernels[i]); };
  return HasName(kernels_, module_.kernels.size(), index, name) ? NameText(name(index)) : IndexText(index);
}
std::string InstructionPrinter::DeviceText(std::uint32_t index) const {
  const auto name = [&](std::uint32_t i) { return rewire::DeviceText(module_.devices[i]); };
  return HasName(devices_, module_.devices.size(), index, name) ? name(index) : IndexText(index);
}
std::string InstructionPrinter::StringText(std::uint32_t index) const {
  if (index == kNone) return "_";
  const auto name = [&](std::uint32_t i) -> std::string_view { return module_.strings[i]; };
  return HasName(strings_, module_.strings.size(), index, name) ? QuoteText(name(index)) : IndexText(index);
}

std::string InstructionPrinter::Text(const Function& function, std::size_t pc, std::uint32_t most) const {
  std::array<std::size_t, kMaxOperands> words;
  if (!LocateOperands(function.code, pc, &words)) return BrokenText(function, pc);
  const std::uint32_t* code = function.code.data();
  const OpcodeInfo& info = Info(OpcodeOf(code[pc]));
  if constexpr (kMnemonicAlone) return std::string(info.mnemonic);
  const InstructionLayout layout = LayoutOf(info);

  std::string text;
  if (layout.dst >= 0 && code[words[layout.dst]] != kNone) {
    text = Format("{} = ", RegisterText(function, code[words[layout.dst]]));
  } else if (layout.dst >= 0 && !IsOptional(info.operands[layout.dst].kind)) {
    text = Format("%{} = ", kNone);
  }
  text += info.mnemonic;
  for (std::size_t i = 0; i < layout.item_count; ++i) {
    const OperandInfo& operand = info.operands[layout.items[i].operand];
    const std::uint32_t* word = code + words[layout.items[i].operand];
    text += i == 0 ? " " : layout.items[i].before;
    switch (operand.kind) {
      case OperandKind::kOptRead:
      case OperandKind::kOptWrite:
        text += *word == kNone ? "_" : RegisterText(function, *word);
        break;
      case OperandKind::kRead:
      case OperandKind::kWrite:
      case OperandKind::kKill:
        text += RegisterText(function, *word);
        break;
      case OperandKind::kImm32:
        Append(&text, {"{}={}", operand.name, *word});
        break;
      case OperandKind::kImm64:
        Append(&text, {"{}", DecodeInt64(word)});
        break;
      case OperandKind::kDType:
        text += DTypeName(DecodeDType(*word));
        break;
      case OperandKind::kConstant:
        text += ConstantText(*word);
        break;
      case OperandKind::kFunction:
        text += FunctionText(*word);
        break;
      case OperandKind::kKernel:
        text += KernelText(*word);
        break;
      case OperandKind::kDevice:
        text += DeviceText(*word);
        break;
      case OperandKind::kString:
        text += StringText(*word);
        break;
      case OperandKind::kTarget:
        text += TargetText(function, pc, *word);
        break;
      case OperandKind::kReads: {
        text += "(";
        for (std::uint32_t k = 0; k < *word && k < most; ++k) {
          if (k != 0) text += ", ";
          text += RegisterText(function, word[1 + k]);
        }
        if (*word > most) Append(&text, {", ... {} more", *word - most});
        text += ")";
        break;
      }
      case OperandKind::kDims: {
        const DimsView dims(word);
        if (dims.size() == 0) break;  // "f32" in place of "f32[]": an AllocStorage of bytes has no shape
        const auto count = static_cast<std::uint32_t>(dims.size());
        for (std::uint32_t k = 0; k < count && k < most; ++k) {
          Append(&text, {"{}{}", k == 0 ? "[" : ", ", dims[k]});
        }
        if (count > most) Append(&text, {", ... {} more", count - most});
        text += "]";
        break;
      }
    }
  }
  return text;
}

std::string ShortInstructionText(const Module& module, const Function& function, std::size_t pc) {
  constexpr std::uint32_t kOperands = 16;
  constexpr std::size_t kCharacters = 300;
  std::string text = InstructionPrinter(module, InstructionPrinter::ForOne{}).Text(function, pc, kOperands);
  if (text.size() <= kCharacters) return text;
  text.resize(kCharacters);
  while (!IsUtf8(text)) text.pop_back();
  return text + "...";
}

}  // namespace rewire
