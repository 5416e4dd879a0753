// SPDX-License-Identifier: Apache-2.0
//
// The name of the kernel that decodes pictures.
#pragma once

namespace rewire::names {

inline constexpr char kImageDecode[] = "rewire.image.decode";

}  // namespace rewire::names
