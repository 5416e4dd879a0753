// SPDX-License-Identifier: Apache-2.0
// The rules of shapes in kernels/contract say of expressions what they say of numbers.
#include "rewire/compiler/ir/shape_rules.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/contract/vision.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr auto kError = [](const auto&... parts) {
  return Fail(StatusCode::kInvalidArgument, RuleText(parts...));
};

// Two shapes and a list of axes or pads, which a rule is asked about.
struct Question {
  Ints a, b, list;
  std::size_t axis = 0;
};

std::optional<std::int64_t> Quotient(std::int64_t left, std::int64_t known) {
  return left % known == 0 ? std::optional(left / known) : std::nullopt;
}
std::optional<DimExpr> Quotient(const DimExpr& left, const DimExpr& known) {
  if (!left.IsConstant() || !known.IsConstant()) return DimExpr::FloorDiv(left, known);
  const std::optional<std::int64_t> rest = Quotient(*left.constant(), *known.constant());
  return rest ? std::optional<DimExpr>(*rest) : std::nullopt;
}

template <typename Size>
using Sizes = std::span<const Size>;

template <typename Size>
struct Rules {
  using Shapes = std::vector<Size>;
  struct Rule {
    const char* name;
    Status (*apply)(Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result);
    bool refuses = true;  // whether some of the shapes drawn do not fit
  };

  static Status Broadcast(Sizes<Size> a, Sizes<Size> b, Shapes* result) {
    return contract::BroadcastSizes(a, b, result, kError);
  }

