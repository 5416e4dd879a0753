// SPDX-License-Identifier: Apache-2.0
//
// Lossless WebP, read here and not by libwebp. A few bits of such a file are a group of codes, for which
// libwebp has 12 KiB, and it cannot be asked for less or be stopped.
#pragma once

#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

// The size that the picture states. False if the bytes are no such picture.
bool ReadLosslessSize(File file, std::int64_t* width, std::int64_t* height);

// Puts the picture into an open canvas, from (left, top) on. It fits.
Outcome DecodeLossless(File file, std::int64_t left, std::int64_t top, Canvas& canvas);

}  // namespace rewire::kernel::image
