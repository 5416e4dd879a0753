// SPDX-License-Identifier: Apache-2.0
// Copies that change the order of elements or leave some out: transpose, slice, tile, ...
#include <algorithm>
#include <cstring>

#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/cpu/movement/sequence_axes.h"
#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

ShapeView ViewOf(const std::vector<std::int64_t>& values) { return ShapeView(values.data(), values.size()); }

Status CheckMove(TensorView x, TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  return CheckMovable("x", x);
}

struct Transpose : WithAttributes<contract::TransposeAttributes> {
  static constexpr const char* kName = names::kTranspose;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    Dims order;
    Dims expected;
    if (Status s = PermutedDims(x.dims(), perm, &order, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const Dims from = DenseStrides(x.dims());
    const Dims to = DenseStrides(out.dims());
    Layout<2> layout;
    for (int i = 0; i < out.ndim(); ++i) layout.Append(out.dim(i), {to[i], from[static_cast<int>(order[i])]});
    layout.Finish();
    return CopyStrided(layout, x.element_bytes(), out.raw_data(), x.raw_data());
  }
};

// Whether what is sliced lies in x as it does in `out`, without a gap.
bool IsTogether(const Dims& x_strides, const SliceRange& range, TensorView out) {
  const Dims strides = DenseStrides(out.dims());
  for (int i = 0; i < out.ndim(); ++i) {
    if (out.dim(i) > 1 && strides[i] != x_strides[i] * range.step[i]) return false;
  }
  return true;
}

Status RunSlice(TensorView x, ShapeView starts, ShapeView ends, ShapeView axes, ShapeView steps,
                TensorView out) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (Status s = CheckMovable("x", x); !s.ok()) return s;
  SliceRange range;
  if (Status s = SliceDims(x.dims(), starts, ends, axes, steps, &range); !s.ok()) return s;
  if (Status s = CheckShape("out", out, range.dims.view()); !s.ok()) return s;
  if (out.size() == 0) return Status();
  const Dims from = DenseStrides(x.dims());
  const Dims to = DenseStrides(out.dims());
  std::int64_t first = 0;
  Layout<2> layout;
  for (int i = 0; i < out.ndim(); ++i) {
    first += range.start[i] * from[i];
    layout.Append(out.dim(i), {to[i], from[i] * range.step[i]});
  }
  layout.Finish();
  const char* begin = static_cast<const char*>(x.raw_data()) + first * x.element_bytes();
  // A caller may leave the elements where they are, when they lie together there.
  if (out.raw_data() == begin && IsTogether(from, range, out)) return Status();
  if (Status s = CheckNoOverlap("out", out, "x", x); !s.ok()) return s;
  return CopyStrided(layout, x.element_bytes(), out.raw_data(), begin);
}

struct Slice : WithAttributes<contract::SliceAttributes> {
  static constexpr const char* kName = names::kSlice;
  Status operator()(TensorView x, TensorView out) const {
    return RunSlice(x, ViewOf(starts), ViewOf(ends), ViewOf(axes), ViewOf(steps), out);
  }
};

struct DynamicSlice {
  static constexpr const char* kName = names::kDynamicSlice;
  Status operator()(TensorView x, TensorView starts, TensorView ends, std::optional<TensorView> axes,
                    std::optional<TensorView> steps, TensorView out) const {
    Dims first, last, along, by;
    if (Status s = ReadInts("starts", starts, &first); !s.ok()) return s;
    if (Status s = ReadInts("ends", ends, &last); !s.ok()) return s;
    if (axes) {
      if (Status s = ReadInts("axes", *axes, &along); !s.ok()) return s;
    }
    if (steps) {
      if (Status s = ReadInts("steps", *steps, &by); !s.ok()) return s;
    }
    return RunSlice(x, first.view(), last.view(), along.view(), by.view(), out);
  }
};

struct Tile {
  static constexpr const char* kName = names::kTile;
  Status operator()(TensorView x, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (Status s = CheckRank("out", out, x.ndim()); !s.ok()) return s;
    if (2 * x.ndim() > kMaxKernelRank) {
      return ValueError("x has shape ", x.dims(), ", expected a rank of at most ", kMaxKernelRank / 2);
    }
    const Dims from = DenseStrides(x.dims());
    const Dims to = DenseStrides(out.dims());
    Layout<2> layout;
    for (int i = 0; i < x.ndim(); ++i) {
      const std::int64_t dim = x.dim(i);
      if (dim == 0 ? out.dim(i) != 0 : out.dim(i) % dim != 0) {
        return ValueError("out has shape ", out.dims(), ", expected multiples of x's ", x.dims());
      }
      if (dim == 0 || out.size() == 0) continue;  // nothing is copied
      layout.Append(out.dim(i) / dim, {to[i] * dim, 0});
      layout.Append(dim, {to[i], from[i]});
    }
    if (out.size() == 0) return Status();
    layout.Finish();
    return CopyStrided(layout, x.element_bytes(), out.raw_data(), x.raw_data());
  }
};

