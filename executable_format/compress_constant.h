// SPDX-License-Identifier: Apache-2.0
//
// Compresses constants. Used by code that writes executables; no host needs it to run them.
#pragma once

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Replaces an uncompressed constant's bytes by a zstd frame, where that is smaller; `level` as zstd has them.
// kUnsupported in a build without zstd.
Status CompressConstant(Constant* constant, int level = 3);

}  // namespace rewire
