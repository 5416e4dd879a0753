// SPDX-License-Identifier: Apache-2.0
//
// AllocStorage and AllocTensor as inline functions. After kernel calls they are the most frequent
// instructions, and a function call would make them a fifth slower.
#pragma once

#include "rewire/base/inline.h"
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
    if (__builtin_expect(!QuickInteger(given, &bytes), 0)) {
      pc_ = pc;
      std::int64_t read = 0;  // a local, so that `bytes` itself can stay in a register
      if (!ReadAnyInteger(given, "size", &read)) return false;
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
  if (__builtin_expect(dst.type_index == kStorageKind && ObjectHeap::IsAsNew(*StorageOf(dst), size, made_as),
                       1)) {
    return true;
  }
  pc_ = pc;
  const LinkedDevice& device = rep_.devices[device_index];
  if (bytes < 0) {
    return Fail(StatusCode::kRuntimeFailed, "a storage of {} bytes asked for", bytes);
  }
  // A small storage is checked against the limit when it takes its block.
  if (size > BlockPool::kMaxSmall && (size > vm_.account->limit() || size > BlockPool::kMaxBlock))
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
    if (__builtin_expect(dims[i - 1] != shape[i - 1], 0)) return false;
  }
  return true;
}

// Sets type, rank, dimensions and strides of a tensor with room for the usual rank. Returns its bytes, which
// may be more than its fields can hold.
// Out of line: a program that repeats itself mostly finds a tensor that has its shape.
template <typename Shape>
__attribute__((noinline)) std::uint64_t SetUsualDims(TensorObject* tensor, DLDataType dtype, Shape shape) {
  const std::uint32_t rank = shape.size();
  std::int64_t* const dims = tensor->dims();
  std::int64_t count = 1;
  for (std::int64_t* place = dims + rank; place != dims;) {
    --place;
    const std::int64_t dim = shape[static_cast<std::uint32_t>(place - dims)];
    *place = dim;
    place[kUsualRank] = count;  // the stride
    count *= dim;
  }
  tensor->tensor.dtype = dtype;
  tensor->tensor.ndim = static_cast<std::int32_t>(rank);
  return static_cast<std::uint64_t>(count) * ElementBytes(dtype);
}

// The usual tensor: of usual rank, on a storage of this VM in which it fits, not in the memory of an output.
// False, with nothing changed but the storage's memory taken, if something is not usual. The size of the
// shape must have been checked.
template <typename Shape>
REWIRE_INLINE bool Interpreter::MakeUsualTensor(const Word* pc, RewireFFIAny* registers,
                                                Word storage_register, Word offset_register, DLDataType dtype,
                                                Shape shape, Word dst) {
  const RewireFFIAny on = Reg(registers, storage_register);
  const auto rank = static_cast<std::uint32_t>(shape.size());
  const bool placed =
      __builtin_expect(sites_ != nullptr, 0) && sites_[pc - code_] != FunctionPlan::kNotRewired;
  if (__builtin_expect(on.type_index != kStorageKind || rank > kUsualRank || placed, 0)) return false;
  StorageObject* storage = StorageOf(on);
  std::uint64_t start = 0;
  if (__builtin_expect(offset_register != kNone, 0)) {
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
  if (__builtin_expect(references >= kSharing, 0) || !heap.TakeMemory(storage)) return false;
  TensorObject* tensor = heap.TakeUsualTensor();
  if (__builtin_expect(tensor == nullptr, 0)) return false;
  std::uint64_t fields = 0, bytes = 0;
  if (__builtin_expect(ObjectHeap::IsDeadTensor(tensor) && HasShape(*tensor, dtype, shape), 1)) {
    fields = tensor->fields & ~std::uint64_t{0xFF};  // without the flags
    bytes = fields >> 16;
    ObjectHeap::ReviveUsualTensor(tensor);
  } else {
    bytes = SetUsualDims(tensor, dtype, shape);
    fields = TensorObject::FieldsOf(kUsualRank) | bytes << 16;
    heap.InitUsualTensor(tensor);
  }
  // It must fit. A tensor of no bytes is not usual.
  if (__builtin_expect(bytes - 1 >= storage->size - start, 0)) {
    heap.GiveUsualTensor(tensor);
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
  const bool usual =
      MakeUsualTensor(pc, registers, pc[WordOf(kOp, "storage")], pc[WordOf(kOp, "offset")],
                      DecodeDType(pc[WordOf(kOp, "dtype")]), StaticShape{pc}, pc[WordOf(kOp, "dst")]);
  return __builtin_expect(usual, 1) || (pc_ = pc, AllocTensorSlowly());
}

}  // namespace rewire
