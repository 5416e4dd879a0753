// SPDX-License-Identifier: Apache-2.0
// The interpreter's instructions on storage and tensors.
#include <cstring>

#include "rewire/base/likely.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/run/interpreter_alloc.h"
#include "rewire/vm/value/shape.h"

namespace rewire {
namespace {

// One integer element of any width, as 64 bits: signed types extend their sign, uint64 keeps its bits.
std::int64_t LoadInteger(const void* data, DLDataType dtype) {
  const bool is_signed = dtype.code == kInt;
  switch (dtype.bits) {
    case 64: {
      std::int64_t value;
      std::memcpy(&value, data, 8);
      return value;
    }
    case 32: {
      std::int32_t value;
      std::memcpy(&value, data, 4);
      return is_signed ? value : static_cast<std::int64_t>(static_cast<std::uint32_t>(value));
    }
    case 16: {
      std::int16_t value;
      std::memcpy(&value, data, 2);
      return is_signed ? value : static_cast<std::int64_t>(static_cast<std::uint16_t>(value));
    }
    default: {
      std::int8_t value;
      std::memcpy(&value, data, 1);
      return is_signed ? value : static_cast<std::int64_t>(static_cast<std::uint8_t>(value));
    }
  }
}

bool IsIntegerDType(DLDataType dtype) {
  const bool integral = dtype.code == kInt || dtype.code == kUInt || dtype.code == kBool;
  const bool whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  return integral && dtype.lanes == 1 && (whole || dtype.bits == 1);
}

Span<const std::int64_t> ShapeSpan(const DLTensor& tensor) {
  return {tensor.shape, static_cast<std::size_t>(tensor.ndim)};
}

}  // namespace

const TensorObject* Interpreter::Tensor(Word index) {
  const RewireFFIAny& value = Reg(index);
  if (value.type_index == kTensorKind) return TensorOf(value);
  FailKind(index, "a tensor");
  return nullptr;
}

bool Interpreter::ReadIntegerSlowPath(const RewireFFIAny& value, const char* what, std::int64_t* out) {
  if (value.type_index != kTensorKind) {
    return Fail(StatusCode::kRuntimeFailed, "{} is no integer scalar", what);
  }
  const TensorObject* tensor = TensorOf(value);
  if (!IsIntegerDType(tensor->tensor.dtype) || CountElements(ShapeSpan(tensor->tensor)) != 1) {
    return Fail(StatusCode::kRuntimeFailed, "{} is a tensor {}, an integer scalar is expected", what,
                TensorText(tensor->tensor));
  }
  std::int64_t element = 0;
  if (!ToHost(tensor, &element, ElementBytes(tensor->tensor.dtype), WaitCause::kValue)) return false;
  *out = LoadInteger(&element, tensor->tensor.dtype);
  return true;
}

bool Interpreter::ReadShape(Word index, std::int64_t* dims, std::uint32_t* rank, bool allow_scalar) {
  const RewireFFIAny& value = Reg(index);
  if (IsIntegerKind(value.type_index)) {  // an integer is a one-element shape
    dims[0] = value.v_int64;
    *rank = 1;
    return true;
  }
  const TensorObject* tensor = Tensor(index);
  if (tensor == nullptr) return false;
  const DLTensor& dl = tensor->tensor;
  const bool right_type = dl.dtype == kInt64 || dl.dtype == kInt32;
  const std::int64_t count = dl.ndim == 1 ? dl.shape[0] : 1;
  if (!right_type || dl.ndim > 1 || (dl.ndim == 0 && !allow_scalar) || count > kMaxRank) {
    return Fail(StatusCode::kRuntimeFailed,
                "the shape is a tensor {}, int32 or int64 of rank 1 with at most {} elements is expected",
                TensorText(dl), kMaxRank);
  }
  *rank = static_cast<std::uint32_t>(count);
  const bool in_flight = (vm_.interrupts.flags() & Interrupts::kInFlight) != 0;
  if (dl.dtype == kInt64 && IsHostDevice(dl.device) && !in_flight) {
    const char* data = static_cast<const char*>(dl.data) + dl.byte_offset;
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(&dims[i], data + i * 8, 8);
    return true;
  }
  std::int64_t raw[kMaxRank];
  const std::uint64_t element = ElementBytes(dl.dtype);
  if (!ToHost(tensor, raw, static_cast<std::uint64_t>(count) * element, WaitCause::kShape)) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    dims[i] =
        LoadInteger(reinterpret_cast<const char*>(raw) + static_cast<std::uint64_t>(i) * element, dl.dtype);
  }
  return true;
}