  static constexpr Rule kAll[] = {
      {"broadcast",
       [](Sizes<Size> a, Sizes<Size> b, const Question&, Shapes* result) {
    return Broadcast(a, b, result); }},
      {"matmul", [](Sizes<Size> a, Sizes<Size> b, const Question&,
                    Shapes* result) {
    return contract::MatMulSizes(a, b, Broadcast, result, kError); }},
      {"gemm",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    contract::GemmAttributes gemm;
    gemm.transpose_a = asked.axis % 2 == 1;
    gemm.transpose_b = asked.axis / 2 == 1;
    return gemm.ProductSizes(a, b, result, kError);
       }},
      {"dense",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    return contract::DenseSizes(a, b, asked.axis % 2 == 1, result, kError);
       }},
      {"transpose",
       [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked, Shapes* result) {
    Ints order;
    return contract::PermutedSizes(a, asked.list, &order, result, kError);
       }},
      {"pad", [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked,
                 Shapes* result) {
    return contract::PaddedSizes(a, asked.list, result, kError); }},
      {"concat", [](Sizes<Size> a, Sizes<Size> b, const Question& asked,
                    Shapes* result) {
    return contract::ConcatSizes(a, b, asked.axis, 1, result, kError); }},
      {"split",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    if (asked.axis >= std::min(a.size(), b.size())) return Status();
    result->push_back(2);
    return contract::AddSplitPart(a, b, asked.axis, 0, &result->front(), kError);
       }},
      {"tile", [](Sizes<Size> a, Sizes<Size> b, const Question&,
                  Shapes* result) {
    return contract::TiledSizes(a, b, result, kError); }},
      {"squeeze",
       [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked, Shapes* result) {
    std::vector<bool> marked(a.size(), false);
    const Status fits = contract::MarkAxes(asked.list, a.size(), &marked, kError);
    return fits ? contract::SqueezedSizes(a, marked, result, kError) : fits;
       }},
      {"unsqueeze",
       [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked, Shapes* result) {
    const std::size_t rank = a.size() + asked.list.size();
    std::vector<bool> marked(rank, false);
    const Status fits = contract::MarkAxes(asked.list, rank, &marked, kError);
    if (fits) *result = contract::UnsqueezedSizes<Shapes>(a, marked, rank);
    return fits;
       }},
      {"reshape",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    Shapes target(b.begin(), b.end());
    if (asked.axis < target.size()) target[asked.axis] = -1;
    const auto quotient = [](const Size& left, const Size& known) { return Quotient(left, known); };
    return contract::ReshapedSizes(a, target, asked.list.size() % 2 == 1, quotient, result, kError);
       }},
      {"gather",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    return contract::GatheredSizes(a, b, asked.axis, result, kError);
       },
       false},
      {"gather_nd",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    const std::int64_t width = asked.b.empty() ? 0 : asked.b.back();
    const auto batch = static_cast<std::int64_t>(asked.axis) - 1;
    return contract::SlicesSizes(a, b, batch, width, result, kError);
       }},
      {"one_hot",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    return contract::OneHotSizes(a, asked.axis, b.empty() ? Size(3) : b[0], result, kError);
       },
       false},
      {"top_k",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    if (asked.axis >= a.size()) return Status();
    return contract::TopSizes(a, asked.axis, b.empty() ? Size(3) : b[0], result, kError);
       }},
      {"grid_sample", [](Sizes<Size> a, Sizes<Size> b, const Question&,
                         Shapes* result) {
    return contract::SampledSizes(a, b, result, kError); }},
      {"roi_align",
       [](Sizes<Size> a, Sizes<Size> b, const Question&, Shapes* result) {
    return contract::RegionSizes(a, b.first(std::min<std::size_t>(b.size(), 2)), 5, 7, result, kError);
       }},
      {"resize",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    const auto size = [&](std::size_t i, std::size_t) { return i < b.size() ? b[i] : Size(1); };
    return contract::ResizedSizes(a, asked.list, size, result, kError);
       }},
      {"conv",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    result->assign(a.begin(), a.end());
    return contract::CheckChannels(a, b, static_cast<std::int64_t>(asked.axis), kError);
       }},
      {"recurrent",
       [](Sizes<Size> a, Sizes<Size> b, const Question& asked, Shapes* result) {
    if (a.size() < 3 || b.empty()) return Status();
    const contract::LayerSizes<Size> layer(a, Size(2), b[0], 4, asked.axis % 2 == 1);
    result->assign(std::begin(layer.y), std::end(layer.y));
    result->insert(result->end(), std::begin(layer.state), std::end(layer.state));
    result->insert(result->end(), std::begin(layer.w), std::end(layer.w));
    result->insert(result->end(), std::begin(layer.b), std::end(layer.b));
    return Status();
       },
       false},
      {"layer_norm",
       [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked, Shapes* result) {
    *result = contract::StatisticsSizes<Shapes>(a, std::min(asked.axis, a.size()));
    return Status();
       },
       false},
      {"attention",
       [](Sizes<Size> a, Sizes<Size> /*b*/, const Question& asked, Shapes* result) {
    if (a.size() == 4) *result = contract::AttendedSizes<Shapes>(a[0], a[1], a[2], a[3], asked.axis % 2 == 1);
    return Status();
       },
       false},
  };
};

// Shapes that often fit: the second is made of the first one's sizes.
Question Draw(std::mt19937* random) {
  const auto below = [&](std::size_t count) { return (*random)() % count; };
  Question asked;
  asked.axis = below(4);
  for (std::size_t rank = below(5); rank > 0; --rank) asked.a.push_back(static_cast<std::int64_t>(below(4)));
  asked.b = asked.a;
  for (std::int64_t& size : asked.b) {
    if (below(4) == 0) size = static_cast<std::int64_t>(below(4));
  }
  if (!asked.b.empty() && below(4) == 0) asked.b.pop_back();
  if (!asked.b.empty() && below(4) == 0) asked.b.erase(asked.b.begin());
  if (below(4) == 0) asked.b.push_back(static_cast<std::int64_t>(below(4)));
  if (below(4) == 0) std::reverse(asked.b.begin(), asked.b.end());
  // An order, pads or a few axes.
  const std::size_t kind = below(3), rank = asked.a.size(), count = kind == 0 ? rank : below(3);
  for (std::size_t i = 0; i < count; ++i) asked.list.push_back(static_cast<std::int64_t>(i));
  std::shuffle(asked.list.begin(), asked.list.end(), *random);
  if (kind == 1) {
    asked.list.resize(2 * rank);
    for (std::int64_t& pad : asked.list) pad = static_cast<std::int64_t>(below(4)) - 1;
  }
  if (!asked.list.empty() && below(4) == 0) asked.list.front() = static_cast<std::int64_t>(below(8)) - 4;
  return asked;
}

