// SPDX-License-Identifier: Apache-2.0
// Elements chosen by index tensors.
#include <algorithm>
#include <cstring>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/cpu/indexing/indices.h"
#include "rewire/kernels/cpu/indexing/key_table.h"
#include "rewire/kernels/cpu/indexing/tuple_dims.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

struct Gather : WithAttributes<contract::GatherAttributes> {
  static constexpr const char* kName = names::kGather;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "indices", indices, out).SameDType("out", out, "x", x);
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
    const std::int64_t run = Times(Product(x.dims(), along + 1, x.ndim()), x.element_bytes());
    const std::int64_t rows = Times(Product(x.dims(), 0, along), picks);
    const I* index = indices.data<I>();
    const char* in = static_cast<const char*>(x.raw_data());
    char* to = static_cast<char*>(out.raw_data());
    // Elements of several lanes may have other sizes.
    if (run == x.element_bytes() && (run == 1 || run == 2 || run == 4 || run == 8)) {
      return ForElementSize("x", x, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return TakeElements(static_cast<const T*>(x.raw_data()), dim, index, picks, rows,
                            static_cast<T*>(out.raw_data()));
      });
    }
    return ParallelFor(rows, GrainOf(4 * kGrain, run + 16),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t r = begin; r < end; ++r) {
                           const std::int64_t source = r / picks * dim + FromEnd(index[r % picks], dim);
                           if (!pace.Copy(to + r * run, in + source * run, run)) return;
                         }
                       });
  }

  // Picks of single elements from each line of `dim`.
  template <typename T, typename I>
  static Status TakeElements(const T* from, std::int64_t dim, const I* index, std::int64_t picks,
                             std::int64_t rows, T* to) {
    return ParallelFor(rows, kGrain, [=](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t first = begin % picks, count = std::min(picks - first, end - begin);
        const T* line = from + begin / picks * dim;
        for (std::int64_t i = 0; i < count; ++i) to[begin + i] = line[FromEnd(index[first + i], dim)];
        begin += count;
      }
    });
  }
};

struct GatherElements : WithAttributes<contract::GatherAttributes> {
  static constexpr const char* kName = names::kGatherElements;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Checks checks;
    checks.Operands("x", x, "indices", indices, out).SameDType("out", out, "x", x);
    checks.Rank("indices", indices, x.ndim()).Shape("out", out, indices.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    if (Status s = CheckElementIndices(x.dims(), indices.dims(), along); !s.ok()) return s;
    return ForType(Indices(), "indices", indices, [&](auto index_tag) -> Status {
      using I = typename decltype(index_tag)::type;
      if (Status s = CheckIndices<I>(indices, x.dim(along), along); !s.ok()) return s;
      return ForElementSize(
          "x", x, [&](auto tag) { return Take<typename decltype(tag)::type, I>(x, indices, along, out); });
    });
  }

 private:
  template <typename T, typename I>
  static Status Take(TensorView x, TensorView indices, int along, TensorView out) {
    const Dims of_x = DenseStrides(x.dims());
    const Dims of_out = DenseStrides(out.dims());
    Layout<2> layout;  // out with indices, x without its axis
    for (int i = 0; i < x.ndim(); ++i) layout.Append(out.dim(i), {of_out[i], i == along ? 0 : of_x[i]});
    layout.Finish();
    const std::int64_t dim = x.dim(along);
    const std::int64_t stride = of_x[along];
    const T* from = x.data<T>();
    const I* index = indices.data<I>();
    T* to = out.data<T>();
    const std::int64_t* steps = layout.inner_strides();
    return ForEachRow(layout, [&](const std::int64_t* offsets, std::int64_t count) {
      TakeRow(from + offsets[1], steps[1], stride, dim, index + offsets[0], count, steps[0], to + offsets[0]);
    });
  }

  // All that the loop reads besides elements is its own, so that it stays in registers while elements are
  // written.
  template <typename T, typename I>
  static void TakeRow(const T* from, std::int64_t from_step, std::int64_t stride, std::int64_t dim,
                      const I* index, std::int64_t count, std::int64_t step, T* to) {
    if (step == 1 && from_step == 0 && stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[FromEnd(index[i], dim)];
    } else if (step == 1 && from_step == 1) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i + FromEnd(index[i], dim) * stride];
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        to[i * step] = from[i * from_step + FromEnd(index[i * step], dim) * stride];
    }
  }
};

