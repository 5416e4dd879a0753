// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot product attention: the checks of a call, and its blocks of queries.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/cpu/attention/query_block.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// One integer for all of the batch, or one for each.
Status ReadCounts(const char* name, const std::optional<TensorView>& counts, std::int64_t batch,
                  TensorView out, const std::int64_t** values, std::int64_t* step) {
  *values = nullptr;
  *step = 0;
  if (!IsGiven(counts)) return Status();
  Checks checks;
  if (Status s = checks.Dense(name, *counts).NoOverlap("out", out, name, *counts).Take(); !s.ok()) return s;
  *values = counts->data<std::int64_t>();
  return StepOfCounts(name, *counts, batch, step);
}

struct Attention {
  static constexpr const char* kName = names::kAttention;
  AttentionAttributes given;
  float hidden = 0;
  static Status Make(Attributes& attributes, Attention* attention) {
    attention->given.Read(attributes);
    attention->given.heads = attributes.Int("heads", 0, 0, kMostSize);
    const double hidden = attributes.Float("hidden", -std::numeric_limits<double>::infinity());
    attention->hidden = static_cast<float>(std::isinf(hidden) ? hidden : std::max<double>(hidden, kLowest));
    return Status();
  }

  Status operator()(TensorView q, TensorView k, TensorView v, std::optional<TensorView> begin,
                    std::optional<TensorView> lengths, std::optional<TensorView> bias,
                    std::optional<TensorView> mask, TensorView out) const {
    AttentionCall call{};
    if (Status s = ReadShapes(q, k, v, out, &call); !s.ok()) return s;
    Status counted = ReadCounts("begin", begin, call.batch, out, &call.begin, &call.begin_step);
    if (!counted.ok()) return counted;
    counted = ReadCounts("lengths", lengths, call.batch, out, &call.lengths, &call.lengths_step);
    if (!counted.ok()) return counted;
    if (Status s = ReadBias(bias, out, &call); !s.ok()) return s;
    if (Status s = ReadMask(mask, out, &call); !s.ok()) return s;
    call.scale = given.ScaleOf(call.size);
    call.softcap = static_cast<float>(given.softcap);
    call.left = given.left;
    call.right = given.right;
    if (out.size() == 0) return Status();
    const std::int64_t rows = Times(call.heads / call.groups, call.length);
    const std::int64_t of_block = RowsOfBlock(Times(call.batch, call.groups), rows, call.size);
    const std::int64_t blocks = (rows + of_block - 1) / of_block;
    const std::int64_t work =
        Times(Times(call.keys, std::min(rows, of_block)), Plus(call.size, call.value_size)) / 4;
    return ParallelFor(Times(call.batch, call.groups, blocks), GrainOf(kGrain, work),
                       [&](std::int64_t first, std::int64_t last, Pace& pace) {
                         for (std::int64_t i = first; i < last; ++i) {
                           if (!pace.Spend(16 + Times(of_block, call.value_size) / 16)) return;
                           const std::int64_t row = i % blocks * of_block;
                           const std::int64_t count = std::min(of_block, rows - row);
                           const std::int64_t head = i / blocks;
                           QueryBlock(call, head / call.groups, head % call.groups, row, count).Run(pace);
                           if (pace.stopped()) return;
                         }
                       });
  }

 private:
  // Fewer rows where queries are long, and where threads would wait for each other at the end.
  static std::int64_t RowsOfBlock(std::int64_t heads, std::int64_t rows, std::int64_t size) {
    std::int64_t of_block = kMostLanes;
    while (of_block > kLaneStep && Times(of_block, size) > QueryBlock::kMostElements) of_block /= 2;
    const std::int64_t blocks = Times(heads, (rows + of_block - 1) / of_block);
    const bool few = blocks < 4 * __rewire_kernel_api->thread_count();
    return few && of_block > 2 * kLaneStep ? of_block / 2 : of_block;
  }

  Status ReadShapes(TensorView q, TensorView k, TensorView v, TensorView out, AttentionCall* call) const {
    Checks checks;
    checks.Dense("q", q).Operands("k", k, "v", v, out);
    checks.SameDType("k", k, "q", q).SameDType("v", v, "q", q).SameDType("out", out, "q", q);
    checks.NoOverlap("out", out, "q", q);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!q.Is<float>()) return WrongDType(Types<float>(), "q", q);
    if (Status s = call->Resolve(given, q, k, v, out); !s.ok()) return s;
    call->q = q.data<float>();
    call->k = k.data<float>();
    call->v = v.data<float>();
    call->out = out.data<float>();
    return Status();
  }

  Status ReadBias(const std::optional<TensorView>& bias, TensorView out, AttentionCall* call) const {
    if (!IsGiven(bias)) return Status();
    Checks checks;
    checks.Dense("bias", *bias).SameDType("bias", *bias, "q", out).NoOverlap("out", out, "bias", *bias);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = call->ResolveTerm(given, "bias", *bias, call->bias_strides); !s.ok()) return s;
    call->bias = bias->data<float>();
    return Status();
  }

  Status ReadMask(const std::optional<TensorView>& mask, TensorView out, AttentionCall* call) const {
    if (!IsGiven(mask)) return Status();
    if (!mask->Is<bool>()) return WrongDType(Types<bool>(), "mask", *mask);
    if (Status s = Checks().Dense("mask", *mask).NoOverlap("out", out, "mask", *mask).Take(); !s.ok())
      return s;
    if (Status s = call->ResolveTerm(given, "mask", *mask, call->mask_strides); !s.ok()) return s;
    call->mask = mask->data<std::uint8_t>();
    call->hidden = hidden;
    return Status();
  }
};

}  // namespace

std::span<const Kernel> AttentionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Attention>(
          "q, k, v, begin?, lengths?, bias?, mask? -> out",
          "q, k, v, bias, out f32; begin, lengths i64; mask bool",
          "scale = 0.0 (1 / sqrt(D)), softcap = 0.0, left = -1, right = -1, heads = 0 (needed for k of rank "
          "3), strict = 0, hidden = -inf",
          "softmax(q by k * scale + bias) by v, for q [B, H, L, D] or [B, L, H * D], k [B, G, S, D] and v "
          "[B, G, S, E], or [B, S, G * D] and [B, S, G * E], with H a multiple of G. Scores are held within "
          "softcap by tanh, and are `hidden` where the mask [B, H, L, S] is false. Then the bias [B, H, L, "
          "S] "
          "is added. Both broadcast, and hide keys behind their last column; with strict = 1 that is an "
          "error "
          "instead. Query i stands at begin + i and sees at most `left` keys before that and `right` "
          "behind it, -1 all, and none from `lengths` on; begin and lengths are one number or [B]. A query "
          "that sees no key gives 0"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
