// SPDX-License-Identifier: Apache-2.0
// The header of an .npy file: a Python dictionary as text, such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

struct NpyHeader {
  DLDataType dtype = {};
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Strings ('<U7') have the dtype of an opaque handle of 32 bits with 7 lanes: each lane is a code point, and
// zeros fill the rest. Errors: kInvalidFile if it is no such dictionary. kUnsupported for records, objects,
// bytes, big-endian numbers, and types that DLPack does not have. Messages do not name the file.
Result<NpyHeader> ParseNpyHeader(std::string_view text);

// The dictionary of a row-major array. kUnsupported: a dtype that numpy has no name for (bf16, vectors).
Result<std::string> NpyHeaderText(DLDataType dtype, Span<const std::int64_t> shape);

}  // namespace rewire
