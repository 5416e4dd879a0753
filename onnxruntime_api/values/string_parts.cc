// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/values/string_parts.h"

#include <cstring>

namespace rewire::onnxruntime_api {

std::int64_t BytesOf(const std::vector<std::string>& strings) {
  std::size_t bytes = 0;
  for (const std::string& each : strings) bytes += each.size();
  return static_cast<std::int64_t>(bytes);
}

void WriteStrings(const std::vector<std::string>& strings, std::int64_t* positions, std::int64_t* offsets,
                  void* bytes) {
  offsets[0] = 0;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::string& each = strings[i];
    if (!each.empty()) std::memcpy(static_cast<char*>(bytes) + offsets[i], each.data(), each.size());
    positions[i] = static_cast<std::int64_t>(i);
    offsets[i + 1] = offsets[i] + static_cast<std::int64_t>(each.size());
  }
}

Result<std::vector<std::string>> ReadList(Span<const std::int64_t> offsets, Span<const char> bytes,
                                          const std::string& what) {
  std::vector<std::string> list;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    const std::int64_t begin = offsets[i - 1], end = offsets[i];
    if (begin < 0 || end < begin || static_cast<std::size_t>(end) > bytes.size())
      return Fail(StatusCode::kRuntimeFailed, "the offsets of {} are out of range", what);
    if (begin == end) {
      list.emplace_back();
    } else {
      list.emplace_back(bytes.data() + begin, static_cast<std::size_t>(end - begin));
    }
  }
  return list;
}

Result<std::vector<std::string>> PickStrings(const std::vector<std::string>& list,
                                             Span<const std::int64_t> positions, const std::string& what) {
  std::vector<std::string> strings;
  for (const std::int64_t position : positions) {
    if (position < 0 || static_cast<std::size_t>(position) >= list.size())
      return Fail(StatusCode::kRuntimeFailed, "a position of {} is out of range", what);
    strings.push_back(list[static_cast<std::size_t>(position)]);
  }
  return strings;
}

}  // namespace rewire::onnxruntime_api
