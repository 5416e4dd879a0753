// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_runtime/sort.h"

#include <algorithm>
#include <limits>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/tvm_runtime/arguments.h"
#include "rewire/vm/loader/tvm_runtime/host.h"

namespace rewire::tvm_runtime {
namespace {

// A number in the order of an element, and the element's place.
struct Keyed {
  std::int64_t key;
  std::int64_t index;
};

// The elements along an axis: `length`, with `step` between, beginning at `begin`.
struct Lane {
  std::int64_t begin, step, length;
};

// The order of IEEE floats, from their bits: sign and magnitude. `infinity` has the bits of the positive one.
// NaN, which lies above it, becomes the largest key whatever its sign.
template <typename Bits>
std::int64_t FloatKey(Bits bits, Bits infinity) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  const Bits magnitude = bits & kMagnitude;
  if (magnitude > infinity) return std::numeric_limits<std::int64_t>::max();
  const auto key = static_cast<std::int64_t>(magnitude);
  return bits == magnitude ? key : -key;
}

constexpr bool CanSort(DLDataType dtype) {
  switch (dtype.code) {
    case kFloat:
      return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    case kBFloat:
      return dtype.bits == 16;
    case kInt:
    case kUInt:
      return dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    default:
      return false;
  }
}

std::int64_t KeyAt(const DLTensor& x, std::int64_t i) {
  const char* at = DataOf(x) + i * (x.dtype.bits / 8);
  if (x.dtype.code == kBFloat) return FloatKey<std::uint16_t>(Load<std::uint16_t>(at), 0x7F80);
  if (x.dtype.code == kFloat) {
    if (x.dtype.bits == 16) return FloatKey<std::uint16_t>(Load<std::uint16_t>(at), 0x7C00);
    if (x.dtype.bits == 32) return FloatKey<std::uint32_t>(Load<std::uint32_t>(at), 0x7F800000);
    return FloatKey<std::uint64_t>(Load<std::uint64_t>(at), 0x7FF0000000000000);
  }
  const bool sign = x.dtype.code == kInt;
  switch (x.dtype.bits) {
    case 8:
      return sign ? Load<std::int8_t>(at) : Load<std::uint8_t>(at);
    case 16:
      return sign ? Load<std::int16_t>(at) : Load<std::uint16_t>(at);
    case 32:
      return sign ? Load<std::int32_t>(at) : static_cast<std::int64_t>(Load<std::uint32_t>(at));
    default:
      // Unsigned numbers keep their order when the highest bit is turned.
      return sign ? Load<std::int64_t>(at)
                  : static_cast<std::int64_t>(Load<std::uint64_t>(at) ^ (std::uint64_t{1} << 63));
  }
}

// The first `sorted` elements in order, then the others as they lie.
void SortLane(const DLTensor& x, const Lane& lane, std::int64_t sorted, bool ascending, Keyed* keys) {
  for (std::int64_t k = 0; k < lane.length; ++k) keys[k] = {KeyAt(x, lane.begin + k * lane.step), k};
  std::sort(keys, keys + sorted, [ascending](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return (a.key < b.key) == ascending;
    return a.index < b.index;
  });
}

bool CanIndex(DLDataType dtype) {
  return dtype.code == kFloat ? dtype.bits == 32 || dtype.bits == 64
                              : dtype.code != kBFloat && CanSort(dtype);
}

// Converts as C does: TVM's indices of 8 bits wrap around.
void StoreIndex(const DLTensor& indices, std::int64_t at, std::int64_t index) {
  char* data = DataOf(indices) + at * (indices.dtype.bits / 8);
  if (indices.dtype == kFloat32) return Store(data, static_cast<float>(index));
  if (indices.dtype == kFloat64) return Store(data, static_cast<double>(index));
  switch (indices.dtype.bits) {
    case 8:
      return Store(data, static_cast<std::uint8_t>(index));
    case 16:
      return Store(data, static_cast<std::uint16_t>(index));
    case 32:
      return Store(data, static_cast<std::uint32_t>(index));
    default:
      return Store(data, index);
  }
}

// Sorts `x` along `axis` and writes of each lane the first `most` elements to `values` and their places to
// `indices`. Either may be null. `counts` has how many elements of each lane take part; null: all.
struct SortJob {
  const DLTensor* x = nullptr;
  const DLTensor* values = nullptr;
  const DLTensor* indices = nullptr;
  const DLTensor* counts = nullptr;
  std::int64_t axis = 0;
  std::int64_t most = 0;
  bool ascending = true;

