// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/register_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/base/hash.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/debug/tensor_summary.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/io/tensor_text.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/value/objects.h"

namespace rewire::tools {
namespace {

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::uint32_t> FindRegister(const Function& function, std::string_view name) {
  for (std::uint32_t i = 0; i < function.inputs.size(); ++i) {
    if (function.inputs[i].name == name) return i;
  }
  const std::optional<std::uint32_t> number = Number(name);
  if (number && *number < function.register_count) return *number;
  std::vector<std::string> names;
  for (const NamedType& input : function.inputs) names.push_back(input.name);
  return Fail(StatusCode::kNotFound,
              fmt::format("{} has no register '{}'{}; its registers are the inputs and %0 to %{}",
                          function.name, name, DidYouMean(name, names), function.register_count - 1));
}

// The bytes of a storage; none if the host cannot read them, or if they are not taken yet.
Span<const std::byte> BytesOf(const StorageObject& storage) {
  if (storage.data == nullptr || !IsHostDevice(storage.device)) return {};
  return {static_cast<const std::byte*>(storage.data), static_cast<std::size_t>(storage.size)};
}

// The debugger links with StorageFill::kPoison.
bool IsUnwritten(const HostTensor& tensor) {
  const Span<const std::byte> bytes = tensor.bytes.view;
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(),
                                       [](std::byte byte) { return byte == std::byte{kPoisonByte}; });
}

}  // namespace

Result<RegisterPath> ParseRegister(const Function& function, std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '%') rest.remove_prefix(1);
  RegisterPath path;
  // Names of inputs may contain dots: the longest name that fits is the register.
  std::size_t end = rest.size();
  Result<std::uint32_t> found = FindRegister(function, rest);
  while (!found && end > 0) {
    end = rest.rfind('.', end - 1);
    if (end == std::string_view::npos) break;
    found = FindRegister(function, rest.substr(0, end));
  }
  if (!found) return Forward(FindRegister(function, rest.substr(0, rest.find('.'))));
  path.reg = *found;
  path.text = rewire::RegisterText(function, path.reg);
  std::string_view fields = rest.substr(end);
  while (!fields.empty()) {
    fields.remove_prefix(1);  // the dot
    const std::string_view field = fields.substr(0, fields.find('.'));
    const std::optional<std::uint32_t> index = Number(field);
    if (!index) {
      return Fail(
          StatusCode::kInvalidArgument,
          fmt::format("'{}': a field is a number after a dot, such as %0.1; '{}' is none", text, field));
    }
    path.fields.push_back(*index);
    path.text += fmt::format(".{}", *index);
    fields.remove_prefix(field.size());
  }
  return path;
}

Result<Value> FollowPath(Value value, const RegisterPath& path) {
  for (const std::uint32_t field : path.fields) {
    if (field >= value.field_count()) {
      return Fail(StatusCode::kNotFound,
                  fmt::format("{}: there is no field {}: {} is reached, which has {} fields", path.text,
                              field, ValueText(value), value.field_count()));
    }
    value = value.field(field);
  }
  return value;
}

Result<HostTensor> ElementsOf(const Value& value) {
  if (value.kind() == ValueKind::kInteger) {
    HostTensor scalar;
    scalar.dtype = kInt64;
    std::byte* element = nullptr;
    scalar.bytes = AllocateBytes(sizeof(std::int64_t), &element);
    const std::int64_t integer = value.integer();
    std::memcpy(element, &integer, sizeof(integer));
    return scalar;
  }
  if (value.kind() != ValueKind::kTensor) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("a tensor or an integer is expected, not {}", ValueText(value)));
  }
  const Result<Tensor> here = CopyToHost(value.tensor());
  if (!here) return Forward(here);
  return ToHostTensor(*here);
}

std::string ContentText(const Value& value, bool unicode) {
  switch (value.kind()) {
    case ValueKind::kTensor: {
      const Result<HostTensor> elements = ElementsOf(value);
      if (!elements) return "(" + elements.error().message() + ")";
      return IsUnwritten(*elements) ? "(not written yet)" : SummaryText(*elements, unicode);
    }
    case ValueKind::kAdt:
      return ValueText(value);
    case ValueKind::kNone:
    case ValueKind::kInteger:
    case ValueKind::kClosure:
    case ValueKind::kStorage:
      break;
  }
  return "";
}

std::uint64_t Fingerprint(const Value& value) {
  const RewireFFIAny& any = value.any();
  std::string identity = fmt::format("{} {}", any.type_index, any.v_int64);
  if (value.kind() == ValueKind::kTensor) {
    identity += ValueText(value);
    const Result<HostTensor> elements = ElementsOf(value);
    if (elements) identity += HashText(Hash64(elements->bytes.view));
  } else if (value.kind() == ValueKind::kStorage) {
    identity += HashText(Hash64(BytesOf(*StorageOf(any))));
  }
  return Hash64({reinterpret_cast<const std::byte*>(identity.data()), identity.size()});
}

}  // namespace rewire::tools
