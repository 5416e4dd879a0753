// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. Each is a hash of the seed, the number of the call and the element's index, so it does not
// depend on threads. Each VM counts its own calls. With a seed, every run gives the same numbers.
#include <algorithm>
#include <cmath>
#include <new>
#include <random>

#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// The finalizer of SplitMix64: every bit of the result depends on every bit of x.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

struct Seed {
  std::uint64_t value = 0;

  void Read(Attributes& attributes) {
    if (attributes.Has("seed")) {
      const double given = attributes.Float("seed", 0);
      value =
          Mix(static_cast<std::uint64_t>(ToType<std::int64_t>(std::clamp(given * 65536, -0x1p62, 0x1p62))));
    } else {
      std::random_device device;
      value = std::uint64_t{device()} << 32 | device();
    }
  }
};

// The numbers of one call.
class Numbers01 {
 public:
  // Counts the call in the VM's slot of this import.
  Status Begin(const Seed& seed) {
    auto* calls = static_cast<std::uint64_t*>(__rewire_kernel_api->get_slot());
    if (calls == nullptr) {
      calls = new (std::nothrow) std::uint64_t(0);
      if (calls == nullptr) return RuntimeError("out of memory");
      __rewire_kernel_api->set_slot(calls, [](void* state) { delete static_cast<std::uint64_t*>(state); });
    }
    base_ = Mix(seed.value + 0x9E3779B97F4A7C15u * ++*calls);
    return Status();
  }
  // Uniform in [0, 1), number i of the call.
  double At(std::int64_t i) const {
    const std::uint64_t bits = Mix(base_ + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(i + 1));
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
  // Normal with mean 0 and deviation 1 (Box and Muller), from two of the uniform ones.
  double NormalAt(std::int64_t i) const {
    const double radius = std::sqrt(-2 * std::log(1 - At(2 * i)));
    return radius * std::cos(2 * 3.14159265358979323846 * At(2 * i + 1));
  }

 private:
  std::uint64_t base_ = 0;
};

template <typename Value>
Status Fill(const Seed& seed, TensorView out, const Value& value) {
  if (Status s = CheckDense("out", out); !s.ok()) return s;
  return ForType(AnyFloats(), "out", out, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    Numbers01 numbers;
    if (Status s = numbers.Begin(seed); !s.ok()) return s;
    T* to = out.data<T>();
    return ParallelFor(out.size(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = T(static_cast<Computed<T>>(value(numbers, i)));
    });
  });
}

struct RandomUniform {
  static constexpr const char* kName = names::kRandomUniform;
  Seed seed;
  double low = 0;
  double high = 1;
  static Status Make(Attributes& attributes, RandomUniform* random) {
    random->seed.Read(attributes);
    random->low = attributes.Float("low", 0);
    random->high = attributes.Float("high", 1);
    return Status();
  }
  Status operator()(TensorView out) const {
    return Fill(seed, out, [this](const Numbers01& numbers, std::int64_t i) {
      return low + (high - low) * numbers.At(i);
    });
  }
};

struct RandomNormal {
  static constexpr const char* kName = names::kRandomNormal;
  Seed seed;
  double mean = 0;
  double scale = 1;
  static Status Make(Attributes& attributes, RandomNormal* random) {
    random->seed.Read(attributes);
    random->mean = attributes.Float("mean", 0);
    random->scale = attributes.Float("scale", 1);
    return Status();
  }
  Status operator()(TensorView out) const {
    return Fill(seed, out, [this](const Numbers01& numbers, std::int64_t i) {
      return mean + scale * numbers.NormalAt(i);
    });
  }
};

struct Bernoulli {
  static constexpr const char* kName = names::kBernoulli;
  Seed seed;
  static Status Make(Attributes& attributes, Bernoulli* random) {
    random->seed.Read(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims());
    if (Status s = checks.NoOverlap("out", out, "x", x).Take(); !s.ok()) return s;
    Numbers01 numbers;
    if (Status s = numbers.Begin(seed); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      const auto* from = x.data<typename decltype(tag)::type>();
      return ForType(AllTypes(), "out", out, [&](auto out_tag) {
        using T = Stored<typename decltype(out_tag)::type>;
        return ParallelFor(x.size(), kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            out.data<T>()[i] = numbers.At(i) < static_cast<double>(from[i]) ? T(1) : T(0);
        });
      });
    });
  }
};

struct Multinomial {
  static constexpr const char* kName = names::kMultinomial;
  Seed seed;
  static Status Make(Attributes& attributes, Multinomial* random) {
    random->seed.Read(attributes);
    return Status();
  }
  // x [N, classes] are logarithms of probabilities, not normalized; out [N, samples].
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Rank("x", x, 2).Rank("out", out, 2).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    const std::int64_t classes = x.dim(1);
    const std::int64_t samples = out.dim(1);
    if (out.dim(0) != x.dim(0) || classes == 0)
      return ValueError("x has shape ", x.dims(), " and out ", out.dims(),
                        ", expected [N, classes] and [N, samples]");
    double* sums = nullptr;
    Numbers01 numbers;
    if (Status s = Workspace(classes, &sums); !s.ok()) return s;
    if (Status s = numbers.Begin(seed); !s.ok()) return s;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return ForType(Indices(), "out", out, [&](auto out_tag) -> Status {
        using I = typename decltype(out_tag)::type;
        Pace pace;
        for (std::int64_t n = 0; n < x.dim(0); ++n) {
          const T* logits = x.data<T>() + n * classes;
          T most = logits[0];
          double sum = 0;
          const auto find = [&](std::int64_t c, std::int64_t end) {
            most = std::max(most, *std::max_element(logits + c, logits + end));
          };
          const auto add = [&](std::int64_t c, std::int64_t end) {
            for (; c < end; ++c)
              sums[c] = sum += std::exp(static_cast<double>(logits[c]) - static_cast<double>(most));
          };
          if (!pace.For(classes, 1, find) || !pace.For(classes, 4, add)) return Stopped();
          for (std::int64_t i = 0; i < samples; ++i) {
            if (!pace.Spend(16)) return Stopped();
            const double point = numbers.At(n * samples + i) * sum;
            const std::int64_t c = std::upper_bound(sums, sums + classes, point) - sums;
            out.data<I>()[n * samples + i] = static_cast<I>(std::min(c, classes - 1));
          }
        }
        return Status();
      });
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0, 2);
    if (x == nullptr) return false;
    sizes.Take(LastDim(x), sizeof(double));
    return true;
  }
};

constexpr const char kSeed[] = "seed = one of each program's own";

}  // namespace

std::span<const Kernel> RandomKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<RandomUniform>("-> out", "any float",
                              "low = 0.0, high = 1.0, seed = one of each program's own",
                              "numbers spread evenly over [low, high)", kImpure),
      Describe<RandomNormal>("-> out", "any float",
                             "mean = 0.0, scale = 1.0, seed = one of each program's own",
                             "normally distributed numbers", kImpure),
      Describe<Bernoulli>("x -> out", "x f32 f64; out all", kSeed, "1 with the probability x, else 0",
                          kImpure),
      Describe<Multinomial>("x -> out", "x f32 f64; out i64 i32", kSeed,
                            "classes drawn by x [N, classes], logarithms of probabilities: out [N, samples]",
                            kImpure),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
