// SPDX-License-Identifier: Apache-2.0
//
// The name of the kernel that runs branches of a program at once.
#pragma once

namespace rewire::names {

inline constexpr char kBranches[] = "rewire.branches";

}  // namespace rewire::names
