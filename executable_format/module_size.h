// SPDX-License-Identifier: Apache-2.0
//
// The size of a module without the bytes of its constants. The default budgets for verifying and linking
// follow from it.
#pragma once

#include <cstdint>

#include "rewire/base/export.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Roughly the bytes that its code, tables, types and texts take in a file.
REWIRE_API std::uint64_t ModuleSize(const Module& module);

// The default budget for verifying or linking a module of this size, in units of base/work_meter.h. It is a
// fixed amount for every file, plus a part in proportion to the size. This is generous for models, whose
// functions are visited a few times. It excludes what would take more than a second for 100 KB.
inline std::uint64_t DefaultWork(std::uint64_t module_size) {
  return (std::uint64_t{1} << 25) + 64 * module_size;
}

}  // namespace rewire
