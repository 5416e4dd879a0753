// SPDX-License-Identifier: Apache-2.0
// `rewire.shape.eval`, `.sizes` and `.layout` in an abstract run: dimensions as expressions of others
// (docs/kernels.md has the codes), over intervals, and where blocks of such sizes lie. A dimension of which
// only the most is known lies between 0 and that.
#include <algorithm>
#include <optional>

#include "rewire/base/array.h"
#include "rewire/base/interval.h"
#include "rewire/vm/kernel/size_rules.h"
#include "rewire/vm/prepare/bound_analysis.h"
#include "rewire/vm/value/shape.h"

namespace rewire::bounds {
namespace {

using enum SizeCodes::Code;

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
    case kBroadcast:
      return EitherOf(a, b);
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

const Array<std::int64_t>* FindInts(const KernelImport& import, const char* name) {
  const Attribute* attribute = Find(import, name);
  return attribute == nullptr ? nullptr : std::get_if<Array<std::int64_t>>(&attribute->value);
}

// The numbers that the program stores; nothing where that is not known, or the program is none.
std::optional<Array<Interval>> Evaluate(const Array<std::int64_t>& program,
                                        const Array<const Contents*>& shapes) {
  constexpr std::int64_t kStored = -1;  // in place of a shape
  Array<Interval> stack, stored;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::int64_t code = program[i];
    if (code == kPush && i + 1 < program.size()) {
      stack.push_back(Interval::Of(program[i + 1]));
      ++i;
    } else if (code == kDim && i + 2 < program.size()) {
      const auto shape = static_cast<std::uint64_t>(program[i + 1]);
      const auto axis = static_cast<std::uint64_t>(program[i + 2]);
      if (program[i + 1] == kStored) {
        if (axis >= stored.size()) return std::nullopt;
        stack.push_back(stored[axis]);
      } else {
        if (shape >= shapes.size() || shapes[shape] == nullptr || axis >= shapes[shape]->values.size())
          return std::nullopt;
        const std::int64_t most = shapes[shape]->values[axis];
        stack.push_back({shapes[shape]->exact ? most : 0, most});
      }
      i += 2;
    } else if (code == kStore && !stack.empty()) {
      stored.push_back(stack.back());
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
  return stored;
}

// The end of the last block. Larger blocks never make it smaller. nullopt if a size has no bound, or if there
// are no blocks.
std::optional<std::int64_t> TotalOf(const Array<std::int64_t>& blocks, const Array<Interval>& sizes) {
  constexpr std::int64_t kAlignment = 64;
  Array<std::int64_t> ends;
  std::int64_t total = 0;
  for (std::size_t i = 0; i + 1 < blocks.size();) {
    const auto size = static_cast<std::uint64_t>(blocks[i]);
    const auto count = static_cast<std::uint64_t>(blocks[i + 1]);
    i += 2;
    if (size >= sizes.size() || count > blocks.size() - i) return std::nullopt;
    std::int64_t end = 0;
    for (const std::size_t last = i + count; i < last; ++i) {
      const auto below = static_cast<std::uint64_t>(blocks[i]);
      if (below >= ends.size()) return std::nullopt;
      end = std::max(end, ends[below]);
    }
    std::int64_t bytes = std::max<std::int64_t>(sizes[size].most, 0);
    if (__builtin_add_overflow(bytes, kAlignment - 1, &bytes) ||
        __builtin_add_overflow(end, bytes - bytes % kAlignment, &end)) {
      return std::nullopt;
    }
    ends.push_back(end);
    total = std::max(total, end);
  }
  return total;
}

}  // namespace

Array<const Contents*> BoundAnalysis::ShapesOf(Span<const std::uint32_t> args, bool* exact) const {
  Array<const Contents*> shapes;
  *exact = true;
  for (const std::uint32_t arg : args) {
    shapes.push_back(heap_.ContentsOf(state(), Reg(arg)));
    *exact = *exact && shapes.back() != nullptr && shapes.back()->exact;
  }
  return shapes;
}

bool BoundAnalysis::FoldExpressions(const KernelImport& import, Span<const std::uint32_t> args,
                                    std::uint32_t outputs) {
  const Array<std::int64_t>* program = FindInts(import, "program");
  const Attribute* element = Find(import, "element_bytes");
  const auto* element_bytes = element == nullptr ? nullptr : std::get_if<std::int64_t>(&element->value);
  if (outputs != 2 || args.size() < 2 || program == nullptr ||
      (element != nullptr && element_bytes == nullptr))
    return false;
  bool exact = true;
  const Array<const Contents*> shapes = ShapesOf({args.data(), args.size() - 2}, &exact);
  meter_.Spend(program->size());
  const std::optional<Array<Interval>> stored = Evaluate(*program, shapes);
  if (!stored) return false;
  Array<std::int64_t> dims;
  std::int64_t bytes = element_bytes == nullptr ? 1 : *element_bytes;
  for (const Interval dim : *stored) {
    if (dim.most == Interval::kNoMost) return false;
    dims.push_back(std::max<std::int64_t>(dim.most, 0));  // a run that makes it negative fails
    if (__builtin_mul_overflow(bytes, dims.back(), &bytes)) return false;
  }
  const NodeId shape = Reg(args[args.size() - 2]), size = Reg(args[args.size() - 1]);
  Invalidate(shape);
  Invalidate(size);
  const std::uint32_t origin = exact ? 0 : Site();
  state().SetFact(shape, heap_.AddContents({std::move(dims), exact, origin}));
  state().SetFact(size, heap_.AddContents({{bytes}, exact, origin}));
  return true;
}

bool BoundAnalysis::FoldSizes(const KernelImport& import, Span<const std::uint32_t> args,
                              std::uint32_t outputs) {
  const Array<std::int64_t>* program = FindInts(import, "program");
  const Array<std::int64_t>* lengths = FindInts(import, "outputs");
  if (program == nullptr || lengths == nullptr || outputs != lengths->size() || outputs > args.size())
    return false;
  bool exact = true;
  const Array<const Contents*> shapes = ShapesOf({args.data(), args.size() - outputs}, &exact);
  meter_.Spend(program->size());
  const std::optional<Array<Interval>> stored = Evaluate(*program, shapes);
  if (!stored) return false;
  Array<Array<std::int64_t>> contents;
  std::size_t next = 0;
  for (const std::int64_t length : *lengths) {
    Array<std::int64_t> numbers;
    for (std::int64_t i = 0; i < (length < 0 ? 1 : length); ++i, ++next) {
      if (next >= stored->size() || (*stored)[next].most == Interval::kNoMost) return false;
      numbers.push_back(std::max<std::int64_t>((*stored)[next].most, 0));
    }
    contents.push_back(std::move(numbers));
  }
  const Span<const std::uint32_t> written(args.data() + args.size() - outputs, outputs);
  for (const std::uint32_t output : written) Invalidate(Reg(output));
  // An inexact size differs from output to output: each has a site of its own.
  for (std::uint32_t i = 0; i < outputs; ++i) {
    const std::uint32_t origin = exact ? 0 : Site(i + 1);
    state().SetFact(Reg(written[i]), heap_.AddContents({std::move(contents[i]), exact, origin}));
  }
  return true;
}

bool BoundAnalysis::FoldLayout(const KernelImport& import, Span<const std::uint32_t> args,
                               std::uint32_t outputs) {
  const Array<std::int64_t>* program = FindInts(import, "program");
  const Array<std::int64_t>* blocks = FindInts(import, "blocks");
  if (program == nullptr || blocks == nullptr || outputs == 0 || outputs > args.size()) return false;
  bool exact = true;
  const Array<const Contents*> shapes = ShapesOf({args.data(), args.size() - outputs}, &exact);
  const std::optional<Array<Interval>> sizes = Evaluate(*program, shapes);
  const std::optional<std::int64_t> total = sizes ? TotalOf(*blocks, *sizes) : std::nullopt;
  if (!total) return false;
  for (std::size_t i = args.size() - outputs; i < args.size(); ++i) Invalidate(Reg(args[i]));
  state().SetFact(Reg(args[args.size() - 1]), heap_.AddContents({{*total}, exact, exact ? 0 : Site()}));
  return true;
}

}  // namespace rewire::bounds