  // Check says what is wrong with the call; empty when it can run.
  std::string Check() const {
    if (!CanSort(x->dtype)) return Format("elements of {} cannot be sorted here", DTypeName(x->dtype));
    if (axis < 0 || axis >= x->ndim) return Format("axis {} of a tensor of rank {}", axis, x->ndim);
    if (values != nullptr && values->dtype != x->dtype) return "the sorted elements have another dtype";
    if (indices != nullptr && !CanIndex(indices->dtype)) {
      return Format("indices cannot be {}", DTypeName(indices->dtype));
    }
    for (const DLTensor* out : {values, indices}) {
      if (out == nullptr) continue;
      bool fits = out->ndim == x->ndim;
      for (std::int32_t i = 0; fits && i < x->ndim; ++i) {
        fits = out->shape[i] == (i == axis ? most : x->shape[i]);
      }
      if (!fits) return "an output has another shape";
    }
    return counts != nullptr ? CheckCounts() : std::string();
  }
  std::string CheckCounts() const {
    std::int64_t lanes = 1, given = 1;
    for (std::int32_t i = 0; i < x->ndim; ++i) lanes *= i == axis ? 1 : x->shape[i];
    for (std::int32_t i = 0; i < counts->ndim; ++i) given *= counts->shape[i];
    if (counts->dtype != kInt32) return Format("counts cannot be {}", DTypeName(counts->dtype));
    if (given != lanes) return Format("there are {} counts for {} rows", given, lanes);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      if (CountOf(lane) > x->shape[axis]) {
        return Format("row {} has {} elements to sort and a length of {}", lane, CountOf(lane),
                      x->shape[axis]);
      }
    }
    return {};
  }
  // As in TVM, a count below 0 means none.
  std::int64_t CountOf(std::int64_t lane) const {
    if (counts == nullptr) return x->shape[axis];
    return std::max(Load<std::int32_t>(DataOf(*counts) + lane * 4), std::int32_t{0});
  }

  int Run() const {
    std::int64_t before = 1, after = 1;
    for (std::int32_t i = 0; i < x->ndim; ++i) (i < axis ? before : after) *= i == axis ? 1 : x->shape[i];
    const std::int64_t length = x->shape[axis];
    if (before == 0 || after == 0 || length == 0) return 0;
    const auto count = static_cast<std::uint64_t>(length);
    void* memory = g_host->allocate(kDLCPU, 0, count * sizeof(Keyed), kDLInt, 64);
    if (memory == nullptr) return -1;
    auto* keys = static_cast<Keyed*>(memory);
    const std::size_t element = x->dtype.bits / 8;
    for (std::int64_t i = 0; i < before; ++i) {
      if (CheckCancelled() != 0) return -1;
      for (std::int64_t j = 0; j < after; ++j) {
        const Lane lane{i * length * after + j, after, length};
        SortLane(*x, lane, CountOf(i * after + j), ascending, keys);
        for (std::int64_t k = 0; k < most; ++k) {
          const std::int64_t at = (i * most + k) * after + j;
          const std::int64_t from = lane.begin + keys[k].index * after;
          if (values != nullptr) {
            std::memcpy(DataOf(*values) + static_cast<std::size_t>(at) * element,
                        DataOf(*x) + static_cast<std::size_t>(from) * element, element);
          }
          if (indices != nullptr) StoreIndex(*indices, at, keys[k].index);
        }
      }
    }
    return g_host->free(kDLCPU, 0, memory);
  }

  int CheckAndRun(const Arguments& args) {
    if (!args.error().empty()) return Fail(args.error());
    if (axis < 0) axis += x->ndim;
    if (axis >= 0 && axis < x->ndim && most < 1) most = x->shape[axis];
    if (axis >= 0 && axis < x->ndim) most = std::min(most, x->shape[axis]);
    if (const std::string wrong = Check(); !wrong.empty()) return Fail({"{}: {}", args.function(), wrong});
    return Run();
  }
};

}  // namespace

int ArgSort(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
            void* /*resource*/) {
  Arguments args("tvm.contrib.sort.argsort", values, codes, count);
  SortJob job;
  job.x = args.TensorAt(0);
  job.indices = args.TensorAt(1);
  job.axis = args.IntegerAt(2);
  job.ascending = args.IntegerAt(3) != 0;
  return job.CheckAndRun(args);
}

int Sort(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
         void* /*resource*/) {
  Arguments args("tvm.contrib.sort.sort", values, codes, count);
  SortJob job;
  job.x = args.TensorAt(0);
  job.values = args.TensorAt(1);
  job.axis = args.IntegerAt(2);
  job.ascending = args.IntegerAt(3) != 0;
  return job.CheckAndRun(args);
}

int TopK(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
         void* /*resource*/) {
  Arguments args("tvm.contrib.sort.topk", values, codes, count);
  if (count < 6) return Fail({"{}: {} arguments given, at least 6 expected", args.function(), count});
  SortJob job;
  const std::string_view kinds = args.TextAt(count - 2);
  if (kinds != "both" && kinds != "values" && kinds != "indices") {
    args.Refuse(count - 2, "'both', 'values' or 'indices'");
  }
  int next = 0;
  job.x = args.TensorAt(next++);
  if (kinds != "indices") job.values = args.TensorAt(next++);
  if (kinds != "values") job.indices = args.TensorAt(next++);
  job.most = args.IntegerAt(count - 4);
  job.axis = args.IntegerAt(count - 3);
  job.ascending = args.IntegerAt(count - 1) != 0;
  return job.CheckAndRun(args);
}

int ArgSortNms(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
               void* /*resource*/) {
  Arguments args("tvm.contrib.sort.argsort_nms", values, codes, count);
  SortJob job;
  job.x = args.TensorAt(0);
  job.counts = args.TensorAt(1);
  job.indices = args.TensorAt(2);
  job.axis = args.IntegerAt(3);
  job.ascending = args.IntegerAt(4) != 0;
  return job.CheckAndRun(args);
}

}  // namespace rewire::tvm_runtime
