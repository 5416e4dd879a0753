// SPDX-License-Identifier: Apache-2.0
//
// Makes tensors from numbers.
#include <algorithm>
#include <cstring>

#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckScalar(const char* name, TensorView scalar, TensorView out) {
  Checks checks;
  if (Status s = checks.Dense(name, scalar).SameDType(name, scalar, "out", out).Take(); !s.ok()) return s;
  if (scalar.size() == 1) return CheckNoOverlap("out", out, name, scalar);
  return ValueError(name, " has shape ", scalar.dims(), ", expected one element");
}

struct Arange {
  static constexpr const char* kName = names::kArange;
  Status operator()(TensorView start, TensorView limit, TensorView delta, TensorView out) const {
    if (Status s = Checks().Dense("out", out).Rank("out", out, 1).Take(); !s.ok()) return s;
    if (Status s = CheckScalar("start", start, out); !s.ok()) return s;
    if (Status s = CheckScalar("limit", limit, out); !s.ok()) return s;
    if (Status s = CheckScalar("delta", delta, out); !s.ok()) return s;
    std::int64_t count = 0;
    if (Status s = ArangeCount(start, limit, delta, &count); !s.ok()) return s;
    if (Status s = CheckShape("out", out, ShapeView(&count, 1)); !s.ok()) return s;
    return ForType(ArangeTypes(), "out", out, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T first = *start.data<T>();
      const T step = *delta.data<T>();
      T* to = out.data<T>();
      return SerialFor(count, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          to[i] = static_cast<T>(first + static_cast<T>(i) * step);  // within [start, limit)
      });
    });
  }
};

struct Eye {
  static constexpr const char* kName = names::kEye;
  std::int64_t k = 0;
  static Status Make(Attributes& attributes, Eye* eye) {
    eye->k = attributes.Int("k", 0);
    return Status();
  }
  Status operator()(TensorView out) const {
    if (Status s = Checks().Dense("out", out).Rank("out", out, 2).Take(); !s.ok()) return s;
    return ForType(AllTypes(), "out", out, [&](auto tag) -> Status {
      using T = Stored<typename decltype(tag)::type>;
      const std::int64_t rows = out.dim(0);
      const std::int64_t columns = out.dim(1);
      const std::int64_t diagonal = std::clamp(k, -rows, columns);
      T* to = out.data<T>();
      // Zeros are what the C library writes fastest.
      Status cleared = SerialFor(out.size(), 1, [to](std::int64_t begin, std::int64_t end) {
        if (begin < end) std::memset(to + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(T));
      });
      if (!cleared.ok()) return cleared;
      return SerialFor(rows, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t j = i + diagonal;
          if (j >= 0 && j < columns) to[i * columns + j] = T(1);
        }
      });
    });
  }
};

}  // namespace

std::span<const Kernel> GenerateKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Arange>("start, limit, delta -> out", "f32 f64 i64 i32", "",
                       "start, start + delta, ... short of limit; the first three have one element each"),
      Describe<Eye>("-> out", "all", "k = 0", "1 on diagonal k of out [M, N], 0 elsewhere"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
