// SPDX-License-Identifier: Apache-2.0
//
// Reads or writes elements and slices at positions that index tensors give.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/cpu/indexing/indices.h"
#include "rewire/kernels/cpu/indexing/tuple_dims.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

using Reduction = ScatterReduction;

// Takes `count` contiguous elements at `from` into those at `to`.
using Combine = void (*)(char* to, const char* from, std::int64_t count);

template <typename T, Reduction kReduction>
T Combined(T sum, T term) {
  if constexpr (kReduction == Reduction::kMin) return term < sum || term != term ? term : sum;
  if constexpr (kReduction == Reduction::kMax) return term > sum || term != term ? term : sum;
  if constexpr (kReduction == Reduction::kAdd || kReduction == Reduction::kMul) {
    constexpr bool kAdds = kReduction == Reduction::kAdd;
    if constexpr (std::is_floating_point_v<T>) {
      return kAdds ? sum + term : sum * term;
    } else {
      const auto a = static_cast<Wrapping<T>>(sum);
      const auto b = static_cast<Wrapping<T>>(term);
      return static_cast<T>(kAdds ? a + b : a * b);
    }
  }
  return term;
}

template <typename T, Reduction kReduction>
void CombineElements(char* to, const char* from, std::int64_t count) {
  if (kReduction == Reduction::kNone && count > 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  auto* sums = reinterpret_cast<T*>(to);
  const auto* terms = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) sums[i] = Combined<T, kReduction>(sums[i], terms[i]);
}

