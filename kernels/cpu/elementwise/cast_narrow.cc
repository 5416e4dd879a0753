// SPDX-License-Identifier: Apache-2.0
// Conversion from and to types of at most 8 bits that no other kernel computes with, and of bits as they are.
#include <array>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/elementwise.h"
#include "rewire/kernels/cpu/elementwise/narrow_format.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"

namespace rewire::kernel::cpu {
namespace {

// A ByteTable holds the result for each of the 256 bytes.
template <typename To>
using ByteTable = std::array<To, 256>;

struct CastNarrow {
  static constexpr const char* kName = names::kCastNarrow;
  bool saturate = true;
  PowerRounding rounding = PowerRounding::kUp;
  static Status Make(Attributes& attributes, CastNarrow* cast) {
    cast->saturate = attributes.Bool("saturate", true);
    cast->rounding =
        static_cast<PowerRounding>(attributes.Choice("round_mode", {"up", "down", "nearest"}, 0));
    return Status();
  }

  Status operator()(TensorView x, TensorView out) const {
    Elementwise<1> loop(out, {x}, {"x"});
    if (Status s = loop.Check(); !s.ok()) return s;
    const NarrowFormat *from = FormatOf(x.dtype()), *to = FormatOf(out.dtype());
    if (from == nullptr && to == nullptr) {
      return TypeError("x has dtype ", DTypeName(x.dtype()), " and out ", DTypeName(out.dtype()),
                       ", expected a float of 8 or 4 bits or an integer of 4 or 2 in one of them");
    }
    if (from == nullptr) {
      return ForType(AllTypes(), "x", x, [&](auto tag) {
        using Source = typename decltype(tag)::type;
        return loop.Run<std::uint8_t, Stored<Source>>([&](Stored<Source> stored) {
          if constexpr (std::is_same_v<Source, bool>)
            return To(*to, static_cast<std::uint8_t>(stored != 0));
          else
            return To(*to, stored);
        });
      });
    }
    ByteTable<float> values;
    for (int i = 0; i < 256; ++i)
      values[static_cast<std::size_t>(i)] = from->Decode(static_cast<std::uint8_t>(i));
    if (to != nullptr) {
      return Map<std::uint8_t>(loop, values, [&](float value) { return To(*to, value); });
    }
    if (out.Is<bool>())
      return Map<std::uint8_t>(loop, values,
                               [](float value) { return value != 0 ? std::uint8_t{1} : std::uint8_t{0}; });
    return ForType(AnyNumbers(), "out", out, [&](auto tag) {
      using Target = typename decltype(tag)::type;
      return Map<Target>(loop, values, [](float value) { return ToType<Target>(value); });
    });
  }

 private:
  template <typename From>
  std::uint8_t To(const NarrowFormat& format, From value) const {
    if constexpr (kIsHalf<From>) {
      return To(format, static_cast<float>(value));
    } else {
      if (format.is_integer) return format.EncodeInteger(value);
      return format.Encode(static_cast<float>(value), saturate, rounding);
    }
  }

  template <typename Target, typename Convert>
  static Status Map(const Elementwise<1>& loop, const ByteTable<float>& values, const Convert& convert) {
    ByteTable<Target> table;
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = convert(values[i]);
    return loop.Run<Target, std::uint8_t>([&](std::uint8_t value) { return table[value]; });
  }
};

struct BitCast {
  static constexpr const char* kName = names::kBitCast;
  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (out.element_bytes() != x.element_bytes()) {
      return TypeError("out has dtype ", DTypeName(out.dtype()),
                       ", expected elements as large as those of x, ", DTypeName(x.dtype()));
    }
    if (out.raw_data() == x.raw_data() || x.size() == 0) return Status();
    if (Status s = CheckNoOverlap("out", out, "x", x); !s.ok()) return s;
    return CopyAll(out.raw_data(), x.raw_data(), Times(x.size(), x.element_bytes()));
  }
};

}  // namespace

std::span<const Kernel> CastNarrowKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<CastNarrow>("x -> out", "any of at most 8 bytes",
                           "saturate = 1, round_mode = up, down or nearest",
                           "x in out's dtype; one of them is i4, u4, i2, u2, f8e4m3fn, f8e4m3fnuz, f8e5m2, "
                           "f8e5m2fnuz, f8e8m0fnu "
                           "or f4e2m1fn, with one element in each byte. Floats are rounded to the nearest, "
                           "f8e8m0fnu by round_mode; "
                           "what is too large becomes the largest if saturate, else infinite or NaN. For "
                           "integers floats are truncated, and "
                           "both wrap"),
      Describe<BitCast>("x -> out over x", "any", "",
                        "x's bits as elements of out's dtype, which is as large"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
