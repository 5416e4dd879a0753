// SPDX-License-Identifier: Apache-2.0
// Reductions over ranks.
#include "rewire/integrations/collective/reduce.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "rewire/integrations/collective/algorithms.h"
#include "rewire/integrations/collective/axis_parts.h"
#include "rewire/integrations/collective/calls.h"
#include "rewire/integrations/collective/registry.h"
#include "rewire/integrations/collective/rows.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::collective {
namespace {

using kernel::Status;
using kernel::TensorView;
using kernel::cpu::Checks;
using kernel::cpu::Computed;
using kernel::cpu::ForType;
using kernel::cpu::Workspace;

// contract::kReducedDTypes.
using Reduced = kernel::cpu::Types<float, double, kernel::cpu::Float16, kernel::cpu::BFloat16, std::int32_t,
                                   std::int64_t, std::uint8_t>;

template <typename From, typename To>
Status Convert(const From* from, To* to, std::int64_t count) {
  return kernel::cpu::SerialFor(count, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
  });
}

template <typename T>
Status CheckOp(CollectiveOp op, TensorView x) {
  if (op != CollectiveOp::kMean || !std::is_integral_v<T>) return Status();
  return kernel::TypeError("op mean takes floats, and x has dtype ", kernel::DTypeName(x.dtype()),
                           "; take sum, and divide it");
}

struct AllReduce : kernel::WithAttributes<contract::AllReduceAttributes> {
  static constexpr const char* kName = names::kAllReduce;

  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    return ForType(Reduced(), "x", x, [&]<typename T>(kernel::cpu::Tag<T>) -> Status {
      if (Status s = CheckOp<T>(op, x); !s.ok()) return s;
      return AsRank(channel, [&](World& world) {
        if (world.ranks() == 1 || x.size() == 0) return CopyTo(out, x);
        return Left(world, Reduce<T>(Call{world, static_cast<int>(channel)}, x, out));
      });
    });
  }

 private:
  template <typename T>
  Status Reduce(const Call& call, TensorView x, TensorView out) const {
    using C = Computed<T>;
    const std::int64_t count = x.size();
    const std::int64_t scratch = ScratchOf<C>(call, count);
    C few[kFewBytes / sizeof(C)];
    C* received = few;
    if (scratch > std::ssize(few)) {
      if (Status s = Workspace(scratch, &received); !s.ok()) return s;
    }
    return ReduceInto(call, x.data<T>(), out.data<T>(), count, received);
  }

  template <typename T, typename C>
  Status ReduceInto(const Call& call, const T* x, T* out, std::int64_t count, C* received) const {
    if constexpr (std::is_same_v<C, T>) {
      return ReduceAll(call, op, x, out, count, received);
    } else {
      C* wide = nullptr;
      if (Status s = Workspace(count, &wide); !s.ok()) return s;
      if (Status s = Convert(x, wide, count); !s.ok()) return s;
      if (Status s = ReduceAll<C>(call, op, wide, wide, count, received); !s.ok()) return s;
      return Convert(wide, out, count);
    }
  }
};

struct ReduceScatter : kernel::WithAttributes<contract::ReduceScatterAttributes> {
  static constexpr const char* kName = names::kReduceScatter;

  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    return ForType(Reduced(), "x", x, [&]<typename T>(kernel::cpu::Tag<T>) -> Status {
      if (Status s = CheckOp<T>(op, x); !s.ok()) return s;
      return AsRank(channel, [&](World& world) {
        AxisParts parts;
        if (Status s = CheckParts(*this, "out", out, "x", x, world.rank(), world.ranks(), 1, &parts); !s.ok())
          return s;
        if (world.ranks() == 1 || x.size() == 0) return CopyTo(out, x);
        return Left(world, Reduce<T>(Call{world, static_cast<int>(channel)}, parts, x, out));
      });
    });
  }

 private:
  template <typename T>
  Status Reduce(const Call& call, const AxisParts& parts, TensorView x, TensorView out) const {
    using C = Computed<T>;
    const std::int64_t count = out.size();
    C* received = nullptr;
    if (Status s = Workspace(count, &received); !s.ok()) return s;
    const auto begin = [&](int rank) { return parts.Before(rank); };
    if constexpr (std::is_same_v<C, T>) {
      const T* all = x.data<T>();
      if (parts.outer != 1) {
        if (Status s = Pack<T>(parts, x, &all); !s.ok()) return s;
      }
      if (Status s = ReduceParts(call, op, all, begin, out.data<T>(), received); !s.ok()) return s;
      return FinishReduction(op, out.data<T>(), count, call.ranks());
    } else {
      const C* all = nullptr;
      C* own = nullptr;
      if (Status s = Pack<T>(parts, x, &all); !s.ok()) return s;
      if (Status s = Workspace(count, &own); !s.ok()) return s;
      if (Status s = ReduceParts(call, op, all, begin, own, received); !s.ok()) return s;
      if (Status s = FinishReduction(op, own, count, call.ranks()); !s.ok()) return s;
      return Convert(own, out.data<T>(), count);
    }
  }

  // The parts of x one after another, as numbers to compute with.
  template <typename T, typename C = Computed<T>>
  static Status Pack(const AxisParts& parts, TensorView x, const C** packed) {
    C* memory = nullptr;
    constexpr std::int64_t kWidth = sizeof(T);
    if (Status s = Workspace(parts.all(), &memory); !s.ok()) return s;
    *packed = memory;
    for (std::int64_t rank = 0; rank < parts.ranks; ++rank) {
      const auto copy = [&](std::int64_t in_rows, std::int64_t in_parts, std::int64_t bytes) {
        const T* from = x.data<T>() + in_rows / kWidth;
        std::transform(from, from + bytes / kWidth, memory + in_parts / kWidth,
                       [](T value) { return static_cast<C>(value); });
      };
      if (Status s = ForStretches(parts, rank, kWidth, copy); !s.ok()) return s;
    }
    return Status();
  }
};

}  // namespace

std::span<const kernel::cpu::Kernel> ReduceKernels() { return kReduceRows<AllReduce, ReduceScatter>; }

}  // namespace rewire::collective
