// SPDX-License-Identifier: Apache-2.0
//
// Decoding zstd frames, of constants and of compressed sections.
#pragma once

#include <cstddef>

#include "rewire/base/message.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// Fills all of `raw` from zstd frames, and never writes past it. The frames may be damaged or hostile; `what`
// names them in messages. Errors: kInvalidFile for frames that are damaged or decode to another size.
// kUnsupported in a build without zstd.
Status DecodeZstd(Span<const std::byte> frames, const Message& what, Span<std::byte> raw);

}  // namespace rewire
