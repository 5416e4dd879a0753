// SPDX-License-Identifier: Apache-2.0
//
// Reads or writes elements and slices at positions that index tensors give.
#include <algorithm>
#include <cstring>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/cpu/indexing/indices.h"
#include "rewire/kernels/cpu/indexing/tuple_dims.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

using Reduction = ScatterReduction;

// Takes `count` contiguous elements at `from` into those at `to`.
using Combine = void (*)(char* to, const char* from, std::int64_t count);

template <typename T, Reduction kReduction>
void CombineElements(char* to, const char* from, std::int64_t count) {
  if (kReduction == Reduction::kNone && count > 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  auto* sums = reinterpret_cast<T*>(to);
  const auto* terms = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) {
    T& sum = sums[i];
    const T term = terms[i];
    if constexpr (kReduction == Reduction::kNone) sum = term;
    if constexpr (kReduction == Reduction::kMin) sum = term < sum || term != term ? term : sum;
    if constexpr (kReduction == Reduction::kMax) sum = term > sum || term != term ? term : sum;
    if constexpr (kReduction == Reduction::kAdd || kReduction == Reduction::kMul) {
      constexpr bool kAdds = kReduction == Reduction::kAdd;
      if constexpr (std::is_floating_point_v<T>) {
        sum = kAdds ? sum + term : sum * term;
      } else {
        const auto a = static_cast<Wrapping<T>>(sum);
        const auto b = static_cast<Wrapping<T>>(term);
        sum = static_cast<T>(kAdds ? a + b : a * b);
      }
    }
  }
}

Status ChooseCombine(Reduction reduction, TensorView x, Combine* combine) {
  if (reduction == Reduction::kNone) {
    return ForElementSize("x", x, [&](auto tag) {
      *combine = &CombineElements<typename decltype(tag)::type, Reduction::kNone>;
      return Status();
    });
  }
  return ForType(Numbers(), "x", x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (reduction) {
      case Reduction::kNone:
      case Reduction::kAdd:
        *combine = &CombineElements<T, Reduction::kAdd>;
        break;
      case Reduction::kMul:
        *combine = &CombineElements<T, Reduction::kMul>;
        break;
      case Reduction::kMin:
        *combine = &CombineElements<T, Reduction::kMin>;
        break;
      case Reduction::kMax:
        *combine = &CombineElements<T, Reduction::kMax>;
        break;
    }
    return Status();
  });
}

Status CheckScatter(TensorView x, TensorView indices, TensorView updates, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("indices", indices).Dense("updates", updates).Dense("out", out);
  checks.SameDType("updates", updates, "x", x).SameDType("out", out, "x", x).Shape("out", out, x.dims());
  checks.NoOverlap("out", out, "indices", indices).NoOverlap("out", out, "updates", updates);
  if (out.raw_data() != x.raw_data()) checks.NoOverlap("out", out, "x", x);
  return checks.Take();
}

Status CopyWhole(TensorView x, TensorView out) {
  if (out.raw_data() == x.raw_data() || x.size() == 0) return Status();
  return CopyAll(out.raw_data(), x.raw_data(), Times(x.size(), x.element_bytes()));
}

