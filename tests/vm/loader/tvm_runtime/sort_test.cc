// SPDX-License-Identifier: Apache-2.0
// Sorting for code that TVM compiled: all dtypes, axes, directions and dtypes of indices on drawn tensors.
// What is expected comes from counting, for each element, those that go before it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "rewire/base/dtype.h"
#include "rewire/tests/vm/loader/tvm_runtime/call_function.h"

namespace rewire::test {
namespace {

using Dims = std::vector<std::int64_t>;
using Random = std::mt19937_64;

// A tensor of drawn elements, kept as bits.
struct Elements {
  DLDataType dtype{};
  Dims dims;
  std::vector<unsigned char> bytes;

  std::size_t width() const { return dtype.bits / 8; }
  TensorView view() { return {bytes.data(), dtype, dims}; }
  std::uint64_t BitsAt(std::int64_t i) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &bytes[static_cast<std::size_t>(i) * width()], width());
    return bits;
  }
};

std::int64_t CountOf(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

Elements Zeros(DLDataType dtype, const Dims& dims) {
  Elements zeros{dtype, dims, {}};
  zeros.bytes.resize(static_cast<std::size_t>(CountOf(dims)) * zeros.width() + 1, 0xA5);
  return zeros;
}

// Draws from few values, so that many are equal, and from all bits: NaNs, infinities, zeros of both signs.
Elements Draw(DLDataType dtype, const Dims& dims, Random& random) {
  Elements drawn = Zeros(dtype, dims);
  const std::uint64_t top = std::uint64_t{1} << (dtype.bits - 1);
  const std::uint64_t one = dtype.code == kInt || dtype.code == kUInt ? 1 : top / 4 + top / 64 * 15;
  const std::uint64_t pool[] = {0, top, one, top | one, 3, ~std::uint64_t{0}, top - 1, one + 1};
  for (std::int64_t i = 0; i < CountOf(dims); ++i) {
    const std::uint64_t bits = random() % 3 == 0 ? random() : pool[random() % std::size(pool)];
    std::memcpy(&drawn.bytes[static_cast<std::size_t>(i) * drawn.width()], &bits, drawn.width());
  }
  return drawn;
}

// The value of a float from its parts.
long double FloatOf(std::uint64_t bits, int exponent_bits, int fraction_bits) {
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  const auto exponent = static_cast<int>(bits >> fraction_bits & ((std::uint64_t{1} << exponent_bits) - 1));
  const int most = (1 << exponent_bits) - 1;
  const bool negative = (bits >> (fraction_bits + exponent_bits) & 1) != 0;
  long double value = 0;
  if (exponent == most) {
    value = fraction == 0 ? INFINITY : NAN;
  } else {
    const long double whole =
        (exponent == 0 ? 0.0L : 1.0L) + std::ldexp((long double)fraction, -fraction_bits);
    value = std::ldexp(whole, std::max(exponent, 1) - most / 2);
  }
  return negative ? -value : value;
}

long double ValueAt(const Elements& x, std::int64_t i) {
  const std::uint64_t bits = x.BitsAt(i);
  switch (x.dtype.code) {
    case kFloat:
      if (x.dtype.bits == 16) return FloatOf(bits, 5, 10);
      return x.dtype.bits == 32 ? FloatOf(bits, 8, 23) : FloatOf(bits, 11, 52);
    case kBFloat:
      return FloatOf(bits, 8, 7);
    case kInt: {
      const int unused = 64 - x.dtype.bits;
      return static_cast<long double>(static_cast<std::int64_t>(bits << unused) >> unused);
    }
    default:
      return static_cast<long double>(bits);
  }
}

// Whether element a goes before element b in ascending order; NaN is the largest.
bool IsLess(long double a, long double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The places of each row's first `counts[row]` elements along the axis in order, then the others.
std::vector<std::int64_t> ExpectedPlaces(const Elements& x, std::size_t axis, bool ascending,
                                         const std::vector<std::int32_t>& counts) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(CountOf(x.dims)));
  std::int64_t after = 1;
  for (std::size_t i = axis + 1; i < x.dims.size(); ++i) after *= x.dims[i];
  const std::int64_t length = x.dims[axis];
  for (std::int64_t row = 0; length > 0 && row < CountOf(x.dims) / length; ++row) {
    const std::int64_t begin = row / after * length * after + row % after;
    const auto sorted = std::min<std::int64_t>(length, std::max(counts[static_cast<std::size_t>(row)], 0));
    const auto value = [&](std::int64_t k) { return ValueAt(x, begin + k * after); };
    for (std::int64_t k = 0; k < length; ++k) {
      std::int64_t place = k < sorted ? 0 : k;
      for (std::int64_t j = 0; k < sorted && j < sorted; ++j) {
        const bool first = ascending ? IsLess(value(j), value(k)) : IsLess(value(k), value(j));
        const bool equal = !IsLess(value(j), value(k)) && !IsLess(value(k), value(j));
        place += first || (equal && j < k) ? 1 : 0;
      }
      places[static_cast<std::size_t>(begin + place * after)] = k;
    }
  }
  return places;
}

