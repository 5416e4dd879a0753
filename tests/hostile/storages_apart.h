// SPDX-License-Identifier: Apache-2.0
// The same program with a storage of its own for each tensor.
#pragma once

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::hostile {

// What tensors of one storage make of each other's contents is not defined (docs/embedding.md, "Outputs"),
// and bound outputs lie elsewhere. A program that gives another value with its storages apart is one that
// reads such contents: it has no right value.
Result<Executable> StoragesApart(const Module& module);

}  // namespace rewire::hostile
