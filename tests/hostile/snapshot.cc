// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/snapshot.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "rewire/base/dtype.h"

namespace rewire::hostile {
namespace {

constexpr std::size_t kMostParts = 2000;

// One element's bits, of at most eight bytes.
std::uint64_t Bits(const std::string& bytes, std::size_t at, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + at, width);
  return bits;
}

bool IsNan(std::uint64_t bits, DLDataType dtype) {
  if (dtype.code == kBFloat && dtype.bits == 16) return (bits & 0x7FFF) > 0x7F80;
  if (dtype.code != kFloat && dtype.code != kComplex) return false;
  switch (dtype.code == kComplex ? dtype.bits / 2 : dtype.bits) {
    case 16:
      return (bits & 0x7FFF) > 0x7C00;
    case 32:
      return (bits & 0x7FFFFFFF) > 0x7F800000;
    case 64:
      return (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000;
    default:
      return false;
  }
}

std::string Described(const Part& part) {
  std::string text = ValueKindName(part.kind);
  if (part.kind != ValueKind::kTensor) return text + " " + std::to_string(part.integer);
  text += " " + DTypeName(part.dtype) + "[";
  for (const std::int64_t dim : part.shape) text += std::to_string(dim) + ",";
  return text + "]";
}

// As the tensor that an integer is boxed to.
Part Boxed(const Part& part) {
  Part boxed;
  boxed.kind = ValueKind::kTensor;
  boxed.dtype = kInt64;
  boxed.bytes.assign(reinterpret_cast<const char*>(&part.integer), sizeof(part.integer));
  return boxed;
}

}  // namespace

Part Take(const TensorView& tensor) {
  Part part;
  part.kind = ValueKind::kTensor;
  part.dtype = tensor.dtype();
  part.shape.assign(tensor.shape().begin(), tensor.shape().end());
  const auto size = static_cast<std::size_t>(tensor.bytes());
  if (size == 0) return part;
  if (tensor.IsContiguous()) {
    part.bytes.assign(static_cast<const char*>(tensor.data()), size);
    return part;
  }
  const std::size_t width = size / static_cast<std::size_t>(tensor.size());
  const std::size_t rank = part.shape.size();
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < rank; ++d) offset += index[d] * tensor.dl().strides[d];
    part.bytes.append(static_cast<const char*>(tensor.data()) + offset * static_cast<std::int64_t>(width),
                      width);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < part.shape[d]) break;
      index[d] = 0;
    }
  }
  return part;
}

Snapshot Take(const Value& value) {
  Snapshot snapshot;
  std::vector<Value> open = {value};
  while (!open.empty() && snapshot.size() < kMostParts) {
    const Value next = std::move(open.back());
    open.pop_back();
    Part part;
    part.kind = next.kind();
    switch (part.kind) {
      case ValueKind::kTensor:
        part = Take(next.tensor().view());
        break;
      case ValueKind::kInteger:
        part.integer = next.integer();
        break;
      case ValueKind::kAdt: {
        part.integer = next.tag();
        part.fields = next.field_count();
        const auto looked_at = std::min<std::uint32_t>(part.fields, kMostParts);
        for (std::uint32_t i = looked_at; i-- > 0;) open.push_back(next.field(i));
        break;
      }
      case ValueKind::kNone:
      case ValueKind::kClosure:
      case ValueKind::kStorage:
        break;
    }
    snapshot.push_back(std::move(part));
  }
  return snapshot;
}

std::string Difference(const Part& one, const Part& other) {
  if (one.kind == ValueKind::kInteger && other.kind == ValueKind::kTensor)
    return Difference(Boxed(one), other);
  if (one.kind == ValueKind::kTensor && other.kind == ValueKind::kInteger)
    return Difference(one, Boxed(other));
  if (one.kind != other.kind || one.dtype != other.dtype || one.shape != other.shape ||
      one.integer != other.integer || one.fields != other.fields || one.bytes.size() != other.bytes.size())
    return Described(one) + " and " + Described(other);
  if (one.bytes == other.bytes) return "";
  const auto element = static_cast<std::size_t>(ElementBytes(one.dtype));
  // Complex numbers are two floats, lanes several.
  std::size_t width = one.dtype.bits / 8u;
  if (one.dtype.code == kComplex) width /= 2;
  if (width == 0 || width > 8) width = std::min<std::size_t>(element, 1);
  for (std::size_t at = 0; at + width <= one.bytes.size(); at += width) {
    const std::uint64_t a = Bits(one.bytes, at, width);
    const std::uint64_t b = Bits(other.bytes, at, width);
    if (a == b || (IsNan(a, one.dtype) && IsNan(b, one.dtype))) continue;
    return Described(one) + " differ in byte " + std::to_string(at) + ": bits " + std::to_string(a) +
           " and " + std::to_string(b);
  }
  return "";
}

std::string Difference(const Snapshot& one, const Snapshot& other) {
  if (one.size() != other.size())
    return std::to_string(one.size()) + " and " + std::to_string(other.size()) + " parts";
  for (std::size_t i = 0; i < one.size(); ++i) {
    const std::string difference = Difference(one[i], other[i]);
    if (!difference.empty()) return "part " + std::to_string(i) + ": " + difference;
  }
  return "";
}

}  // namespace rewire::hostile
