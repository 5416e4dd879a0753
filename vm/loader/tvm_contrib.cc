// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_contrib.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/base/message.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/loader/classic_call.h"
#include "rewire/vm/loader/tvm_backend.h"
#include "rewire/vm/run/kernel_api.h"

namespace rewire {
namespace {

int Fail(const Message& message) {
  ClassicSetLastError(message.Text().c_str());
  return -1;
}

// The arguments of a call. A reader that finds something else keeps the first error and gives a default.
class Arguments {
 public:
  Arguments(const char* function, const ClassicValue* values, const int* codes, int count)
      : function_(function), values_(values), codes_(codes), count_(count) {}

  // A tensor of the host without gaps.
  const DLTensor* TensorAt(int i) {
    if (i >= count_ || (codes_[i] != kClassicDLTensor && codes_[i] != kClassicNDArray)) {
      return Refuse(i, "a tensor");
    }
    const auto* tensor = static_cast<const DLTensor*>(values_[i].v_handle);
    if (!IsHostDevice(tensor->device) || tensor->dtype.lanes != 1 || !HasNoGaps(*tensor)) {
      return Refuse(i, "a tensor of the host without gaps");
    }
    return tensor;
  }
  std::int64_t IntegerAt(int i) {
    const bool integer =
        i < count_ && (codes_[i] == kClassicInt || codes_[i] == kClassicUInt || codes_[i] == kClassicBool);
    if (!integer) Refuse(i, "an integer");
    return integer ? values_[i].v_int64 : 0;
  }
  std::string_view TextAt(int i) {
    const bool text = i < count_ && codes_[i] == kClassicStr;
    if (!text) Refuse(i, "a string");
    return text ? std::string_view(values_[i].v_str) : std::string_view();
  }
  std::nullptr_t Refuse(int i, const char* expected) {
    if (error_.empty()) error_ = Format("{}: argument {} is not {}", function_, i, expected);
    return nullptr;
  }
  // Empty when all that was read is as it should be.
  const std::string& error() const { return error_; }
  int count() const { return count_; }

