// SPDX-License-Identifier: Apache-2.0
// Translates one function of a Relay VM executable, instruction by instruction.
#pragma once

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/import/relay_file.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

// How the tables of the file map to those of the module.
struct RelayTables {
  const RelayFile& file;
  std::uint32_t alignment;              // of storages and kernel arguments
  Array<std::uint32_t> devices;         // without memory scopes
  Array<std::uint32_t> scoped_devices;  // with them
  Array<std::int64_t> scalars;          // per constant, its value where `is_scalar`
  Array<bool> is_scalar;                // a single integer on the host
  std::uint32_t fatal_note;             // string that Fatal quotes
};

// Translates and compacts the function. Notes of instructions are added to `strings`. Errors: kInvalidFile
// for a register, jump, count or index that the file does not have; kUnsupported as CompactFunction.
Result<Function> TranslateRelayFunction(const RelayFunction& function, const RelayTables& tables,
                                        Array<std::string>* strings);

}  // namespace rewire::tvm