// body(type, reduction), both as types: without a reduction elements are what has their size.
template <Reduction kReduction>
struct ReductionTag {
  static constexpr Reduction kValue = kReduction;
};
template <typename Body>
Status WithReduction(Reduction reduction, TensorView x, const Body& body) {
  if (reduction == Reduction::kNone)
    return ForElementSize("x", x, [&](auto tag) { return body(tag, ReductionTag<Reduction::kNone>()); });
  return ForType(Numbers(), "x", x, [&](auto tag) -> Status {
    switch (reduction) {
      case Reduction::kNone:
      case Reduction::kAdd:
        return body(tag, ReductionTag<Reduction::kAdd>());
      case Reduction::kMul:
        return body(tag, ReductionTag<Reduction::kMul>());
      case Reduction::kMin:
        return body(tag, ReductionTag<Reduction::kMin>());
      case Reduction::kMax:
        break;
    }
    return body(tag, ReductionTag<Reduction::kMax>());
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

struct ScatterElements : contract::GatherAttributes {
  static constexpr const char* kName = names::kScatterElements;
  Reduction reduction = Reduction::kNone;
  static Status Make(Attributes& attributes, ScatterElements* scatter) {
    scatter->Read(attributes);
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
    return WithReduction(reduction, x, [&](auto element, auto chosen) {
      return ForType(Indices(), "indices", indices, [&](auto tag) -> Status {
        using I = typename decltype(tag)::type;
        if (Status s = CheckIndices<I>(indices, x.dim(along), along); !s.ok()) return s;
        if (Status s = CopyWhole(x, out); !s.ok()) return s;
        return Write<typename decltype(element)::type, decltype(chosen)::kValue, I>(indices, updates, along,
                                                                                    out);
      });
    });
  }

 private:
  // In order, so that of several updates of one place the last stays.
  template <typename T, Reduction kReduction, typename I>
  static Status Write(TensorView indices, TensorView updates, int along, TensorView out) {
    const Dims of_out = DenseStrides(out.dims());
    const Dims of_updates = DenseStrides(updates.dims());
    Layout<2> layout;  // updates with indices, out without its axis
    for (int i = 0; i < out.ndim(); ++i)
      layout.Append(updates.dim(i), {of_updates[i], i == along ? 0 : of_out[i]});
    layout.Finish();
    if (updates.size() == 0) return Status();
    const auto* from = static_cast<const T*>(updates.raw_data());
    auto* to = static_cast<T*>(out.raw_data());
    const I* index = indices.data<I>();
    const std::int64_t* steps = layout.inner_strides();
    return ForAllRows(layout, [=, dim = out.dim(along), stride = of_out[along]](const std::int64_t* offsets,
                                                                                std::int64_t count) {
      const std::int64_t u = offsets[0];
      WriteRow<T, kReduction>(from + u, index + u, steps[0], count, dim, stride, steps[1], to + offsets[1]);
    });
  }

  // `step` leads to the next update and its index, `to_step` to the next element that keeps its place.
  template <typename T, Reduction kReduction, typename I>
  static void WriteRow(const T* from, const I* index, std::int64_t step, std::int64_t count, std::int64_t dim,
                       std::int64_t stride, std::int64_t to_step, T* to) {
    // Most exporters give whole rows one index, broadcast: these go at once.
    const bool in_runs = step == 1 && to_step == 1;
    for (std::int64_t i = 0; i < count; ++i) {
      T* place = to + i * to_step + FromEnd(index[i * step], dim) * stride;
      std::int64_t run = 1;
      while (in_runs && i + run < count && index[i + run] == index[i]) ++run;
      if (run > kLongRun) {
        CombineElements<T, kReduction>(reinterpret_cast<char*>(place),
                                       reinterpret_cast<const char*>(from + i), run);
        i += run - 1;
      } else {
        *place = Combined<T, kReduction>(*place, from[i * step]);
      }
    }
  }
  static constexpr std::int64_t kLongRun = 4;
};

// Index tuples: the last axis of `indices` names a slice of x behind its first `batch_dims` axes.
class Tuples {
 public:
  // Checks ranks and every index; gives how long the slices are.
  template <typename I>
  Status Init(TensorView x, TensorView indices, int batch_dims) {
    width_ = static_cast<int>(indices.dim(indices.ndim() - 1));
    const Dims strides = DenseStrides(x.dims());
    count_ = Product(indices.dims(), 0, indices.ndim() - 1);
    const std::int64_t batches = Product(x.dims(), 0, batch_dims);
    per_batch_ = batches == 0 ? 1 : std::max<std::int64_t>(1, count_ / batches);
    batch_stride_ = Product(x.dims(), batch_dims, x.ndim());
    run_ = Product(x.dims(), batch_dims + width_, x.ndim());
    for (int k = 0; k < width_; ++k) {
      dims_[k] = x.dim(batch_dims + k);
      strides_[k] = strides[batch_dims + k];
    }
    const I* data = indices.data<I>();
    std::int64_t wrong = -1;
    Status searched = SerialFor(count_, Times(2, width_), [&](std::int64_t begin, std::int64_t end) {
      if (wrong < 0 && AnyIsWrong(data, begin, end)) [[unlikely]]
        wrong = FirstWrong(data, begin, end);
    });
    if (wrong < 0) return searched;
    const int axis = static_cast<int>(wrong % width_);
    return ValueError("element ", wrong, " of indices is ", static_cast<std::int64_t>(data[wrong]),
                      ", expected at least ", -dims_[axis], " and less than ", dims_[axis], " for axis ",
                      batch_dims + axis, " of x");
  }
  std::int64_t count() const { return count_; }
  std::int64_t run() const { return run_; }

  // Calls each(i, offset) for the slices in order: slice i begins there in x, in elements. `work` is that of
  // a slice. Returns false if told to stop.
  template <typename I, typename Each>
  [[nodiscard]] bool ForEach(const I* data, std::int64_t work, Pace& pace, const Each& each) const {
    return pace.For(count_, Plus(work, width_), [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t batch = begin / per_batch_, last = std::min(end, (batch + 1) * per_batch_);
        const std::int64_t first = batch * batch_stride_;
        const auto run = [&](auto width) { RunBatch(data, begin, last, first, width, each); };
        if (width_ == 1)
          run(std::integral_constant<int, 1>());
        else if (width_ == 2)
          run(std::integral_constant<int, 2>());
        else if (width_ == 3)
          run(std::integral_constant<int, 3>());
        else
          run(width_);
        begin = last;
      }
    });
  }

 private:
  template <typename I, typename Width, typename Each>
  void RunBatch(const I* data, std::int64_t begin, std::int64_t end, std::int64_t first, Width width,
                const Each& each) const {
    std::int64_t dims[kMaxKernelRank], strides[kMaxKernelRank];  // of its own, which writes cannot change
    std::copy_n(dims_, kMaxKernelRank, dims);
    std::copy_n(strides_, kMaxKernelRank, strides);
    const I* tuple = data + begin * width;
    for (std::int64_t i = begin; i < end; ++i, tuple += width) {
      std::int64_t offset = first;
      for (int k = 0; k < width; ++k) offset += FromEnd(tuple[k], dims[k]) * strides[k];
      each(i, offset);
    }
  }

  template <typename I>
  bool AnyIsWrong(const I* data, std::int64_t begin, std::int64_t end) const {
    bool any = false;
    for (int k = 0; k < width_; ++k) {
      const std::int64_t dim = dims_[k];
      for (std::int64_t i = begin; i < end; ++i)
        any |= (data[i * width_ + k] < -dim) | (data[i * width_ + k] >= dim);
    }
    return any;
  }
  template <typename I>
  std::int64_t FirstWrong(const I* data, std::int64_t begin, std::int64_t end) const {
    std::int64_t i = begin * width_;
    while (i < end * width_ && data[i] >= -dims_[i % width_] && data[i] < dims_[i % width_]) ++i;
    return i;
  }

  int width_ = 0;
  std::int64_t dims_[kMaxKernelRank] = {};     // of the axes that tuples name
  std::int64_t strides_[kMaxKernelRank] = {};  // of these axes, in x
  std::int64_t count_ = 0, per_batch_ = 1, batch_stride_ = 0, run_ = 0;
};

struct GatherND : WithAttributes<contract::GatherNdAttributes> {
  static constexpr const char* kName = names::kGatherNd;
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
      const std::int64_t bytes = x.element_bytes(), run = tuples.run();
      const auto* from = static_cast<const char*>(x.raw_data());
      auto* to = static_cast<char*>(out.raw_data());
      const I* index = indices.data<I>();
      if (run == 1 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) {
        return ForElementSize("x", x, [&](auto element) {
          using T = typename decltype(element)::type;
          Pace pace;
          const auto take = [in = static_cast<const T*>(x.raw_data()),
                             elements = static_cast<T*>(out.raw_data())](
                                std::int64_t i, std::int64_t offset) { elements[i] = in[offset]; };
          return tuples.ForEach(index, 1, pace, take) ? Status() : Stopped();
        });
      }
      const std::int64_t slice = Times(run, bytes);
      Pace pace;
      const auto copy = [&](std::int64_t i, std::int64_t offset) {
        if (!pace.stopped()) static_cast<void>(pace.Copy(to + i * slice, from + offset * bytes, slice));
      };
      return tuples.ForEach(index, 1, pace, copy) ? Status() : Stopped();
    });
  }
};

struct GatherNDShape : WithAttributes<contract::GatherNdAttributes> {
  static constexpr const char* kName = names::kShapeGatherNd;
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
    Status chosen = WithReduction(reduction, x, [&](auto element, auto reduced) {
      combine = &CombineElements<typename decltype(element)::type, decltype(reduced)::kValue>;
      return Status();
    });
    if (!chosen.ok()) return chosen;
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
      const auto write = [&](std::int64_t i, std::int64_t offset) {
        char* slice = to + offset * bytes;
        const char* update = from + i * tuples.run() * bytes;
        const auto part = [&](std::int64_t begin, std::int64_t end) {
          combine(slice + begin * bytes, update + begin * bytes, end - begin);
        };
        if (!pace.stopped()) static_cast<void>(pace.For(tuples.run(), 1, part));
      };
      return tuples.ForEach(indices.data<I>(), 8, pace, write) ? Status() : Stopped();
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