bool Interpreter::FailPlace(const StorageObject* storage, DLDataType dtype, std::uint64_t bytes,
                            std::int64_t offset, Span<const std::int64_t> shape) {
  const auto start = static_cast<std::uint64_t>(offset);
  if (offset < 0 || start > storage->size || bytes > storage->size - start) {
    return Fail(StatusCode::kRuntimeFailed, "{}{} at offset {} takes {} bytes, the storage has {}",
                DTypeName(dtype), ShapeText(shape), offset, bytes, storage->size);
  }
  return Fail(StatusCode::kRuntimeFailed, "offset {} is no multiple of the {} bytes of an element", offset,
              ElementBytes({dtype.code, dtype.bits, 1}));
}

bool Interpreter::FinishTensor(Word storage_register, Word offset_register, DLDataType dtype,
                               std::uint64_t bytes, Span<const std::int64_t> shape, Word dst) {
  if (Reg(storage_register).type_index != kStorageKind) return FailKind(storage_register, "a storage");
  StorageObject* storage = StorageOf(Reg(storage_register));
  if (storage->account != heap_.account()) {
    return Fail(StatusCode::kRuntimeFailed, "the storage belongs to another VM");
  }
  std::int64_t offset = 0;
  if (offset_register != kNone && !ReadInteger(Reg(offset_register), "offset", &offset)) return false;
  const auto start = static_cast<std::uint64_t>(offset);
  if (start > storage->size || bytes > storage->size - start ||
      (start != 0 && start % ElementBytes({dtype.code, dtype.bits, 1}) != 0)) {
    return FailPlace(storage, dtype, bytes, offset, shape);
  }
  const OutputSlot* slot = nullptr;
  if (plan_ != nullptr && !MemoryHere(dtype, shape, storage->device, &slot)) return false;
  TensorObject* tensor = nullptr;
  if (slot != nullptr) {
    if (!FillOutput(*slot, bytes)) return false;
    tensor = TensorOver(*slot, dtype, shape);
    if (tensor == nullptr) return false;
  } else {
    if (!heap_.TakeMemory(storage)) return FailMemory(storage->size);
    const auto rank = static_cast<std::uint32_t>(shape.size());
    tensor = heap_.NewTensor(rank);
    if (tensor == nullptr) return FailMemory(sizeof(TensorObject));
    SetContiguousDims(tensor, dtype, shape, rank, bytes);
    tensor->tensor.data = static_cast<char*>(storage->data) + start;
    tensor->tensor.device = storage->device;
    tensor->tensor.byte_offset = 0;
    tensor->storage = storage;
    ObjectHeap::Retain(storage);
  }
  Put(dst, MakeAny(kTensorKind, tensor));
  return true;
}

bool Interpreter::AllocTensorSlowPath(const Word* pc) {
  pc_ = pc;
  constexpr Opcode kOp = Opcode::kAllocTensor;
  const DimsView shape(pc_ + WordOf(kOp, "shape"));
  const DLDataType dtype = DecodeDType(pc_[WordOf(kOp, "dtype")]);
  std::int64_t dims[kMaxRank];
  for (std::uint32_t i = 0; i < shape.size(); ++i) dims[i] = shape[i];
  return FinishTensor(pc_[WordOf(kOp, "storage")], pc_[WordOf(kOp, "offset")], dtype,
                      StaticBytes(dtype, shape), {dims, shape.size()}, pc_[WordOf(kOp, "dst")]);
}

bool Interpreter::AllocTensorReg() {
  constexpr Opcode kOp = Opcode::kAllocTensorReg;
  std::int64_t dims[kMaxRank];
  std::uint32_t rank = 0;
  const Word shape_register = pc_[WordOf(kOp, "shape")];
  // A scalar register gives a tensor of rank 1; that is what TVM's VM does.
  if (!ReadShape(shape_register, dims, &rank, /*allow_scalar=*/true)) return false;
  const DLDataType dtype = DecodeDType(pc_[WordOf(kOp, "dtype")]);
  const Span<const std::int64_t> shape(dims, rank);
  std::uint64_t bytes = 0;
  if (!QuickBytes(dtype, shape, &bytes)) {
    return Fail(StatusCode::kRuntimeFailed, "a dimension of shape {} is negative, or its size overflows",
                ShapeText(shape));
  }
  return FinishTensor(pc_[WordOf(kOp, "storage")], pc_[WordOf(kOp, "offset")], dtype, bytes, shape,
                      pc_[WordOf(kOp, "dst")]);
}

