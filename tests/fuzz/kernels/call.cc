// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/call.h"

#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::test {

std::int64_t Elements(const std::vector<std::int64_t>& shape, std::int64_t most) {
  std::int64_t count = 1;
  bool large = false;
  for (const std::int64_t dim : shape) {
    if (dim == 0) return 0;
    large = large || __builtin_mul_overflow(count, dim, &count) || count > most;
  }
  return large ? -1 : count;
}

std::int64_t ElementBytes(DLDataType dtype) { return (std::int64_t{dtype.bits} * dtype.lanes + 7) / 8; }

namespace {

template <typename T>
std::string List(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

std::string ValueText(const AttributeValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* f = std::get_if<double>(&value)) return "float " + std::to_string(*f);
  if (const auto* s = std::get_if<std::string>(&value)) return '"' + *s + '"';
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) return List(*l);
  if (const auto* l = std::get_if<std::vector<double>>(&value)) return "floats " + List(*l);
  return "None";
}

std::string ArgumentText(const Argument& argument) {
  if (argument.missing) return "None";
  static constexpr const char* kFills[] = {"small", "ordinary", "special", "bytes", "zero"};
  std::string text = kernel::DTypeName(argument.dtype) + List(argument.shape);
  if (argument.sequence) text = "sequence of " + std::to_string(argument.elements) + " " + text;
  text += argument.values.empty() ? std::string(" ") + kFills[static_cast<int>(argument.fill)]
                                  : " = " + List(argument.values);
  if (argument.byte_offset != 0) text += ", byte offset " + std::to_string(argument.byte_offset);
  if (argument.layout != 0) text += ", layout " + std::to_string(argument.layout);
  if (argument.null_data) text += ", null";
  if (argument.alias >= 0)
    text += ", at byte " + std::to_string(argument.alias_offset) + " of argument " +
            std::to_string(argument.alias);
  return text + ", seed " + std::to_string(argument.seed);
}

}  // namespace

std::string Describe(const Call& call) {
  std::string text;
  for (const auto& [name, value] : call.attributes) text += "  " + name + " = " + ValueText(value) + "\n";
  for (std::size_t i = 0; i < call.arguments.size(); ++i)
    text += "  argument " + std::to_string(i) + ": " + ArgumentText(call.arguments[i]) + "\n";
  return text;
}

}  // namespace rewire::test
