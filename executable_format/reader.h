// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/reader.h>.
//
// Reads the bytes of an .rwx file into a module. Safe on any bytes. The module still has to pass the
// verifier.
#pragma once

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// Copies everything except constants' data out of `bytes`; the constants share `bytes.owner`.
//
// Errors: kInvalidFile, with section and offset, for bytes that are no executable or are damaged.
// kUnsupported for a newer major version, or for a required section that this library does not know.
REWIRE_API Result<Module> ReadModule(const SharedBytes& bytes, const OpenOptions& options = {});

// A model inside a bundle has no data section of its own. The bundle has blobs (pieces of constant data), and
// the model lists which of them are its constants' bytes, in the order of its constants.
struct ModelBlobs {
  Span<const std::uint32_t> indices;
  Span<const SharedBytes> blobs;
  // One checksum per blob, or empty if data is not verified. Several constants, also of different models, may
  // share one blob.
  Span<const std::uint64_t> checksums;
};

// Reads into `module`, which must be new. Without `blobs` the constants' bytes are in the file itself. After
// an error the content of the module is unspecified.
REWIRE_API Status ReadModuleInto(const SharedBytes& bytes, const ModelBlobs* blobs,
                                 const OpenOptions& options, Module* module);

}  // namespace rewire