// Makes a contiguous tensor on the host with its own memory and undefined contents. Null after a failure.
TensorObject* Interpreter::HostTensor(DLDataType dtype, const std::int64_t* shape, std::uint32_t rank) {
  const std::uint64_t bytes = TensorBytes(dtype, {shape, rank}).value_or(0);
  TensorObject* tensor = NewHeapTensor(heap_, rep_.devices[kHostDevice], dtype, {shape, rank});
  if (tensor == nullptr) FailMemory(bytes);
  return tensor;
}

bool Interpreter::ShapeOf() {
  const TensorObject* tensor = nullptr;
  const Word source = pc_[WordOf(Opcode::kShapeOf, "tensor")];
  std::int64_t rank = 0;  // an integer has the shape of a scalar
  if (!IsIntegerKind(Reg(source).type_index)) {
    tensor = Tensor(source);
    if (tensor == nullptr) return false;
    rank = tensor->tensor.ndim;
  }
  TensorObject* shape = NewTensor(rep_.devices[kHostDevice], kInt64, {&rank, 1});
  if (shape == nullptr) return false;
  if (!ReadyToWrite(RangeOf(shape->tensor), WaitCause::kReuse)) {
    heap_.Release(shape);
    return false;
  }
  if (rank > 0) std::memcpy(shape->tensor.data, tensor->tensor.shape, static_cast<std::size_t>(rank) * 8);
  Put(pc_[WordOf(Opcode::kShapeOf, "dst")], MakeAny(kTensorKind, shape));
  return true;
}

// False, with the error set, unless the tensor has as many elements as the shape. Those of an empty tensor
// say nothing of its bytes.
bool Interpreter::CheckElements(const DLTensor& tensor, Span<const std::int64_t> shape) {
  const std::int64_t given = CountElements(ShapeSpan(tensor)).value_or(0);
  const bool fits = TensorBytes(tensor.dtype, shape).has_value();
  const std::optional<std::int64_t> count = fits ? CountElements(shape) : std::nullopt;
  if (count == given) return true;
  return Fail(
      StatusCode::kRuntimeFailed, "a tensor {} has {} elements, shape {}{}", TensorText(tensor), given,
      ShapeText(shape),
      count ? Format(" has {}", *count) : " has a negative dimension, or more than 64 bits can count");
}

bool Interpreter::ReshapeTensor() {
  constexpr Opcode kOp = Opcode::kReshapeTensor;
  const Word source = pc_[WordOf(kOp, "tensor")];
  std::int64_t dims[kMaxRank];
  std::uint32_t rank = 0;
  if (!ReadShape(pc_[WordOf(kOp, "shape")], dims, &rank, /*allow_scalar=*/false)) return false;
  if (IsIntegerKind(Reg(source).type_index)) {
    TensorObject* boxed = Box(Reg(source));
    if (boxed == nullptr) return false;
    Put(source, MakeAny(kTensorKind, boxed));
  }
  const TensorObject* tensor = Tensor(source);
  if (tensor == nullptr) return false;
  std::uint64_t given = 0;
  std::uint64_t count = 0;
  const bool same = QuickBytes(kUInt8, ShapeSpan(tensor->tensor), &given) &&
                    QuickBytes(kUInt8, {dims, rank}, &count) && count == given && count != 0;
  if (REWIRE_UNLIKELY(!same) && !CheckElements(tensor->tensor, {dims, rank})) return false;
  TensorObject* view = heap_.NewTensor(rank);
  if (view == nullptr) return FailMemory(sizeof(TensorObject));
  view->flags = tensor->flags & (TensorObject::kReadOnly | TensorObject::kImmutable);
  SetContiguousDims(view, tensor->tensor.dtype, dims, rank);
  view->tensor.data = tensor->tensor.data;
  view->tensor.device = tensor->tensor.device;
  view->tensor.byte_offset = tensor->tensor.byte_offset;
  view->storage = tensor->storage;
  if (view->storage != nullptr) ObjectHeap::Retain(view->storage);
  Put(pc_[WordOf(kOp, "dst")], MakeAny(kTensorKind, view));
  return true;
}

// An integer as a read-only scalar tensor with one local reference; null after a failure.
TensorObject* Interpreter::Box(const RewireFFIAny& integer) {
  const bool narrow = integer.type_index == kInt32Kind;
  TensorObject* tensor = HostTensor(narrow ? kInt32 : kInt64, nullptr, 0);
  if (tensor == nullptr) return nullptr;
  if (narrow) {
    const auto value = static_cast<std::int32_t>(integer.v_int64);
    std::memcpy(tensor->tensor.data, &value, sizeof(value));
  } else {
    std::memcpy(tensor->tensor.data, &integer.v_int64, sizeof(integer.v_int64));
  }
  tensor->flags |= TensorObject::kReadOnly;
  return tensor;
}

}  // namespace rewire
