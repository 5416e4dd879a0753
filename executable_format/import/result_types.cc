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
    std::map<std::uint32_t, State> states;  // before an instruction that a jump leads to
    Array<std::uint32_t> work;
    ShapeId result = kNothing;
    const auto reach = [&](std::uint32_t pc, const State& state) {
      if (pc >= function.code.size()) return;
      const auto [entry, is_new] = states.emplace(pc, state);
      bool changed = is_new;
      for (std::size_t i = 0; !is_new && i < state.size(); ++i) {
        const ShapeId joined = shapes_.Join(entry->second[i], state[i]);
        changed = changed || joined != entry->second[i];
        entry->second[i] = joined;
      }
      if (changed) work.push_back(pc);
    };
    State first(function.register_count, kNothing);
    std::fill_n(first.begin(), std::min(first.size(), function.inputs.size()), kAnything);
    reach(0, first);
    while (!work.empty()) {
      if (states.size() * first.size() > kMaxStateEntries || shapes_.exhausted()) return kAnything;
      shapes_.Count(first.size());
      std::uint32_t pc = work.back();
      work.pop_back();
      State state = states[pc];
      bool goes_on = true;
      while (goes_on && pc < function.code.size() && WordsOf(function.code[pc]) > 0) {
        const std::uint32_t* words = &function.code[pc];
        const Opcode opcode = OpcodeOf(*words);
        shapes_.Count(1);
        if (opcode == Opcode::kRet)
          result = shapes_.Join(result, Get(state, words[WordOf(Opcode::kRet, "result")]));
        if (opcode == Opcode::kGoto) reach(pc + words[WordOf(Opcode::kGoto, "target")], state);
        if (opcode == Opcode::kIf) {
          reach(pc + words[WordOf(Opcode::kIf, "if_true")], state);
          reach(pc + words[WordOf(Opcode::kIf, "if_false")], state);
        }
        const Flow flow = Info(opcode).flow;
        goes_on = flow == Flow::kNext || flow == Flow::kCall;
        if (goes_on) Transfer(words, &state);
        pc += WordsOf(*words);
        // What a jump leads to is joined there.
        if (goes_on && states.count(pc) != 0) {
          reach(pc, state);
          goes_on = false;
        }
      }
    }
    return result;
  }

  static ShapeId Get(const State& state, std::uint32_t reg) {
    return reg < state.size() ? state[reg] : kAnything;
  }

  void Transfer(const std::uint32_t* words, State* state) {
    ShapeId made = kAnything;
    switch (OpcodeOf(*words)) {
      case Opcode::kMove:
        made = Get(*state, words[WordOf(Opcode::kMove, "src")]);
        break;
      case Opcode::kAllocADT: {
        Array<ShapeId> fields;
        for (const std::uint32_t reg : ReadsView(words + WordOf(Opcode::kAllocADT, "fields")))
          fields.push_back(Get(*state, reg));
        made = shapes_.Adt(words[WordOf(Opcode::kAllocADT, "tag")], std::move(fields));
        break;
      }
      case Opcode::kGetField:
        made = shapes_.Field(Get(*state, words[WordOf(Opcode::kGetField, "object")]),
                             words[WordOf(Opcode::kGetField, "index")]);
        break;
      case Opcode::kInvoke:
        if (words[WordOf(Opcode::kInvoke, "function")] < results_.size())
          made = results_[words[WordOf(Opcode::kInvoke, "function")]];
        break;
      case Opcode::kRet:
      case Opcode::kInvokeClosure:
      case Opcode::kInvokePacked:
      case Opcode::kAllocTensor:
      case Opcode::kAllocTensorReg:
      case Opcode::kAllocClosure:
      case Opcode::kIf:
      case Opcode::kLoadConst:
      case Opcode::kGoto:
      case Opcode::kGetTag:
      case Opcode::kLoadConsti:
      case Opcode::kFatal:
      case Opcode::kAllocStorage:
      case Opcode::kShapeOf:
      case Opcode::kReshapeTensor:
      case Opcode::kDeviceCopy:
      case Opcode::kKillRegister:
        break;
    }
    ForEachRegister(words, [&](std::uint32_t reg, RegisterUse use) {
      if (use == RegisterUse::kWrite && reg < state->size()) (*state)[reg] = made;
    });
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
