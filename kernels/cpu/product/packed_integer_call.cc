// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/packed_integer_call.h"

#include <algorithm>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

using ByteTypes = Types<std::uint8_t, std::int8_t>;

// One element, or one for each column.
Status CheckColumns(const char* name, TensorView tensor, std::int64_t columns) {
  if (tensor.size() == 1 && tensor.ndim() <= 1) return Status();
  return CheckShape(name, tensor, ShapeView(&columns, 1));
}

Status CheckFinish(const IntegerFinishAttributes& attributes, const IntegerOperands& operands,
                   std::int64_t columns, TensorView out) {
  const bool sums = out.Is<std::int32_t>();
  if (!sums && !out.Is<float>() && !out.Is<std::uint8_t>() && !out.Is<std::int8_t>())
    return WrongDType(Types<std::int32_t, float, std::uint8_t, std::int8_t>(), "out", out);
  if (IsGiven(operands.scale) == sums) {
    return ValueError("out has dtype ", DTypeName(out.dtype()),
                      sums ? " and scale is given" : " without scale", ", expected scale for all but i32");
  }
  Checks checks;
  if (!sums) {
    checks.Dense("scale", *operands.scale).NoOverlap("out", out, "scale", *operands.scale);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!operands.scale->Is<float>()) return WrongDType(Types<float>(), "scale", *operands.scale);
    if (Status s = CheckColumns("scale", *operands.scale, columns); !s.ok()) return s;
  }
  if (!attributes.activation.IsNone() && !out.Is<float>()) {
    return ValueError("out has dtype ", DTypeName(out.dtype()), ", expected f32 for an activation");
  }
  if (!IsGiven(operands.bias)) return Status();
  const TensorView bias = *operands.bias;
  checks.Dense("bias", bias).Shape("bias", bias, ShapeView(&columns, 1)).NoOverlap("out", out, "bias", bias);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (bias.Is<std::int32_t>() || (bias.Is<float>() && !sums)) return Status();
  return TypeError("bias has dtype ", DTypeName(bias.dtype()), ", expected i32",
                   sums ? " as out has" : " or f32");
}

// As unsigned bytes.
Status ReadXZero(const std::optional<TensorView>& zero, TensorView x, std::int32_t* value) {
  const bool is_signed = x.Is<std::int8_t>();
  *value = is_signed ? 128 : 0;
  if (!IsGiven(zero)) return Status();
  Checks checks;
  if (Status s = checks.Dense("x_zero", *zero).SameDType("x_zero", *zero, "x", x).Take(); !s.ok()) return s;
  if (zero->size() != 1) return ValueError("x_zero has shape ", zero->dims(), ", expected one element");
  *value = is_signed ? *zero->data<std::int8_t>() + 128 : *zero->data<std::uint8_t>();
  return Status();
}

// One element, or one for each column, as one for each column.
template <typename From, typename To>
Status Spread(TensorView tensor, std::int64_t columns, To* to, const To** result) {
  const From* from = tensor.data<From>();
  const std::int64_t step = tensor.size() == 1 ? 0 : 1;
  *result = to;
  return SerialFor(columns, 1, [&](std::int64_t j, std::int64_t end) {
    for (; j < end; ++j) to[j] = static_cast<To>(from[j * step]);
  });
}

}  // namespace

Status IntegerFinishAttributes::Read(Attributes& attributes) {
  constexpr std::int64_t kLeast = -128;
  constexpr std::int64_t kMost = 255;
  activation.Read(attributes);
  zero = attributes.Int("zero", 0, kLeast, kMost);
  if (attributes.Has("least")) least = attributes.Int("least", kLeast, kLeast, kMost);
  if (attributes.Has("most")) most = attributes.Int("most", kMost, kLeast, kMost);
  return Status();
}

