// SPDX-License-Identifier: Apache-2.0
// `rewire.shape.eval` in an abstract run: dimensions as expressions of others (docs/kernels.md has the
// codes), over intervals. A dimension of which only the most is known lies between 0 and that.
#include <algorithm>
#include <optional>

#include "base/interval.h"
#include "vm/bounds/bound_analysis.h"
#include "vm/shape.h"

namespace rewire::bounds {
namespace {

enum Code : std::int64_t { kPush, kDim, kAdd, kMultiply, kFloorDivide, kMaximum, kMinimum, kStore };

// Nothing where there is no such code.
std::optional<Interval> Apply(std::int64_t code, Interval a, Interval b) {
  switch (code) {
    case kAdd:
      return SumOf(a, b);
    case kMultiply:
      return ProductOf(a, b);
    case kFloorDivide:
      return FloorQuotientOf(a, b);
    case kMaximum:
      return LargerOf(a, b);
    case kMinimum:
      return SmallerOf(a, b);
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
      stack.push_back(Interval::Of(program[i + 1]));
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
      if (stack.back().most == Interval::kNoMost) return std::nullopt;
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