// The index that an output of this dtype has for a place.
std::uint64_t IndexBits(DLDataType dtype, std::int64_t place) {
  std::uint64_t bits = 0;
  if (dtype == kFloat32) {
    const auto value = static_cast<float>(place);
    std::memcpy(&bits, &value, sizeof(value));
  } else if (dtype == kFloat64) {
    const auto value = static_cast<double>(place);
    std::memcpy(&bits, &value, sizeof(value));
  } else {
    bits = static_cast<std::uint64_t>(place);
    if (dtype.bits < 64) bits &= (std::uint64_t{1} << dtype.bits) - 1;
  }
  return bits;
}

const DLDataType kSortable[] = {kFloat16,
                                MakeDType(kBFloat, 16),
                                kFloat32,
                                kFloat64,
                                kInt8,
                                MakeDType(kInt, 16),
                                kInt32,
                                kInt64,
                                kUInt8,
                                MakeDType(kUInt, 16),
                                MakeDType(kUInt, 32),
                                MakeDType(kUInt, 64)};
const DLDataType kIndices[] = {kInt32, kInt64, kFloat32, kFloat64, kInt8, kUInt8};

// One drawn tensor along one axis, through all four functions.
class SortCase {
 public:
  SortCase(DLDataType dtype, DLDataType indices, std::size_t rank, std::size_t axis, bool ascending,
           Random& random)
      : indices_(indices), axis_(axis), ascending_(ascending), random_(random) {
    for (std::size_t i = 0; i < rank; ++i)
      dims_.push_back(static_cast<std::int64_t>(random() % (i == axis ? 9 : 4)));
    x_ = Draw(dtype, dims_, random);
    for (std::int64_t i = 0; i < Rows(); ++i) all_.push_back(static_cast<std::int32_t>(dims_[axis]));
    // Half of the callers count the axis from the end.
    given_axis_ = static_cast<std::int64_t>(axis) - (random() % 2 == 0 ? static_cast<std::int64_t>(rank) : 0);
  }

  std::string Run() {
    for (const std::string& text : {ArgSort(), Sort(), TopK(), Nms()}) {
      if (!text.empty()) return text + Describe();
    }
    return "";
  }