struct LookUp {
  static constexpr const char* kName = names::kLookUp;
  Status operator()(TensorView x, TensorView keys, TensorView values, TensorView other,
                    TensorView out) const {
    constexpr std::int64_t kOne = 1;
    Checks checks;
    checks.Dense("x", x).Dense("keys", keys).Dense("values", values).Dense("other", other).Dense("out", out);
    checks.Rank("keys", keys, 1)
        .Shape("values", values, keys.dims())
        .Shape("other", other, ShapeView(&kOne, 1));
    checks.SameDType("keys", keys, "x", x)
        .SameDType("values", values, "out", out)
        .SameDType("other", other, "out", out);
    checks.Shape("out", out, x.dims());
    for (const auto& [name, read] : {std::pair("x", x), std::pair("keys", keys), std::pair("values", values)})
      checks.NoOverlap("out", out, name, read);
    if (Status s = checks.NoOverlap("out", out, "other", other).Take(); !s.ok()) return s;
    return ForType(AnyNumbers(), "x", x,
                   [&](auto tag) { return Map<typename decltype(tag)::type>(x, keys, values, other, out); });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *keys = sizes.Tensor(1), *out = sizes.Tensor(4);
    if (x == nullptr || keys == nullptr || out == nullptr) return false;
    KeyTable<float>::Declare(SizeOf(keys), x->dtype.bits / 8, sizes);
    sizes.Take(Plus(SizeOf(keys), 1), (out->dtype.bits + 7) / 8);  // narrow types take a byte
    return true;
  }

 private:
  // Elements are found by their type and taken by their size, a part at a time, so that no loop is for a pair
  // of both.
  static constexpr std::int64_t kPart = 256;

  // to[i] = all[places[i]] for i < count.
  template <typename Place, typename T>
  static void Take(const Place* places, std::int64_t count, const void* all, void* to) {
    for (std::int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<const T*>(all)[places[i]];
  }

  // Each place has a value, and the place behind them that of elements without a key.
  template <typename X>
  static Status Map(TensorView x, TensorView keys, TensorView values, TensorView other, TensorView out) {
    using Place = OrderedKey<X>;
    void (*take)(const Place* places, std::int64_t count, const void* all, void* to) = nullptr;
    Status known = ForElementSize("out", out, [&](auto element) {
      take = &Take<Place, typename decltype(element)::type>;
      return Status();
    });
    if (!known.ok()) return known;
    const std::int64_t count = keys.size(), bytes = out.element_bytes();
    KeyTable<X> table;
    if (Status s = table.Init(keys.data<X>(), count); !s.ok()) return s;
    char* all = nullptr;
    if (Status s = Workspace(Times(Plus(count, 1), bytes), &all); !s.ok()) return s;
    if (Status s = CopyAll(all, values.raw_data(), count * bytes); !s.ok()) return s;
    std::memcpy(all + count * bytes, other.raw_data(), static_cast<std::size_t>(bytes));
    const X* from = x.data<X>();
    char* to = static_cast<char*>(out.raw_data());
    return ParallelFor(x.size(), GrainOf(kGrain, table.work()), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kPart) {
        const std::int64_t part = std::min(kPart, end - i);
        Place places[kPart];
        WideLoop([=, found = &places[0]] { table.Find(from + i, part, found); });
        take(places, part, all, to + i * bytes);
      }
    });
  }
};

