// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot product attention without a matrix of scores. The keys go by in blocks. For each query there are
// the largest score so far, the sum of the exponentials relative to it, and the values added up with these as
// weights. A larger score scales both down.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "rewire/kernels/cpu/attention/attention_rows.h"
#include "rewire/kernels/cpu/attention/attention_shapes.h"
#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// What a call computes, once its arguments are checked.
struct AttentionCall : AttentionShapes {
  const float *q, *k, *v;
  const std::int64_t *begin, *lengths;  // null: none
  std::int64_t begin_step, lengths_step;
  const float* bias;  // null: none
  float scale, softcap;
  std::int64_t left, right;
  float* out;

  // Which element q (or out, whose vectors have `of` elements) has for a query of a head.
  std::int64_t At(std::int64_t b, std::int64_t head, std::int64_t i, std::int64_t of) const {
    return (joined ? (b * length + i) * heads + head : (b * heads + head) * length + i) * of;
  }
};

struct KeyRange {
  std::int64_t first = 0, last = 0;
};

// The keys that query i may see.
KeyRange KeysOf(const AttentionCall& call, std::int64_t b, std::int64_t i) {
  KeyRange range{0, call.visible};
  if (call.lengths != nullptr)
    range.last = std::clamp<std::int64_t>(call.lengths[b * call.lengths_step], 0, call.visible);
  if (call.left < 0 && call.right < 0) return range;
  const std::int64_t begin =
      call.begin == nullptr ? 0 : std::clamp(call.begin[b * call.begin_step], -kMostSize, kMostSize);
  const std::int64_t position = begin + i;
  if (call.left >= 0) range.first = std::max(range.first, position - call.left);
  if (call.right >= 0) range.last = std::min(range.last, position + call.right + 1);
  range.last = std::max(range.last, range.first);
  return range;
}

// Some queries that share a head of keys: the rows [first, first + rows) of groups * length, heads outermost.
class QueryBlock {
 public:
  static constexpr std::int64_t kMostRows = 32;
  static constexpr std::int64_t kKeys = 64;       // of a block
  static constexpr std::int64_t kMostSize = 256;  // of vectors that are multiplied as matrices

  QueryBlock(const AttentionCall& call, std::int64_t b, std::int64_t group, std::int64_t first,
             std::int64_t rows)
      : call_(call),
        b_(b),
        rows_(rows),
        keys_(call.k + (b * call.groups + group) * call.keys * call.size),
        values_(call.v + (b * call.groups + group) * call.keys * call.value_size) {
    const std::int64_t shared = call.heads / call.groups;
    for (std::int64_t r = 0; r < rows; ++r) {
      Row& row = row_[r];
      row.head = group * shared + (first + r) / call.length;
      row.query = (first + r) % call.length;
      row.range = KeysOf(call, b, row.query);
      row.out = call.out + call.At(b, row.head, row.query, call.value_size);
      std::fill_n(row.out, call.value_size, 0.0F);
    }
  }

  void Run(Pace& pace) {
    KeyRange all{call_.keys, 0};
    for (std::int64_t r = 0; r < rows_; ++r) {
      if (row_[r].range.first == row_[r].range.last) continue;
      all.first = std::min(all.first, row_[r].range.first);
      all.last = std::max(all.last, row_[r].range.last);
    }
    constexpr std::int64_t kRowsOfMatrix = 4;  // that are worth rearranging keys and values for
    const bool as_matrix = rows_ >= kRowsOfMatrix && call_.size <= kMostSize && call_.value_size <= kMostSize;
    if (!(as_matrix ? RunMatrices(all, pace) : RunRows(all, pace))) return;
    for (std::int64_t r = 0; r < rows_; ++r) {
      const float sum = row_[r].sum;
      if (sum != 0) math_.scaled(row_[r].out, 1 / sum, row_[r].out, call_.value_size);
    }
  }

 private:
  struct Row {
    std::int64_t head, query;
    KeyRange range;
    float* out;
    float largest = kNever, sum = 0;
  };

  std::int64_t WorkOf(std::int64_t keys, std::int64_t rows) const {
    return Times(Times(keys, rows), Plus(call_.size, call_.value_size)) / 4 + 16;
  }
  const float* QueryOf(const Row& row) const {
    return call_.q + call_.At(b_, row.head, row.query, call_.size);
  }

