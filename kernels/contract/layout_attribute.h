// SPDX-License-Identifier: Apache-2.0
//
// The attribute `layout` of kernels over images.
#pragma once

namespace rewire::contract {

// Returns whether channels are the last axis (NHWC) rather than the second one (NCHW). `Given` reads by
// Choice, as kernel::Attributes does.
template <typename Given>
bool ReadChannelsLast(Given& given) {
  return given.Choice("layout", {"NCHW", "NHWC"}, 0) == 1;
}

}  // namespace rewire::contract
