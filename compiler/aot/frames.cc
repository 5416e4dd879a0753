// SPDX-License-Identifier: Apache-2.0
// How the states of a program are found: frames, and what holds where paths meet.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/compiler/aot/static_program.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::aot {

StaticProgram::StaticProgram(const SourceParts& parts, std::uint32_t function,
                             std::map<std::uint32_t, std::int64_t> sizes, PlacesOf places)
    : module_(parts.module),
      options_(parts.options),
      literals_(parts.literals),
      calls_(parts.calls),
      known_calls_(parts.known_calls),
      plans_(parts.plans),
      sizes_(std::move(sizes)),
      places_(places),
      meter_(WorkMeter::Budget{"emitting C"}) {
  root_.function = function;
  root_.facts = &FactsOf(function);
}

const FunctionFacts& StaticProgram::FactsOf(std::uint32_t function) {
  std::unique_ptr<FunctionFacts>& facts = facts_[function];
  if (!facts) facts = std::make_unique<FunctionFacts>(module_.functions[function], &meter_);
  return *facts;
}

std::string StaticProgram::Where() const {
  const Function& function = module_.functions[frame_->function];
  std::string text =
      fmt::format("{}@{} ({})", function.name, pc_, ShortInstructionText(module_, function, pc_));
  const std::string note = SourceTextAt(function, pc_);
  return note.empty() ? text : fmt::format("{} [{}]", text, note);
}

Status StaticProgram::Refuse(const std::string& why) const {
  return Fail(StatusCode::kUnsupported, "{}: {}", Where(), why);
}

// The value of an input whose type begins at `*node`, and its leaves. `*node` is then one past the type.
Result<Value> StaticProgram::InputOf(const NamedType& input, const std::string& name, std::uint32_t* node) {
  const auto refuse = [&](const char* why) {
    return Fail(StatusCode::kUnsupported, "{}: input {} is {}, which {}",
                module_.functions[root_.function].name, input.name,
                TypeText(input.type, {module_.symbols.data(), module_.symbols.size()}), why);
  };
  const TypeNode& type = input.type.nodes[(*node)++];
  Value value;
  if (type.kind == TypeKind::kAdt) {
    value.kind = Value::Kind::kAdt;
    value.number.value = type.tag;
    for (std::uint32_t i = 0; i < type.field_count; ++i) {
      Result<Value> field = InputOf(input, fmt::format("{}.{}", name, i), node);
      if (!field) return field;
      value.fields.push_back(*std::move(field));
    }
    return value;
  }
  if (type.kind != TypeKind::kTensor)
    return refuse("no C function can take; tensors and tuples of them it can");
  if (type.device != kHostDevice) return refuse("lies on a device; only host memory can be used");
  bool is_static = type.rank >= 0 && type.dtype != kUnknownDType;
  for (const Dim dim : type.dims) {
    const auto size = IsSymbol(dim) ? sizes_.find(SymbolOf(dim)) : sizes_.end();
    is_static = is_static && (dim >= 0 || size != sizes_.end());
    if (is_static) value.dims.push_back(dim >= 0 ? dim : size->second);
  }
  if (!is_static) return refuse("has an unknown rank, dtype or dimension, and C source needs each");
  value.kind = Value::Kind::kTensor;
  value.dtype = type.dtype;
  value.is_read_only = true;
  value.bytes = TensorBytes(type.dtype, {value.dims.data(), value.dims.size()}).value_or(0);
  value.place = {Place::Base::kInput, static_cast<std::uint32_t>(inputs_.size()), 0};
  inputs_.push_back({name, true, type.dtype, value.dims});
  return value;
}

// The arguments of the entry point, as its signature says.
Status StaticProgram::BindInputs() {
  for (const NamedType& input : module_.functions[root_.function].inputs) {
    std::uint32_t node = 0;
    Result<Value> value = InputOf(input, input.name, &node);
    if (!value) return Forward(value);
    root_.arguments.push_back(*std::move(value));
  }
  return {};
}

// The leaves of the result: what the first walk has found.
Status StaticProgram::FindOutputs() {
  const Function& function = module_.functions[root_.function];
  outputs_.clear();
  if (!root_.result) return {};  // it always fails
  Status status;
  const auto visit = [&](const Value& part) {
    if (part.kind == Value::Kind::kAdt || !status) return;
    Leaf leaf;
    leaf.is_tensor = part.kind == Value::Kind::kTensor;
    if (!leaf.is_tensor && part.kind != Value::Kind::kInteger) {
      status = Fail(StatusCode::kUnsupported, "{} returns {}, which no C caller can take", function.name,
                    KindName(part.kind));
      return;
    }
    leaf.dtype = leaf.is_tensor ? part.dtype : part.is_narrow ? kInt32 : kInt64;
    leaf.dims = part.dims;
    outputs_.push_back(std::move(leaf));
  };
  // Each field of an ADT inside is a leaf. The values that a closure has captured are not looked at.
  std::vector<const Value*> open = {&*root_.result};
  while (!open.empty()) {
    const Value* value = open.back();
    open.pop_back();
    visit(*value);
    if (value->kind != Value::Kind::kAdt) continue;
    for (auto field = value->fields.rbegin(); field != value->fields.rend(); ++field) open.push_back(&*field);
  }
  const bool named = outputs_.size() == function.output_names.size();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].name = named ? function.output_names[i] : fmt::format("output{}", i);
  }
  return status;
}

