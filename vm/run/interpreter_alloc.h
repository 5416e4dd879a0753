// SPDX-License-Identifier: Apache-2.0
//
// AllocStorage and AllocTensor as inline functions. After kernel calls they are the most frequent
// instructions, and a function call would make them a fifth slower.
#pragma once

#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/run/interpreter.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

// The bytes of a static shape. The verifier has checked that they fit.
inline std::uint64_t StaticBytes(DLDataType dtype, const DimsView& shape) {
  std::uint64_t bytes = ElementBytes(dtype);
  for (std::uint32_t i = 0; i < shape.size(); ++i) bytes *= static_cast<std::uint64_t>(shape[i]);
  return bytes;
}

REWIRE_INLINE bool Interpreter::AllocStorage(const Word* pc, RewireFFIAny* registers) {
  constexpr Opcode kOp = Opcode::kAllocStorage;
  const Word size_register = pc[WordOf(kOp, "size")];
  std::int64_t bytes = 0;
  if (size_register != kNone) {
    const RewireFFIAny& given = Reg(registers, size_register);
    if (REWIRE_UNLIKELY(!ReadIntegerFastPath(given, &bytes))) {
      pc_ = pc;
      std::int64_t read = 0;  // a local, so that `bytes` itself can stay in a register
      if (!ReadIntegerSlowPath(given, "size", &read)) return false;
      bytes = read;
    }
  } else {
    const DimsView shape(pc + WordOf(kOp, "shape"));
    bytes = static_cast<std::int64_t>(StaticBytes(DecodeDType(pc[WordOf(kOp, "dtype")]), shape));
  }
  const auto size = static_cast<std::uint64_t>(bytes);
  const Word device_index = pc[WordOf(kOp, "device")];
  const Word alignment = pc[WordOf(kOp, "alignment")];
  const std::uint64_t made_as = (std::uint64_t{device_index} + 1) << 32 | alignment;
  RewireFFIAny& dst = Reg(registers, pc[WordOf(kOp, "dst")]);
  // In a loop the register has the storage of the round before, which often serves again.
  if (REWIRE_LIKELY(dst.type_index == kStorageKind && ObjectHeap::IsAsNew(*StorageOf(dst), size, made_as))) {
    return true;
  }
  pc_ = pc;
  const LinkedDevice& device = rep_.devices[device_index];
  if (bytes < 0) {
    return Fail(StatusCode::kRuntimeFailed, "a storage of {} bytes asked for", bytes);
  }
  // A small storage is checked against the limit when it takes its block.
  if (size > BlockPool::kMaxSmall && (size > vm_.memory.account->limit() || size > BlockPool::kMaxBlock))
    return FailMemory(size);
  StorageObject* storage = heap_.NewStorage(size, alignment, device, made_as);
  if (storage == nullptr) return FailMemory(sizeof(StorageObject));
  const RewireFFIAny before = dst;
  dst = MakeAny(kStorageKind, storage);
  heap_.Release(before);
  return true;
}

// Whether a tensor has this type and shape.
template <typename Shape>
REWIRE_INLINE bool HasShape(const TensorObject& tensor, DLDataType dtype, Shape shape) {
  const std::uint32_t rank = shape.size();
  if (tensor.tensor.dtype != dtype || tensor.tensor.ndim != static_cast<std::int32_t>(rank)) return false;
  const auto* const dims = reinterpret_cast<const std::int64_t*>(&tensor + 1);
  for (std::uint32_t i = rank; i != 0; --i) {
    if (REWIRE_UNLIKELY(dims[i - 1] != shape[i - 1])) return false;
  }
  return true;
}

// Sets type, rank, dimensions and strides of a tensor with room for kPooledRank of them. Returns its bytes,
// which may be more than its fields can hold. Out of line: a program that repeats itself mostly finds a
// tensor that has its shape.
template <typename Shape>
__attribute__((noinline)) std::uint64_t SetPooledDims(TensorObject* tensor, DLDataType dtype, Shape shape) {
  const std::uint32_t rank = shape.size();
  std::int64_t* const dims = tensor->dims();
  std::int64_t count = 1;
  for (std::int64_t* place = dims + rank; place != dims;) {
    --place;
    const std::int64_t dim = shape[static_cast<std::uint32_t>(place - dims)];
    *place = dim;
    place[kPooledRank] = count;  // the stride
    count *= dim;
  }
  tensor->tensor.dtype = dtype;
  tensor->tensor.ndim = static_cast<std::int32_t>(rank);
  return static_cast<std::uint64_t>(count) * ElementBytes(dtype);
}

