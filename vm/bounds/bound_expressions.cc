// SPDX-License-Identifier: Apache-2.0
// `rewire.shape.eval` in an abstract run: dimensions as expressions of others (docs/kernels.md has the
// codes), over intervals. A dimension of which only the most is known lies between 0 and that.
#include <algorithm>
#include <limits>
#include <optional>

#include "vm/bounds/bound_analysis.h"
#include "vm/shape.h"

namespace rewire::bounds {
namespace {

enum Code : std::int64_t { kPush, kDim, kAdd, kMultiply, kFloorDivide, kMaximum, kMinimum, kStore };

struct Interval {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

std::int64_t FloorOf(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// x / 0 is 0. On either side of it the extremes are at the corners.
std::optional<Interval> Divide(Interval a, Interval b) {
  if (a.least == std::numeric_limits<std::int64_t>::min()) return std::nullopt;  // by -1 it is no int64
  std::optional<Interval> all;
  const auto add = [&](std::int64_t value) {
    all = all ? Interval{std::min(all->least, value), std::max(all->most, value)} : Interval{value, value};
  };
  if (b.least <= 0 && b.most >= 0) add(0);
  for (const Interval side : {Interval{b.least, std::min<std::int64_t>(b.most, -1)},
                              Interval{std::max<std::int64_t>(b.least, 1), b.most}}) {
    if (side.least > side.most) continue;
    for (const std::int64_t dividend : {a.least, a.most}) {
      add(FloorOf(dividend, side.least));
      add(FloorOf(dividend, side.most));
    }
  }
  return all;
}

// Nothing where a bound does not fit an int64.
std::optional<Interval> Apply(std::int64_t code, Interval a, Interval b) {
  Interval result;
  switch (code) {
    case kAdd:
      if (__builtin_add_overflow(a.least, b.least, &result.least) ||
          __builtin_add_overflow(a.most, b.most, &result.most)) {
        return std::nullopt;
      }
      return result;
    case kMultiply: {
      std::int64_t corners[4];
      if (__builtin_mul_overflow(a.least, b.least, &corners[0]) ||
          __builtin_mul_overflow(a.least, b.most, &corners[1]) ||
          __builtin_mul_overflow(a.most, b.least, &corners[2]) ||
          __builtin_mul_overflow(a.most, b.most, &corners[3])) {
        return std::nullopt;
      }
      const auto [least, most] = std::minmax_element(std::begin(corners), std::end(corners));
      return Interval{*least, *most};
    }
    case kFloorDivide:
      return Divide(a, b);
    case kMaximum:
      return Interval{std::max(a.least, b.least), std::max(a.most, b.most)};
    case kMinimum:
      return Interval{std::min(a.least, b.least), std::min(a.most, b.most)};
    default:
      return std::nullopt;
  }
}

const Attribute* Find(const KernelImport& import, const char* name) {
  for (const Attribute& attribute : import.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

// The most that each dimension can be; nothing where that is not known, or the program is none.
std::optional<std::vector<std::int64_t>> Evaluate(const std::vector<std::int64_t>& program,
                                                  const std::vector<const Contents*>& shapes) {
  std::vector<Interval> stack;
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::int64_t code = program[i];
    if (code == kPush && i + 1 < program.size()) {
      stack.push_back({program[i + 1], program[i + 1]});
      ++i;
    } else if (code == kDim && i + 2 < program.size()) {
      const auto shape = static_cast<std::uint64_t>(program[i + 1]);
      const auto axis = static_cast<std::uint64_t>(program[i + 2]);
      if (shape >= shapes.size() || shapes[shape] == nullptr || axis >= shapes[shape]->values.size())
        return std::nullopt;
      const std::int64_t most = shapes[shape]->values[axis];
      stack.push_back({shapes[shape]->exact ? most : 0, most});
      i += 2;
    } else if (code == kStore && !stack.empty()) {
      dims.push_back(std::max<std::int64_t>(stack.back().most, 0));  // a run that makes it negative fails
      stack.pop_back();
    } else if (stack.size() >= 2) {
      const Interval b = stack.back();
      stack.pop_back();
      const std::optional<Interval> result = Apply(code, stack.back(), b);
      if (!result) return std::nullopt;
      stack.back() = *result;
    } else {
      return std::nullopt;
    }
  }
  return dims;
}

}  // namespace

bool BoundAnalysis::FoldExpressions(const KernelImport& import, Span<const std::uint32_t> args,
                                    std::uint32_t outputs) {
  const Attribute* program = Find(import, "program");
  const Attribute* element = Find(import, "element_bytes");
  const auto* codes = program == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(&program->value);
  const auto* element_bytes = element == nullptr ? nullptr : std::get_if<std::int64_t>(&element->value);
  if (outputs != 2 || args.size() < 2 || codes == nullptr || (element != nullptr && element_bytes == nullptr))
    return false;
  std::vector<const Contents*> shapes;
  bool exact = true;
  for (std::size_t i = 0; i + 2 < args.size(); ++i) {
    shapes.push_back(heap_.ContentsOf(state(), Reg(args[i])));
    exact = exact && shapes.back() != nullptr && shapes.back()->exact;
  }
  std::optional<std::vector<std::int64_t>> dims = Evaluate(*codes, shapes);
  if (!dims) return false;
  std::int64_t bytes = element_bytes == nullptr ? 1 : *element_bytes;
  for (const std::int64_t dim : *dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  const NodeId shape = Reg(args[args.size() - 2]), size = Reg(args[args.size() - 1]);
  Invalidate(shape);
  Invalidate(size);
  const std::uint32_t origin = exact ? 0 : Site();
  state().SetFact(shape, heap_.AddContents({*std::move(dims), exact, origin}));
  state().SetFact(size, heap_.AddContents({{bytes}, exact, origin}));
  return true;
}

}  // namespace rewire::bounds
