// SPDX-License-Identifier: Apache-2.0
// The same program with a storage of its own for each tensor.
#pragma once

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire::hostile {

// Tensors of one storage may make anything of each other's contents (docs/embedding.md, "Outputs"), and bound
// outputs lie elsewhere. A program that gives another value with its storages apart is one that reads such
// contents: it has no right value.
Result<Executable> StoragesApart(const Module& module);

}  // namespace rewire::hostile
