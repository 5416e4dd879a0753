// SPDX-License-Identifier: Apache-2.0
//
// Strings as a VM has them: a tensor of positions in a list, i64, and the list itself. The list is offsets,
// i64[count + 1], and bytes, u8, which are the strings one behind the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::onnxruntime_api {

std::int64_t BytesOf(const std::vector<std::string>& strings);
// Writes the parts: a position for each string, an offset more, and BytesOf(strings) bytes.
void WriteStrings(const std::vector<std::string>& strings, std::int64_t* positions, std::int64_t* offsets,
                  void* bytes);

// Anyone may have written the parts. Errors of both: kRuntimeFailed, which names the value `what`.
Result<std::vector<std::string>> ReadList(Span<const std::int64_t> offsets, Span<const char> bytes,
                                          const std::string& what);
// The strings at the positions.
Result<std::vector<std::string>> PickStrings(const std::vector<std::string>& list,
                                             Span<const std::int64_t> positions, const std::string& what);

}  // namespace rewire::onnxruntime_api
