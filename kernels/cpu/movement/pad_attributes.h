// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the CPU and of devices that put a border around a tensor share this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

inline PadMode ReadPadMode(Attributes& attributes) {
  return static_cast<PadMode>(attributes.Choice("mode", {"constant", "reflect", "edge", "wrap"}, 0));
}

// How much of an axis negative pads leave.
inline std::int64_t KeptOf(std::int64_t size, std::int64_t before, std::int64_t after) {
  return size + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
}

// For modes that fill the border from x: checks that x reaches far enough. The pads are those before each
// axis, then those after each.
inline Status CheckPads(PadMode mode, ShapeView pads, ShapeView x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t before = pads[i], after = pads[i + x.size()], most = std::max(before, after);
    const bool fits = mode == PadMode::kReflect ? most < x[i]
                      : mode == PadMode::kWrap  ? KeptOf(x[i], before, after) > 0
                                                : true;
    if (x[i] > 0 && fits) continue;
    return ValueError("axis ", i, " of x with shape ", x, " is too short for a pad of ", most);
  }
  return Status();
}

// The pads of all axes from those of some.
struct AllPads {
  std::int64_t values[2 * kMaxKernelRank];
  std::size_t count;

  Status Read(int rank, TensorView pads, const std::optional<TensorView>& axes) {
    Dims given, named;
    if (Status s = ReadInts("pads", pads, &given); !s.ok()) return s;
    std::fill_n(values, 2 * kMaxKernelRank, 0);
    count = 2 * static_cast<std::size_t>(rank);
    if (IsGiven(axes)) {
      if (Status s = ReadInts("axes", *axes, &named); !s.ok()) return s;
    } else {
      for (int i = 0; i < rank; ++i) named.push_back(i);
    }
    bool marked[kMaxKernelRank];
    if (Status s = MarkAxes(named.view(), rank, marked); !s.ok()) return s;
    return contract::SpreadPads(given.view(), named.view(), rank, &values, kShapeError);
  }
  ShapeView view() const { return ShapeView(values, count); }
};

}  // namespace rewire::kernel::cpu
