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

// A shape as a span, for code that is not time-critical.
class ShapeCopy {
 public:
  template <typename Shape>
  explicit ShapeCopy(Shape shape) : rank_(shape.size()) {
    for (std::uint32_t i = 0; i < rank_; ++i) dims_[i] = shape[i];
  }
  Span<const std::int64_t> span() const { return {dims_, rank_}; }

 private:
  std::size_t rank_;
  std::int64_t dims_[kMaxRank];
};

REWIRE_INLINE bool Interpreter::AllocStorage() {
  constexpr Opcode kOp = Opcode::kAllocStorage;
  const Word size_register = pc_[WordOf(kOp, "size")];
  const DimsView shape(pc_ + WordOf(kOp, "shape"));
  std::int64_t bytes = 0;
  if (size_register != kNone) {
    if (!ReadInteger(Reg(size_register), "size", &bytes)) return false;
  } else {
    bytes = static_cast<std::int64_t>(StaticBytes(DecodeDType(pc_[WordOf(kOp, "dtype")]), shape));
  }
  if (bytes < 0) {
    return Fail(StatusCode::kRuntimeFailed, "a storage of {} bytes asked for", bytes);
  }
  const auto size = static_cast<std::uint64_t>(bytes);
  // A small storage is checked against the limit when it takes its block.
  if (size > BlockPool::kMaxSmall && (size > vm_.account->limit() || size > BlockPool::kMaxBlock))
    return FailMemory(size);
  const LinkedDevice& device = rep_.devices[pc_[WordOf(kOp, "device")]];
  StorageObject* storage = heap_.NewStorage(size, pc_[WordOf(kOp, "alignment")], device);
  if (storage == nullptr) return FailMemory(sizeof(StorageObject));
  Put(pc_[WordOf(kOp, "dst")], MakeAny(kStorageKind, storage));
  return true;
}

template <typename Shape>
bool Interpreter::FailPlaceOf(const StorageObject* storage, DLDataType dtype, std::uint64_t bytes,
                              std::int64_t offset, Shape shape) {
  return FailPlace(storage, dtype, bytes, offset, ShapeCopy(shape).span());
}

template <typename Shape>
bool Interpreter::PlaceTensorOf(const StorageObject* storage, DLDataType dtype, Shape shape, Word dst,
                                bool* placed) {
  return PlaceTensor(storage, dtype, ShapeCopy(shape).span(), dst, placed);
}

template <typename Shape>
REWIRE_INLINE bool Interpreter::FinishTensor(Word storage_register, Word offset_register, DLDataType dtype,
                                             std::uint64_t bytes, const Shape& shape, Word dst) {
  if (Reg(storage_register).type_index != kStorageKind) return FailKind(storage_register, "a storage");
  StorageObject* storage = StorageOf(Reg(storage_register));
  if (__builtin_expect(storage->account != heap_.account(), 0)) {
    return Fail(StatusCode::kRuntimeFailed, "the storage belongs to another VM");
  }
  std::uint64_t start = 0;
  if (offset_register != kNone) {
    std::int64_t offset = 0;
    if (!ReadInteger(Reg(offset_register), "offset", &offset)) return false;
    start = static_cast<std::uint64_t>(offset);
    const std::uint64_t unit = ElementBytes({dtype.code, dtype.bits, 1});
    if (start > storage->size || bytes > storage->size - start || (start != 0 && start % unit != 0)) {
      return FailPlaceOf(storage, dtype, bytes, offset, shape);
    }
  } else if (__builtin_expect(bytes > storage->size, 0)) {
    return FailPlaceOf(storage, dtype, bytes, 0, shape);
  }
  if (__builtin_expect(destinations_ != kNone, 0)) {
    bool placed = false;
    if (!PlaceTensorOf(storage, dtype, shape, dst, &placed)) return false;
    if (placed) return true;
  }
  if (!heap_.TakeMemory(storage)) return FailMemory(storage->size);
  const auto rank = static_cast<std::uint32_t>(shape.size());
  TensorObject* tensor = heap_.NewTensor(rank);
  if (__builtin_expect(tensor == nullptr, 0)) return FailMemory(sizeof(TensorObject));
  SetContiguousDims(tensor, dtype, shape, rank, bytes);
  tensor->tensor.data = static_cast<char*>(storage->data) + start;
  tensor->tensor.device = storage->device;
  tensor->tensor.byte_offset = 0;
  tensor->storage = storage;
  ObjectHeap::Retain(storage);
  Put(dst, MakeAny(kTensorKind, tensor));
  return true;
}

REWIRE_INLINE bool Interpreter::AllocTensor() {
  constexpr Opcode kOp = Opcode::kAllocTensor;
  const DimsView shape(pc_ + WordOf(kOp, "shape"));
  const DLDataType dtype = DecodeDType(pc_[WordOf(kOp, "dtype")]);
  return FinishTensor(pc_[WordOf(kOp, "storage")], pc_[WordOf(kOp, "offset")], dtype,
                      StaticBytes(dtype, shape), shape, pc_[WordOf(kOp, "dst")]);
}

}  // namespace rewire
