// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/device_code_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/base/utf8.h"
#include "rewire/executable_format/text/base64.h"
#include "rewire/executable_format/text/device_code_parser.h"
#include "rewire/executable_format/text/element_text.h"

namespace rewire::text {
namespace {

constexpr std::int64_t kMostSymbol = std::numeric_limits<std::uint32_t>::max();

bool IsNumber(const SizeExpression& size, std::int64_t value) {
  return size.words.size() == 2 && size.words[0] == static_cast<std::int64_t>(SizeOp::kNumber) &&
         size.words[1] == value;
}

std::string SizeText(const SizeExpression& size, TypePrinter& types) {
  std::string words = fmt::format("words({})", fmt::join(size.words, ", "));
  if (SizeExpressionFault(size.words) != nullptr) return words;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < size.words.size(); ++i) {
    const auto op = static_cast<SizeOp>(size.words[i]);
    if (op == SizeOp::kNumber) {
      values.push_back(std::to_string(size.words[++i]));
    } else if (op == SizeOp::kSymbol) {
      const std::int64_t symbol = size.words[++i];
      if (symbol < 0 || symbol > kMostSymbol) return words;
      values.push_back(types.DimText(SymbolDim(static_cast<std::uint32_t>(symbol))));
    } else {
      const std::string second = std::move(values.back());
      values.pop_back();
      values.back() =
          fmt::format("{}({}, {})", kSizeOpNames[static_cast<std::size_t>(op)], values.back(), second);
    }
  }
  return values.front();
}

// "(n, 2)": ones at the end are left out.
std::string SizesText(const SizeExpression (&sizes)[3], TypePrinter& types) {
  std::size_t count = 3;
  while (count > 1 && IsNumber(sizes[count - 1], 1)) --count;
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "(" : ", ") + SizeText(sizes[i], types);
  return text + ")";
}

std::string ParameterText(const DeviceKernelEntry& kernel, std::uint32_t index) {
  const auto& all = kernel.parameters;
  if (index >= all.size()) return fmt::format("#{}", index);
  const std::string& name = all[index].name;
  const auto first =
      std::find_if(all.begin(), all.end(), [&](const DeviceParameter& each) { return each.name == name; });
  if (first != all.begin() + index) return fmt::format("#{}", index);
  return IsArgumentWord(name) ? QuoteText(name) : NameText(name);
}

std::string ArgumentText(const DeviceKernelEntry& kernel, const DeviceArgument& argument,
                         TypePrinter& types) {
  switch (argument.kind) {
    case DeviceArgumentKind::kTensor:
      return ParameterText(kernel, argument.parameter);
    case DeviceArgumentKind::kInteger:
      return DTypeName(argument.dtype) + " " + SizeText(argument.value, types);
    case DeviceArgumentKind::kReal:
      return DTypeName(argument.dtype) + " " +
             ElementText(kFloat64, reinterpret_cast<const std::byte*>(&argument.real));
    case DeviceArgumentKind::kLocalMemory:
      return "local " + SizeText(argument.value, types);
  }
  return "";
}

}  // namespace

std::string DeviceCodeText(const DeviceCodeEntry& entry, const InstructionPrinter& names) {
  std::string form(DeviceCodeFormName(entry.form));
  if (form.empty()) form = fmt::format("form={}", entry.form);
  const std::string architecture = entry.architecture.empty() ? "" : " " + QuoteText(entry.architecture);
  return fmt::format(".device_code {} {}{} = {}\n", NameText(entry.name), form, architecture,
                     names.ConstantText(entry.constant));
}

std::string DeviceKernelText(const DeviceKernelEntry& kernel, TypePrinter& types) {
  std::string line = ".device_kernel " + NameText(kernel.name) + "(";
  const std::size_t read =
      kernel.parameters.size() - std::min<std::size_t>(kernel.outputs, kernel.parameters.size());
  for (std::size_t i = 0; i <= kernel.parameters.size(); ++i) {
    if (i == read) line += ") -> (";
    if (i == kernel.parameters.size()) break;
    if (line.back() != '(') line += ", ";
    Type type;
    type.nodes.push_back(kernel.parameters[i].type);
    line += NameText(kernel.parameters[i].name) + ": " + types.Text(type);
  }
  line += fmt::format(") = {} {} groups{}", NameText(kernel.code), NameText(kernel.symbol),
                      SizesText(kernel.groups, types));
  line += " threads" + SizesText(kernel.threads, types);
  if (!IsNumber(kernel.shared_bytes, 0)) line += " shared(" + SizeText(kernel.shared_bytes, types) + ")";
  line += " args(";
  for (const DeviceArgument& argument : kernel.arguments) {
    if (line.back() != '(') line += ", ";
    line += ArgumentText(kernel, argument, types);
  }
  return line + ")\n";
}

std::string CodeDataText(const HostTensor& code) {
  const Span<const std::byte> bytes = code.bytes.view;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool is_source =
      IsUtf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\0') || c == 0x7F;
      });
  if (!is_source) return "base64 \"" + EncodeBase64(bytes) + "\"";
  std::string lines = "text {";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines += "\n  " + QuoteText(text.substr(at, end - at));
    at = end;
  }
  return lines + "\n}";
}

}  // namespace rewire::text
