// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this library. Every family's file provides one list. families.def names the families, and
// registry.cc joins their lists. A row has the kernel's documentation, from which docs/kernels.md is
// generated.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/support/row_text.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/vm/kernel/define.h"

namespace rewire::kernel::cpu {

// Traits of rows that differ from the default; row.h explains them. A kernel without written arguments
// returns its result. A kernel whose name begins with "rewire.shape." is a shape function.
inline constexpr std::uint32_t kImpure = REWIRE_KERNEL_IMPURE;
inline constexpr std::uint32_t kObjects = REWIRE_KERNEL_OBJECTS;
inline constexpr std::uint32_t kElementwise = REWIRE_KERNEL_ELEMENTWISE;
inline constexpr std::uint32_t kSelects = REWIRE_KERNEL_SELECTS;
inline constexpr std::uint32_t kLayout = REWIRE_KERNEL_LAYOUT;
inline constexpr std::uint32_t kGrows = REWIRE_KERNEL_GROWS;
inline constexpr std::uint32_t kGrowsWithFirst = REWIRE_KERNEL_GROWS_WITH_FIRST;
inline constexpr std::uint32_t kShrinks = REWIRE_KERNEL_SHRINKS;

struct Kernel {
  RewireKernelEntry entry;
  RowArguments arguments;
  const char* dtypes;      // as written in the row
  const char* attributes;  // "axis = -1, keepdims = 1"; empty when it takes none
  const char* meaning;
  std::uint32_t traits;
  RewireWorkspaceBound workspace;
};

// The row of the kernel class K. `arguments` and `dtypes` are read while compiling (row_text.h).
template <typename K>
constexpr Kernel Describe(const char* arguments, const char* dtypes, const char* attributes,
                          const char* meaning, std::uint32_t traits = 0) {
  if (std::string_view(arguments).find("->") == std::string_view::npos) traits |= REWIRE_KERNEL_RETURNS;
  if (names::IsShapeFunction(K::kName)) traits |= REWIRE_KERNEL_SHAPE;
  return Kernel{Entry<K>(),         ParseRow<K>(arguments, dtypes), dtypes, attributes, meaning, traits,
                WorkspaceBound<K>()};
}

// A family, as docs/kernels.md shows it.
struct Family {
  const char* title;
  std::span<const Kernel> kernels;
};

// The families that are built, in the order of families.def. Static storage.
std::span<const Family> Families();

// The list of each family.
#define REWIRE_FAMILY(file, name, title) std::span<const Kernel> name##Kernels();
#include "rewire/kernels/cpu/families.def"
#undef REWIRE_FAMILY

}  // namespace rewire::kernel::cpu