struct ReverseSequence : SequenceAxes {
  static constexpr const char* kName = names::kReverseSequence;
  Status operator()(TensorView x, TensorView lengths, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected rank 2 or more");
    if (Status s = CheckShape("out", out, x.dims()); !s.ok()) return s;
    const std::int64_t batch = x.dim(static_cast<int>(batch_axis));
    const std::int64_t time = x.dim(static_cast<int>(time_axis));
    Checks checks;
    checks.Dense("lengths", lengths).Shape("lengths", lengths, ShapeView(&batch, 1));
    if (Status s = checks.NoOverlap("out", out, "lengths", lengths).Take(); !s.ok()) return s;
    if (!lengths.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "lengths", lengths);
    const auto* length = lengths.data<std::int64_t>();
    for (std::int64_t b = 0; b < batch; ++b) {
      if (length[b] < 0 || length[b] > time) {
        return ValueError("element ", b, " of lengths is ", length[b], ", expected 0 to ", time);
      }
    }
    const std::int64_t run = Times(Product(x.dims(), 2, x.ndim()), x.element_bytes());
    if (run == 0) return Status();
    const Steps steps{x.raw_data(), out.raw_data(), length, batch, time, run};
    if (run == 1) return ReverseElements<std::uint8_t>(steps);
    if (run == 2) return ReverseElements<std::uint16_t>(steps);
    if (run == 4) return ReverseElements<std::uint32_t>(steps);
    if (run == 8) return ReverseElements<std::uint64_t>(steps);
    const auto* in = static_cast<const char*>(x.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    const std::int64_t next_time = time_axis == 0 ? batch : 1, next_batch = time_axis == 0 ? 1 : time;
    Pace pace;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < time; ++t) {
        const std::int64_t from = b * next_batch + SourceOf(t, length[b]) * next_time;
        if (!pace.Copy(to + (b * next_batch + t * next_time) * run, in + from * run, run)) return Stopped();
      }
    }
    return Status();
  }

 private:
  struct Steps {
    const void* in;
    void* out;
    const std::int64_t* lengths;
    std::int64_t batch, time, bytes;
  };
  static std::int64_t SourceOf(std::int64_t t, std::int64_t length) {
    return t < length ? length - 1 - t : t;
  }

  // Steps that are as large as a number, which is moved faster than a function is called.
  template <typename T>
  Status ReverseElements(const Steps& steps) const {
    const auto* in = static_cast<const T*>(steps.in);
    auto* to = static_cast<T*>(steps.out);
    const std::int64_t *lengths = steps.lengths, batch = steps.batch;
    Pace pace;
    if (time_axis == 0) {
      for (std::int64_t t = 0; t < steps.time; ++t) {
        const bool done = pace.For(batch, 1, [=](std::int64_t b, std::int64_t end) {
          for (; b < end; ++b) to[t * batch + b] = in[SourceOf(t, lengths[b]) * batch + b];
        });
        if (!done) return Stopped();
      }
      return Status();
    }
    for (std::int64_t b = 0; b < batch; ++b, in += steps.time, to += steps.time) {
      const std::int64_t length = lengths[b];
      const bool done = pace.For(length, 1, [=](std::int64_t t, std::int64_t end) {
        std::reverse_copy(in + length - end, in + length - t, to + t);
      });
      if (!done || !pace.Copy(to + length, in + length, (steps.time - length) * steps.bytes))
        return Stopped();
    }
    return Status();
  }
};