Status StaticProgram::Analyze() {
  frame_ = &root_;
  if (Status bound = BindInputs(); !bound) return bound;
  // The leaves of the declared result that are planned and those of the value are the same if their number
  // is.
  const std::size_t planned = plans_[root_.function].leaves.size();
  pass_ = Pass::kStates;
  for (int round = 0; round < 2; ++round) {
    sites_.clear();
    site_numbers_.clear();
    variables_.clear();
    variable_numbers_.clear();
    root_.callees.clear();
    instructions_ = 0;
    root_.destinations.assign(planned, Frame::kNowhere);
    if (outputs_known_ && outputs_.size() == planned) {
      for (std::size_t i = 0; i < planned; ++i) root_.destinations[i] = static_cast<std::int32_t>(i);
    }
    if (Status ran = RunFrame(&root_); !ran) return ran;
    if (Status found = FindOutputs(); !found) return found;
    // Once the types of the result are known, tensors can be made in the caller's memory.
    outputs_known_ = true;
  }
  FindTargets(&variables_);
  pass_ = Pass::kMemory;
  if (Status walked = WalkFrame(&root_); !walked) return walked;
  if (Status separate = CheckOverlaps(); !separate) return separate;
  constexpr std::uint64_t kAlignment = 16;
  arena_bytes_ = PlaceSites(&sites_, kAlignment);
  return {};
}

Frame* StaticProgram::CalleeAt(Frame* frame, std::uint32_t pc, std::uint32_t function) {
  std::unique_ptr<Frame>& callee = frame->callees[pc];
  // An earlier round may have called another closure here.
  if (callee && callee->function == function) return callee.get();
  callee = std::make_unique<Frame>();
  callee->id = frame_count_++;
  callee->function = function;
  callee->depth = frame->depth + 1;
  callee->facts = &FactsOf(function);
  callee->caller = frame;
  callee->call_pc = pc;
  instructions_ += module_.functions[function].code.size();
  return callee.get();
}

// Walks over the frame's blocks until their states no longer change.
Status StaticProgram::RunFrame(Frame* frame) {
  Frame* const before = std::exchange(frame_, frame);
  const FunctionFacts& facts = *frame->facts;
  frame->entries.assign(facts.blocks.size(), std::nullopt);
  frame->result.reset();
  State state(module_.functions[frame->function].register_count);
  std::copy(frame->arguments.begin(), frame->arguments.end(), state.begin());
  frame->entries[0] = state;
  frame->waiting = {0};
  while (!frame->waiting.empty()) {
    const std::uint32_t block = *frame->waiting.begin();
    frame->waiting.erase(frame->waiting.begin());
    if (Status walked = WalkBlock(frame, block); !walked) return walked;
  }
  frame_ = before;
  return {};
}

// Walks once over every block that can be reached.
Status StaticProgram::WalkFrame(Frame* frame) {
  Frame* const before = std::exchange(frame_, frame);
  for (std::uint32_t block = 0; block < frame->facts->blocks.size(); ++block) {
    if (!frame->entries[block]) continue;
    if (pass_ == Pass::kSource) EmitLabel(LabelOf(frame, block));
    if (Status walked = WalkBlock(frame, block); !walked) return walked;
  }
  frame_ = before;
  return {};
}

Status StaticProgram::WalkBlock(Frame* frame, std::uint32_t block) {
  const Array<std::uint32_t>& code = module_.functions[frame->function].code;
  State state = *frame->entries[block];
  const std::uint32_t end = frame->facts->blocks[block].end;
  fresh_.clear();
  for (std::uint32_t pc = frame->facts->blocks[block].begin; pc < end; pc += WordsOf(code[pc])) {
    frame_ = frame;
    pc_ = pc;
    code_ = &code[pc];
    Next next = Next::kOn;
    if (Status stepped = Step(&state, &next); !stepped) return stepped;
    if (next == Next::kEnd) return {};
  }
  frame_ = frame;
  return Reach(frame, end, state);
}

