// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/call_check.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "rewire/compiler/ir/call_arguments.h"

namespace rewire::compiler {
namespace {

// `what` names the values: "inputs".
Status CheckCount(const CallSide& side, std::size_t given, const char* what, const std::string& kernel) {
  if (given <= side.room()) return {};
  return Fail(StatusCode::kUnsupported,
              fmt::format("{}: {} {} are given, expected at most {}", kernel, given, what, side.room()));
}

}  // namespace

Status CheckCall(const Node& node, const RewireKernelRow& row, bool one_dtype) {
  if (row.arguments == nullptr) return {};
  const CallSide read(row, false, node.inputs.size()), written(row, true, node.outputs.size());
  if (Status ok = CheckCount(read, node.inputs.size(), "inputs", node.kernel); !ok) return ok;
  if (Status ok = CheckCount(written, node.outputs.size(), "outputs", node.kernel); !ok && !node.returns)
    return ok;
  struct Group {
    std::string name;
    DLDataType dtype;
  };
  std::map<int, Group> groups;
  Status checked;
  const auto check = [&](const RewireKernelArgument& argument, const Value* value) {
    if (!checked || value == nullptr || !value->type.IsTensor() || IsMissing(argument, *value)) return;
    const std::string name(argument.name, argument.name_bytes);
    const DLDataType dtype = value->type.dtype;
    if (!Accepts(argument, dtype)) {
      checked =
          Fail(StatusCode::kUnsupported, fmt::format("{}: {} is {}, expected one of {}", node.kernel, name,
                                                     DTypeName(dtype), DTypesText(argument.dtypes)));
      return;
    }
    if (!one_dtype || !HaveOneDType(row, argument)) return;
    const auto [place, added] = groups.try_emplace(argument.dtype_group, Group{name, dtype});
    if (added || place->second.dtype == dtype) return;
    checked = Fail(StatusCode::kUnsupported,
                   fmt::format("{}: {} is {} and {} is {}, expected one type", node.kernel,
                               place->second.name, DTypeName(place->second.dtype), name, DTypeName(dtype)));
  };
  read.ForEach([&](const RewireKernelArgument& argument, std::size_t i) { check(argument, node.inputs[i]); });
  if (node.returns) return checked;
  written.ForEach(
      [&](const RewireKernelArgument& argument, std::size_t i) { check(argument, node.outputs[i]); });
  return checked;
}

}  // namespace rewire::compiler
