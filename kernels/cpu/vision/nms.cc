// SPDX-License-Identifier: Apache-2.0
//
// Non-maximum suppression: of overlapping boxes, only the one with the highest score is kept.
#include <algorithm>

#include "rewire/kernels/contract/vision.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/paced_sort.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

struct Box {
  float y0, x0, y1, x1;

  float area() const { return (y1 - y0) * (x1 - x0); }
};

float IntersectionOverUnion(const Box& a, const Box& b) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  const float both = height * width;
  return both / (a.area() + b.area() - both);
}

// boxes [batches, boxes, 4], scores [batches, classes, boxes].
struct Suppression {
  bool center_point = false;

  void Read(Attributes& attributes) { center_point = attributes.Bool("center_point_box", false); }

  // Checks the arguments and finds the boxes; `found` [room, 3] gets (batch, class, box), as far as it goes.
  // Gives how many there are.
  Status Run(TensorView boxes, TensorView scores, const std::optional<TensorView>& most,
             const std::optional<TensorView>& iou, const std::optional<TensorView>& least_score,
             std::int64_t* found, std::int64_t room, std::int64_t* count) const {
    Checks checks;
    checks.Dense("boxes", boxes).Dense("scores", scores).Rank("boxes", boxes, 3).Rank("scores", scores, 3);
    if (Status s = checks.Take(); !s.ok()) return s;
    const std::int64_t of_boxes[] = {scores.dim(0), scores.dim(2), 4};
    if (Status s = CheckShape("boxes", boxes, ShapeView(of_boxes, 3)); !s.ok()) return s;
    if (!boxes.Is<float>()) return WrongDType(Types<float>(), "boxes", boxes);
    if (!scores.Is<float>()) return WrongDType(Types<float>(), "scores", scores);
    std::int64_t limit = 0;
    double most_iou = 0;
    double threshold = 0;
    if (IsGiven(most)) {
      if (Status s = ReadInt("max_output_boxes_per_class", *most, &limit); !s.ok()) return s;
    }
    if (IsGiven(iou)) {
      if (Status s = ReadNumber("iou_threshold", *iou, &most_iou); !s.ok()) return s;
    }
    if (IsGiven(least_score)) {
      if (Status s = ReadNumber("score_threshold", *least_score, &threshold); !s.ok()) return s;
    }
    const std::int64_t candidates = boxes.dim(1);
    std::int64_t* order = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, candidates), &order); !s.ok()) return s;
    *count = 0;
    const std::int64_t classes = scores.dim(1);
    Pace pace;
    for (std::int64_t i = 0; i < Times(scores.dim(0), classes); ++i) {
      const float* score = scores.data<float>() + i * candidates;
      const float* coordinates = boxes.data<float>() + i / classes * candidates * 4;
      std::int64_t size = 0;
      for (std::int64_t b = 0; b < candidates; ++b) {
        if (!pace.Spend(1)) return Stopped();
        if (!IsGiven(least_score) || static_cast<double>(score[b]) > threshold) order[size++] = b;
      }
      // NaN is no score to sort by; it counts as the lowest.
      const auto is_before = [score](std::int64_t a, std::int64_t b) {
        const bool a_less = score[a] < score[b] || (score[a] != score[a] && score[b] == score[b]);
        const bool b_less = score[b] < score[a] || (score[b] != score[b] && score[a] == score[a]);
        return a_less == b_less ? a < b : b_less;
      };
      if (!pace.Spend(1) || !PacedSort(is_before, 1, pace).Sort(order, order + size)) return Stopped();
      // The boxes that stay move to the front of `order`.
      std::int64_t kept = 0;
      for (std::int64_t k = 0; k < size && kept < limit; ++k) {
        const Box box = BoxAt(coordinates, order[k]);
        bool overlaps = false;
        const bool compared = pace.For(kept, 8, [&](std::int64_t begin, std::int64_t end) {
          overlaps =
              overlaps || std::any_of(order + begin, order + end, [&](std::int64_t other) {
                return static_cast<double>(IntersectionOverUnion(box, BoxAt(coordinates, other))) > most_iou;
              });
        });
        if (!compared || !pace.Spend(4)) return Stopped();
        if (overlaps) continue;
        order[kept++] = order[k];
        if (*count < room) {
          const std::int64_t row[] = {i / classes, i % classes, order[kept - 1]};
          std::copy_n(row, 3, found + *count * 3);
        }
        ++*count;
      }
    }
    return Status();
  }
  // The candidates of one class, in order.
  static bool DeclareWorkspace(WorkspaceSizes& sizes) {
    const DLTensor* boxes = sizes.Tensor(0, 3);
    if (boxes == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, boxes->shape[1]), sizeof(std::int64_t));
    return true;
  }

 private:
  // Corners in any order, or center and size.
  Box BoxAt(const float* coordinates, std::int64_t i) const {
    const float* c = coordinates + i * 4;
    if (center_point) return {c[1] - c[3] / 2, c[0] - c[2] / 2, c[1] + c[3] / 2, c[0] + c[2] / 2};
    return {std::min(c[0], c[2]), std::min(c[1], c[3]), std::max(c[0], c[2]), std::max(c[1], c[3])};
  }
};

struct Nms : WithAttributes<Suppression> {
  static constexpr const char* kName = names::kNms;
  Status operator()(TensorView boxes, TensorView scores, std::optional<TensorView> most,
                    std::optional<TensorView> iou, std::optional<TensorView> least_score,
                    TensorView out) const {
    Checks checks;
    checks.Dense("out", out).Rank("out", out, 2);
    checks.NoOverlap("out", out, "boxes", boxes).NoOverlap("out", out, "scores", scores);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out);
    const std::int64_t room = out.dim(1) == 3 ? out.dim(0) : 0;
    std::int64_t count = 0;
    Status s = Run(boxes, scores, most, iou, least_score, out.data<std::int64_t>(), room, &count);
    if (!s.ok()) return s;
    const std::int64_t expected[] = {count, 3};
    return CheckShape("out", out, ShapeView(expected, 2));
  }
};

struct NmsShape : WithAttributes<Suppression> {
  static constexpr const char* kName = names::kShapeNms;
  Status operator()(TensorView boxes, TensorView scores, std::optional<TensorView> most,
                    std::optional<TensorView> iou, std::optional<TensorView> least_score,
                    TensorView out) const {
    std::int64_t count = 0;
    Status s = Run(boxes, scores, most, iou, least_score, nullptr, 0, &count);
    if (!s.ok()) return s;
    const std::int64_t shape[] = {count, 3};
    return WriteShape(Dims(ShapeView(shape, 2)), out);
  }
};

constexpr const char kArguments[] =
    "boxes, scores, max_output_boxes_per_class?, iou_threshold?, score_threshold? -> out";
constexpr const char kNmsTypes[] = "boxes, scores f32; others one number; out i64";

}  // namespace

std::span<const Kernel> NmsKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Nms>(
          kArguments, kNmsTypes, "center_point_box = 0",
          "of boxes [N, B, 4] with scores [N, C, B] those kept as (batch, class, box), out [count, 3], by "
          "falling score"),
      Describe<NmsShape>(kArguments, kNmsTypes, "center_point_box = 0",
                         "the shape of rewire.nms' out from the same arguments"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