// A path leads from here to the block at `pc`.
Status StaticProgram::Reach(Frame* frame, std::uint32_t pc, const State& state) {
  const std::uint32_t block = frame->facts->block_at.at(pc);
  const RegisterSet& live = frame->facts->live_in[block];
  std::optional<State>& entry = frame->entries[block];
  if (pass_ == Pass::kSource) {
    std::vector<Copy> copies;
    live.ForEach(
        [&](std::uint32_t reg) { EmitCopies(frame, block, reg, (*entry)[reg], state[reg], &copies); });
    EmitCopies(std::move(copies), "  ");
    EmitJump(LabelOf(frame, block), "  ");
    return {};
  }
  if (pass_ != Pass::kStates) return {};
  if (!entry) {
    entry = State(state.size());
    live.ForEach([&](std::uint32_t reg) { (*entry)[reg] = state[reg]; });
    frame->waiting.insert(block);
    return {};
  }
  Status status;
  bool changed = false;
  live.ForEach([&](std::uint32_t reg) {
    if (status) status = Join(frame, block, reg, &(*entry)[reg], state[reg], &changed);
  });
  if (changed) frame->waiting.insert(block);
  return status;
}

// The frame returns this value.
Status StaticProgram::Return(Frame* frame, const Value& value) {
  if (pass_ == Pass::kSource) {
    if (frame == &root_) return EmitResult(value);
    std::vector<Copy> copies;
    EmitCopies(frame, kReturn, 0, *frame->result, value, &copies);
    EmitCopies(std::move(copies), "  ");
    EmitJump(LabelOf(frame, kReturn), "  ");
    return {};
  }
  if (pass_ != Pass::kStates) return {};
  if (!frame->result) {
    frame->result = value;
    return {};
  }
  bool changed = false;
  return Join(frame, kReturn, 0, &*frame->result, value, &changed);
}

std::uint32_t StaticProgram::VariableAt(Frame* frame, std::uint32_t meeting, std::uint32_t reg,
                                        std::uint32_t part, bool is_pointer) {
  const auto [found, made] = variable_numbers_.try_emplace({frame->id, meeting, reg, part},
                                                           static_cast<std::uint32_t>(variables_.size()));
  if (made) variables_.push_back({is_pointer});
  return found->second;
}

Status StaticProgram::Join(Frame* frame, std::uint32_t meeting, std::uint32_t reg, Value* known,
                           const Value& given, bool* changed) {
  std::uint32_t part = 0;
  return JoinPart(frame, meeting, reg, &part, known, given, changed);
}

Status StaticProgram::JoinPart(Frame* frame, std::uint32_t meeting, std::uint32_t reg, std::uint32_t* part,
                               Value* known, const Value& given, bool* changed) {
  const std::uint32_t place = (*part)++;
  const bool is_result = meeting == kReturn;
  const auto refuse = [&](const std::string& how) {
    return Refuse(fmt::format("{} {} where paths meet; it cannot be made static",
                              is_result ? "the result of " + module_.functions[frame->function].name
                                        : RegisterText(module_.functions[frame->function], reg),
                              how));
  };
  if (known->kind != given.kind) {
    return refuse(fmt::format("is {} or {}", KindName(known->kind), KindName(given.kind)));
  }
  if (known->dtype != given.dtype || known->dims != given.dims) {
    return refuse(fmt::format("is {} or {}", TensorText(*known), TensorText(given)));
  }
  if (known->fields.size() != given.fields.size()) {
    return refuse(fmt::format("has {} or {} fields", known->fields.size(), given.fields.size()));
  }
  if (known->kind == Value::Kind::kClosure && known->number != given.number) {
    return refuse("is a closure of one function or of another");
  }
  if (known->is_narrow != given.is_narrow) return refuse("is an integer of 32 or of 64 bits");
  if (known->bytes != given.bytes)
    return refuse(fmt::format("has {} or {} bytes", known->bytes, given.bytes));
  const auto set = [&](auto* field, const auto& value) {
    *changed = *changed || *field != value;
    *field = value;
  };
  if (known->is_read_only != given.is_read_only || given.is_unsure) set(&known->is_unsure, true);
  if (known->number != given.number) {
    const std::uint32_t variable = VariableAt(frame, meeting, reg, place, false);
    set(&known->number, Number{false, 0, variable});
  }
  if (known->place != given.place) {
    const std::uint32_t variable = VariableAt(frame, meeting, reg, place, true);
    const Place merged{Place::Base::kVariable, variable, 0};
    for (const Place& source : {known->place, given.place}) {
      std::vector<Place>& sources = variables_[variable].sources;
      if (source != merged && std::find(sources.begin(), sources.end(), source) == sources.end()) {
        sources.push_back(source);
      }
    }
    set(&known->place, merged);
  }
  for (std::size_t i = 0; i < known->fields.size(); ++i) {
    if (Status joined = JoinPart(frame, meeting, reg, part, &known->fields[i], given.fields[i], changed);
        !joined) {
      return joined;
    }
  }
  return {};
}

}  // namespace rewire::aot
