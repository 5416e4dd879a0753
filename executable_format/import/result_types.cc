// SPDX-License-Identifier: Apache-2.0
//
// An abstract interpretation over the shapes of ADTs. A register holds nothing yet, an ADT with known fields,
// or anything. Where paths meet, ADTs with the same tag and field count are joined field by field. Joining
// never makes trees deeper, so loops that build lists end at "anything".
#include "rewire/executable_format/import/result_types.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/forward_dataflow.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::tvm {
namespace {

constexpr std::size_t kMaxLeaves = 4096;
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxStateEntries = std::size_t{1} << 24;
constexpr int kMaxRounds = 64;  // calls go as deep as that from a function to those behind it
// Steps, one a register or a field that is joined: what is not inferred by then stays open.
constexpr std::size_t kMaxInferenceSteps = std::size_t{1} << 24;
// A small function can build a large tree. All functions together get a tree's leaf for so many words of
// their code, and one full tree.
constexpr std::size_t kLeavesPerWord = 4;

using ShapeId = std::uint32_t;
constexpr ShapeId kNothing = 0;
constexpr ShapeId kAnything = 1;

// Shapes, each kept once: equal shapes have equal numbers.
class Shapes {
 public:
  struct Shape {
    std::uint32_t tag = 0;
    Array<ShapeId> fields;
    std::size_t leaves = 1;
    std::size_t depth = 0;
  };

  // Whether more registers and fields were looked at than the limit.
  bool exhausted() const { return steps_ > kMaxInferenceSteps; }
  void Count(std::size_t steps) { steps_ += steps; }
  std::size_t LeavesOf(ShapeId shape) const { return shapes_[shape].leaves; }

  ShapeId Adt(std::uint32_t tag, Array<ShapeId> fields) {
    Count(1 + fields.size());
    if (exhausted()) return kAnything;
    Shape shape{tag, fields, 0, 0};
    for (const ShapeId field : fields) {
      shape.leaves += shapes_[field].leaves;
      shape.depth = std::max(shape.depth, shapes_[field].depth + 1);
    }
    if (shape.leaves > kMaxLeaves || shape.depth > kMaxDepth) return kAnything;
    const auto [entry, is_new] =
        ids_.emplace(std::pair(tag, std::move(fields)), static_cast<ShapeId>(shapes_.size()));
    if (is_new) shapes_.push_back(std::move(shape));
    return entry->second;
  }
  // As deep as the shapes are, at most kMaxDepth.
  ShapeId Join(ShapeId a, ShapeId b) {
    Count(1);
    if (a == b || b == kNothing) return a;
    if (a == kNothing) return b;
    if (a == kAnything || b == kAnything || shapes_[a].tag != shapes_[b].tag ||
        shapes_[a].fields.size() != shapes_[b].fields.size()) {
      return kAnything;
    }
    Array<ShapeId> fields;
    for (std::size_t i = 0; i < shapes_[a].fields.size(); ++i)
      fields.push_back(Join(shapes_[a].fields[i], shapes_[b].fields[i]));
    return Adt(shapes_[a].tag, std::move(fields));
  }
  ShapeId Field(ShapeId shape, std::uint32_t index) const {
    if (shape == kNothing) return kNothing;
    return index < shapes_[shape].fields.size() ? shapes_[shape].fields[index] : kAnything;
  }
  // Names of leaves are paths: "output.1.0".
  void Append(ShapeId shape, const std::string& name, Type* type, Array<std::string>* names) const {
    TypeNode node;
    if (shape > kAnything) {
      node.kind = TypeKind::kAdt;
      node.tag = shapes_[shape].tag;
      node.field_count = static_cast<std::uint32_t>(shapes_[shape].fields.size());
    }
    type->nodes.push_back(node);
    if (shape <= kAnything) names->push_back(name);
    for (std::size_t i = 0; i < shapes_[shape].fields.size(); ++i)
      Append(shapes_[shape].fields[i], name + "." + std::to_string(i), type, names);
  }

 private:
  std::size_t steps_ = 0;
  Array<Shape> shapes_ = Array<Shape>(2);
  std::map<std::pair<std::uint32_t, Array<ShapeId>>, ShapeId> ids_;
};

class ResultAnalysis {
 public:
  ResultAnalysis(const Module& module, Shapes* shapes)
      : module_(module), shapes_(*shapes), results_(module.functions.size(), kNothing) {}

