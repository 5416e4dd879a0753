// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/module_tables.h"

#include <utility>

#include "rewire/base/utf8.h"

namespace rewire::compiler {
namespace {

// Leaves room for what makes a name unique.
constexpr std::size_t kMostNameBytes = 4000;

}  // namespace

std::uint32_t ModuleTables::Kernel(const std::string& name, const std::vector<Attribute>& attributes,
                                   std::uint32_t flags) {
  std::vector<std::uint32_t>& same_name = kernels_[name];
  for (const std::uint32_t index : same_name) {
    const KernelImport& import = module_.kernels[index];
    if (import.attributes == attributes && import.flags == flags) return index;
  }
  const auto index = static_cast<std::uint32_t>(module_.kernels.size());
  KernelImport import;
  import.name = name;
  import.attributes = attributes;
  import.flags = flags;
  module_.kernels.push_back(std::move(import));
  same_name.push_back(index);
  return index;
}

std::string ModuleTables::Unique(const std::string& name) {
  const std::string clean = Printable(name, kMostNameBytes);
  const int again = names_[clean]++;
  return again > 0 ? clean + "#" + std::to_string(again) : clean;
}

std::uint32_t ModuleTables::Computed(const Value& value) {
  rewire::Constant constant;
  constant.kind = ConstantKind::kComputed;
  constant.name = Unique(value.name);
  std::vector<Dim> dims;
  for (const DimExpr& dim : value.type.dims) dims.push_back(dim.constant().value_or(kUnknownDim));
  constant.type = TensorType(value.type.dtype, dims).nodes[0];
  constant.raw_bytes = TensorBytes(value.type.dtype, dims).value_or(0);
  module_.constants.push_back(std::move(constant));
  computed_.push_back(&value);
  return static_cast<std::uint32_t>(module_.constants.size() - 1);
}

std::uint32_t ModuleTables::AddParameter(const Value& value) {
  rewire::Constant constant;
  constant.kind = ConstantKind::kParameter;
  constant.name = value.name;
  constant.type = TensorType(value.constant->dtype, value.constant->shape).nodes[0];
  module_.constants.push_back(std::move(constant));
  return static_cast<std::uint32_t>(module_.constants.size() - 1);
}

std::uint32_t ModuleTables::AddConstant(const std::string& name, const HostTensor& tensor) {
  rewire::Constant constant;
  constant.name = Unique(name);
  constant.type = TensorType(tensor.dtype, tensor.shape).nodes[0];
  constant.raw_bytes = tensor.bytes.view.size();
  constant.stored = tensor.bytes;
  module_.constants.push_back(std::move(constant));
  return static_cast<std::uint32_t>(module_.constants.size() - 1);
}

std::uint32_t ModuleTables::Constant(const Value& value, std::uint32_t device) {
  const auto [place, added] = constants_.try_emplace(&value, 0);
  if (added) {
    place->second = value.IsParameter() ? AddParameter(value) : AddConstant(value.name, *value.constant);
    module_.constants[place->second].type.device = device;
  }
  return place->second;
}

std::uint32_t ModuleTables::ShapeConstant(const std::vector<std::int64_t>& dims) {
  const auto [place, added] = shapes_.try_emplace(dims, 0);
  if (added) {
    HostTensor tensor;
    tensor.dtype = kInt64;
    tensor.shape = {static_cast<std::int64_t>(dims.size())};
    tensor.bytes =
        CopyBytes({reinterpret_cast<const std::byte*>(dims.data()), dims.size() * sizeof(std::int64_t)});
    place->second = AddConstant("shape " + ShapeText(ShapeOfInts(dims)), tensor);
  }
  return place->second;
}

std::uint32_t ModuleTables::ScalarConstant(std::int64_t value) {
  const auto [place, added] = scalars_.try_emplace(value, 0);
  if (added) {
    HostTensor tensor;
    tensor.dtype = kInt64;
    tensor.bytes = CopyBytes({reinterpret_cast<const std::byte*>(&value), sizeof(value)});
    place->second = AddConstant(std::to_string(value), tensor);
  }
  return place->second;
}

std::uint32_t ModuleTables::Device(const TargetDevice& device) {
  for (std::uint32_t i = 1; i < module_.devices.size(); ++i) {
    if (module_.devices[i].type == device.type && module_.devices[i].id == device.id) return i;
  }
  module_.devices.push_back({device.type, device.id, ""});
  return static_cast<std::uint32_t>(module_.devices.size() - 1);
}

std::uint32_t ModuleTables::Symbol(const std::string& name) {
  const auto [place, added] = symbols_.try_emplace(name, static_cast<std::uint32_t>(module_.symbols.size()));
  if (added) module_.symbols.push_back(name);
  return place->second;
}

std::uint32_t ModuleTables::String(const std::string& text) {
  const auto [place, added] = strings_.try_emplace(text, static_cast<std::uint32_t>(module_.strings.size()));
  if (added) module_.strings.push_back(text);
  return place->second;
}

}  // namespace rewire::compiler
