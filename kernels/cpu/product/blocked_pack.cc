// SPDX-License-Identifier: Apache-2.0
//
// Packs weights of 4 or 8 bits, their scales and zeros as the products by them read them (blocked_panels.h).
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/product/blocked_bits.h"
#include "rewire/kernels/cpu/product/blocked_panels.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// The numbers of columns and bits of weights that are packed.
struct PackAttributes {
  std::int64_t columns = 1, bits = 4;
  Status Read(Attributes& attributes) {
    attributes.Require("columns");
    columns = attributes.Int("columns", 1, 1, kMostColumns);
    return Status();
  }
  // The elements of each column.
  Status Divide(const char* name, TensorView tensor, std::int64_t* of_column) const {
    *of_column = tensor.size() / columns;
    if (tensor.size() % columns == 0) return Status();
    return ValueError(name, " has shape ", tensor.dims(), ", which ", columns, " columns do not divide");
  }
};

struct PackBlocked {
  static constexpr const char* kName = names::kBlockedPack;
  PackAttributes form;
  static Status Make(Attributes& attributes, PackBlocked* pack) {
    pack->form.bits = attributes.Int("bits", 4, 4, 8);
    if (Status s = pack->form.Read(attributes); !s.ok()) return s;
    return CheckBlockedBits(pack->form.bits);
  }

  Status operator()(TensorView w, TensorView out) const {
    Checks checks;
    checks.Dense("w", w).Dense("out", out).NoOverlap("out", out, "w", w);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!w.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "w", w);
    if (!out.Is<std::uint8_t>()) return WrongDType(Types<std::uint8_t>(), "out", out);
    std::int64_t of_column = 0;
    if (Status s = form.Divide("w", w, &of_column); !s.ok()) return s;
    const std::int64_t depth = Times(of_column, 8 / form.bits);
    if (depth % kBlockedRows != 0)
      return ValueError("w has shape ", w.dims(), ": ", depth, " rows are no multiple of ", kBlockedRows);
    const std::int64_t expected[] = {BlockedPanels(form.columns), Times(of_column, kBlockedWidth)};
    if (Status s = CheckShape("out", out, ShapeView(expected, 2)); !s.ok()) return s;
    const auto* from = w.data<std::uint8_t>();
    auto* to = out.data<std::uint8_t>();
    const std::int64_t words = of_column / 4;
    return SerialFor(Times(expected[0], words), kBlockedWidth * 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < kBlockedWidth; ++j) {
          const std::int64_t column = i / words * kBlockedWidth + j;
          const std::uint8_t* word =
              column < form.columns ? from + column * of_column + i % words * 4 : kNothing;
          Reorder(word, to + (i * kBlockedWidth + j) * 4);
        }
      }
    });
  }

 private:
  static constexpr std::uint8_t kNothing[4] = {};

  // In `from` neighbors share a byte.
  void Reorder(const std::uint8_t* from, std::uint8_t* to) const {
    for (int i = 0; i < 4; ++i) {
      if (form.bits == 8) {
        to[i] = from[i];
        continue;
      }
      const int low = from[i / 2] >> (i % 2 * 4) & 15, high = from[2 + i / 2] >> (i % 2 * 4) & 15;
      to[i] = static_cast<std::uint8_t>(low | high << 4);
    }
  }
};

float FloatAt(TensorView tensor, std::int64_t i) {
  return tensor.Is<float>() ? tensor.data<float>()[i] : static_cast<float>(tensor.data<Float16>()[i]);
}

// Writes [panels, blocks, kBlockedWidth]: value(column, block), and 0 behind the last column.
template <typename Value>
Status PackTerms(std::int64_t columns, std::int64_t blocks, TensorView out, const Value& value) {
  const std::int64_t expected[] = {BlockedPanels(columns), blocks, kBlockedWidth};
  if (Status s = CheckShape("out", out, ShapeView(expected, 3)); !s.ok()) return s;
  return SerialFor(out.size(), 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / kBlockedWidth;
      const std::int64_t column = row / blocks * kBlockedWidth + i % kBlockedWidth;
      const float term = column < columns ? value(column, row % blocks) : 0.0F;
      if (out.Is<float>())
        out.data<float>()[i] = term;
      else
        out.data<Float16>()[i] = Float16(term);
    }
  });
}

