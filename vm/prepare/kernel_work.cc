// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/prepare/kernel_work.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include "rewire/base/message.h"
#include "rewire/vm/prepare/expression_reader.h"

namespace rewire {
namespace {

// The meaning of a name, or of a name with an index.
using ValueOfName =
    std::function<std::optional<double>(const std::string& name, std::optional<std::int64_t> index)>;

struct WorkRules {
  using Number = double;
  static constexpr const char* kSubject = "work";
  static constexpr const char* kNoMeaning = "is no argument and no integer attribute";
  using Reader = ExpressionReader<WorkRules>;

  const ValueOfName& value;

  std::optional<double> Find(const std::string& name, std::optional<std::int64_t> index) const {
    return value(name, index);
  }
  static Result<double> Quotient(Reader& reader, double dividend) {
    if (Status divides = reader.Expect('/'); !divides) return Forward(divides);
    const Result<double> divisor = reader.Factor();
    if (!divisor) return divisor;
    return *divisor == 0 ? 0 : dividend / *divisor;
  }
  static Result<double> Call(Reader& reader, const std::string& /*name*/, std::size_t begin) {
    return reader.WrongAt(begin, "a name without '('");
  }
};

Result<double> Compute(const char* rule, const ValueOfName& value) {
  const WorkRules rules{value};
  return ExpressionReader<WorkRules>(rule, rules).Whole();
}

double ProductOf(Span<const std::int64_t> numbers) {
  double product = 1;
  for (const std::int64_t number : numbers) product *= static_cast<double>(number);
  return product;
}

std::optional<double> NumberIn(Span<const std::int64_t> numbers, std::optional<std::int64_t> index) {
  if (!index) return ProductOf(numbers);
  const auto size = static_cast<std::int64_t>(numbers.size());
  const std::int64_t at = *index < 0 ? *index + size : *index;
  if (at < 0 || at >= size) return std::nullopt;
  return static_cast<double>(numbers[static_cast<std::size_t>(at)]);
}

std::optional<double> ValueIn(const AttributeValue& value, std::optional<std::int64_t> index) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer != nullptr && !index) return static_cast<double>(*integer);
  const auto* list = std::get_if<Array<std::int64_t>>(&value);
  return list == nullptr ? std::nullopt : NumberIn(*list, index);
}

// The integer N of "name = N" in a row's text of attributes.
std::optional<double> DefaultOf(const RewireKernelRow& row, const std::string& name) {
  const std::string_view text = row.attributes == nullptr ? "" : row.attributes;
  const std::string wanted = name + " = ";
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
    if (at > 0 && text[at - 1] != ' ') continue;
    const std::string_view number = text.substr(at + wanted.size());
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool whole = error == std::errc() && (end == number.data() + number.size() || *end != '.');
    return whole ? std::optional(static_cast<double>(value)) : std::nullopt;
  }
  return std::nullopt;
}

// The dimensions of a row's argument in a call; null if it is left out. nullopt if the row has no such
// argument, or if it is a list.
std::optional<const WorkDims*> Argument(const RewireKernelRow& row, const WorkCall& call,
                                        std::string_view name) {
  for (const bool written : {false, true}) {
    const auto& tensors = written ? call.written : call.read;
    std::size_t found = 0, count = 0, list = 0;
    bool is_found = false, has_list = false;
    for (std::uint32_t i = 0; i < row.argument_count; ++i) {
      const RewireKernelArgument& argument = row.arguments[i];
      if (((argument.flags & REWIRE_ARGUMENT_WRITTEN) != 0) != written) continue;
      if ((argument.flags & REWIRE_ARGUMENT_LIST) != 0) {
        has_list = true;
        list = count;
      } else if (std::string_view(argument.name, argument.name_bytes) == name) {
        is_found = true;
        found = count;
      }
      ++count;
    }
    if (!is_found) continue;
    // A list takes as many tensors as the others leave.
    if (has_list && found > list) {
      const std::size_t from_end = count - found;
      if (from_end > tensors.size()) return nullptr;
      found = tensors.size() - from_end;
    }
    return found < tensors.size() && tensors[found] ? &*tensors[found] : nullptr;
  }
  return std::nullopt;
}

