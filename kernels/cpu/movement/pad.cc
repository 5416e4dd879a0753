// SPDX-License-Identifier: Apache-2.0
// Borders around a tensor.
#include <algorithm>
#include <cstring>

#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/cpu/movement/pad_attributes.h"
#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"

namespace rewire::kernel::cpu {
namespace {

// One padding of one tensor: pads[i] elements before, pads[rank + i] after axis i.
class Padding {
 public:
  Padding(PadMode mode, ShapeView pads) : mode_(mode), pads_(pads) {}

  Status Run(TensorView x, const std::optional<TensorView>& value, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckMovable("x", x); !s.ok()) return s;
    const bool has_value = IsGiven(value);
    if (has_value) {
      if (Status s = Checks().Dense("value", *value).SameDType("value", *value, "x", x).Take(); !s.ok())
        return s;
      if (value->size() != 1) return ValueError("value has shape ", value->dims(), ", expected one element");
    }
    Dims expected;
    if (Status s = PaddedDims(x.dims(), pads_, &expected); !s.ok()) return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    if (mode_ == PadMode::kConstant) {
      if (Status s = Fill(has_value ? value->raw_data() : nullptr, out); !s.ok()) return s;
      return CopyInterior(x, out);
    }
    if (Status s = CheckPads(mode_, pads_, x.dims()); !s.ok()) return s;
    if (LastDimOf(out) <= kShortRow && x.element_bytes() <= 8) return CopyByTable(x, out);
    return ParallelFor(out.size(), kGrain / 8,
                       [&](std::int64_t begin, std::int64_t end) { CopyMapped(x, out, begin, end); });
  }

 private:
  std::int64_t before(int axis) const { return pads_[static_cast<std::size_t>(axis)]; }
  std::int64_t after(int axis) const { return pads_[pads_.size() / 2 + static_cast<std::size_t>(axis)]; }

  static Status Fill(const void* value, TensorView out) {
    const std::uint64_t zero[2] = {};
    Layout<2> all;
    all.Append(out.size(), {1, 0});
    all.Finish();
    return CopyStrided(all, out.element_bytes(), out.raw_data(), value != nullptr ? value : zero);
  }

  // CopyInterior copies the part of x that lies within out.
  Status CopyInterior(TensorView x, TensorView out) const {
    const Dims from = DenseStrides(x.dims());
    const Dims to = DenseStrides(out.dims());
    std::int64_t in_first = 0;
    std::int64_t out_first = 0;
    Layout<2> layout;
    for (int i = 0; i < x.ndim(); ++i) {
      const std::int64_t skipped = std::max<std::int64_t>(0, -before(i));
      const std::int64_t shifted = std::max<std::int64_t>(0, before(i));
      const std::int64_t count = std::min(x.dim(i) - skipped, out.dim(i) - shifted);
      if (count <= 0) return Status();
      in_first += skipped * from[i];
      out_first += shifted * to[i];
      layout.Append(count, {to[i], from[i]});
    }
    layout.Finish();
    const std::int64_t bytes = x.element_bytes();
    return CopyStrided(layout, bytes, static_cast<char*>(out.raw_data()) + out_first * bytes,
                       static_cast<const char*>(x.raw_data()) + in_first * bytes);
  }

  // The position along an axis of length `dim` that position `i` stands for.
  std::int64_t Source(int axis, std::int64_t i, std::int64_t dim) const {
    if (mode_ == PadMode::kWrap) {
      // The kept part of the axis repeats, in both directions and as often as the border asks for.
      const std::int64_t first = std::max<std::int64_t>(0, -before(axis));
      const std::int64_t kept = KeptOf(dim, before(axis), after(axis));
      const std::int64_t at = (i - first) % kept;
      return first + (at < 0 ? at + kept : at);
    }
    if (i >= 0 && i < dim) return i;
    switch (mode_) {
      case PadMode::kReflect:
        return i < 0 ? -i : 2 * (dim - 1) - i;
      case PadMode::kWrap:
      case PadMode::kEdge:
      case PadMode::kConstant:
        break;
    }
    return i < 0 ? 0 : dim - 1;
  }

  static std::int64_t LastDimOf(TensorView tensor) {
    return tensor.ndim() == 0 ? 1 : tensor.dim(tensor.ndim() - 1);
  }