struct PackBlockedScales {
  static constexpr const char* kName = names::kBlockedPackScales;
  PackAttributes form;
  static Status Make(Attributes& attributes, PackBlockedScales* pack) { return pack->form.Read(attributes); }

  Status operator()(TensorView scales, TensorView out) const {
    Checks checks;
    checks.Dense("scales", scales).Dense("out", out).NoOverlap("out", out, "scales", scales);
    if (Status s = checks.Take(); !s.ok()) return s;
    using Both = Types<float, Float16>;
    if (!scales.Is<float>() && !scales.Is<Float16>()) return WrongDType(Both(), "scales", scales);
    if (!out.Is<float>() && !out.Is<Float16>()) return WrongDType(Both(), "out", out);
    std::int64_t blocks = 0;
    if (Status s = form.Divide("scales", scales, &blocks); !s.ok()) return s;
    return PackTerms(form.columns, blocks, out, [&](std::int64_t column, std::int64_t block) {
      return FloatAt(scales, column * blocks + block);
    });
  }
};

struct PackBlockedOffsets {
  static constexpr const char* kName = names::kBlockedPackOffsets;
  PackAttributes form;
  static Status Make(Attributes& attributes, PackBlockedOffsets* pack) {
    pack->form.bits = attributes.Int("bits", 4, 4, 8);
    if (Status s = pack->form.Read(attributes); !s.ok()) return s;
    return CheckBlockedBits(pack->form.bits);
  }

  Status operator()(TensorView scales, TensorView zeros, TensorView out) const {
    Checks checks;
    checks.Operands("scales", scales, "zeros", zeros, out);
    if (Status s = checks.Take(); !s.ok()) return s;
    using Both = Types<float, Float16>;
    if (!scales.Is<float>() && !scales.Is<Float16>()) return WrongDType(Both(), "scales", scales);
    if (!out.Is<float>()) return WrongDType(Types<float>(), "out", out);
    std::int64_t blocks = 0, of_column = 0;
    if (Status s = form.Divide("scales", scales, &blocks); !s.ok()) return s;
    if (Status s = form.Divide("zeros", zeros, &of_column); !s.ok()) return s;
    const bool packed = zeros.Is<std::uint8_t>();
    if (!packed && !zeros.Is<float>() && !zeros.Is<Float16>())
      return WrongDType(Types<std::uint8_t, float, Float16>(), "zeros", zeros);
    const std::int64_t expected = packed ? (blocks * form.bits + 7) / 8 : blocks;
    if (of_column != expected)
      return ValueError("zeros has shape ", zeros.dims(), ", expected ", expected, " elements for each of ",
                        form.columns, " columns");
    const auto middle = static_cast<float>(std::int64_t{1} << (form.bits - 1));
    return PackTerms(form.columns, blocks, out, [&](std::int64_t column, std::int64_t block) {
      const std::int64_t first = column * of_column;
      float zero = 0;
      if (!packed)
        zero = FloatAt(zeros, first + block);
      else if (form.bits == 8)
        zero = zeros.data<std::uint8_t>()[first + block];
      else
        zero = static_cast<float>(zeros.data<std::uint8_t>()[first + block / 2] >> (block % 2 * 4) & 15);
      return (zero - middle) * FloatAt(scales, column * blocks + block);
    });
  }
};

}  // namespace

std::span<const Kernel> BlockedPackKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<PackBlocked>("w -> out", "u8", "columns, bits = 4 or 8",
                            "the codes of each of the columns, one column after another, with 4 bits the "
                            "first of two in the lower "
                            "half of a byte, as rewire.blocked.matmul reads them: out [columns / 16 rounded "
                            "up, 16 * bytes of a "
                            "column]; it holds the same on every CPU"),
      Describe<PackBlockedScales>("scales -> out", "scales f32 f16; out f32 f16", "columns",
                                  "the scales of each column's blocks, one column after another: out "
                                  "[columns / 16 rounded up, blocks, 16]"),
      Describe<PackBlockedOffsets>("scales, zeros -> out", "scales f32 f16; zeros u8 f32 f16; out f32",
                                   "columns, bits = 4 or 8",
                                   "(zero - 2^(bits - 1)) * scale of the same blocks; zeros of u8 have "
                                   "`bits` bits, and each column begins "
                                   "with a byte of its own"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