 private:
  static bool HasNoGaps(const DLTensor& tensor) {
    std::int64_t expected = 1;
    for (std::int32_t i = tensor.ndim; i-- > 0;) {
      if (tensor.strides != nullptr && tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
      expected *= tensor.shape[i];
    }
    return true;
  }

  const char* function_;
  const ClassicValue* values_;
  const int* codes_;
  int count_;
  std::string error_;
};

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <typename T>
void Store(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// A number in the order of an element, and the element's place.
struct Keyed {
  std::int64_t key;
  std::int64_t index;
};

// The elements of `x` along an axis are `length` with `step` between, beginning at `begin`.
struct Lane {
  std::int64_t begin, step, length;
};

// A number in the order of the floats: a NaN is the largest, and the two zeros are equal. The bits of a float
// are in its order already, but for negative ones, of which all bits below the sign have to turn.
std::int64_t KeyOf(double value) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (std::isnan(value)) return kLargest;
  value += 0.0;  // no negative zero
  const auto bits = Load<std::int64_t>(reinterpret_cast<const char*>(&value));
  return bits < 0 ? bits ^ kLargest : bits;
}

std::int64_t KeyAt(const DLTensor& x, std::int64_t i) {
  const char* at = DataOf(x) + i * (x.dtype.bits / 8);
  if (x.dtype.code == kDLFloat) return KeyOf(x.dtype.bits == 32 ? Load<float>(at) : Load<double>(at));
  const bool sign = x.dtype.code == kDLInt;
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

void SortLane(const DLTensor& x, const Lane& lane, bool ascending, Keyed* keys) {
  for (std::int64_t k = 0; k < lane.length; ++k) keys[k] = {KeyAt(x, lane.begin + k * lane.step), k};
  std::sort(keys, keys + lane.length, [ascending](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return (a.key < b.key) == ascending;
    return a.index < b.index;
  });
}

void StoreIndex(const DLTensor& indices, std::int64_t at, std::int64_t index) {
  char* data = DataOf(indices);
  if (indices.dtype == kInt32) Store(data + 4 * at, static_cast<std::int32_t>(index));
  if (indices.dtype == kInt64) Store(data + 8 * at, index);
  if (indices.dtype == kFloat32) Store(data + 4 * at, static_cast<float>(index));
  if (indices.dtype == kFloat64) Store(data + 8 * at, static_cast<double>(index));
}

// Sorts `x` along `axis` and writes of each lane the first `most` elements to `values` and their places to
// `indices`; either may be null.
struct SortJob {
  const DLTensor* x = nullptr;
  const DLTensor* values = nullptr;
  const DLTensor* indices = nullptr;
  std::int64_t axis = 0;
  std::int64_t most = 0;
  bool ascending = true;

  // What is wrong with it; empty when it can run.
  std::string Check() const {
    const bool floats = x->dtype.code == kDLFloat && (x->dtype.bits == 32 || x->dtype.bits == 64);
    const bool integers = (x->dtype.code == kDLInt || x->dtype.code == kDLUInt) && x->dtype.bits >= 8;
    if (!floats && !integers) return Format("elements of {} cannot be sorted here", DTypeName(x->dtype));
    if (axis < 0 || axis >= x->ndim) return Format("axis {} of a tensor of rank {}", axis, x->ndim);
    if (values != nullptr && values->dtype != x->dtype) return "the sorted elements have another dtype";
    if (indices != nullptr && indices->dtype != kInt32 && indices->dtype != kInt64 &&
        indices->dtype != kFloat32 && indices->dtype != kFloat64) {
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
    return {};
  }

  int Run() const {
    std::int64_t before = 1, after = 1;
    for (std::int32_t i = 0; i < x->ndim; ++i) (i < axis ? before : after) *= i == axis ? 1 : x->shape[i];
    const std::int64_t length = x->shape[axis];
    if (before == 0 || after == 0 || length == 0) return 0;
    const auto count = static_cast<std::uint64_t>(length);
    void* memory = TvmBackendAllocWorkspace(kDLCPU, 0, count * sizeof(Keyed), kDLInt, 64);
    if (memory == nullptr) return -1;
    auto* keys = static_cast<Keyed*>(memory);
    const std::size_t element = x->dtype.bits / 8;
    for (std::int64_t i = 0; i < before; ++i) {
      if (KernelApi()->cancelled() != 0) return Fail("the run was cancelled");
      for (std::int64_t j = 0; j < after; ++j) {
        const Lane lane{i * length * after + j, after, length};
        SortLane(*x, lane, ascending, keys);
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
    return TvmBackendFreeWorkspace(kDLCPU, 0, memory);
  }

  int CheckAndRun(const char* function, const std::string& error) {
    if (!error.empty()) return Fail(error);
    if (axis < 0) axis += x->ndim;
    if (axis >= 0 && axis < x->ndim && most < 1) most = x->shape[axis];
    if (axis >= 0 && axis < x->ndim) most = std::min(most, x->shape[axis]);
    if (const std::string wrong = Check(); !wrong.empty()) return Fail({"{}: {}", function, wrong});
    return Run();
  }
};

int Sort(const char* function, bool gives_values, const ClassicValue* values, const int* codes, int count) {
  Arguments args(function, values, codes, count);
  SortJob job;
  job.x = args.TensorAt(0);
  (gives_values ? job.values : job.indices) = args.TensorAt(1);
  job.axis = args.IntegerAt(2);
  job.ascending = args.IntegerAt(3) != 0;
  return job.CheckAndRun(function, args.error());
}

int ArgSortValues(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
                  void* /*resource*/) {
  return Sort("tvm.contrib.sort.argsort", false, values, codes, count);
}

int SortValues(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
               void* /*resource*/) {
  return Sort("tvm.contrib.sort.sort", true, values, codes, count);
}

int TopK(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
         void* /*resource*/) {
  constexpr char kName[] = "tvm.contrib.sort.topk";
  Arguments args(kName, values, codes, count);
  if (count < 6) return Fail({"{}: {} arguments given, at least 6 expected", kName, count});
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
  return job.CheckAndRun(kName, args.error());
}

// Row-major matrices as they lie in memory.
template <typename T>
struct Matrix {
  explicit Matrix(const DLTensor& tensor)
      : data(reinterpret_cast<T*>(DataOf(tensor))), rows(tensor.shape[0]), columns(tensor.shape[1]) {}
  T* data;
  std::int64_t rows, columns;
};

template <typename T>
int Multiply(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& c, bool transpose_a, bool transpose_b) {
  const std::int64_t depth = transpose_a ? a.rows : a.columns;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    if (KernelApi()->cancelled() != 0) return Fail("the run was cancelled");
    T* row = c.data + i * c.columns;
    std::fill_n(row, c.columns, T{0});
    const auto left = [&](std::int64_t k) {
      return a.data[transpose_a ? k * a.columns + i : i * a.columns + k];
    };
    if (!transpose_b) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const T factor = left(k);
        const T* right = b.data + k * b.columns;
        for (std::int64_t j = 0; j < c.columns; ++j) row[j] += factor * right[j];
      }
      continue;
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const T* right = b.data + j * b.columns;
      T sum{0};
      for (std::int64_t k = 0; k < depth; ++k) sum += left(k) * right[k];
      row[j] = sum;
    }
  }
  return 0;
}

int MatMul(ClassicValue* values, int* codes, int count, ClassicValue* /*result*/, int* /*code*/,
           void* /*resource*/) {
  Arguments args("tvm.contrib.cblas.matmul", values, codes, count);
  const DLTensor* a = args.TensorAt(0);
  const DLTensor* b = args.TensorAt(1);
  const DLTensor* c = args.TensorAt(2);
  const bool transpose_a = args.IntegerAt(3) != 0;
  const bool transpose_b = args.IntegerAt(4) != 0;
  if (!args.error().empty()) return Fail(args.error());
  const bool floats = a->dtype == kFloat32 || a->dtype == kFloat64;
  if (!floats || b->dtype != a->dtype || c->dtype != a->dtype || a->ndim != 2 || b->ndim != 2 ||
      c->ndim != 2) {
    return Fail("tvm.contrib.cblas.matmul: three matrices of f32 or of f64 expected");
  }
  const bool fits = a->shape[transpose_a ? 1 : 0] == c->shape[0] &&
                    b->shape[transpose_b ? 0 : 1] == c->shape[1] &&
                    a->shape[transpose_a ? 0 : 1] == b->shape[transpose_b ? 1 : 0];
  if (!fits) return Fail("tvm.contrib.cblas.matmul: the shapes do not fit together");
  if (a->dtype == kFloat32) {
    return Multiply<float>(Matrix<float>(*a), Matrix<float>(*b), Matrix<float>(*c), transpose_a, transpose_b);
  }
  return Multiply<double>(Matrix<double>(*a), Matrix<double>(*b), Matrix<double>(*c), transpose_a,
                          transpose_b);
}

constexpr TvmContribFunction kFunctions[] = {
    {"tvm.contrib.sort.argsort", &ArgSortValues},
    {"tvm.contrib.sort.sort", &SortValues},
    {"tvm.contrib.sort.topk", &TopK},
    {"tvm.contrib.cblas.matmul", &MatMul},
    {"tvm.contrib.mkl.matmul", &MatMul},
};

}  // namespace

Span<const TvmContribFunction> TvmContribFunctions() { return {kFunctions, std::size(kFunctions)}; }

}  // namespace rewire