// Each size as an expression: a number, or now and then a symbol with that value. Without `zeros`, a 0 is a
// number.
Shape Expressions(const Ints& sizes, bool zeros, std::mt19937* random,
                  std::map<std::string, std::int64_t>* values) {
  Shape shape;
  for (const std::int64_t size : sizes) {
    const std::string name = "s" + std::to_string(values->size());
    const bool is_open = random != nullptr && (*random)() % 2 == 0 && (zeros || size != 0);
    if (is_open) (*values)[name] = size;
    shape.push_back(is_open ? DimExpr::Symbol(name) : DimExpr(size));
  }
  return shape;
}

TEST_CASE("rules of shapes say of expressions what they say of numbers") {
  std::mt19937 random(20240817);
  for (std::size_t rule = 0; rule < std::size(Rules<DimExpr>::kAll); ++rule) {
    const auto& of_numbers = Rules<std::int64_t>::kAll[rule];
    const auto& of_expressions = Rules<DimExpr>::kAll[rule];
    int fit = 0, differ = 0, refused = 0;
    for (int i = 0; i < 2000; ++i) {
      const Question asked = Draw(&random);
      Ints sizes;
      const Status fits = of_numbers.apply(asked.a, asked.b, asked, &sizes);
      CAPTURE(of_numbers.name, asked.a, asked.b, asked.list, asked.axis);
      ++(fits ? fit : differ);
      std::map<std::string, std::int64_t> values;
      Shape same;
      const Shape a = Expressions(asked.a, true, nullptr, &values),
                  b = Expressions(asked.b, true, nullptr, &values);
      const Status of_constants = of_expressions.apply(a, b, asked, &same);
      REQUIRE(of_constants.has_value() == fits.has_value());
      if (!fits) REQUIRE(of_constants.error().message() == fits.error().message());
      if (fits) REQUIRE(ShapeText(same) == ShapeText(ShapeOfInts(sizes)));

      // With sizes that only a run knows, what fits is not refused, and gives the same sizes in that run.
      Shape open;
      // A 0 in the target of a reshape takes the other shape's size, if it is seen.
      const bool zeros = std::string(of_numbers.name) != "reshape";
      const Shape open_a = Expressions(asked.a, true, &random, &values);
      const Shape open_b = Expressions(asked.b, zeros, &random, &values);
      const Status of_open = of_expressions.apply(open_a, open_b, asked, &open);
      refused += of_open || values.empty() ? 0 : 1;
      if (!fits) continue;
      REQUIRE(of_open);
      for (DimExpr& size : open) {
        size =
            size.Replaced([&](const std::string& name) { return std::optional<DimExpr>(values.at(name)); });
      }
      REQUIRE(ShapeText(open) == ShapeText(ShapeOfInts(sizes)));
    }
    CAPTURE(of_numbers.name);
    CHECK(fit >= 50);
    if (!of_numbers.refuses) continue;
    CHECK(differ >= 50);
    CHECK(refused >= 10);
  }
}

TEST_CASE("sizes that no run makes equal are refused while compiling") {
  const DimExpr n = DimExpr::Symbol("N");
  const Shape a = {2, n}, b = {n + DimExpr(1), 3};
  Shape result;
  const auto broadcast = [](ShapeSpan left, ShapeSpan right, Shape* batch) {
    return contract::BroadcastSizes(left, right, batch, kError);
  };
  const Status product = contract::MatMulSizes(ShapeSpan(a), ShapeSpan(b), broadcast, &result, kError);
  REQUIRE_FALSE(product);
  CHECK(product.error().message() ==
        "a has shape [2, N] and b [N + 1, 3]: the inner dimensions N and N + 1 differ");
  // Either may be 1.
  CHECK(contract::BroadcastSizes(Shape{n}, Shape{n + DimExpr(1)}, &result, kError));
}

}  // namespace
}  // namespace rewire::compiler
