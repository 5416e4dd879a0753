// SPDX-License-Identifier: Apache-2.0
//
// LinkedImage: the bytes of an executable that is to be linked into a program.
#pragma once

#include <cstddef>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

struct LinkedImage {
  std::vector<std::byte> tables;  // all but the constants' bytes
  std::vector<std::byte> data;    // the constants' bytes, decoded, each at a multiple of kDataAlignment
};

// Decodes the constants and verifies the result once more. Errors: kInvalidFile for damaged constants;
// kUnsupported for constants that only a host can decode.
Result<LinkedImage> MakeLinkedImage(const Executable& executable);

// The symbol that librewire.a of this version has (RewireLinkedExecutable::version).
const char* LinkedVersionSymbol();

}  // namespace rewire
