// SPDX-License-Identifier: Apache-2.0
// Compiled where NVIDIA's header is found: our constants, layouts and signatures are NCCL's.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "rewire/integrations/collective/nccl/nccl_abi.h"

namespace {

namespace ours = rewire::collective;

#define REWIRE_SAME_VALUE(name, value, theirs) static_assert(ours::name == static_cast<int>(theirs));
REWIRE_NCCL_VALUES(REWIRE_SAME_VALUE)

static_assert(sizeof(ours::NcclId) == sizeof(ncclUniqueId));
static_assert(sizeof(ours::NcclConfig) <= sizeof(ncclConfig_t));
#define REWIRE_SAME_MEMBER(member)                                                     \
  static_assert(offsetof(ours::NcclConfig, member) == offsetof(ncclConfig_t, member)); \
  static_assert(sizeof(ours::NcclConfig::member) == sizeof(ncclConfig_t::member));
REWIRE_SAME_MEMBER(size)
REWIRE_SAME_MEMBER(magic)
REWIRE_SAME_MEMBER(version)
REWIRE_SAME_MEMBER(blocking)

// A parameter of ours passes where theirs is expected: pointers for handles, integers of one size for enums,
// a struct of the same bytes for the id.
template <typename Ours, typename Theirs>
constexpr bool kPasses =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>&& std::is_class_v<Ours> == std::is_class_v<Theirs>;

template <typename Ours, typename Theirs>
struct SameCall;
template <typename R, typename... A, typename S, typename... B>
struct SameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool Parameters() {
    if constexpr (sizeof...(A) == sizeof...(B)) {
      return (kPasses<A, B> && ...);
    } else {
      return false;
    }
  }
  static constexpr bool kValue = kPasses<R, S> && Parameters();
};

#define REWIRE_SAME_CALL(name, result, parameters) \
  static_assert(SameCall<decltype(ours::NcclFunctions::name), decltype(&::name)>::kValue, #name);
REWIRE_NCCL_FUNCTIONS(REWIRE_SAME_CALL)

}  // namespace