 private:
  std::int64_t Rows() const {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < dims_.size(); ++i) rows *= i == axis_ ? 1 : dims_[i];
    return rows;
  }
  std::string Describe() const {
    std::string text = " of " + DTypeName(x_.dtype) + "[";
    for (const std::int64_t dim : dims_) text += std::to_string(dim) + " ";
    return text + "], axis " + std::to_string(axis_) + (ascending_ ? " up" : " down") + ", indices " +
           DTypeName(indices_);
  }

  std::string ArgSort() {
    Elements out = Zeros(indices_, dims_);
    const std::string error =
        CallTvmFunction("tvm.contrib.sort.argsort", {x_.view(), out.view()}, {given_axis_, ascending_});
    if (error != "no error") return error;
    return HasPlaces(out, ExpectedPlaces(x_, axis_, ascending_, all_)) ? "" : "argsort";
  }
  std::string Sort() {
    Elements out = Zeros(x_.dtype, dims_);
    const std::string error =
        CallTvmFunction("tvm.contrib.sort.sort", {x_.view(), out.view()}, {given_axis_, ascending_});
    if (error != "no error") return error;
    return HasValues(out, ExpectedPlaces(x_, axis_, ascending_, all_), dims_[axis_]) ? "" : "sort";
  }
  std::string TopK() {
    const auto k = static_cast<std::int64_t>(random_() % 11) - 1;
    const std::int64_t most = k < 1 ? dims_[axis_] : std::min(k, dims_[axis_]);
    Dims out_dims = dims_;
    out_dims[axis_] = most;
    for (const char* kind : {"both", "values", "indices"}) {
      Elements values = Zeros(x_.dtype, out_dims), places = Zeros(indices_, out_dims);
      std::vector<TensorView> tensors = {x_.view()};
      const std::string what = kind;
      if (what != "indices") tensors.push_back(values.view());
      if (what != "values") tensors.push_back(places.view());
      const std::string error =
          CallTvmFunction("tvm.contrib.sort.topk", tensors, {k, given_axis_, kind, ascending_});
      if (error != "no error") return error;
      const auto expected = ExpectedPlaces(x_, axis_, ascending_, all_);
      if (what != "indices" && !HasValues(values, expected, most))
        return "values of topk " + std::to_string(k);
      if (what != "values" && !HasFirstPlaces(places, expected, most))
        return "places of topk " + std::to_string(k);
    }
    return "";
  }
  std::string Nms() {
    std::vector<std::int32_t> counts;
    for (std::int64_t i = 0; i < Rows(); ++i) {
      counts.push_back(static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(dims_[axis_] + 2)) -
                       1);
    }
    Elements out = Zeros(indices_, dims_);
    std::vector<std::int32_t> memory = counts;
    memory.push_back(0);  // never null
    const std::string error = CallTvmFunction(
        "tvm.contrib.sort.argsort_nms",
        {x_.view(), TensorView(memory.data(), kInt32, Dims{Rows()}), out.view()}, {given_axis_, ascending_});
    if (error != "no error") return error;
    return HasPlaces(out, ExpectedPlaces(x_, axis_, ascending_, counts)) ? "" : "argsort_nms";
  }

  bool HasPlaces(const Elements& out, const std::vector<std::int64_t>& expected) const {
    return HasFirstPlaces(out, expected, dims_[axis_]);
  }
  // Calls each(place in an output with `most` elements along the axis, place in x).
  template <typename Each>
  bool AllOf(std::int64_t most, Each each) const {
    std::int64_t after = 1;
    for (std::size_t i = axis_ + 1; i < dims_.size(); ++i) after *= dims_[i];
    for (std::int64_t row = 0; row < Rows(); ++row) {
      for (std::int64_t k = 0; k < most; ++k) {
        const std::int64_t outer = row / after, inner = row % after;
        if (!each((outer * most + k) * after + inner, (outer * dims_[axis_] + k) * after + inner,
                  outer * dims_[axis_] * after + inner, after)) {
          return false;
        }
      }
    }
    return true;
  }
  bool HasFirstPlaces(const Elements& out, const std::vector<std::int64_t>& expected,
                      std::int64_t most) const {
    return AllOf(most, [&](std::int64_t at, std::int64_t in, std::int64_t, std::int64_t) {
      return out.BitsAt(at) == IndexBits(indices_, expected[static_cast<std::size_t>(in)]);
    });
  }
  bool HasValues(const Elements& out, const std::vector<std::int64_t>& expected, std::int64_t most) const {
    return AllOf(most, [&](std::int64_t at, std::int64_t in, std::int64_t begin, std::int64_t step) {
      return out.BitsAt(at) == x_.BitsAt(begin + expected[static_cast<std::size_t>(in)] * step);
    });
  }

  DLDataType indices_;
  std::size_t axis_;
  bool ascending_;
  Random& random_;
  Dims dims_;
  Elements x_;
  std::vector<std::int32_t> all_;
  std::int64_t given_axis_ = 0;
};

