// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention as one kernel.
#include <algorithm>
#include <limits>

#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/cpu/attention/attention_shapes.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/device/elements.h"
#include "rewire/kernels/device/registry.h"

using AttentionArguments = ::Attention;

namespace rewire::kernel::device {
namespace {

constexpr std::int64_t kAttentionTile = 64;  // of queries and of elements (code/tiles.h)
constexpr std::int64_t kRowColumns = 256;    // elements that a group computes of one query (code/attention.h)
constexpr std::int64_t kFewRows = 8;         // for which a tile is not worth it

int HeldInInt(std::int64_t value) {
  return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

// A tensor with one integer for all of the batch, or one for each.
Status AddCounts(const char* name, const std::optional<TensorView>& counts, TensorView out,
                 std::int64_t batch, int* has, int* step) {
  *has = cpu::IsGiven(counts) ? 1 : 0;
  if (*has == 0) return Status();
  std::int64_t found = 0;
  if (Status s = DeviceChecks().Beside(name, *counts, out).Take(); !s.ok()) return s;
  if (Status s = cpu::StepOfCounts(name, *counts, batch, &found); !s.ok()) return s;
  *step = static_cast<int>(found);
  return Status();
}

struct Attention {
  static constexpr const char* kName = names::kOnDevice<names::kAttention>;
  cpu::AttentionAttributes given;
  static Status Make(Attributes& attributes, Attention* attention) {
    attention->given.Read(attributes);
    return Status();
  }

  Status operator()(TensorView q, TensorView k, TensorView v, std::optional<TensorView> begin,
                    std::optional<TensorView> lengths, std::optional<TensorView> bias, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("q", q, out).Beside("k", k, out).Beside("v", v, out);
    checks.SameDType("k", k, "q", q).SameDType("v", v, "q", q).SameDType("out", out, "q", q);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckF32("q", q); !s.ok()) return s;
    if (Status s = cpu::CheckRank("k", k, 4); !s.ok()) return s;
    cpu::AttentionShapes shapes{};
    if (Status s = shapes.Resolve(given, q, k, v, out); !s.ok()) return s;
    AttentionArguments arguments{};
    if (Status s = AddCounts("begin", begin, out, shapes.batch, &arguments.has_begin, &arguments.begin_step);
        !s.ok())
      return s;
    if (Status s =
            AddCounts("lengths", lengths, out, shapes.batch, &arguments.has_lengths, &arguments.lengths_step);
        !s.ok())
      return s;
    if (cpu::IsGiven(bias)) {
      if (Status s = DeviceChecks().Beside("bias", *bias, out).SameDType("bias", *bias, "q", q).Take();
          !s.ok())
        return s;
      if (Status s = shapes.ResolveTerm(given, "bias", *bias, shapes.bias_strides); !s.ok()) return s;
      arguments.has_bias = 1;
      for (int i = 0; i < 4; ++i) arguments.bias_steps[i] = static_cast<int>(shapes.bias_strides[i]);
    }
    if (out.size() == 0) return Status();
    const std::int64_t rows = shapes.heads / shapes.groups * shapes.length;
    arguments.heads = static_cast<int>(shapes.heads);
    arguments.groups = static_cast<int>(shapes.groups);
    arguments.rows = static_cast<int>(rows);
    arguments.length = static_cast<int>(shapes.length);
    arguments.keys = static_cast<int>(shapes.keys);
    arguments.size = static_cast<int>(shapes.size);
    arguments.value_size = static_cast<int>(shapes.value_size);
    arguments.joined = shapes.joined ? 1 : 0;
    arguments.visible = static_cast<int>(shapes.visible);
    arguments.left = HeldInInt(given.left);
    arguments.right = HeldInInt(given.right);
    arguments.scale = given.ScaleOf(shapes.size);
    arguments.softcap = static_cast<float>(given.softcap);
    const bool few = rows < kFewRows;
    Call call(out, Program::kAttention, Form::kF32, few ? "attention_rows" : "attention_tiles");
    call.Tensor(q).Tensor(k).Tensor(v).Optional(begin, q).Optional(lengths, q).Optional(bias, q).Tensor(out);
    call.Value(arguments);
    const std::int64_t images = shapes.batch * shapes.groups;
    if (few) return call.Groups(images * rows, (shapes.value_size + kRowColumns - 1) / kRowColumns, 1, 64, 1);
    const std::int64_t tiles = (rows + kAttentionTile - 1) / kAttentionTile;
    return call.Groups(images * tiles, (shapes.value_size + kAttentionTile - 1) / kAttentionTile, 1, 16, 16);
  }
};

}  // namespace

std::span<const Kernel> AttentionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Attention>(
          "q, k, v, begin?, lengths?, bias? -> out", "q, k, v, bias, out f32; begin, lengths i64",
          "scale = 0.0 (1 / sqrt(D)), softcap = 0.0, left = -1, right = -1, strict = 0",
          "as rewire.attention, for k and v of rank 4: no score is in the device's main memory"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
