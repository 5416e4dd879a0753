// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rewire {

// The bytes of a huge page, on processors with pages of 4 KiB. Memory at a multiple of it can have such
// pages.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace rewire