  bool RunRows(KeyRange all, Pace& pace) {
    float scores[kKeys];
    for (std::int64_t first = all.first; first < all.last; first += kKeys) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        Row& row = row_[r];
        const std::int64_t from = std::max(first, row.range.first);
        const std::int64_t count = std::min(std::min(first + kKeys, all.last), row.range.last) - from;
        if (count <= 0) continue;
        if (!pace.Spend(WorkOf(count, 1))) return false;
        rows_of_.scores(QueryOf(row), keys_ + from * call_.size, count, call_.size, call_.scale, scores);
        const float keep = Weigh(&row, from, count, scores);
        rows_of_.add_values(scores, values_ + from * call_.value_size, count, call_.value_size, keep,
                            row.out);
      }
    }
    return true;
  }

  // The keys of a block, turned, are a panel of a product with the queries, and the values are one of a
  // product with the weights.
  bool RunMatrices(KeyRange all, Pace& pace) {
    constexpr std::int64_t kPanels = kMostSize / kPanelWidth;
    alignas(64) float keys[kKeys * kMostSize];
    alignas(64) float values[kKeys * kPanels * kPanelWidth];
    alignas(64) float sums[kMostPanelRows * kMostSize];
    for (std::int64_t first = all.first; first < all.last; first += kKeys) {
      const std::int64_t count = std::min(kKeys, all.last - first);
      if (!pace.Spend(WorkOf(count, 4))) return false;
      PackKeys(first, count, keys);
      PackValues(first, count, values);
      for (std::int64_t r = 0; r < rows_;) {
        const int together = RowsOfTile(rows_ - r, panel_kernel_.rows);
        if (!pace.Spend(WorkOf(count, together))) return false;
        MultiplyRows(r, together, first, count, keys, values, sums);
        r += together;
      }
    }
    return true;
  }

  void MultiplyRows(std::int64_t r, int together, std::int64_t first, std::int64_t count, const float* keys,
                    const float* values, float* sums) {
    alignas(64) float scores[kMostPanelRows * kKeys];
    const float* pointers[kMostPanelRows];
    float keep[kMostPanelRows];
    PanelTile tile{};
    tile.rows = pointers;
    tile.count = together;
    tile.segments = 1;
    tile.depth = call_.size;
    tile.panel = keys;
    tile.columns = count;
    tile.out = scores;
    tile.step = kKeys;
    for (int i = 0; i < together; ++i) pointers[i] = QueryOf(row_[r + i]);
    panel_kernel_.run(tile);
    for (int i = 0; i < together; ++i) {
      Row& row = row_[r + i];
      float* of_row = scores + i * kKeys;
      pointers[i] = of_row;
      const std::int64_t from = std::clamp(row.range.first - first, std::int64_t{0}, count);
      const std::int64_t to = std::clamp(row.range.last - first, from, count);
      keep[i] = 1;
      if (from < to) {
        math_.scaled(of_row + from, call_.scale, of_row + from, to - from);
        keep[i] = Weigh(&row, first + from, to - from, of_row + from);
      }
      std::fill(of_row, of_row + from, 0.0F);
      std::fill(of_row + to, of_row + count, 0.0F);
    }
    tile.depth = count;
    tile.panel = values;
    tile.columns = call_.value_size;
    tile.out = sums;
    tile.step = call_.value_size;
    panel_kernel_.run(tile);
    for (int i = 0; i < together; ++i) {
      float* out = row_[r + i].out;
      const float* sum = sums + i * call_.value_size;
      for (std::int64_t d = 0; d < call_.value_size; ++d) out[d] = out[d] * keep[i] + sum[d];
    }
  }

  // Panels of kPanelWidth keys, one behind the other; element d of key j is at [d, j].
  void PackKeys(std::int64_t first, std::int64_t count, float* to) const {
    for (std::int64_t panel = 0; panel < PanelCount(count); ++panel) {
      const std::int64_t width = WidthOfPanel(panel, count), used = UsedOfPanel(panel, count);
      float* at = to + panel * kPanelWidth * call_.size;
      if (used < width) std::fill_n(at, width * call_.size, 0.0F);
      rows_of_.turn(keys_ + (first + panel * kPanelWidth) * call_.size, used, call_.size, at, width);
    }
  }
  void PackValues(std::int64_t first, std::int64_t count, float* to) const {
    const std::int64_t size = call_.value_size;
    for (std::int64_t panel = 0; panel < PanelCount(size); ++panel) {
      const std::int64_t width = WidthOfPanel(panel, size), used = UsedOfPanel(panel, size);
      float* at = to + panel * kPanelWidth * count;
      for (std::int64_t j = 0; j < count; ++j, at += width) {
        const float* from = values_ + (first + j) * size + panel * kPanelWidth;
        std::fill(std::copy_n(from, used, at), at + width, 0.0F);
      }
    }
  }

  // Turns scores of keys from `from` on into weights relative to the largest score so far. Returns the factor
  // of what was added up before.
  float Weigh(Row* row, std::int64_t from, std::int64_t count, float* scores) const {
    if (call_.softcap > 0) {
      math_.scaled(scores, 1 / call_.softcap, scores, count);
      math_.tanh(scores, scores, count);
      math_.scaled(scores, call_.softcap, scores, count);
    }
    if (call_.bias != nullptr) {
      const std::int64_t* strides = call_.bias_strides;
      const float* bias =
          call_.bias + b_ * strides[0] + row->head * strides[1] + row->query * strides[2] + from * strides[3];
      for (std::int64_t j = 0; j < count; ++j) scores[j] += bias[j * strides[3]];
    }
    const float most = math_.largest(scores, count);
    const float largest = most > row->largest || most != most ? most : row->largest;
    if (largest == kNever) {  // no key so far may be seen
      std::fill_n(scores, count, 0.0F);
      return 1;
    }
    const float keep = std::exp(row->largest - largest);
    row->sum = row->sum * keep + math_.shifted_exp(scores, largest, scores, count);
    row->largest = largest;
    return keep;
  }

  const AttentionCall& call_;
  std::int64_t b_, rows_;
  const float *keys_, *values_;
  const VectorMath& math_ = BestVectorMath();
  const AttentionRows& rows_of_ = BestAttentionRows();
  const PanelKernel& panel_kernel_ = BestPanelKernel();
  Row row_[kMostRows];
};

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
  static constexpr const char kName[] = "rewire.attention";
  AttentionAttributes given;
  static Status Make(Attributes& attributes, Attention* attention) {
    attention->given.Read(attributes);
    return Status();
  }

  Status operator()(TensorView q, TensorView k, TensorView v, std::optional<TensorView> begin,
                    std::optional<TensorView> lengths, std::optional<TensorView> bias, TensorView out) const {
    AttentionCall call{};
    if (Status s = ReadShapes(q, k, v, out, &call); !s.ok()) return s;
    Status counted = ReadCounts("begin", begin, call.batch, out, &call.begin, &call.begin_step);
    if (!counted.ok()) return counted;
    counted = ReadCounts("lengths", lengths, call.batch, out, &call.lengths, &call.lengths_step);
    if (!counted.ok()) return counted;
    if (Status s = ReadBias(bias, out, &call); !s.ok()) return s;
    call.scale = given.ScaleOf(call.size);
    call.softcap = static_cast<float>(given.softcap);
    call.left = given.left;
    call.right = given.right;
    if (out.size() == 0) return Status();
    const std::int64_t rows = Times(call.heads / call.groups, call.length);
    const std::int64_t blocks = (rows + QueryBlock::kMostRows - 1) / QueryBlock::kMostRows;
    const std::int64_t work =
        Times(Times(call.keys, std::min(rows, QueryBlock::kMostRows)), Plus(call.size, call.value_size)) / 4;
    return ParallelFor(Times(call.batch, call.groups, blocks), GrainOf(kGrain, work),
                       [&](std::int64_t first, std::int64_t last, Pace& pace) {
                         for (std::int64_t i = first; i < last; ++i) {
                           if (!pace.Spend(Times(QueryBlock::kMostRows, call.value_size))) return;
                           const std::int64_t row = i % blocks * QueryBlock::kMostRows;
                           const std::int64_t count = std::min(QueryBlock::kMostRows, rows - row);
                           const std::int64_t head = i / blocks;
                           QueryBlock(call, head / call.groups, head % call.groups, row, count).Run(pace);
                           if (pace.stopped()) return;
                         }
                       });
  }

 private:
  static Status ReadShapes(TensorView q, TensorView k, TensorView v, TensorView out, AttentionCall* call) {
    Checks checks;
    checks.Dense("q", q).Rank("k", k, 4).Rank("v", v, 4).Operands("k", k, "v", v, out);
    checks.SameDType("k", k, "q", q).SameDType("v", v, "q", q).SameDType("out", out, "q", q);
    checks.NoOverlap("out", out, "q", q);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!q.Is<float>()) return WrongDType(Types<float>(), "q", q);
    if (Status s = call->Resolve(q, k, v, out); !s.ok()) return s;
    call->q = q.data<float>();
    call->k = k.data<float>();
    call->v = v.data<float>();
    call->out = out.data<float>();
    return Status();
  }

  static Status ReadBias(const std::optional<TensorView>& bias, TensorView out, AttentionCall* call) {
    if (!IsGiven(bias)) return Status();
    Checks checks;
    checks.Dense("bias", *bias).SameDType("bias", *bias, "q", out).NoOverlap("out", out, "bias", *bias);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = call->ResolveBias(*bias); !s.ok()) return s;
    call->bias = bias->data<float>();
    return Status();
  }
};

}  // namespace

std::span<const Kernel> AttentionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Attention>(
          "q, k, v, begin?, lengths?, bias? -> out", "q, k, v, bias, out f32; begin, lengths i64",
          "scale = 0.0 (1 / sqrt(D)), softcap = 0.0, left = -1, right = -1",
          "softmax(q by k * scale + bias) by v, for q [B, H, L, D] or [B, L, H * D], k [B, G, S, D], v "
          "[B, G, S, E] with H a multiple of G. Scores are held within softcap by tanh before the bias [B, "
          "H, "
          "L, S] is added, which broadcasts and hides keys behind its last column. Query i stands at begin + "
          "i and sees at most `left` keys before that and `right` behind it, -1 all, and none from `lengths` "
          "on; begin and lengths are one number or [B]. A "
          "query that sees no key gives 0"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
