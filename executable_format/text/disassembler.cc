// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/disassembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/executable_format/text/constant_printer.h"
#include "rewire/executable_format/text/device_code_printer.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/executable_format/text/function_printer.h"
#include "rewire/executable_format/text/type_printer.h"

namespace rewire {
namespace {

class Disassembler {
 public:
  Disassembler(const Module& module, const DisassembleOptions& options)
      : module_(module),
        options_(options),
        printer_(module),
        types_(module, printer_),
        is_code_(module.constants.size()) {
    for (const DeviceCodeEntry& entry : module.device_code) {
      if (entry.constant < is_code_.size()) is_code_[entry.constant] = true;
    }
  }

  Disassembly Run() {
    // The head comes last: it names symbols and strings only if the rest does not meet them in their order.
    std::string tables;
    for (std::uint32_t i = 0; i < module_.constants.size(); ++i) tables += ConstantLine(i);
    for (std::uint32_t i = 0; i < module_.kernels.size(); ++i) tables += KernelLine(i);
    for (const DeviceCodeEntry& entry : module_.device_code) tables += text::DeviceCodeText(entry, printer_);
    for (const DeviceKernelEntry& kernel : module_.device_kernels) {
      tables += text::DeviceKernelText(kernel, types_);
    }
    Array<std::string> signatures;
    for (std::uint32_t i = 0; i < module_.functions.size(); ++i) signatures.push_back(SignatureLine(i));
    text::FunctionPrinter functions(module_, printer_);
    std::string bodies;
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      bodies += "\n" + signatures[i] + functions.Body(module_.functions[i]) + ".end\n";
    }
    result_.text = Head(functions.StringsInOrder());
    if (!result_.text.empty() && !tables.empty()) result_.text += '\n';
    result_.text += tables;
    if (result_.text.empty() && !bodies.empty()) bodies.erase(0, 1);
    result_.text += bodies;
    return std::move(result_);
  }

 private:
  std::string Head(bool strings_in_order) const {
    std::string head = module_.compressed ? ".compressed\n" : "";
    for (const auto& [key, value] : module_.metadata) {
      head += fmt::format(".metadata {} {}\n", NameText(key), QuoteText(value));
    }
    if (module_.devices.empty() || !(module_.devices.front() == DeviceEntry{})) {
      head += "; damaged: entry #0 of the device table is not the host\n";
    }
    for (std::size_t i = 1; i < module_.devices.size(); ++i) {
      head += fmt::format(".device {}\n", DeviceText(module_.devices[i]));
    }
    const Array<std::int64_t>& limits = module_.symbol_limits;
    if (!types_.SymbolsInOrder() || !limits.empty()) {
      for (std::size_t i = 0; i < module_.symbols.size(); ++i) {
        const bool limited = i < limits.size() && limits[i] != kNoLimit;
        head += fmt::format(".symbol {}{}\n", NameText(module_.symbols[i]),
                            limited ? fmt::format(" max {}", limits[i]) : "");
      }
    }
    if (!strings_in_order) {
      for (const std::string& text : module_.strings) head += fmt::format(".string {}\n", QuoteText(text));
    }
    return head;
  }

  // "name" where that refers to the entry, or "#index" and the name that it shares, if any.
  static std::string EntryText(const std::string& reference, std::string_view name) {
    if (reference.front() != '#' || name.empty()) return reference;
    return reference + " " + NameText(name);
  }

  std::string ConstantLine(std::uint32_t index) {
    const Constant& constant = module_.constants[index];
    const std::string reference = printer_.ConstantText(index);
    Type type;
    type.nodes.push_back(constant.type);
    const std::string entry = EntryText(reference, constant.name) + ": " + types_.Text(type);
    switch (constant.kind) {
      case ConstantKind::kParameter:
        return ".param " + entry + "\n";
      case ConstantKind::kComputed:
        return ".computed " + entry + "\n";
      case ConstantKind::kData:
        break;
    }
    std::string codec;
    if (constant.codec == kCodecZstd) codec = " codec=zstd";
    if (constant.codec > kCodecZstd) codec = fmt::format(" codec={}", constant.codec);
    if (std::optional<std::string> code = CodeText(index)) {
      return ".code " + EntryText(reference, constant.name) + codec + " = " + *code + "\n";
    }
    return ".const " + entry + codec + " = " + DataText(constant, reference) + "\n";
  }

