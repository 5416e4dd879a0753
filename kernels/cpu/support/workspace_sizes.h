// SPDX-License-Identifier: Apache-2.0
//
// How a kernel declares the workspace that it takes, for hosts that must know the memory before a run. A
// kernel with workspace has a member
//
//   bool DeclareWorkspace(WorkspaceSizes& sizes) const;
//
// It declares the blocks of a call with the shapes of `sizes`, or returns false if the shapes do not
// determine them. The shapes may be larger than those of the real call, so the declared sizes must not shrink
// when a dimension grows. A class without this member takes no workspace. The tests check every call of
// theirs against the declaration.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/vm/kernel/define.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::kernel::cpu {

// The arguments of one call, as a file declares them: any may be missing, or have any rank and dtype.
class WorkspaceSizes {
 public:
  WorkspaceSizes(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks)
      : tensors_(tensors), count_(count), blocks_(blocks) {}

  // Returns an argument; -1 is the last one. Null if it is missing or has fewer axes. Optional arguments
  // before the written ones may be left out, so written ones have fixed positions only from the end.
  const DLTensor* Tensor(std::int32_t i, std::int32_t least_rank = 0) const {
    const std::int32_t at = i < 0 ? count_ + i : i;
    if (at < 0 || at >= count_ || tensors_[at] == nullptr) return nullptr;
    return tensors_[at]->ndim < least_rank ? nullptr : tensors_[at];
  }

  void Take(std::int64_t elements, std::int64_t element_bytes) {
    if (taken_ < REWIRE_MAX_WORKSPACES)
      blocks_[taken_] = static_cast<std::uint64_t>(Times(elements, element_bytes));
    ++taken_;
  }
  // Declares what Gemm takes for consecutive products whose sizes are at most these. Nothing for products
  // that it does not pack.
  void TakeGemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, DLDataType dtype);

  // How many blocks were declared; -1 if they are more than a kernel can declare.
  std::int32_t taken() const { return taken_ <= REWIRE_MAX_WORKSPACES ? taken_ : -1; }

 private:
  const DLTensor* const* tensors_;
  std::int32_t count_;
  std::uint64_t* blocks_;
  std::int32_t taken_ = 0;
};

// Sizes of declared tensors, limited to kMostSize.
std::int64_t SizeFrom(const DLTensor* tensor, std::int32_t first_axis);
inline std::int64_t SizeOf(const DLTensor* tensor) { return SizeFrom(tensor, 0); }
// 1 for a scalar.
std::int64_t LastDim(const DLTensor* tensor);
std::int64_t LargestDim(const DLTensor* tensor);

template <typename K>
std::int32_t WorkspaceOf(void* handle, const DLTensor* const* tensors, std::int32_t count,
                         std::uint64_t* blocks) {
  WorkspaceSizes sizes(tensors, count, blocks);
  bool known = false;
  if constexpr (internal::kHasMake<K>)
    known = FunctionObject<K>::CallableOf(handle).DeclareWorkspace(sizes);
  else
    known = K{}.DeclareWorkspace(sizes);
  return known ? sizes.taken() : -1;
}

template <typename K>
constexpr RewireWorkspaceBound WorkspaceBound() {
  if constexpr (requires { &K::DeclareWorkspace; })
    return &WorkspaceOf<K>;
  else
    return [](void*, const DLTensor* const*, std::int32_t, std::uint64_t*) -> std::int32_t { return 0; };
}

}  // namespace rewire::kernel::cpu