TEST_CASE("TVM's sort, argsort, topk and argsort_nms are right for all dtypes, axes and directions") {
  Random random(40);
  for (const DLDataType dtype : kSortable) {
    for (const DLDataType indices : kIndices) {
      for (std::size_t rank = 1; rank <= 4; ++rank) {
        for (std::size_t axis = 0; axis < rank; ++axis) {
          for (const bool ascending : {true, false}) {
            const std::string wrong = SortCase(dtype, indices, rank, axis, ascending, random).Run();
            if (!wrong.empty()) FAIL(wrong);
          }
        }
      }
    }
  }
}

TEST_CASE("TVM's topk needs its two last arguments to know what it writes") {
  float x[] = {1, 2}, out[2];
  CHECK(CallTvmFunction("tvm.contrib.sort.topk",
                        {TensorView(x, kFloat32, Dims{2}), TensorView(out, kFloat32, Dims{2})}, {1})
            .find("tvm.contrib.sort.topk: 3 arguments given, at least 6 expected") != std::string::npos);
}

// Answers of TVM 0.19 for these, so that the oracle above is not alone.
TEST_CASE("TVM's own answers for argsort_nms and for halves") {
  float x[] = {.1F, .9F, .5F, .9F};
  std::int32_t places[4];
  const auto nms = [&](std::int32_t count, bool ascending) {
    CHECK(CallTvmFunction("tvm.contrib.sort.argsort_nms",
                          {TensorView(x, kFloat32, Dims{1, 4}), TensorView(&count, kInt32, Dims{1}),
                           TensorView(places, kInt32, Dims{1, 4})},
                          {std::int64_t{1}, ascending}) == "no error");
    return std::vector<std::int32_t>(std::begin(places), std::end(places));
  };
  CHECK(nms(4, true) == std::vector<std::int32_t>{0, 2, 1, 3});
  CHECK(nms(4, false) == std::vector<std::int32_t>{1, 3, 2, 0});
  CHECK(nms(2, false) == std::vector<std::int32_t>{1, 0, 2, 3});
  CHECK(nms(0, false) == std::vector<std::int32_t>{0, 1, 2, 3});
  // 2, -1, 0, -0, inf, -inf
  std::uint16_t halves[] = {0x4000, 0xBC00, 0x0000, 0x8000, 0x7C00, 0xFC00};
  std::int32_t six[6];
  const auto argsort = [&](bool ascending) {
    CHECK(CallTvmFunction("tvm.contrib.sort.argsort",
                          {TensorView(halves, kFloat16, Dims{6}), TensorView(six, kInt32, Dims{6})},
                          {std::int64_t{0}, ascending}) == "no error");
    return std::vector<std::int32_t>(std::begin(six), std::end(six));
  };
  CHECK(argsort(true) == std::vector<std::int32_t>{5, 1, 2, 3, 0, 4});
  CHECK(argsort(false) == std::vector<std::int32_t>{4, 0, 2, 3, 1, 5});
}

TEST_CASE("what cannot be sorted is refused by name") {
  std::uint64_t memory[8] = {};
  std::int32_t count = 5;
  const auto error = [&](DLDataType x, DLDataType counts, std::int64_t rows, DLDataType out) {
    const std::string text =
        CallTvmFunction("tvm.contrib.sort.argsort_nms",
                        {TensorView(memory, x, Dims{4}), TensorView(&count, counts, Dims{rows}),
                         TensorView(memory + 4, out, Dims{4})},
                        {std::int64_t{0}, std::int64_t{1}});
    return text.substr(text.rfind("argsort_nms: ") + 13);
  };
  CHECK(error(kBool8, kInt32, 1, kInt32) == "elements of bool cannot be sorted here");
  CHECK(error(kFloat32, kFloat32, 1, kInt32) == "counts cannot be f32");
  CHECK(error(kFloat32, kInt32, 2, kInt32) == "there are 2 counts for 1 rows");
  CHECK(error(kFloat32, kInt32, 1, kFloat16) == "indices cannot be f16");
  CHECK(error(kFloat32, kInt32, 1, kInt32) == "row 0 has 5 elements to sort and a length of 4");
}

}  // namespace
}  // namespace rewire::test