struct OneHot : WithAttributes<contract::OneHotAttributes> {
  static constexpr const char* kName = names::kOneHot;
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
    Dims expected;
    const std::int64_t depth = out.dim(along);
    if (Status s = contract::OneHotSizes(indices.dims(), along, depth, &expected, kShapeError); !s.ok())
      return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    ToLongs* to_longs = nullptr;
    if (!indices.Is<std::int64_t>()) {
      Status known = ForType(AnyNumbers(), "indices", indices, [&](auto tag) {
        to_longs = &LongsOf<typename decltype(tag)::type>;
        return Status();
      });
      if (!known.ok()) return known;
    }
    if (out.element_bytes() == sizeof(Wide)) return Write<Wide>(indices, values, to_longs, along, out);
    return ForElementSize("out", out, [&](auto element) {
      return Write<typename decltype(element)::type>(indices, values, to_longs, along, out);
    });
  }

 private:
  static constexpr std::int64_t kTwo[] = {2};
  static constexpr ShapeView kPair{kTwo, 1};
  // Indices that are not of 64 bits are widened a part at a time, so that no loop is for a pair of types.
  static constexpr std::int64_t kPart = 256;

  // Elements of 16 bytes.
  struct Wide {
    std::uint64_t parts[2];
  };

  // to[i] = index `first` + i for i < count.
  using ToLongs = void(const void* indices, std::int64_t first, std::int64_t count, std::int64_t* to);
  template <typename Index>
  static void LongsOf(const void* indices, std::int64_t first, std::int64_t count, std::int64_t* to) {
    const Index* index = static_cast<const Index*>(indices) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = ToType<std::int64_t>(index[i]);
  }

  // All elements are off, and then each index turns one on. An index out of range marks nothing, as ONNX has
  // it.
  template <typename T>
  static Status Write(TensorView indices, TensorView values, ToLongs* to_longs, int along, TensorView out) {
    const std::int64_t depth = out.dim(along);
    const std::int64_t inner = Product(out.dims(), along + 1, out.ndim());
    const T *pair = static_cast<const T*>(values.raw_data()), off = pair[0], on = pair[1];
    const void* given = indices.raw_data();
    auto* to = static_cast<T*>(out.raw_data());
    if (out.size() == 0) return Status();
    const std::int64_t block = depth * inner;
    // Small blocks are written several at a time, as many as stay in the first cache.
    constexpr std::int64_t kElements = 8192 / sizeof(T);
    const std::int64_t most = std::max<std::int64_t>(1, std::min(kPart / inner, kElements / block));
    return ParallelFor(out.size() / block, GrainOf(4 * kGrain, block),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         std::int64_t longs[kPart];
                         for (std::int64_t blocks = 0; begin < end; begin += blocks) {
                           blocks = std::min(most, end - begin);
                           if (!pace.Fill(to + begin * block, blocks * block, off)) return;
                           const auto mark = [&](std::int64_t i, std::int64_t last) {
                             for (std::int64_t part = 0; i < last; i += part) {
                               part = std::min(to_longs != nullptr ? kPart : last, last - i);
                               const std::int64_t first = begin * inner + i;
                               const std::int64_t* index = longs;
                               if (to_longs != nullptr)
                                 to_longs(given, first, part, longs);
                               else
                                 index = static_cast<const std::int64_t*>(given) + first;
                               MarkHot(index, first, part, depth, inner, on, to);
                             }
                           };
                           if (!pace.For(blocks * inner, 1, mark)) return;
                         }
                       });
  }

  // Marks what indices [first, first + count) turn on; index[i] is that of `first` + i.
  template <typename T>
  static void MarkHot(const std::int64_t* index, std::int64_t first, std::int64_t count, std::int64_t depth,
                      std::int64_t inner, T on, T* to) {
    if (inner == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t hot = index[i] < 0 ? index[i] + depth : index[i];
        if (hot >= 0 && hot < depth) to[(first + i) * depth + hot] = on;
      }
      return;
    }
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t column = (first + i) % inner, row = std::min(inner - column, count - i);
      T* of_row = to + (first + i) / inner * depth * inner + column;
      for (std::int64_t k = 0; k < row; ++k) {
        const std::int64_t hot = index[i + k] < 0 ? index[i + k] + depth : index[i + k];
        if (hot >= 0 && hot < depth) of_row[hot * inner + k] = on;
      }
      i += row;
    }
  }
};

struct OneHotShape : WithAttributes<contract::OneHotAttributes> {
  static constexpr const char* kName = names::kShapeOneHot;
  Status operator()(TensorView indices, TensorView depth, TensorView out) const {
    Dims given, result;
    double number = 0;
    if (Status s = ReadShape("indices", indices, &given); !s.ok()) return s;
    if (Status s = ReadNumber("depth", depth, &number); !s.ok()) return s;
    if (!(number >= 0 && number < 0x1p48)) return ValueError("depth is ", number, ", which is no dimension");
    int along = 0;
    if (Status s = NormalizeAxis(axis, given.rank() + 1, &along); !s.ok()) return s;
    const auto classes = ToType<std::int64_t>(number);
    Status s = contract::OneHotSizes(given.view(), along, classes, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

}  // namespace

std::span<const Kernel> GatherKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Gather>(
          "x, indices -> out", "x, out any; indices i64 i32", "axis = 0",
          "slices of x along the axis, by index; negative ones count from the end, others are refused"),
      Describe<GatherElements>(
          "x, indices -> out", "x, out any of at most 8 bytes; indices i64 i32", "axis = 0",
          "for each index the element of x at its place but for the axis, where the index says"),
      Describe<LookUp>("x, keys, values, other -> out",
                       "x, keys any number; values, other, out any of at most 8 bytes", "",
                       "values at the first place of each element of x in keys, a list, or other, of one "
                       "element, where it is none of them; "
                       "NaN is equal to itself"),
      Describe<OneHot>(
          "indices, values -> out", "indices any number; values, out any", "axis = -1",
          "values[1] where the index is the position along the axis, which is new and whose length out "
          "gives, else values[0]; indices out of range mark nothing"),
      Describe<OneHotShape>(
          "indices, depth -> out", "indices i64 i32; depth any number; out i64", "axis = -1",
          "the shape of rewire.one_hot's out from the shape of indices and the depth itself"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
