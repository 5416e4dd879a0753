// SPDX-License-Identifier: Apache-2.0
// Archives of object files: what TVM writes when a library is exported as "model.tar".
#pragma once

#include <cstddef>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// True if the bytes begin like a tar archive, or like a file that gzip compressed, as TVM's archives are.
bool IsArchive(Span<const std::byte> file);

// The error for such a file: kUnsupported. Linking the archive needs a compiler, so the message gives the
// command.
Status RefuseArchive(Span<const std::byte> file);

}  // namespace rewire
