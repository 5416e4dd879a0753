// SPDX-License-Identifier: Apache-2.0
// The contents of each section. One function a record, walked by the writer and by the reader alike, so that
// the two cannot disagree; docs/format.md has the same as prose. `A` is ArchiveWriter, with const records, or
// ArchiveReader. Private to the reader and the writer.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "rewire/base/array.h"
#include "rewire/executable_format/archive.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/module.h"

namespace rewire::sections {

// T for a reader, const T for a writer.
template <typename A, typename T>
using Of = std::conditional_t<A::kReading, T, const T>;

// The least number of bytes of each record in a file. The reader uses it to check a count before it allocates
// anything. Each number is at least an eighth of what the record takes in memory. So a file cannot make the
// reader allocate more than a small multiple of the file's size.
inline constexpr std::size_t kSmallestText = 4;
inline constexpr std::size_t kSmallestType = 16;
inline constexpr std::size_t kSmallestNamedType = kSmallestText + 4;
inline constexpr std::size_t kSmallestDevice = 8 + kSmallestText;
inline constexpr std::size_t kSmallestConstant = 4 + kSmallestText + kSmallestType + 28;
inline constexpr std::size_t kSmallestAttribute = kSmallestText + 4 + 4;
inline constexpr std::size_t kSmallestKernel = 2 * kSmallestText + 4 + 8 + 4;
inline constexpr std::size_t kSmallestDeviceCode = 2 * kSmallestText + 8;
inline constexpr std::size_t kSmallestDeviceArgument = 8;
inline constexpr std::size_t kSmallestDeviceKernel = 3 * kSmallestText + 4 + 4 + 4 + 7 * 4;
inline constexpr std::size_t kSmallestFunction = kSmallestText + 4 + 4 + 4 + 8;
inline constexpr std::size_t kSmallestNote = 4 + kSmallestText;

template <typename A>
void Texts(A& a, Of<A, Array<std::string>>& texts) {
  a.List(texts, kSmallestText, [&](auto& text) { a.Text(text); });
}

template <typename A>
void SymbolLimits(A& a, Of<A, Module>& module) {
  a.Numbers(module.symbol_limits);
}

template <typename A>
void Metadata(A& a, Of<A, Module>& module) {
  a.List(module.metadata, 2 * kSmallestText, [&](auto& entry) {
    a.Text(entry.first);
    a.Text(entry.second);
  });
}

template <typename A>
void Devices(A& a, Of<A, Module>& module) {
  a.List(module.devices, kSmallestDevice, [&](auto& device) {
    a.Number(device.type);
    a.Number(device.id);
    a.Text(device.memory_scope);
  });
}

// 16 bytes, then a tensor's dimensions. The three words are dtype, rank and device of a tensor, tag and field
// count of an ADT, and zero where a kind has no use for them. Of an open value the third is its device.
template <typename A>
void TypeRecord(A& a, Of<A, TypeNode>& node) {
  a.Number(node.kind);
  a.Zeros(3);
  switch (node.kind) {
    case TypeKind::kTensor: {
      std::uint32_t dtype = EncodeDType(node.dtype);
      a.Number(dtype);
      a.Number(node.rank);
      a.Number(node.device);
      if constexpr (A::kReading) {
        node.dtype = DecodeDType(dtype);
        if (node.rank < kUnknownRank) return a.Reject("a tensor type has a negative rank");
        const std::size_t rank = node.rank == kUnknownRank ? 0 : static_cast<std::size_t>(node.rank);
        if (rank > a.remaining() / sizeof(Dim)) return a.Reject("a tensor type's dimensions pass the end");
        node.dims.resize(rank);
      }
      for (auto& dim : node.dims) a.Number(dim);
      return;
    }
    case TypeKind::kAdt:
      a.Number(node.tag);
      a.Number(node.field_count);
      a.Zeros(4);
      return;
    case TypeKind::kClosure:
    case TypeKind::kStorage:
    case TypeKind::kInteger:
      a.Zeros(12);
      return;
    case TypeKind::kValue:
      a.Zeros(8);
      a.Number(node.device);
      return;
  }
  if constexpr (A::kReading) a.Reject("a type has an unknown kind");
}

template <typename A>
void TypeTree(A& a, Of<A, Type>& type) {
  a.List(type.nodes, kSmallestType, [&](auto& node) { TypeRecord(a, node); });
}

// The places of data constants follow from the table: in its order, each at the next multiple of
// kDataAlignment in the data section.
template <typename A>
void Constants(A& a, Of<A, Array<Constant>>& constants, Array<std::uint64_t>& stored_sizes) {
  std::size_t index = 0;
  a.List(constants, kSmallestConstant, [&](auto& constant) {
    a.Number(constant.kind);
    a.Zeros(3);
    a.Text(constant.name);
    TypeRecord(a, constant.type);
    a.Number(constant.codec);
    a.Number(constant.raw_bytes);
    if constexpr (A::kReading) stored_sizes.push_back(0);
    a.Number(stored_sizes[index++]);
    a.Number(constant.checksum);
    if constexpr (A::kReading) {
      if (constant.kind > ConstantKind::kComputed) a.Reject("a constant has an unknown kind");
    }
  });
}

// The value's alternative as a u32 (the order of AttributeValue), then the value.
template <typename A>
void AttributeRecord(A& a, Of<A, Attribute>& attribute) {
  a.Text(attribute.name);
  auto which = static_cast<std::uint32_t>(attribute.value.index());
  a.Number(which);
  if constexpr (A::kReading) {
    switch (which) {
      case 0:
        attribute.value = std::int64_t{};
        break;
      case 1:
        attribute.value = double{};
        break;
      case 2:
        attribute.value = std::string();
        break;
      case 3:
        attribute.value = Array<std::int64_t>();
        break;
      case 4:
        attribute.value = Array<double>();
        break;
      default:
        return a.Reject("an attribute has an unknown kind");
    }
  }
  if (auto* integer = std::get_if<std::int64_t>(&attribute.value)) a.Number(*integer);
  if (auto* real = std::get_if<double>(&attribute.value)) a.Number(*real);
  if (auto* text = std::get_if<std::string>(&attribute.value)) a.Text(*text);
  if (auto* integers = std::get_if<Array<std::int64_t>>(&attribute.value)) a.Numbers(*integers);
  if (auto* reals = std::get_if<Array<double>>(&attribute.value)) a.Numbers(*reals);
}

template <typename A>
void Kernels(A& a, Of<A, Module>& module) {
  a.List(module.kernels, kSmallestKernel, [&](auto& kernel) {
    a.Text(kernel.name);
    a.Text(kernel.debug_name);
    a.List(kernel.attributes, kSmallestAttribute, [&](auto& attribute) { AttributeRecord(a, attribute); });
    a.Number(kernel.flags);
    a.Number(kernel.alignment);
    a.Numbers(kernel.also_written);
  });
}

template <typename A>
void Size(A& a, Of<A, SizeExpression>& size) {
  a.Numbers(size.words);
}

// The kind decides which members follow it.
template <typename A>
void DeviceArgumentRecord(A& a, Of<A, DeviceArgument>& argument) {
  a.Number(argument.kind);
  a.Zeros(3);
  std::uint32_t dtype = EncodeDType(argument.dtype);
  switch (argument.kind) {
    case DeviceArgumentKind::kTensor:
      return a.Number(argument.parameter);
    case DeviceArgumentKind::kInteger:
    case DeviceArgumentKind::kReal:
      a.Number(dtype);
      if constexpr (A::kReading) argument.dtype = DecodeDType(dtype);
      if constexpr (A::kReading) {
        if (!IsArgumentDType(argument)) return a.Reject("an argument of a device kernel has a wrong dtype");
      }
      if (argument.kind == DeviceArgumentKind::kReal) return a.Number(argument.real);
      return Size(a, argument.value);
    case DeviceArgumentKind::kLocalMemory:
      return Size(a, argument.value);
  }
  if constexpr (A::kReading) a.Reject("an argument of a device kernel has an unknown kind");
}

// The blobs, then the kernels.
template <typename A>
void DeviceCode(A& a, Of<A, Module>& module) {
  a.List(module.device_code, kSmallestDeviceCode, [&](auto& entry) {
    a.Text(entry.name);
    a.Number(entry.form);
    a.Text(entry.architecture);
    a.Number(entry.constant);
  });
  a.List(module.device_kernels, kSmallestDeviceKernel, [&](auto& kernel) {
    a.Text(kernel.name);
    a.Text(kernel.code);
    a.Text(kernel.symbol);
    a.List(kernel.parameters, kSmallestText + kSmallestType, [&](auto& parameter) {
      a.Text(parameter.name);
      TypeRecord(a, parameter.type);
      if constexpr (A::kReading) {
        if (parameter.type.kind != TypeKind::kTensor) a.Reject("a device kernel's parameter is no tensor");
      }
    });
    a.Number(kernel.outputs);
    a.List(kernel.arguments, kSmallestDeviceArgument,
           [&](auto& argument) { DeviceArgumentRecord(a, argument); });
    for (auto& size : kernel.groups) Size(a, size);
    for (auto& size : kernel.threads) Size(a, size);
    Size(a, kernel.shared_bytes);
    if constexpr (A::kReading) {
      if (kernel.outputs > kernel.parameters.size()) {
        a.Reject("a device kernel writes more parameters than it has");
      }
    }
  });
}

// The functions' code follows in the code section, in their order and without gaps.
template <typename A>
void Functions(A& a, Of<A, Module>& module, Array<std::uint32_t>& code_words) {
  std::size_t index = 0;
  a.List(module.functions, kSmallestFunction, [&](auto& function) {
    a.Text(function.name);
    a.List(function.inputs, kSmallestNamedType, [&](auto& input) {
      a.Text(input.name);
      TypeTree(a, input.type);
    });
    TypeTree(a, function.result);
    Texts(a, function.output_names);
    a.Number(function.register_count);
    if constexpr (A::kReading) code_words.push_back(0);
    a.Number(code_words[index++]);
  });
}

// One list for each function, in their order.
template <typename A>
void Notes(A& a, Of<A, Module>& module) {
  for (auto& function : module.functions) {
    a.List(function.notes, kSmallestNote, [&](auto& note) {
      a.Number(note.pc);
      a.Text(note.text);
    });
  }
}

// One model of a bundle: its name, the blobs that are its constants' bytes, in their order, and a file of its
// own without data.
struct ModelRecord {
  std::string name;
  Array<std::uint32_t> blobs;
  std::string file;
};
inline constexpr std::size_t kSmallestModel = kSmallestText + 4 + kSmallestText;

template <typename A>
void Models(A& a, Of<A, Array<ModelRecord>>& models) {
  a.List(models, kSmallestModel, [&](auto& model) {
    a.Text(model.name);
    a.Numbers(model.blobs);
    a.Text(model.file);
  });
}

// The sizes of the items of a bundle's data section.
template <typename A>
void Blobs(A& a, Of<A, Array<std::uint64_t>>& sizes) {
  a.Numbers(sizes);
}

}  // namespace rewire::sections
