// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/state/content_hash.h>.
//
// The content hash tells executables apart: what was kept of one is not taken for another one's.
#pragma once

#include <cstdint>

#include "rewire/base/export.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Hashes what a program does: functions with their signatures, code, kernels with their attributes, constants
// with their bytes. Metadata, source notes and limits of symbols do not count, nor do parameters, which are
// bound later. A file and the module that it was written from have one hash if their constants are stored in
// the same form.
//
// The checksums of a file stand for its constants, so they are not read. In librewire_prepare. XXH3-64, which
// does not protect against an adversary.
REWIRE_API std::uint64_t ContentHash(const Module& module);

}  // namespace rewire