struct Trilu : WithAttributes<contract::TriluAttributes> {
  static constexpr const char* kName = names::kTrilu;
  Status operator()(TensorView x, std::optional<TensorView> k, TensorView out) const {
    if (Status s = CheckMove(x, out); !s.ok()) return s;
    if (x.ndim() < 2) return ValueError("x has shape ", x.dims(), ", expected rank 2 or more");
    if (Status s = CheckShape("out", out, x.dims()); !s.ok()) return s;
    std::int64_t diagonal = 0;
    if (k) {
      if (Status s = ReadInt("k", *k, &diagonal); !s.ok()) return s;
    }
    const std::int64_t columns = x.dim(x.ndim() - 1);
    const std::int64_t rows = x.dim(x.ndim() - 2);
    if (x.size() == 0) return Status();
    diagonal = std::clamp(diagonal, -rows, columns);
    const std::int64_t line = columns * x.element_bytes();
    // Rows before the band lie on one side of the diagonal, rows behind it on the other. A row's edge is the
    // first column of the upper part, and behind the last one of the lower part.
    const std::int64_t shift = diagonal + (upper ? 0 : 1);
    const Band band{x.element_bytes(),
                    line,
                    columns,
                    shift,
                    std::clamp<std::int64_t>(1 - shift, 0, rows),
                    std::clamp<std::int64_t>(columns - shift, 0, rows),
                    rows};
    const auto* in = static_cast<const char*>(x.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    const std::int64_t matrices = x.size() / (rows * columns);
    if (line > kShortLine || (band.end - band.begin) * line > kMask) return KeepLines(band, matrices, in, to);
    return KeepByMask(band, matrices, in, to);
  }

 private:
  // A matrix of rows of `line` bytes, of which [begin, end) have the diagonal inside.
  struct Band {
    std::int64_t element, line, columns, shift, begin, end, rows;
    std::int64_t Edge(std::int64_t row) const {  // in bytes
      return std::clamp<std::int64_t>(row + shift, 0, columns) * element;
    }
  };

  // Rows that are kept or not as a whole.
  static bool TakeRows(bool kept, const char* in, std::int64_t bytes, char* to, Pace& pace) {
    return kept ? pace.Copy(to, in, bytes) : pace.Fill(to, bytes, '\0');
  }

  Status KeepLines(const Band& band, std::int64_t matrices, const char* in, char* to) const {
    Pace pace;
    for (std::int64_t i = 0; i < matrices; ++i, in += band.rows * band.line, to += band.rows * band.line) {
      bool done = TakeRows(upper, in, band.begin * band.line, to, pace);
      for (std::int64_t row = band.begin; done && row < band.end; ++row) {
        const std::int64_t at = row * band.line, edge = band.Edge(row);
        done = TakeRows(!upper, in + at, edge, to + at, pace) &&
               TakeRows(upper, in + at + edge, band.line - edge, to + at + edge, pace);
      }
      const std::int64_t at = band.end * band.line, rest = (band.rows - band.end) * band.line;
      if (!done || !TakeRows(!upper, in + at, rest, to + at, pace)) return Stopped();
    }
    return Status();
  }

  // Short lines of the band have a mask, since a call for each would take longer than its elements. Several
  // matrices that are small are one.
  static constexpr std::int64_t kShortLine = 512, kMask = 8192;  // bytes
  Status KeepByMask(Band band, std::int64_t matrices, const char* in, char* to) const {
    const std::int64_t matrix = band.rows * band.line;
    std::int64_t at_once = 1;
    if (matrix <= kMask) {
      band.begin = 0;
      band.end = band.rows;
      at_once = std::min(matrices, kMask / matrix);
    }
    const std::int64_t first = band.begin * band.line, size = (band.end - band.begin) * band.line;
    char mask[kMask];
    for (std::int64_t row = band.begin; row < band.end; ++row) {
      char* line = mask + (row - band.begin) * band.line;
      std::fill(line, line + band.Edge(row), static_cast<char>(upper ? 0 : -1));
      std::fill(line + band.Edge(row), line + band.line, static_cast<char>(upper ? -1 : 0));
    }
    for (std::int64_t i = 1; i < at_once; ++i) std::copy_n(mask, size, mask + i * size);
    Pace pace;
    for (std::int64_t i = 0; i < matrices; i += at_once, in += at_once * matrix, to += at_once * matrix) {
      const std::int64_t masked = std::min(at_once, matrices - i) * size;
      if (!TakeRows(upper, in, first, to, pace) || !pace.Spend(1 + masked / 8)) return Stopped();
      WideLoop([from = in + first, result = to + first, masked, kept = &mask[0]] {
        for (std::int64_t j = 0; j < masked; ++j) result[j] = static_cast<char>(from[j] & kept[j]);
      });
      const std::int64_t behind = first + size;
      if (at_once == 1 && !TakeRows(!upper, in + behind, matrix - behind, to + behind, pace))
        return Stopped();
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> RearrangeKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Transpose>("x -> out", "any", "perm = reversed", "axis i of out is axis perm[i] of x",
                          kSelects),
      Describe<Slice>(
          "x -> out within x", "any", "starts, ends, axes = first ones, steps = 1",
          "ONNX Slice: negative positions count from the end, positions out of range are held in it, steps "
          "may be negative"),
      Describe<DynamicSlice>("x, starts, ends, axes?, steps? -> out within x", "x, out any; others i64 i32",
                             "", "rewire.slice with its attributes as tensors"),
      Describe<Tile>("x -> out", "any", "", "x repeated along each axis as often as out's shape says"),
      Describe<ReverseSequence>("x, lengths -> out", "x, out any; lengths i64",
                                "batch_axis = 1, time_axis = 0",
                                "the first lengths[b] steps of batch b in reverse, the others as they are"),
      Describe<Trilu>("x, k? -> out", "x, out any; k i64", "upper = 1",
                      "of each matrix the part above or below diagonal k (0 if none), with it; 0 elsewhere"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
