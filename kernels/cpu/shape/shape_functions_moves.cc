// SPDX-License-Identifier: Apache-2.0
//
// Shape functions of operators that only move elements or give axes new names.
#include <algorithm>

#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::cpu {
namespace {

struct SqueezeShape {
  static constexpr const char* kName = names::kShapeSqueeze;
  Status operator()(TensorView x, std::optional<TensorView> axes, TensorView out) const {
    Dims input, named, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (axes) {
      if (Status s = ReadInts("axes", *axes, &named); !s.ok()) return s;
    }
    bool removed[kMaxKernelRank];
    if (Status s = MarkAxes(named.view(), input.rank(), removed); !s.ok()) return s;
    for (int i = 0; i < input.rank() && !axes; ++i) removed[i] = input[i] == 1;
    Status s = contract::SqueezedSizes(input.view(), removed, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct UnsqueezeShape {
  static constexpr const char* kName = names::kShapeUnsqueeze;
  Status operator()(TensorView x, TensorView axes, TensorView out) const {
    Dims input, named;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadInts("axes", axes, &named); !s.ok()) return s;
    const int rank = input.rank() + named.rank();
    if (rank > kMaxKernelRank)
      return ValueError("the result's rank is ", rank, ", expected at most ", kMaxKernelRank);
    bool added[kMaxKernelRank];
    if (Status s = MarkAxes(named.view(), rank, added); !s.ok()) return s;
    const auto axes_of_result = static_cast<std::size_t>(rank);
    return WriteShape(contract::UnsqueezedSizes<Dims>(input.view(), added, axes_of_result), out);
  }
};

struct TileShape {
  static constexpr const char* kName = names::kShapeTile;
  Status operator()(TensorView x, TensorView repeats, TensorView out) const {
    Dims input, times, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadInts("repeats", repeats, &times); !s.ok()) return s;
    Status s = contract::TiledSizes(input.view(), times.view(), &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct SplitShape : contract::SplitAttributes {
  static constexpr const char* kName = names::kShapeSplit;
  std::int64_t index = 0;
  static Status Make(Attributes& attributes, SplitShape* split) {
    attributes.Require("index");
    split->Read(attributes);
    split->index = attributes.Int("index", 0, 0);
    return Status();
  }
  Status operator()(TensorView x, TensorView split, TensorView out) const {
    Dims result;
    int along = 0;
    if (Status s = ReadShape("x", x, &result); !s.ok()) return s;
    if (Status s = NormalizeAxis(axis, result.rank(), &along); !s.ok()) return s;
    if (Status s = Checks().Dense("split", split).Rank("split", split, 1).Take(); !s.ok()) return s;
    if (!split.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "split", split);
    if (index >= split.dim(0))
      return ValueError("split has shape ", split.dims(), ", expected more than ", index, " elements");
    const std::int64_t part = split.data<std::int64_t>()[index];
    if (part < 0 || part > result[along]) {
      return ValueError("element ", index, " of split is ", part, ", expected 0 to ", result[along],
                        " as axis ", along, " of x ", result.view());
    }
    result[along] = part;
    return WriteShape(result, out);
  }
};

constexpr const char kIntegersOnly[] = "i64 i32; out i64";

}  // namespace

std::span<const Kernel> MoveShapeFunctionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<SqueezeShape>("x, axes? -> out", kIntegersOnly, "",
                             "x's shape without the axes named, or without all that are 1"),
      Describe<UnsqueezeShape>("x, axes -> out", kIntegersOnly, "",
                               "x's shape with 1 at the axes of the result named"),
      Describe<TileShape>("x, repeats -> out", kIntegersOnly, "", "of rewire.tile: x's shape times repeats"),
      Describe<SplitShape>("x, split -> out", "x i64 i32; split, out i64", "index, axis = 0",
                           "of output number index of rewire.split, from the parts' lengths"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