  // Short rows: the last axes whose elements fit a table have one, of where each is in x. Each element for
  // itself takes less time than a call for each row.
  static constexpr std::int64_t kShortRow = 16, kTable = 1024;
  Status CopyByTable(TensorView x, TensorView out) const {
    std::int64_t table[kTable] = {0};
    std::int64_t part = 1, step = 1;  // elements of out in the table, and of x behind the axis
    int axis = out.ndim();
    // A table takes time, too: there are some parts.
    for (const std::int64_t most = std::clamp(out.size() / 8, kShortRow, kTable);
         axis > 0 && Times(part, out.dim(axis - 1)) <= most; --axis) {
      AppendAxis(axis - 1, out.dim(axis - 1), x.dim(axis - 1), step, part, table);
      part *= out.dim(axis - 1);
      step *= x.dim(axis - 1);
    }
    return ForElementSize("x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(x.raw_data());
      T* to = static_cast<T*>(out.raw_data());
      return ParallelFor(out.size() / part, GrainOf(kGrain, part), [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin)
          CopyPart(from + SourceOfPart(x, out, axis, begin, step), table, part, to + begin * part);
      });
    });
  }
  // Makes the table of the axes behind `axis`, of `part` elements, one that has this axis too.
  void AppendAxis(int axis, std::int64_t out_dim, std::int64_t dim, std::int64_t step, std::int64_t part,
                  std::int64_t* table) const {
    for (std::int64_t i = out_dim; i-- > 0;) {
      const std::int64_t source = Source(axis, i - before(axis), dim) * step;
      for (std::int64_t k = 0; k < part; ++k) table[i * part + k] = source + table[k];
    }
  }
  // Returns where part number `at` of out, which has the axes from `end` on, begins in x.
  std::int64_t SourceOfPart(TensorView x, TensorView out, int end, std::int64_t at, std::int64_t step) const {
    std::int64_t source = 0;
    for (int i = end - 1; i >= 0; --i) {
      source += Source(i, at % out.dim(i) - before(i), x.dim(i)) * step;
      at /= out.dim(i);
      step *= x.dim(i);
    }
    return source;
  }
  template <typename T>
  static void CopyPart(const T* from, const std::int64_t* table, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[table[i]];
  }

  // Elements [begin, end) of out, one row after the other.
  void CopyMapped(TensorView x, TensorView out, std::int64_t begin, std::int64_t end) const {
    const int last = out.ndim() - 1;
    const std::int64_t length = last < 0 ? 1 : out.dim(last);
    while (begin < end) {
      const std::int64_t from = begin % length;
      const std::int64_t to = std::min(length, from + (end - begin));
      CopyRow(x, out, begin / length, from, to);
      begin += to - from;
    }
  }

  // Elements [from, to) of a row of out, which lies along the last axis.
  void CopyRow(TensorView x, TensorView out, std::int64_t row, std::int64_t from, std::int64_t to) const {
    const int last = out.ndim() - 1;
    const auto bytes = static_cast<std::size_t>(x.element_bytes());
    const std::int64_t length = last < 0 ? 1 : out.dim(last), of_x = last < 0 ? 1 : x.dim(last);
    const std::int64_t shift = last < 0 ? 0 : before(last);
    std::int64_t rest = row, offset = 0, step = of_x;
    for (int i = last - 1; i >= 0; --i) {
      offset += Source(i, rest % out.dim(i) - before(i), x.dim(i)) * step;
      rest /= out.dim(i);
      step *= x.dim(i);
    }
    const char* in = static_cast<const char*>(x.raw_data()) + static_cast<std::size_t>(offset) * bytes;
    char* at = static_cast<char*>(out.raw_data()) + static_cast<std::size_t>(row * length) * bytes;
    const auto copy = [&](std::int64_t i, std::int64_t source, std::int64_t count) {
      std::memcpy(at + static_cast<std::size_t>(i) * bytes, in + static_cast<std::size_t>(source) * bytes,
                  static_cast<std::size_t>(count) * bytes);
    };
    // The kept part of x itself is one piece.
    const std::int64_t kept = last < 0 ? 1 : KeptOf(of_x, before(last), after(last));
    const std::int64_t begin = std::max<std::int64_t>(0, shift);
    const std::int64_t first = std::clamp(begin, from, to), behind = std::clamp(begin + kept, first, to);
    const auto copy_border = [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) {
        CopyElement(at + static_cast<std::size_t>(i) * bytes,
                    in + static_cast<std::size_t>(Source(last, i - shift, of_x)) * bytes, bytes);
      }
    };
    copy_border(from, first);
    if (behind > first) copy(first, first - shift, behind - first);
    copy_border(behind, to);
  }
  // A size that the compiler knows is a move and no call.
  static void CopyElement(char* to, const char* from, std::size_t bytes) {
    switch (bytes) {
      case 1:
        *to = *from;
        break;
      case 2:
        std::memcpy(to, from, 2);
        break;
      case 4:
        std::memcpy(to, from, 4);
        break;
      case 8:
        std::memcpy(to, from, 8);
        break;
      default:
        std::memcpy(to, from, bytes);
    }
  }

  PadMode mode_;
  ShapeView pads_;
};

struct Pad : contract::PadAttributes {
  static constexpr const char* kName = names::kPad;
  PadMode mode = PadMode::kConstant;
  static Status Make(Attributes& attributes, Pad* pad) {
    pad->Read(attributes);
    pad->mode = ReadPadMode(attributes);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> value, TensorView out) const {
    return Padding(mode, ShapeView(pads.data(), pads.size())).Run(x, value, out);
  }
};

struct DynamicPad {
  static constexpr const char* kName = names::kDynamicPad;
  PadMode mode = PadMode::kConstant;
  static Status Make(Attributes& attributes, DynamicPad* pad) {
    pad->mode = ReadPadMode(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView pads, std::optional<TensorView> value,
                    std::optional<TensorView> axes, TensorView out) const {
    AllPads all;
    if (Status s = CheckHost("x", x); !s.ok()) return s;
    if (Status s = all.Read(x.ndim(), pads, axes); !s.ok()) return s;
    return Padding(mode, all.view()).Run(x, value, out);
  }
};

struct DynamicPadShape {
  static constexpr const char* kName = names::kShapeDynamicPad;
  Status operator()(TensorView x, TensorView pads, std::optional<TensorView> axes, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    AllPads all;
    if (Status s = all.Read(input.rank(), pads, axes); !s.ok()) return s;
    if (Status s = PaddedDims(input.view(), all.view(), &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

}  // namespace

std::span<const Kernel> PadKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Pad>(
          "x, value? -> out", "any",
          "pads (before each axis, then after each), mode = constant, reflect, edge or wrap",
          "x with a border of the value (0 if none), of its mirror image, its edge or its other side; "
          "negative pads remove"),
      Describe<DynamicPad>("x, pads, value?, axes? -> out", "x, value, out any; others i64 i32",
                           "mode = constant, reflect, edge or wrap",
                           "rewire.pad with pads as a tensor, of the axes named or all"),
      Describe<DynamicPadShape>("x, pads, axes? -> out", "i64 i32; out i64", "",
                                "the shape of rewire.dynamic_pad's out from x's shape"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
