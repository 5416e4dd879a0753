// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/inspect_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* name;
  const char* meaning;
  std::uint64_t MemoryBound::*value;
};
constexpr Figure kFigures[] = {
    {"bytes", "a run of a new VM, at most", &MemoryBound::bytes},
    {"static_bytes", "a StaticMemory that suffices", &MemoryBound::static_bytes},
    {"arena_bytes", "a SharedArena that suffices", &MemoryBound::arena_bytes},
    {"storage", "tensors' data at once", &MemoryBound::storage},
    {"objects", "objects at once", &MemoryBound::objects},
    {"stack", "registers, frames, arguments", &MemoryBound::stack},
    {"workspace", "workspace of a kernel call", &MemoryBound::workspace},
    {"device", "of the data, on devices", &MemoryBound::device},
    {"pinned", "host memory that devices pin", &MemoryBound::pinned},
};

std::uint64_t BytesOn(const MemoryBound& bound, std::uint32_t device) {
  for (const DeviceMemoryBound& each : bound.devices) {
    if (each.device == device) return each.bytes;
  }
  return 0;
}

Json BoundJson(const MemoryBound& bound, const std::vector<std::string>& devices) {
  Json json = Json::object();
  if (!bound.bounded()) {
    json["unbounded"] = bound.unbounded;
    return json;
  }
  for (const Figure& figure : kFigures) json[figure.name] = bound.*figure.value;
  json["devices"] = Json::array();
  for (const DeviceMemoryBound& each : bound.devices)
    json["devices"].push_back({{"device", devices[each.device]}, {"bytes", each.bytes}});
  json["undeclared_workspace"] = bound.undeclared_workspace;
  return json;
}

// The dimensions that keep a function without a bound: neither the file nor `options` gives their largest
// size.
std::vector<std::string> WithoutSize(const Module& module, const std::string& function,
                                     const MemoryBoundOptions& options) {
  const std::size_t position = PositionOfFunction(module, function);
  if (position == module.functions.size()) return {};
  std::vector<std::string> open = OpenDimensions(module, module.functions[position]);
  std::erase_if(open, [&](const std::string& name) {
    return std::any_of(options.max_dims.begin(), options.max_dims.end(),
                       [&](const auto& given) { return given.first == name; });
  });
  return open;
}

}  // namespace

Result<std::vector<FunctionMemory>> InspectMemory(const Executable& executable,
                                                  const MemoryRequest& request) {
  MemoryBoundOptions options;
  std::map<std::string, std::int64_t> max_dims;
  if (Status parsed = ParseSizes("--max-dim", request.max_dims, &max_dims); !parsed) return Forward(parsed);
  for (const auto& dim : max_dims) options.max_dims.push_back(dim);
  KernelSet kernels;
  // Without them shape functions and workspace are unknown, which the answer says.
  (void)kernels.AddLibrary(names::kCpuLibrary);
  for (const std::string& library : request.kernels) {
    if (Status ok = kernels.AddLibrary(library); !ok) return Forward(ok);
  }
  std::vector<std::string> names;
  if (!request.function.empty()) {
    names.push_back(request.function);
  } else {
    for (const Function& function : executable.module().functions) {
      if (function.name != kInitFunction) names.push_back(function.name);
    }
  }
  std::vector<std::string> devices;
  for (const DeviceEntry& device : executable.module().devices) devices.push_back(DeviceText(device));
  std::vector<FunctionMemory> functions;
  for (const std::string& name : names) {
    options.outputs_bound = false;
    Result<MemoryBound> unbound = BoundMemory(executable, &kernels, name, options);
    if (!unbound) return Forward(unbound);
    options.outputs_bound = true;
    Result<MemoryBound> bound = BoundMemory(executable, &kernels, name, options);
    if (!bound) return Forward(bound);
    functions.push_back({name, devices, WithoutSize(executable.module(), name, options), *std::move(unbound),
                         *std::move(bound)});
  }
  return functions;
}

std::string MemoryText(const std::vector<FunctionMemory>& functions) {
  std::string text;
  for (const FunctionMemory& function : functions) {
    text += fmt::format("{}memory of {}:\n", text.empty() ? "" : "\n", function.function);
    if (!function.unbound.bounded()) {
      text += fmt::format("  unbounded because {}\n", function.unbound.unbounded);
      if (!function.open.empty()) text += "  give the largest sizes:";
      for (const std::string& symbol : function.open) text += fmt::format(" --max-dim {}=SIZE", symbol);
      if (!function.open.empty()) text += "\n";
      continue;
    }
    std::vector<std::vector<std::string>> rows = {{"", "outputs unbound", "outputs bound"}};
    for (const Figure& figure : kFigures) {
      rows.push_back({figure.meaning, BytesText(function.unbound.*figure.value),
                      BytesText(function.bound.*figure.value)});
    }
    for (const DeviceMemoryBound& each : function.unbound.devices) {
      rows.push_back({"blocks on " + function.devices[each.device], BytesText(each.bytes),
                      BytesText(BytesOn(function.bound, each.device))});
    }
    text += TableText(rows, {1, 2});
    for (const std::string& kernel : function.unbound.undeclared_workspace) {
      text += fmt::format("  not counted: workspace of {}, which its library does not declare\n", kernel);
    }
  }
  return text;
}

Json MemoryJson(const std::vector<FunctionMemory>& functions) {
  Json json = Json::array();
  for (const FunctionMemory& function : functions) {
    json.push_back({{"function", function.function},
                    {"outputs_unbound", BoundJson(function.unbound, function.devices)},
                    {"outputs_bound", BoundJson(function.bound, function.devices)}});
  }
  return json;
}

}  // namespace rewire::tools
