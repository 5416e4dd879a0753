// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/kernel_calls.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace rewire {
namespace {

constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

bool Has(const RewireKernelArgument& argument, std::uint32_t flag) { return (argument.flags & flag) != 0; }

std::string_view NameOf(const RewireKernelArgument& argument) { return {argument.name, argument.name_bytes}; }

std::uint32_t LengthOf(const KernelImport& import, std::string_view attribute) {
  for (const Attribute& each : import.attributes) {
    const auto* list = std::get_if<Array<std::int64_t>>(&each.value);
    if (list != nullptr && each.name == attribute) return static_cast<std::uint32_t>(list->size());
  }
  return 0;
}

}  // namespace

KernelCalls::KernelCalls(const RewireKernelRow* row, const KernelImport& import) {
  if (row == nullptr || row->arguments == nullptr) return;
  row_ = row;
  Side read, written;
  for (std::uint32_t i = 0; i < row->argument_count; ++i) {
    const RewireKernelArgument& argument = row->arguments[i];
    const bool is_written = Has(argument, REWIRE_ARGUMENT_WRITTEN);
    if (!is_written) first_written_ = static_cast<std::uint16_t>(i + 1);
    Side& side = is_written ? written : read;
    if (Has(argument, REWIRE_ARGUMENT_COUNTED)) {
      counted_ = LengthOf(import, NameOf(argument));
      side.required += counted_;
    } else if (Has(argument, REWIRE_ARGUMENT_LIST)) {
      side.list = true;
    } else {
      const bool optional = Has(argument, REWIRE_ARGUMENT_OPTIONAL);
      side.optional += optional ? 1 : 0;
      side.required += optional ? 0 : 1;
    }
  }
  read_required_ = read.required;
  read_optional_ = read.optional & 0x7F;
  read_list_ = read.list;
  written_required_ = written.required;
  written_optional_ = written.optional & 0x7F;
  written_list_ = written.list;
}

KernelCalls::Range KernelCalls::Outputs() const {
  const Side written = Written();
  return {written.required, written.list ? kAnyNumber : written.required + written.optional};
}

// Optional arguments are given from the first on, those that are read before those that are written.
std::optional<KernelCalls::Range> KernelCalls::Outputs(std::uint32_t count) const {
  const Side read = Read(), written = Written();
  if (count < read.required + written.required) return std::nullopt;
  const std::uint32_t more = count - read.required - written.required;
  const std::uint32_t least = written.required;
  if (read.list && written.list) return Range{least, least + more};
  if (written.list) return Range{least + more, least + more};
  if (read.list) return Range{least, least};
  if (more > read.optional + written.optional) return std::nullopt;
  const std::uint32_t outputs = least + more - std::min(more, read.optional);
  return Range{outputs, outputs};
}

std::uint32_t KernelCalls::InPlace() const {
  // A list of no tensors has an entry in the row and no argument, so the positions behind it would differ.
  const Side read = Read(), written = Written();
  const bool fixed = known() && read.required == first_written_ && !read.list && read.optional == 0 &&
                     counted_ == 0 && !written.list && written.optional == 0 && written.required == 1;
  return fixed ? row_->arguments[first_written_].over : 0;
}

std::uint32_t KernelCalls::IndexOf(std::uint32_t position, std::uint32_t count, std::uint32_t outputs) const {
  const std::uint32_t read = count - outputs;
  if (position < read) return IndexIn(Read(), 0, position, read);
  return IndexIn(Written(), first_written_, position - read, outputs);
}

std::uint32_t KernelCalls::IndexIn(const Side& side, std::uint32_t first, std::uint32_t position,
                                   std::uint32_t given) const {
  std::uint32_t optional = side.list ? 0 : given - side.required;
  const std::uint32_t in_list = side.list ? given - side.required : 0;
  std::uint32_t index = first;
  for (; index + 1 < row_->argument_count; ++index) {
    const RewireKernelArgument& argument = row_->arguments[index];
    std::uint32_t tensors = 1;
    if (Has(argument, REWIRE_ARGUMENT_LIST)) {
      tensors = Has(argument, REWIRE_ARGUMENT_COUNTED) ? counted_ : in_list;
    } else if (Has(argument, REWIRE_ARGUMENT_OPTIONAL)) {
      tensors = optional > 0 ? 1 : 0;
      optional -= tensors;
    }
    if (position < tensors) break;
    position -= tensors;
  }
  return index;
}

std::string KernelCalls::Text() const {
  std::string text;
  for (std::uint32_t i = 0; i < row_->argument_count; ++i) {
    const RewireKernelArgument& argument = row_->arguments[i];
    if (i == first_written_) {
      text += i == 0 ? "-> " : " -> ";
    } else if (i != 0) {
      text += ", ";
    }
    text += NameOf(argument);
    if (Has(argument, REWIRE_ARGUMENT_LIST)) text += Has(argument, REWIRE_ARGUMENT_COUNTED) ? "[]" : "...";
    if (Has(argument, REWIRE_ARGUMENT_OPTIONAL)) text += "?";
    const char* before = Has(argument, REWIRE_ARGUMENT_AROUND)   ? " around "
                         : Has(argument, REWIRE_ARGUMENT_WITHIN) ? " within "
                                                                 : " over ";
    for (std::uint32_t k = 0; k < first_written_; ++k) {
      if ((argument.over >> k & 1) == 0) continue;
      text += before;
      text += NameOf(row_->arguments[k]);
      before = "|";
    }
  }
  return text;
}

}  // namespace rewire