  // The data of a constant that is device code. nullopt if it is none, or if it goes into a file.
  std::optional<std::string> CodeText(std::uint32_t index) const {
    const Constant& constant = module_.constants[index];
    const bool plain =
        constant.type.dtype == kUInt8 && constant.type.rank == 1 && constant.type.device == kHostDevice;
    const bool elsewhere = (options_.leave_data_out || !options_.data_file.empty()) &&
                           constant.stored.view.size() > options_.max_inline_bytes;
    if (!is_code_[index] || !plain || elsewhere) return std::nullopt;
    const std::optional<HostTensor> tensor = text::RestorableTensor(constant);
    if (!tensor) return std::nullopt;
    return text::CodeDataText(*tensor);
  }

  std::string DataText(const Constant& constant, const std::string& reference) {
    if (options_.leave_data_out && constant.stored.view.size() > options_.max_inline_bytes) {
      return fmt::format("left_out ; {} bytes", constant.stored.view.size());
    }
    std::optional<HostTensor> tensor = text::RestorableTensor(constant);
    if (!tensor) return text::StoredDataText(constant);
    const std::string key = reference.front() == '#' ? reference : constant.name;
    const bool to_file = !options_.data_file.empty() &&
                         tensor->bytes.view.size() > options_.max_inline_bytes &&
                         !SafetensorsDType(tensor->dtype).empty() && IsUtf8(key);
    if (!to_file) return text::TensorDataText(*tensor);
    const std::string file = options_.data_file + ":" + key;
    result_.data.push_back({key, std::move(*tensor)});
    constexpr std::string_view kEndsFileName = " \t\r\n\",;";
    const bool plain = file.find_first_of(kEndsFileName) == std::string::npos;
    return "@" + (plain ? file : QuoteText(file));
  }

  std::string KernelLine(std::uint32_t index) const {
    const KernelImport& kernel = module_.kernels[index];
    std::string line = ".kernel ";
    const std::string reference = printer_.KernelText(index);
    if (kernel.debug_name.empty()) {
      line += EntryText(reference, kernel.name);
    } else {
      line += EntryText(reference, kernel.debug_name) + " = " + NameText(kernel.name);
    }
    if (!kernel.attributes.empty()) {
      line += " {";
      for (const Attribute& attribute : kernel.attributes) {
        if (line.back() != '{') line += ", ";
        line += NameText(attribute.name) + "=" + AttributeText(attribute.value);
      }
      line += "}";
    }
    if ((kernel.flags & ~std::uint32_t{kKernelObjects | kKernelInPlace}) != 0) {
      line += fmt::format(" flags={}", kernel.flags);
    } else {
      if ((kernel.flags & kKernelObjects) != 0) line += " objects";
      if ((kernel.flags & kKernelInPlace) != 0) line += " in_place";
    }
    if (kernel.alignment != 0) line += fmt::format(" align={}", kernel.alignment);
    for (std::size_t i = 0; i < kernel.also_written.size(); ++i) {
      line += fmt::format("{}{}", i == 0 ? " writes(" : ", ", kernel.also_written[i]);
    }
    if (!kernel.also_written.empty()) line += ")";
    return line + "\n";
  }

  static std::string AttributeText(const AttributeValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
    if (const auto* real = std::get_if<double>(&value)) return text::DoubleText(*real);
    if (const auto* string = std::get_if<std::string>(&value)) return QuoteText(*string);
    std::string list;
    if (const auto* integers = std::get_if<Array<std::int64_t>>(&value)) {
      for (const std::int64_t integer : *integers)
        list += fmt::format("{}{}", list.empty() ? "" : ", ", integer);
    }
    const auto* reals = std::get_if<Array<double>>(&value);
    if (reals == nullptr) return "[" + list + "]";
    for (const double real : *reals) list += (list.empty() ? "" : ", ") + text::DoubleText(real);
    // Without an element that looks like one, nothing else would say that these are floats.
    return (reals->empty() ? "floats[" : "[") + list + "]";
  }

  std::string SignatureLine(std::uint32_t index) {
    const Function& function = module_.functions[index];
    std::string line = ".func " + EntryText(printer_.FunctionText(index), function.name) + "(";
    for (const NamedType& input : function.inputs) {
      if (line.back() != '(') line += ", ";
      line += NameText(input.name) + ": " + types_.Text(input.type);
    }
    return line + ") -> " + types_.Text(function.result, function.output_names) + "\n";
  }

  const Module& module_;
  const DisassembleOptions& options_;
  InstructionPrinter printer_;
  text::TypePrinter types_;
  Array<bool> is_code_;  // by constant
  Disassembly result_;
};

}  // namespace

Disassembly Disassemble(const Module& module, const DisassembleOptions& options) {
  return Disassembler(module, options).Run();
}

}  // namespace rewire
