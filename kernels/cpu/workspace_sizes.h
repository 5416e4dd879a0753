// SPDX-License-Identifier: Apache-2.0
// How a kernel declares what it takes from workspace(), for hosts that must know before a run. One that takes
// some has a member
//
//   bool DeclareWorkspace(WorkspaceSizes& sizes) const;
//
// which says the blocks of a call with the shapes of `sizes`, or false when they do not tell. They may be
// larger than those of the call: what is declared must not shrink when a dimension grows. A class without it
// takes none; the tests hold every call of theirs to what is declared.
#pragma once

#include <cstdint>
#include <type_traits>

#include "vm/kernel/define.h"
#include "vm/kernel/workspace.h"

namespace rewire::kernel::cpu {

// The arguments of one call, as a file names them: any may be missing, of any rank and dtype.
class WorkspaceSizes {
 public:
  WorkspaceSizes(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks)
      : tensors_(tensors), count_(count), blocks_(blocks) {}

  // Null when it is missing or has fewer axes; -1 is the last one. Optional ones before those that are
  // written may be left out: the latter have fixed places from the end only.
  const DLTensor* Tensor(std::int32_t i, std::int32_t least_rank = 0) const;

  void Take(std::int64_t elements, std::int64_t element_bytes);
  // What Gemm takes for one product after another whose sizes are at most these; nothing for what it does not
  // pack.
  void TakeGemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, DLDataType dtype);

  std::int32_t taken() const { return taken_; }

 private:
  const DLTensor* const* tensors_;
  std::int32_t count_;
  std::uint64_t* blocks_;
  std::int32_t taken_ = 0;
};

// Sizes of declared tensors, at most some 2^40 elements.
std::int64_t Times(std::int64_t a, std::int64_t b);
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
