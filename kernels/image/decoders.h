// SPDX-License-Identifier: Apache-2.0
//
// One function for each format. It opens the canvas and puts all its rows, or says what is wrong.
#pragma once

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

// Windows and OS/2 bitmaps of 1 to 32 bits, packed by lines or not.
Outcome DecodeBmp(File file, Canvas& canvas);
Outcome DecodeJpeg(File file, Canvas& canvas);
// A file with boxes (.jp2) or the bare code (.j2k).
Outcome DecodeJpeg2000(File file, Canvas& canvas);
Outcome DecodePng(File file, Canvas& canvas);
// Portable bitmaps, graymaps and pixmaps, as text or bytes.
Outcome DecodePnm(File file, Canvas& canvas);
// The first picture of the file.
Outcome DecodeTiff(File file, Canvas& canvas);
// The first picture of an animation.
Outcome DecodeWebp(File file, Canvas& canvas);

using Decoder = Outcome (*)(File, Canvas&);
// The decoder that a file's first bytes ask for; null if none.
Decoder FindDecoder(File file);

// Whether the file is a JPEG of at most this size, in one scan: its codec then needs some rows of memory
// only.
bool IsPlainJpeg(File file, std::int64_t most_width, std::int64_t most_height);

}  // namespace rewire::kernel::image
