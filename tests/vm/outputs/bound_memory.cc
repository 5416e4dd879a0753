// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/outputs/bound_memory.h"

#include <algorithm>

namespace rewire::test {
namespace {

constexpr unsigned char kGuard = 0x5A;
constexpr std::size_t kGuardBytes = 64;

bool IsGuard(unsigned char byte) { return byte == kGuard; }

}  // namespace

std::string ElementsOf(const TensorView& view) {
  if (!view.IsContiguous()) return ElementsOf(Tensor::CopyOf(view)->view());
  return {static_cast<const char*>(view.data()), static_cast<std::size_t>(view.bytes())};
}

std::string Serialized(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kTensor: {
      const TensorView view = value.tensor().view();
      std::string text =
          "tensor " + std::to_string(view.dtype().code) + " " + std::to_string(view.dtype().bits) + " of";
      for (const std::int64_t dim : view.shape()) text += " " + std::to_string(dim);
      return text + ":" + ElementsOf(view);
    }
    case ValueKind::kInteger:
      return "integer " + std::to_string(value.integer());
    case ValueKind::kAdt: {
      std::string text = "adt " + std::to_string(value.tag()) + "(";
      for (std::uint32_t i = 0; i < value.field_count(); ++i) text += Serialized(value.field(i)) + ",";
      return text + ")";
    }
    case ValueKind::kNone:
    case ValueKind::kClosure:
    case ValueKind::kStorage:
      return ValueKindName(value.kind());
  }
  return {};
}

std::vector<std::int64_t> EverySecond(Span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 2;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

void GuardedMemory::Take(std::uint64_t size, std::size_t misalignment) {
  bytes = size;
  block.assign(size + 3 * kGuardBytes, kGuard);
  const auto address = reinterpret_cast<std::uintptr_t>(block.data()) + kGuardBytes;
  data = block.data() + kGuardBytes + (64 - address % 64) % 64 + misalignment;
}

bool GuardedMemory::GuardsStand() const {
  if (block.empty()) return true;
  const auto offset = static_cast<std::ptrdiff_t>(data - block.data());
  return std::all_of(block.begin(), block.begin() + offset, IsGuard) &&
         std::all_of(block.begin() + offset + static_cast<std::ptrdiff_t>(bytes), block.end(), IsGuard);
}

}  // namespace rewire::test
