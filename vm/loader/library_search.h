// SPDX-License-Identifier: Apache-2.0
// Where shared libraries are looked for.
#pragma once

#include <string>

#include "base/array.h"

namespace rewire {

// The directories of Rewire's own run-time libraries (stock kernels, the tvm-ffi runtime): those of the
// environment variable REWIRE_LIBRARY_PATH, separated by colons, then `rewire` beside the file that this code
// is in, as librewire.so is installed, then where that is as seen from a program that this code is linked
// into. Some may not exist.
Array<std::string> ModuleDirectories();

bool FileExists(const std::string& path);

// `path` made absolute, without symbolic links; itself when that fails.
std::string CanonicalPath(const std::string& path);

}  // namespace rewire
