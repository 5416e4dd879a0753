// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/type_check.h"

#include <limits>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

bool KindFits(TypeKind kind, std::int32_t given) {
  switch (kind) {
    case TypeKind::kTensor:
      return given == kTensorKind || IsIntegerKind(given);  // a scalar: TensorGivenBy
    case TypeKind::kAdt:
      return given == kAdtKind;
    case TypeKind::kClosure:
      return given == kClosureKind;
    case TypeKind::kStorage:
      return given == kStorageKind;
    case TypeKind::kInteger:
      return IsIntegerKind(given);
    case TypeKind::kValue:
      return given != kRewireFFINone;
  }
  return false;
}

const char* KindText(std::int32_t kind) {
  switch (kind) {
    case kTensorKind:
      return "a tensor";
    case kAdtKind:
      return "an ADT";
    case kClosureKind:
      return "a closure";
    case kStorageKind:
      return "a storage";
    case kInt32Kind:
    case kInt64Kind:
      return "an integer";
    default:
      return "nothing";
  }
}

std::string GivenDevice(DLDevice device) {
  return DeviceText(DeviceEntry{DeviceTypeOf(device), device.device_id, ""});
}

// The largest size that a dimension may have.
std::int64_t LimitOf(const Module& module, Dim dim) {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  if (module.symbol_limits.empty() || !IsSymbol(dim)) return kAny;
  const std::int64_t limit = module.symbol_limits[SymbolOf(dim)];
  return limit == kNoLimit ? kAny : limit;
}

}  // namespace

bool IsOnDevice(const Module& module, std::uint32_t device, DLDevice given) {
  if (device == kAnyDevice) return true;
  const DeviceEntry& entry = module.devices[device];
  return entry.type == DeviceTypeOf(given) && entry.id == given.device_id;
}

bool IsWantedElsewhere(const Module& module, const TypeNode& type, DLDevice given) {
  const bool open = type.kind == TypeKind::kValue && type.device == kHostDevice;
  return !open && !IsOnDevice(module, type.device, given);
}

bool TensorFits(const Module& module, const TypeNode& type, const DLTensor& tensor) {
  if (type.dtype.bits != 0 && type.dtype != tensor.dtype) return false;
  if (type.rank != kUnknownRank) {
    if (type.rank != tensor.ndim) return false;
    for (std::int32_t i = 0; i < tensor.ndim; ++i) {
      const Dim dim = type.dims[static_cast<std::size_t>(i)];
      if (dim >= 0 && dim != tensor.shape[i]) return false;
      if (LimitOf(module, dim) < tensor.shape[i]) return false;
    }
  }
  return IsOnDevice(module, type.device, tensor.device);
}

std::string TensorMismatchText(const Module& module, const TypeNode& type, const DLTensor& tensor) {
  Type whole;
  whole.nodes.push_back(type);
  std::string text = Format("{} expected, {} given", TypeText(whole, module.symbols), TensorText(tensor));
  for (std::int32_t i = 0; type.rank == tensor.ndim && i < tensor.ndim; ++i) {
    const Dim dim = type.dims[static_cast<std::size_t>(i)];
    if (const std::int64_t limit = LimitOf(module, dim); limit < tensor.shape[i]) {
      text += Format("; the program was compiled for {} of at most {}", module.symbols[SymbolOf(dim)], limit);
    }
  }
  if (!IsOnDevice(module, type.device, tensor.device)) {
    text += Format("; device {} expected, {} given", DeviceText(module.devices[type.device]),
                   GivenDevice(tensor.device));
  }
  return text;
}

namespace {

// The tensor that a value is to a program, where it is one: an integer becomes a scalar of its width.
const DLTensor* TensorGivenBy(const RewireFFIAny& value, DLTensor* scalar) {
  if (value.type_index == kTensorKind) return &TensorOf(value)->tensor;
  if (!IsIntegerKind(value.type_index)) return nullptr;
  *scalar = {};
  scalar->device = kHost;
  scalar->dtype = value.type_index == kInt32Kind ? kInt32 : kInt64;
  return scalar;
}

// One value beside one node of a type, but for what its fields hold.
Status CheckNode(const Module& module, const Type& type, std::uint32_t index, const RewireFFIAny& value) {
  const TypeNode& node = type.nodes[index];
  const auto place = [index] {
    return index == 0 ? std::string() : Format("in its part {} (in pre-order), ", index);
  };
  if (!KindFits(node.kind, value.type_index)) {
    return Fail(StatusCode::kInvalidArgument, "{}{} expected, {} given", place(),
                TypeText(type, module.symbols), KindText(value.type_index));
  }
  if (node.kind == TypeKind::kTensor) {
    DLTensor scalar;
    const DLTensor* given = TensorGivenBy(value, &scalar);
    if (TensorFits(module, node, *given)) return {};
    return Fail(StatusCode::kInvalidArgument, "{}{}{}", place(), TensorMismatchText(module, node, *given),
                value.type_index == kTensorKind ? "" : ", for an integer");
  }
  if (node.kind != TypeKind::kAdt) return {};
  const TupleObject* tuple = TupleOf(value);
  if (tuple->tag == node.tag && tuple->count == node.field_count) return {};
  return Fail(StatusCode::kInvalidArgument,
              "{}an ADT with tag {} and {} fields expected, tag {} and {} fields given", place(), node.tag,
              node.field_count, tuple->tag, tuple->count);
}

}  // namespace

Status CheckValue(const Module& module, const Type& type, const RewireFFIAny& value, RewireFFIAny* nodes) {
  nodes[0] = value;
  for (std::uint32_t index = 0; index < type.nodes.size(); ++index) {
    const TypeNode& node = type.nodes[index];
    if (Status ok = CheckNode(module, type, index, nodes[index]); !ok) return ok;
    if (node.kind != TypeKind::kAdt) continue;
    std::uint32_t child = index + 1;
    for (std::uint32_t i = 0; i < node.field_count; ++i, child = SubtreeEnd(type, child)) {
      nodes[child] = TupleOf(nodes[index])->fields()[i];
    }
  }
  return {};
}

}  // namespace rewire
