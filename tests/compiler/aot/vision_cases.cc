// SPDX-License-Identifier: Apache-2.0
// Drawn calls of kernels on images.
#include <algorithm>
#include <string>

#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

// Sizes with scales and without; axes that keep their size, in front, between and behind the others.
Case Resize(Random& random) {
  const char* const modes[] = {"nearest", "linear", "cubic"};
  const char* const coordinates[] = {"half_pixel", "pytorch_half_pixel",   "align_corners",
                                     "asymmetric", "half_pixel_symmetric", "tf_half_pixel_for_nn"};
  const char* const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const std::string mode = modes[random.Int(0, 2)];
  const Dims dims = random.Shape(1, 4);
  Dims out;
  for (const std::int64_t dim : dims) out.push_back(random.Bool() ? dim : random.Int(1, 9));
  Case call;
  call.attributes = "mode=\"" + mode + "\", coordinate_transformation_mode=\"" +
                    coordinates[random.Int(0, 5)] + "\", nearest_mode=\"" + roundings[random.Int(0, 3)] +
                    "\", exclude_outside=" + std::to_string(random.Int(0, 1)) +
                    ", antialias=" + std::to_string(mode == "nearest" ? 0 : random.Int(0, 1));
  // Elements that are not mixed may have any size.
  const int kind = random.Int(0, mode == "nearest" ? 3 : 2);
  const Tensor x = kind == 0   ? random.Integers<std::int8_t>(dims, -128, 127)
                   : kind == 1 ? random.Integers<std::uint8_t>(dims, 0, 255)
                   : kind == 2 ? random.Floats(dims, -99, 99, 0.37F)
                               : random.Integers<std::int64_t>(dims, -99, 99);
  call.inputs = {x};
  call.outputs = {TypeOf(x).substr(0, TypeOf(x).find('[')) + ShapeOf(out)};
  return call;
}

}  // namespace

void AddVisionCases(Makers* makers) { makers->insert({{"rewire.resize", Resize}}); }

}  // namespace rewire::test
