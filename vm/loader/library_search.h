// SPDX-License-Identifier: Apache-2.0
//
// The folders in which shared libraries are searched.
#pragma once

#include <string>

#include "rewire/base/array.h"

namespace rewire {

// Returns the directories of Rewire's own run-time libraries (stock kernels, the tvm-ffi runtime). First come
// those of the environment variable REWIRE_LIBRARY_PATH, separated by colons. Then comes `rewire` beside the
// file that contains this code, as librewire.so is installed. Last comes that place relative to a program
// that this code is linked into. Some may not exist.
Array<std::string> ModuleDirectories();

bool FileExists(const std::string& path);

// Returns the path of the first file `name` in `directories`, or an empty text. `tried` then names the
// places.
std::string FindFile(const Array<std::string>& directories, const std::string& name, std::string* tried);

// `path` made absolute, without symbolic links; itself when that fails.
std::string CanonicalPath(const std::string& path);

}  // namespace rewire