  // By function; empty when it did not settle.
  Array<ShapeId> Run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = false;
      for (std::size_t i = 0; i < results_.size(); ++i) {
        const ShapeId result = ResultOf(module_.functions[i]);
        if (shapes_.exhausted()) return {};
        changed = changed || result != results_[i];
        results_[i] = result;
      }
      if (!changed) return results_;
    }
    return {};
  }

 private:
  using State = Array<ShapeId>;

  ShapeId ResultOf(const Function& function) {
    if (function.code.empty()) return kNothing;  // the verifier refuses it
    const Array<BasicBlock> blocks = FindBlocks(function.code);
    if (blocks.size() * std::size_t{function.register_count} > kMaxStateEntries) return kAnything;
    ForwardDataflow<State> flow(blocks.size());
    const auto join = [this](State* known, const State& state) {
      bool changed = false;
      for (std::size_t i = 0; i < state.size(); ++i) {
        const ShapeId joined = shapes_.Join((*known)[i], state[i]);
        changed = changed || joined != (*known)[i];
        (*known)[i] = joined;
      }
      return changed;
    };
    State first(function.register_count, kNothing);
    std::fill_n(first.begin(), function.inputs.size(), kAnything);
    flow.Reach(0, first, join);
    ShapeId result = kNothing;
    for (std::uint32_t block = flow.Next(); block != flow.kNowhere; block = flow.Next()) {
      shapes_.Count(first.size());
      State state = flow.entry(block);
      for (std::uint32_t pc = blocks[block].begin; pc < blocks[block].end; pc += WordsOf(function.code[pc])) {
        if (shapes_.exhausted()) return kAnything;
        shapes_.Count(1);
        const std::uint32_t* words = &function.code[pc];
        if (const std::uint32_t returned = EffectsOf(words).result; returned != 0)
          result = shapes_.Join(result, state[words[returned]]);
        if (const std::uint32_t dst = ChangedRegister(words); dst != kNone) state[dst] = MadeBy(words, state);
      }
      for (const std::uint32_t successor : blocks[block].successors()) flow.Reach(successor, state, join);
    }
    return result;
  }

  ShapeId MadeBy(const std::uint32_t* words, const State& state) {
    const Effects& effects = EffectsOf(words);
    switch (effects.makes) {
      case Makes::kSame:
        return state[words[effects.source]];
      case Makes::kField:
        return shapes_.Field(state[words[effects.source]], words[WordOf(Opcode::kGetField, "index")]);
      case Makes::kTuple: {
        Array<ShapeId> fields;
        for (const std::uint32_t reg : ReadsView(words + effects.source)) fields.push_back(state[reg]);
        return shapes_.Adt(words[WordOf(Opcode::kAllocADT, "tag")], std::move(fields));
      }
      case Makes::kCalled:
        return effects.function != 0 && words[effects.function] < results_.size()
                   ? results_[words[effects.function]]
                   : kAnything;
      case Makes::kNone:
      case Makes::kNothing:
      case Makes::kView:
      case Makes::kClosure:
      case Makes::kTensor:
      case Makes::kShape:
      case Makes::kCopy:
      case Makes::kComputed:
      case Makes::kStorage:
      case Makes::kInteger:
      case Makes::kLoaded:
        return kAnything;
    }
    return kAnything;
  }

  const Module& module_;
  Shapes& shapes_;
  Array<ShapeId> results_;
};

}  // namespace

void InferResults(Module* module) {
  Shapes shapes;
  const Array<ShapeId> results = ResultAnalysis(*module, &shapes).Run();
  std::size_t leaves_left = kMaxLeaves;
  for (const Function& function : module->functions) leaves_left += kLeavesPerWord * function.code.size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Function& function = module->functions[i];
    const std::size_t leaves = shapes.LeavesOf(results[i]);
    if (leaves > leaves_left) continue;
    if (results[i] <= kAnything || function.result.nodes.size() != 1 ||
        function.result.nodes[0].kind != TypeKind::kValue) {
      continue;
    }
    Type type;
    Array<std::string> names;
    shapes.Append(results[i], function.output_names[0], &type, &names);
    if (names.empty()) continue;
    leaves_left -= leaves;
    function.result = std::move(type);
    function.output_names = std::move(names);
  }
}

}  // namespace rewire::tvm
