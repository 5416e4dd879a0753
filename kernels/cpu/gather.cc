// SPDX-License-Identifier: Apache-2.0
// Elements chosen by index tensors.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/types.h"

namespace rewire::kernel::cpu {
namespace {

// The index that is out of [-dim, dim), if any.
template <typename I>
Status CheckIndices(TensorView indices, std::int64_t dim, int axis) {
  const I* data = indices.data<I>();
  const std::int64_t count = indices.size();
  for (std::int64_t i = 0; i < count; ++i) {
    if (data[i] >= -dim && data[i] < dim) [[likely]]
      continue;
    return ValueError("element ", i, " of indices is ", static_cast<std::int64_t>(data[i]),
                      ", expected at least ", -dim, " and less than ", dim, " for axis ", axis, " of x");
  }
  return Status();
}

struct Gather {
  static constexpr const char kName[] = "rewire.gather";
  std::int64_t axis = 0;
  static Status Make(Attributes& attributes, Gather* gather) {
    gather->axis = attributes.Int("axis", 0);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("indices", indices).Dense("out", out).SameDType("out", out, "x", x);
    checks.NoOverlap("out", out, "x", x).NoOverlap("out", out, "indices", indices);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Dims expected;
    if (Status s = GatherDims(x.dims(), indices.dims(), along, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    return ForType(Indices(), "indices", indices,
                   [&](auto tag) { return Take<typename decltype(tag)::type>(x, indices, along, out); });
  }

 private:
  template <typename I>
  static Status Take(TensorView x, TensorView indices, int along, TensorView out) {
    const std::int64_t dim = x.dim(along);
    if (Status s = CheckIndices<I>(indices, dim, along); !s.ok()) return s;
    if (out.size() == 0) return Status();
    const std::int64_t picks = indices.size();
    const std::int64_t run = Product(x.dims(), along + 1, x.ndim()) * x.element_bytes();
    const std::int64_t rows = Product(x.dims(), 0, along) * picks;
    const I* index = indices.data<I>();
    const char* in = static_cast<const char*>(x.raw_data());
    char* to = static_cast<char*>(out.raw_data());
    ParallelFor(rows, std::max<std::int64_t>(1, 4 * kGrain / (run + 16)),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t r = begin; r < end; ++r) {
                    const std::int64_t pick = index[r % picks];
                    const std::int64_t source = r / picks * dim + (pick < 0 ? pick + dim : pick);
                    std::memcpy(to + r * run, in + source * run, static_cast<std::size_t>(run));
                  }
                });
    return Status();
  }
};

struct OneHot {
  static constexpr const char kName[] = "rewire.one_hot";
  std::int64_t axis = -1;
  static Status Make(Attributes& attributes, OneHot* one_hot) {
    one_hot->axis = attributes.Int("axis", -1);
    return Status();
  }
  Status operator()(TensorView indices, TensorView values, TensorView out) const {
    Checks checks;
    checks.Dense("indices", indices)
        .Dense("values", values)
        .Dense("out", out)
        .SameDType("values", values, "out", out);
    checks.Shape("values", values, Dims(kPair).view()).Rank("out", out, indices.ndim() + 1);
    checks.NoOverlap("out", out, "indices", indices).NoOverlap("out", out, "values", values);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, out.ndim(), &along); !s.ok()) return s;
    Dims expected(indices.dims());
    expected.insert(along, out.dim(along));
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    return ForType(Indices(), "indices", indices, [&](auto tag) {
      Write<typename decltype(tag)::type>(indices, values, along, out);
      return Status();
    });
  }

 private:
  static constexpr std::int64_t kTwo[] = {2};
  static constexpr ShapeView kPair{kTwo, 1};

  // An index out of range marks nothing, as ONNX has it.
  template <typename I>
  static void Write(TensorView indices, TensorView values, int along, TensorView out) {
    const std::int64_t depth = out.dim(along);
    const std::int64_t inner = Product(out.dims(), along + 1, out.ndim());
    const auto bytes = static_cast<std::size_t>(out.element_bytes());
    const char* off = static_cast<const char*>(values.raw_data());
    const char* on = off + bytes;
    const I* index = indices.data<I>();
    char* to = static_cast<char*>(out.raw_data());
    const std::int64_t size = out.size();
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t position = i / inner % depth;
      std::int64_t hot = index[i / (inner * depth) * inner + i % inner];
      if (hot < 0) hot += depth;
      std::memcpy(to + static_cast<std::size_t>(i) * bytes, hot == position ? on : off, bytes);
    }
  }
};

}  // namespace

std::span<const Kernel> GatherKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Gather>(
          "x, indices, out", "x, out any; indices i64 i32", "axis = 0",
          "slices of x along the axis, by index; negative ones count from the end, others are refused"),
      Describe<OneHot>(
          "indices, values, out", "indices i64 i32; values, out any", "axis = -1",
          "values[1] where the index is the position along the axis, which is new and whose length out "
          "gives, else values[0]; indices out of range mark nothing"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
