// SPDX-License-Identifier: Apache-2.0
// Tensors of random elements for --random: the same seed gives the same elements on every machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

class RandomTensors {
 public:
  explicit RandomTensors(std::uint64_t seed) : state_(seed) {}

  // "f32=-1:1", "i64=0:1000": floats are uniform in [low, high), integers and booleans in low to high, both
  // inclusive. Defaults: floats from -1 to 1, integers 0 to 9, booleans 0 to 1.
  Status SetRange(std::string_view text);

  // Errors: kUnsupported for a dtype whose elements have no text form.
  Result<HostTensor> Make(DLDataType dtype, Span<const std::int64_t> shape);

 private:
  struct Range {
    DLDataType dtype;
    double low, high;
  };
  Range RangeOf(DLDataType dtype) const;
  std::uint64_t Next();
  double NextUnit();  // [0, 1)

  std::uint64_t state_;
  std::vector<Range> ranges_;
};

}  // namespace rewire::tools