// The fast path: a tensor of at most kPooledRank, on a storage of this VM in which it fits, not in the memory
// of an output. For other tensors returns false and changes nothing, but that the storage may have taken its
// memory. The size of the shape must have been checked.
template <typename Shape>
REWIRE_INLINE bool Interpreter::AllocTensorFastPath(const Word* pc, RewireFFIAny* registers,
                                                    Word storage_register, Word offset_register,
                                                    DLDataType dtype, Shape shape, Word dst) {
  const RewireFFIAny on = Reg(registers, storage_register);
  const auto rank = static_cast<std::uint32_t>(shape.size());
  const bool placed = REWIRE_UNLIKELY(plan_ != nullptr) && SiteAt(pc) != FunctionPlan::kNotRewired;
  if (REWIRE_UNLIKELY(on.type_index != kStorageKind || rank > kPooledRank || placed)) return false;
  StorageObject* storage = StorageOf(on);
  std::uint64_t start = 0;
  if (REWIRE_UNLIKELY(offset_register != kNone)) {
    const RewireFFIAny& offset = Reg(registers, offset_register);
    if (!IsIntegerKind(offset.type_index)) return false;
    start = static_cast<std::uint64_t>(offset.v_int64);
    const std::uint64_t mask = ElementBytes({dtype.code, dtype.bits, 1}) - 1;
    // The other form knows sizes like 3 bytes.
    if (((start | (mask + 1)) & mask) != 0 || start > storage->size) return false;
  }
  ObjectHeap& heap = heap_;
  // A storage that is counted locally is this VM's.
  const std::uint32_t references = storage->local;
  if (REWIRE_UNLIKELY(references >= kSharing) || !heap.TakeMemory(storage)) return false;
  TensorObject* tensor = heap.TakeTensorBlock();
  if (REWIRE_UNLIKELY(tensor == nullptr)) return false;
  std::uint64_t fields = 0, bytes = 0;
  if (REWIRE_LIKELY(ObjectHeap::IsDeadTensor(tensor) && HasShape(*tensor, dtype, shape))) {
    fields = tensor->fields & ~std::uint64_t{0xFF};  // without the flags
    bytes = fields >> 16;
    ObjectHeap::ReuseTensor(tensor);
  } else {
    bytes = SetPooledDims(tensor, dtype, shape);
    fields = TensorObject::FieldsOf(kPooledRank) | bytes << 16;
    heap.InitTensor(tensor);
  }
  // It must fit. A tensor of no bytes takes the slow path.
  if (REWIRE_UNLIKELY(bytes - 1 >= storage->size - start)) {
    heap.GiveTensorBlock(tensor);
    return false;
  }
  tensor->fields = fields;
  tensor->tensor.data = static_cast<char*>(storage->data) + start;
  tensor->tensor.device = storage->device;
  tensor->storage = storage;
  storage->local = references + 1;
  Put(registers, dst, MakeAny(kTensorKind, tensor));
  return true;
}

// The shape of an AllocTensor. It has the instruction's address, which is in a register of the CPU anyway.
struct StaticShape {
  const std::uint32_t* pc;
  DimsView dims() const { return DimsView(pc + WordOf(Opcode::kAllocTensor, "shape")); }
  std::uint32_t size() const { return dims().size(); }
  std::int64_t operator[](std::uint32_t i) const { return dims()[i]; }
};

REWIRE_INLINE bool Interpreter::AllocTensor(const Word* pc, RewireFFIAny* registers) {
  constexpr Opcode kOp = Opcode::kAllocTensor;
  const bool done =
      AllocTensorFastPath(pc, registers, pc[WordOf(kOp, "storage")], pc[WordOf(kOp, "offset")],
                          DecodeDType(pc[WordOf(kOp, "dtype")]), StaticShape{pc}, pc[WordOf(kOp, "dst")]);
  return REWIRE_LIKELY(done) || AllocTensorSlowPath(pc);
}

}  // namespace rewire
