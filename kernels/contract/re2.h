// SPDX-License-Identifier: Apache-2.0
//
// The name of the kernel that matches regular expressions.
#pragma once

namespace rewire::names {

inline constexpr char kRe2FullMatch[] = "rewire.re2.full_match";

}  // namespace rewire::names