Status IntegerProduct::Prepare(const IntegerFinishAttributes& attributes, TensorView x,
                               const IntegerOperands& operands, std::int64_t of_columns, std::int64_t depth,
                               std::int64_t packed_depth, TensorView out) {
  columns = of_columns;
  const std::int64_t packed[] = {PackedColumns(columns), packed_depth};
  Checks checks;
  checks.Operands("x", x, "w", operands.w, out).Shape("w", operands.w, ShapeView(packed, 2));
  checks.Dense("sums", operands.sums).Shape("sums", operands.sums, ShapeView(&columns, 1));
  if (Status s = checks.NoOverlap("out", out, "sums", operands.sums).Take(); !s.ok()) return s;
  if (!x.Is<std::uint8_t>() && !x.Is<std::int8_t>()) return WrongDType(ByteTypes(), "x", x);
  if (!operands.w.Is<std::int8_t>()) return WrongDType(Types<std::int8_t>(), "w", operands.w);
  if (!operands.sums.Is<std::int32_t>()) return WrongDType(Types<std::int32_t>(), "sums", operands.sums);
  if (Status s = ReadXZero(operands.x_zero, x, &x_zero); !s.ok()) return s;
  if (IsGiven(operands.w_zero)) {
    if (Status s = checks.Dense("w_zero", *operands.w_zero)
                       .SameDType("w_zero", *operands.w_zero, "w", operands.w)
                       .Take();
        !s.ok())
      return s;
    if (Status s = CheckColumns("w_zero", *operands.w_zero, columns); !s.ok()) return s;
  }
  if (Status s = CheckFinish(attributes, operands, columns, out); !s.ok()) return s;

  w = operands.w.data<std::int8_t>();
  std::int32_t *of_start = nullptr, *of_zero = nullptr;
  float* of_scale = nullptr;
  if (Status s = Workspace(columns, &of_start); !s.ok()) return s;
  if (Status s = Workspace(columns, &of_zero); !s.ok()) return s;
  if (Status s = Workspace(columns, &of_scale); !s.ok()) return s;
  w_zero = nullptr;
  if (IsGiven(operands.w_zero)) {
    if (Status s = Spread<std::int8_t>(*operands.w_zero, columns, of_zero, &w_zero); !s.ok()) return s;
  }
  // (x - x_zero) (w - w_zero) summed up is x w - w_zero (sum of x) - x_zero (sum of w - w_zero). As unsigned
  // numbers, since sums wrap.
  const auto shift = static_cast<std::uint32_t>(x_zero);
  const bool whole_bias = IsGiven(operands.bias) && operands.bias->Is<std::int32_t>();
  const auto* of_w = operands.sums.data<std::int32_t>();
  const auto* of_bias = whole_bias ? operands.bias->data<std::int32_t>() : nullptr;
  const auto* zeros = w_zero;
  Status started = SerialFor(columns, 2, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      auto sum = static_cast<std::uint32_t>(of_w[j]);
      if (zeros != nullptr) sum -= static_cast<std::uint32_t>(depth) * static_cast<std::uint32_t>(zeros[j]);
      const std::uint32_t first = of_bias == nullptr ? 0 : static_cast<std::uint32_t>(of_bias[j]);
      of_start[j] = static_cast<std::int32_t>(first - shift * sum);
    }
  });
  if (!started.ok()) return started;
  start = of_start;

  finish = IntegerFinish();
  finish.activation = attributes.activation;
  if (IsGiven(operands.bias) && !whole_bias) finish.bias = operands.bias->data<float>();
  if (out.Is<std::int32_t>()) return Status();
  finish.scale = operands.scale->data<float>();
  if (operands.scale->size() == 1) {
    if (Status s = Spread<float>(*operands.scale, columns, of_scale, &finish.scale); !s.ok()) return s;
  }
  finish.kind = out.Is<float>()          ? IntegerFinish::kFloats
                : out.Is<std::uint8_t>() ? IntegerFinish::kUnsigned
                                         : IntegerFinish::kSigned;
  const bool is_unsigned = finish.kind == IntegerFinish::kUnsigned;
  const std::int64_t lowest = is_unsigned ? 0 : -128;
  const std::int64_t highest = is_unsigned ? 255 : 127;
  finish.zero = static_cast<float>(attributes.zero);
  finish.least = static_cast<float>(std::max(lowest, attributes.least.value_or(lowest)));
  finish.most = static_cast<float>(std::min(highest, attributes.most.value_or(highest)));
  return Status();
}

void IntegerProduct::Declare(WorkspaceSizes& sizes, std::int64_t columns) {
  for (int i = 0; i < 3; ++i) sizes.Take(columns, sizeof(std::int32_t));
}

IntegerTile IntegerProduct::Panel(std::int64_t panel, std::int64_t segments, std::int64_t depth) const {
  const std::int64_t first = panel * kPanelWidth;
  IntegerTile tile{};
  tile.segments = segments;
  tile.depth = depth;
  tile.panel = w + first * segments * PaddedDepth(depth);
  tile.width = WidthOfPanel(panel, columns);
  tile.columns = UsedOfPanel(panel, columns);
  tile.start = start + first;
  tile.w_zero = w_zero == nullptr ? nullptr : w_zero + first;
  tile.finish = finish;
  if (finish.scale != nullptr) tile.finish.scale += first;
  if (finish.bias != nullptr) tile.finish.bias += first;
  tile.step = columns;
  return tile;
}

void SumsOfRows::Take(const std::uint8_t* rows, std::int64_t count, std::int64_t depth, Pace& pace) {
  constexpr std::int64_t kBytesAtOnce = 8;
  if (!wanted_ || rows == taken_) return;
  taken_ = rows;
  const std::uint8_t* pointers[kMostPanelRows];
  IntegerTile tile{};
  tile.rows = pointers;
  tile.segments = 1;
  tile.depth = depth;
  for (std::int64_t i = 0; i < count; i += tile.count) {
    tile.count = static_cast<int>(std::min<std::int64_t>(count - i, kMostPanelRows));
    if (!pace.Spend(tile.count * (depth / kBytesAtOnce + 1))) return;
    for (int r = 0; r < tile.count; ++r) pointers[r] = rows + (i + r) * depth;
    BestIntegerPanelKernel().sum_rows(tile, sums_ + i);
  }
}

void CopyUnsigned(const std::uint8_t* from, std::int64_t count, bool is_signed, std::uint8_t* to) {
  const auto flip = static_cast<std::uint8_t>(is_signed ? 0x80 : 0);
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] ^ flip;
}

}  // namespace rewire::kernel::cpu