bool HasArgument(const RewireKernelRow& row, std::string_view name) {
  for (std::uint32_t i = 0; i < row.argument_count; ++i) {
    const RewireKernelArgument& argument = row.arguments[i];
    const bool list = (argument.flags & REWIRE_ARGUMENT_LIST) != 0;
    if (!list && std::string_view(argument.name, argument.name_bytes) == name) return true;
  }
  return false;
}

// A row's text may refer to another row: "as rewire.conv".
bool MayHaveAttribute(const RewireKernelRow& row, std::string_view name) {
  if (row.attributes == nullptr) return true;
  const std::string_view text = row.attributes;
  return text.find(name) != std::string_view::npos || text.find("as ") != std::string_view::npos;
}

double ElementsOf(const std::optional<WorkDims>& tensor) { return tensor ? ProductOf(*tensor) : 0; }

}  // namespace

std::optional<CallWork> WorkOf(const RewireKernelRow* row, const RewireKernelWork* work,
                               const WorkCall& call) {
  if (row == nullptr || row->arguments == nullptr || call.written.empty()) return std::nullopt;
  const ValueOfName value = [&](const std::string& name,
                                std::optional<std::int64_t> index) -> std::optional<double> {
    if (const std::optional<const WorkDims*> dims = Argument(*row, call, name))
      return *dims == nullptr ? 0 : NumberIn(**dims, index);
    for (const Attribute& attribute : call.attributes) {
      if (attribute.name == name) return ValueIn(attribute.value, index);
    }
    return index ? std::nullopt : DefaultOf(*row, name);
  };
  CallWork done;
  for (const auto& tensor : call.read) done.most_read = std::max(done.most_read, ElementsOf(tensor));
  for (const auto& tensor : call.written) done.written += ElementsOf(tensor);
  const RewireKernelWork none{};
  const RewireKernelWork& rules = work == nullptr ? none : *work;
  if (rules.products != nullptr) {
    const Result<double> products = Compute(rules.products, value);
    if (!products) return std::nullopt;
    done.products = done.plain_products = std::max(*products, 0.0);
    if (rules.plain_products != nullptr) {
      const Result<double> plain = Compute(rules.plain_products, value);
      if (!plain) return std::nullopt;
      done.plain_products = *plain;
    }
    if (done.products > 0) return done;
  }
  const bool elementwise = (row->traits & REWIRE_KERNEL_ELEMENTWISE) != 0 && call.written.size() == 1;
  double each = rules.operations > 0 ? rules.operations : elementwise ? 1 : 0;
  if (rules.times != nullptr) {
    const Result<double> times = Compute(rules.times, value);
    if (!times) return std::nullopt;
    each *= *times;
  }
  if (!(each > 0)) return std::nullopt;
  done.operations = each * std::max(done.most_read, done.written);
  return done;
}

Status CheckWork(const RewireKernelRow& row, const RewireKernelWork& work) {
  const ValueOfName value = [&](const std::string& name, std::optional<std::int64_t>) {
    return HasArgument(row, name) || MayHaveAttribute(row, name) ? std::optional<double>(1) : std::nullopt;
  };
  for (const char* rule : {work.products, work.plain_products, work.times}) {
    if (rule == nullptr) continue;
    if (const Result<double> read = Compute(rule, value); !read) return Forward(read);
  }
  return {};
}

std::string WorkText(const RewireKernelWork& work) {
  if (work.products != nullptr) return Format("products: {}", work.products);
  if (!(work.operations > 0)) return {};
  std::string number = std::to_string(work.operations);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  const std::string times = work.times == nullptr ? "" : Format(" * {}", work.times);
  return Format("operations: {}{}", number, times);
}

}  // namespace rewire