struct ScatterElements {
  static constexpr const char* kName = names::kScatterElements;
  std::int64_t axis = 0;
  Reduction reduction = Reduction::kNone;
  static Status Make(Attributes& attributes, ScatterElements* scatter) {
    scatter->axis = attributes.Int("axis", 0);
    scatter->reduction = ReadScatterReduction(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView updates, TensorView out) const {
    if (Status s = CheckScatter(x, indices, updates, out); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    Checks checks;
    checks.Rank("indices", indices, x.ndim()).Shape("updates", updates, indices.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckElementIndices(x.dims(), indices.dims(), along); !s.ok()) return s;
    Combine combine = nullptr;
    if (Status s = ChooseCombine(reduction, x, &combine); !s.ok()) return s;
    return ForType(Indices(), "indices", indices, [&](auto tag) -> Status {
      using I = typename decltype(tag)::type;
      if (Status s = CheckIndices<I>(indices, x.dim(along), along); !s.ok()) return s;
      if (Status s = CopyWhole(x, out); !s.ok()) return s;
      return Write<I>(indices, updates, along, out, combine);
    });
  }

 private:
  // In order, so that of several updates of one place the last stays.
  template <typename I>
  static Status Write(TensorView indices, TensorView updates, int along, TensorView out, Combine combine) {
    const Dims of_out = DenseStrides(out.dims());
    const Dims of_updates = DenseStrides(updates.dims());
    Layout<2> layout;  // updates with indices, out without its axis
    for (int i = 0; i < out.ndim(); ++i)
      layout.Append(updates.dim(i), {of_updates[i], i == along ? 0 : of_out[i]});
    layout.Finish();
    if (updates.size() == 0) return Status();
    const std::int64_t bytes = out.element_bytes();
    const auto* from = static_cast<const char*>(updates.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    const I* index = indices.data<I>();
    const std::int64_t* steps = layout.inner_strides();
    // Most exporters give whole rows one index, broadcast: these go at once.
    const bool in_runs = steps[0] == 1 && steps[1] == 1;
    return ForAllRows(layout, [&](const std::int64_t* offsets, std::int64_t count) {
      std::int64_t run = 1;
      for (std::int64_t i = 0; i < count; i += run) {
        const std::int64_t u = offsets[0] + i * steps[0];
        const std::int64_t place = FromEnd(index[u], out.dim(along)) * of_out[along];
        run = 1;
        while (in_runs && i + run < count && index[u + run] == index[u]) ++run;
        combine(to + (offsets[1] + i * steps[1] + place) * bytes, from + u * bytes, run);
      }
    });
  }
};

// Index tuples: the last axis of `indices` names a slice of x behind its first `batch_dims` axes.
class Tuples {
 public:
  // Checks ranks and every index; gives how long the slices are.
  template <typename I>
  Status Init(TensorView x, TensorView indices, int batch_dims) {
    width_ = static_cast<int>(indices.dim(indices.ndim() - 1));
    first_ = batch_dims;
    strides_ = DenseStrides(x.dims());
    count_ = Product(indices.dims(), 0, indices.ndim() - 1);
    const std::int64_t batches = Product(x.dims(), 0, batch_dims);
    per_batch_ = batches == 0 ? 1 : std::max<std::int64_t>(1, count_ / batches);
    batch_stride_ = Product(x.dims(), batch_dims, x.ndim());
    run_ = Product(x.dims(), batch_dims + width_, x.ndim());
    for (int k = 0; k < width_; ++k) dims_.push_back(x.dim(batch_dims + k));
    const I* data = indices.data<I>();
    Pace pace;
    for (std::int64_t i = 0; i < Times(count_, width_); ++i) {
      if (!pace.Spend(4)) return Stopped();
      const std::int64_t dim = dims_[static_cast<int>(i % width_)];
      if (data[i] >= -dim && data[i] < dim) continue;
      return ValueError("element ", i, " of indices is ", static_cast<std::int64_t>(data[i]),
                        ", expected at least ", -dim, " and less than ", dim, " for axis ",
                        first_ + static_cast<int>(i % width_), " of x");
    }
    return Status();
  }
  std::int64_t count() const { return count_; }
  std::int64_t run() const { return run_; }
  // Offset tells where slice i begins in x, in elements.
  template <typename I>
  std::int64_t Offset(const I* data, std::int64_t i) const {
    std::int64_t offset = i / per_batch_ * batch_stride_;
    for (int k = 0; k < width_; ++k) offset += FromEnd(data[i * width_ + k], dims_[k]) * strides_[first_ + k];
    return offset;
  }

 private:
  int width_ = 0;
  int first_ = 0;
  Dims strides_;
  Dims dims_;
  std::int64_t count_ = 0, per_batch_ = 1, batch_stride_ = 0, run_ = 0;
};

struct GatherND {
  static constexpr const char* kName = names::kGatherNd;
  std::int64_t batch_dims = 0;
  static Status Make(Attributes& attributes, GatherND* gather) {
    gather->batch_dims = attributes.Int("batch_dims", 0, 0, kMaxKernelRank);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "indices", indices, out).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = GatherNDDims(x.dims(), indices.dims(), batch_dims, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    return ForType(Indices(), "indices", indices, [&](auto tag) -> Status {
      using I = typename decltype(tag)::type;
      Tuples tuples;
      if (Status s = tuples.Init<I>(x, indices, static_cast<int>(batch_dims)); !s.ok()) return s;
      if (out.size() == 0) return Status();
      const std::int64_t bytes = x.element_bytes();
      const std::int64_t run = Times(tuples.run(), bytes);
      const auto* from = static_cast<const char*>(x.raw_data());
      auto* to = static_cast<char*>(out.raw_data());
      Pace pace;
      for (std::int64_t i = 0; i < tuples.count(); ++i) {
        const std::int64_t offset = tuples.Offset(indices.data<I>(), i) * bytes;
        if (!pace.Copy(to + i * run, from + offset, run)) return Stopped();
      }
      return Status();
    });
  }
};

struct GatherNDShape {
  static constexpr const char* kName = names::kShapeGatherNd;
  std::int64_t batch_dims = 0;
  static Status Make(Attributes& attributes, GatherNDShape* gather) {
    gather->batch_dims = attributes.Int("batch_dims", 0, 0, kMaxKernelRank);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Dims input, picks, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("indices", indices, &picks); !s.ok()) return s;
    if (Status s = GatherNDDims(input.view(), picks.view(), batch_dims, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct ScatterND {
  static constexpr const char* kName = names::kScatterNd;
  Reduction reduction = Reduction::kNone;
  static Status Make(Attributes& attributes, ScatterND* scatter) {
    scatter->reduction = ReadScatterReduction(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView indices, TensorView updates, TensorView out) const {
    if (Status s = CheckScatter(x, indices, updates, out); !s.ok()) return s;
    Dims expected;
    if (Status s = GatherNDDims(x.dims(), indices.dims(), 0, &expected); !s.ok()) return s;
    if (Status s = CheckShape("updates", updates, expected.view()); !s.ok()) return s;
    Combine combine = nullptr;
    if (Status s = ChooseCombine(reduction, x, &combine); !s.ok()) return s;
    return ForType(Indices(), "indices", indices, [&](auto tag) -> Status {
      using I = typename decltype(tag)::type;
      Tuples tuples;
      if (Status s = tuples.Init<I>(x, indices, 0); !s.ok()) return s;
      if (Status s = CopyWhole(x, out); !s.ok()) return s;
      if (updates.size() == 0) return Status();
      const std::int64_t bytes = x.element_bytes();
      const auto* from = static_cast<const char*>(updates.raw_data());
      auto* to = static_cast<char*>(out.raw_data());
      Pace pace;
      for (std::int64_t i = 0; i < tuples.count(); ++i) {
        char* slice = to + tuples.Offset(indices.data<I>(), i) * bytes;
        const char* update = from + i * tuples.run() * bytes;
        const auto part = [&](std::int64_t begin, std::int64_t end) {
          combine(slice + begin * bytes, update + begin * bytes, end - begin);
        };
        if (!pace.Spend(8) || !pace.For(tuples.run(), 1, part)) return Stopped();
      }
      return Status();
    });
  }
};

constexpr const char kReductions[] = "reduction = none, add, mul, min or max";

}  // namespace

std::span<const Kernel> ScatterKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<ScatterElements>(
          "x, indices, updates -> out over x",
          "x, updates, out any of at most 8 bytes (reductions f32 f64 i64 i32 i8 u8); indices i64 i32",
          "axis = 0, reduction = none, add, mul, min or max",
          "x with each update at its place but for the axis, where the index says"),
      Describe<ScatterND>(
          "x, indices, updates -> out over x",
          "x, updates, out any of at most 8 bytes (reductions f32 f64 i64 i32 i8 u8); indices i64 i32",
          kReductions, "x with the slices that index tuples name updated"),
      Describe<GatherND>("x, indices -> out", "x, out any; indices i64 i32", "batch_dims = 0",
                         "the slices of x that index tuples, the last axis of indices, name"),
      Describe<GatherNDShape>("x, indices -> out", "i64 i32; out i64", "batch_dims = 0",
                              "the shape of rewire.gather_nd's out"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
