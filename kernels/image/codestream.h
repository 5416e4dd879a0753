// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a JPEG 2000 picture, and what OpenJPEG allocates for it. A few bytes of such a file can ask
// for millions of components, tiles or blocks, each of which costs OpenJPEG some hundred bytes.
#pragma once

#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

struct CodestreamSize {
  bool has_boxes = false;  // a .jp2 file
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::uint32_t components = 0;
  std::int64_t most_bytes = 0;
};

// False if the file is no JPEG 2000, or is divided in a way that no encoder uses: more than 4 components, or
// parts of less than 16 pixels.
bool MeasureCodestream(File file, CodestreamSize* size);

}  // namespace rewire::kernel::image
