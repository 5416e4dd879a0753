// SPDX-License-Identifier: Apache-2.0
// Reads an .rwx file's bytes into a module. Safe on any bytes; what it returns still has to pass the
// verifier.
#pragma once

#include "base/array.h"
#include "base/export.h"
#include "base/status.h"
#include "executable_format/executable.h"
#include "executable_format/module.h"

namespace rewire {

// Everything but constants' data is copied out of `bytes`; the constants share `bytes.owner`.
// kInvalidFile: not an executable, or damaged, with section and offset. kUnsupported: a newer major version
// or a required section that this library does not know.
REWIRE_API Result<Module> ReadModule(const SharedBytes& bytes, const OpenOptions& options = {});

// The same into `module`, which is a new one, for a model inside a bundle too: `blobs` are then its
// constants' bytes, in their order. Null: they are its own. After an error the module is good for nothing.
REWIRE_API Status ReadModuleInto(const SharedBytes& bytes, const Array<SharedBytes>* blobs,
                                 const OpenOptions& options, Module* module);

}  // namespace rewire
