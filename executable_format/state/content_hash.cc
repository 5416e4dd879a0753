// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/state/content_hash.h"

#include <cstring>
#include <string>
#include <string_view>
#include <variant>

#include "rewire/base/hash.h"

namespace rewire {
namespace {

// The numbers and texts of a module one after another, each text behind its length, so that none runs into
// the next.
class ContentBytes {
 public:
  void Add(std::uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  void Add(std::string_view text) {
    Add(text.size());
    bytes_.append(text);
  }
  template <typename T>
  void AddAll(const Array<T>& numbers) {
    Add(numbers.size());
    if (numbers.size() != 0)
      bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
  }
  void Add(const TypeNode& node) {
    Add(static_cast<std::uint64_t>(node.kind));
    Add(node.dtype.code | std::uint64_t{node.dtype.bits} << 8 | std::uint64_t{node.dtype.lanes} << 16);
    Add(static_cast<std::uint64_t>(node.rank));
    AddAll(node.dims);
    Add(node.device);
    Add(node.tag);
    Add(node.field_count);
  }
  void Add(const Type& type) {
    Add(type.nodes.size());
    for (const TypeNode& node : type.nodes) Add(node);
  }
  void Add(const Attribute& attribute) {
    Add(attribute.name);
    Add(attribute.value.index());
    if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
      Add(static_cast<std::uint64_t>(*integer));
    } else if (const auto* number = std::get_if<double>(&attribute.value)) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, number, sizeof(bits));
      Add(bits);
    } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      Add(*text);
    } else if (const auto* integers = std::get_if<Array<std::int64_t>>(&attribute.value)) {
      AddAll(*integers);
    } else {
      AddAll(std::get<Array<double>>(attribute.value));
    }
  }
  std::uint64_t Hash() const {
    return Hash64({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()});
  }

 private:
  std::string bytes_;
};

}  // namespace

std::uint64_t ContentHash(const Module& module) {
  ContentBytes content;
  content.Add(module.devices.size());
  for (const DeviceEntry& device : module.devices) {
    content.Add(static_cast<std::uint64_t>(device.type));
    content.Add(static_cast<std::uint64_t>(device.id));
    content.Add(device.memory_scope);
  }
  for (const Array<std::string>* texts : {&module.symbols, &module.strings}) {
    content.Add(texts->size());
    for (const std::string& text : *texts) content.Add(text);
  }
  content.Add(module.constants.size());
  for (const Constant& constant : module.constants) {
    content.Add(static_cast<std::uint64_t>(constant.kind));
    content.Add(constant.name);
    content.Add(constant.type);
    content.Add(constant.raw_bytes);
    content.Add(constant.checksum != 0 ? constant.checksum : Hash64(constant.stored.view));
  }
  content.Add(module.kernels.size());
  for (const KernelImport& kernel : module.kernels) {
    content.Add(kernel.name);
    content.Add(kernel.attributes.size());
    for (const Attribute& attribute : kernel.attributes) content.Add(attribute);
    content.Add(kernel.flags);
    content.AddAll(kernel.also_written);
  }
  content.Add(module.functions.size());
  for (const Function& function : module.functions) {
    content.Add(function.name);
    content.Add(function.inputs.size());
    for (const NamedType& input : function.inputs) {
      content.Add(input.name);
      content.Add(input.type);
    }
    content.Add(function.result);
    content.Add(function.register_count);
    content.AddAll(function.code);
  }
  return content.Hash();
}

}  // namespace rewire
