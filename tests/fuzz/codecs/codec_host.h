// SPDX-License-Identifier: Apache-2.0
// Stands in for the VM while the drill decodes one picture.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/tests/fuzz/codecs/picture_seeds.h"

namespace rewire::test {

struct Decoding {
  bool is_known = false;  // the first bytes are those of a format
  bool has_rows = false;
  bool has_failed = false;    // the limit or the host ended the call
  std::int64_t charged = 0;   // against the limit, at the end of the call
  std::int64_t by_codec = 0;  // the most that the codec had allocated by itself
  std::int64_t left = 0;      // what it has not given back
  double longest_gap = 0;     // milliseconds of the processor between two questions whether to go on
  Bytes pixels;               // only if asked for
};

// Decodes within `limit` bytes. The first `stop_after` questions are answered with yes. Ends the process with
// a message if a picture is made after a no.
Decoding DecodePicture(const Bytes& file, std::int64_t limit, std::int64_t stop_after,
                       bool keep_pixels = false);

// The memory that the host keeps between calls, of which none is used yet. It counts once it is.
void ReserveHostMemory(std::int64_t limit);

}  // namespace rewire::test
