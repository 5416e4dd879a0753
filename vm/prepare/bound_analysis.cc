// SPDX-License-Identifier: Apache-2.0
//
// Runs the abstract run: calls, paths, and what is held on the way.
#include "rewire/vm/prepare/bound_analysis.h"

#include <algorithm>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/value/shape.h"

namespace rewire::bounds {
namespace {

constexpr std::uint32_t kMaxTurns = 64;
constexpr std::uint32_t kMaxCalls = 256;
constexpr std::size_t kManyFacts = 64;

}  // namespace

BoundAnalysis::BoundAnalysis(const Module& module, Span<const FunctionPlan> plans,
                             Array<const PackedFunction*> kernels, AnalysisOptions options, WorkMeter* meter)
    : module_(module),
      plans_(plans),
      kernels_(std::move(kernels)),
      options_(std::move(options)),
      heap_(meter),
      meter_(*meter) {}

bool BoundAnalysis::Stop(const std::string& why) {
  if (!findings_.unbounded.empty()) return false;
  const std::uint32_t pc = stack_.back().pc;
  findings_.unbounded = function().name + "@" + std::to_string(pc);
  if (pc < function().code.size()) {
    findings_.unbounded += " (" + ShortInstructionText(module_, function(), pc) + ")";
  }
  findings_.unbounded += ": " + why;
  return false;
}

const Findings& BoundAnalysis::Run(std::uint32_t index) {
  const Function& target = module_.functions[index];
  State first;
  for (const NamedType& input : target.inputs) {
    const NodeId node = InputNode(input.type.nodes[0]);
    first.registers.push_back(node);
    findings_.input_headers.push_back(0);
    if (heap_.Get(node).kind == Node::kTensor && input.type.nodes[0].kind != TypeKind::kInteger) {
      Node header;
      header.rank = heap_.Get(node).rank;
      GiveTensorHeader(&header);
      findings_.input_headers.back() = ClassAt(header.blocks[0]).bytes;
      inputs_.push_back(heap_.Add(std::move(header)));
    }
  }
  const std::size_t leaves = target.output_names.size();
  if (Enter(index, 0, Array<bool>(leaves, options_.outputs_bound), std::move(first))) {
    Measure({}, LoopBlocksOf(index));
    while (!stack_.empty() && findings_.unbounded.empty()) Step();
  }
  return findings_;
}

// With as many registers as there are arguments.
bool BoundAnalysis::Enter(std::uint32_t index, std::uint32_t path, Array<bool> bound, State first) {
  for (const Activation& active : stack_) {
    if (active.function == index) {
      return Stop("function " + module_.functions[index].name + " calls itself, as deep as its values say");
    }
  }
  if (stack_.size() >= kMaxCalls) return Stop("calls are nested too deeply to be followed");
  const Function& callee = module_.functions[index];
  Activation next;
  next.function = index;
  next.path = path;
  next.registers = callee.register_count;
  const bool any_bound = std::find(bound.begin(), bound.end(), true) != bound.end();
  next.destinations = any_bound ? static_cast<std::uint32_t>(bound.size()) : 0;
  if (!stack_.empty()) {
    next.registers += stack_.back().registers;
    next.destinations += stack_.back().destinations;
  }
  next.bound = std::move(bound);
  next.blocks = FindBlocks(callee.code);
  meter_.Spend(callee.code.size() + callee.register_count + stack_.size());
  next.flow = ForwardDataflow<State>(next.blocks.size());
  next.turns.resize(next.blocks.size(), 0);
  first.registers.resize(callee.register_count, kNothing);
  next.flow.Reach(0, first, [](State*, const State&) { return false; });  // the only state there yet
  next.turns[0] = 1;
  if (!stack_.empty() && !options_.loops[index].empty()) Measure({}, LoopBlocksOf(index));
  findings_.temporaries = std::max(findings_.temporaries, options_.loops[index].temporaries);
  stack_.push_back(std::move(next));
  findings_.registers = std::max(findings_.registers, stack_.back().registers);
  findings_.destinations = std::max(findings_.destinations, stack_.back().destinations);
  findings_.frames = std::max(findings_.frames, static_cast<std::uint32_t>(stack_.size()));
  return true;
}

Array<BlockClass> BoundAnalysis::LoopBlocksOf(std::uint32_t function) {
  Array<BlockClass> blocks;
  for (const LoopBlocks::Class& each : options_.loops[function].classes)
    blocks.resize(blocks.size() + each.count, ClassOf({each.bytes, kHostDevice, 0, 0}));
  return blocks;
}

void BoundAnalysis::Step() {
  Activation& active = stack_.back();
  if (!active.in_block) {
    const std::uint32_t next = active.flow.Next();
    if (next == active.flow.kNowhere) {
      Finish();
      return;
    }
    active.block = next;
    active.state = active.flow.entry(next);
    active.most_facts = kManyFacts;
    meter_.Spend(1 + active.state.registers.size() + active.state.facts.size());
    active.pc = active.blocks[active.block].begin;
    active.in_block = true;
  }
  if (active.pc == active.blocks[active.block].end) {
    Flow();
    return;
  }
  const std::uint32_t header = *words();
  if (!meter_.Spend(16 + active.registers + WordsOf(header))) {
    Stop(meter_.Failure().error().message());
    return;
  }
  if (active.state.facts.size() > active.most_facts) ForgetTheDead();
  const Opcode opcode = OpcodeOf(header);
  if (opcode == Opcode::kRet) {
    Return(Reg(words()[WordOf(Opcode::kRet, "result")]));
  } else if (opcode == Opcode::kFatal) {
    active.in_block = false;
  } else if (opcode == Opcode::kInvoke || opcode == Opcode::kInvokeClosure) {
    TransferCall();
  } else if (Transfer()) {
    active.pc += WordsOf(header);
  }
}

// Long blocks would have everything carried along that they ever held.
void BoundAnalysis::ForgetTheDead() {
  heap_.Prune(Roots(), &state());
  stack_.back().most_facts = kManyFacts + 2 * state().facts.size();
}

void BoundAnalysis::Return(NodeId value) {
  Activation& active = stack_.back();
  active.in_block = false;
  if (stack_.size() == 1 && options_.outputs_bound) {
    // An integer is made a tensor before it is copied out.
    Array<NodeId> boxes;
    meter_.Spend(function().result.nodes.size());
    for (const std::uint32_t node : Leaves(function().result)) {
      if (function().result.nodes[node].kind != TypeKind::kTensor) boxes.push_back(Box());
    }
    findings_.temporaries = std::max(findings_.temporaries, static_cast<std::uint32_t>(boxes.size()));
    Measure(boxes);
  }
  State result;
  result.registers.push_back(value);
  result.facts = std::move(active.state.facts);
  bool ok = true;
  if (active.result.registers.empty()) {
    active.result = std::move(result);
  } else {
    heap_.Join(&active.result, result, Roots(1), &ok);
  }
  if (!ok) Stop("a value is nested too deeply to be followed");
}

// All paths of the last call have been gone through: its caller goes on.
void BoundAnalysis::Finish() {
  Activation done = std::move(stack_.back());
  stack_.pop_back();
  if (stack_.empty()) return;
  Activation& caller = stack_.back();
  if (done.result.registers.empty()) {  // it never returns
    caller.in_block = false;
    return;
  }
  caller.state.facts = std::move(done.result.facts);
  const std::uint32_t* call = words();
  Put(ChangedRegister(call), done.result.registers[0]);
  caller.pc += WordsOf(*call);
}

void BoundAnalysis::Flow() {
  Activation& active = stack_.back();
  active.in_block = false;
  if (active.state.facts.size() > kManyFacts) heap_.Prune(Roots(), &active.state);
  for (const std::uint32_t successor : active.blocks[active.block].successors()) {
    bool ok = true;
    const bool changed = active.flow.Reach(successor, active.state, [&](State* known, const State& state) {
      return heap_.Join(known, state, Roots(1), &ok);
    });
    if (!changed) continue;
    meter_.Spend(1 + active.registers + active.state.facts.size());
    if (!ok || ++active.turns[successor] > kMaxTurns) {
      active.pc = active.blocks[successor].begin;
      Stop("what is held here grows with every turn of the loop");
      return;
    }
  }
}

std::uint32_t BoundAnalysis::Site(std::uint32_t word) {
  if (stack_.empty()) return 0;
  const std::pair<std::uint32_t, std::uint32_t> key(stack_.back().path, stack_.back().pc + word);
  for (std::size_t i = paths_.size(); i-- > 0;) {
    meter_.Spend(1);
    if (paths_[i] == key) return static_cast<std::uint32_t>(i + 1);
  }
  paths_.push_back(key);
  return static_cast<std::uint32_t>(paths_.size());
}

BlockClass BoundAnalysis::ClassOf(const Class& wanted) {
  for (BlockClass i = 0; i < classes_.size(); ++i) {
    meter_.Spend(1);
    const Class& known = classes_[i];
    if (known.bytes == wanted.bytes && known.device == wanted.device && known.alignment == wanted.alignment &&
        known.site == wanted.site && known.pinned == wanted.pinned) {
      return i;
    }
  }
  classes_.push_back(wanted);
  return static_cast<BlockClass>(classes_.size() - 1);
}

AbstractHeap::Roots BoundAnalysis::Roots(std::size_t without) const {
  AbstractHeap::Roots roots = {&inputs_};
  for (std::size_t i = 0; i + without < stack_.size(); ++i) roots.push_back(&stack_[i].state.registers);
  return roots;
}

void BoundAnalysis::Measure(const Array<NodeId>& extra, const Array<BlockClass>& scratch) {
  Held held;
  AbstractHeap::Roots roots = Roots();
  roots.push_back(&extra);
  heap_.Count(roots, state(), &held);
  meter_.Spend(classes_.size());
  held.blocks.resize(classes_.size(), 0);
  for (const BlockClass block : scratch) ++held.blocks[block];
  findings_.peak.resize(classes_.size(), 0);
  for (std::size_t i = 0; i < held.blocks.size(); ++i) {
    findings_.peak[i] = std::max(findings_.peak[i], held.blocks[i]);
  }
  findings_.storage = std::max(findings_.storage, held.storage);
  findings_.device = std::max(findings_.device, held.device);
  findings_.objects = std::max(findings_.objects, held.objects);
}

// An input is a thing that the VM refers to but others keep, with what is known of it.
NodeId BoundAnalysis::InputNode(const TypeNode& type) {
  Node node;
  if (type.kind == TypeKind::kInteger) {
    node.kind = Node::kInteger;
  } else if (type.kind == TypeKind::kTensor || type.kind == TypeKind::kValue) {
    node.kind = Node::kTensor;
    node.rank = type.kind == TypeKind::kTensor ? type.rank : kUnknownRank;
    node.dtype = type.dtype;
    node.has_dims = node.rank != kUnknownRank;
    for (Dim dim : type.dims) {
      if (IsSymbol(dim)) {
        dim = options_.max_symbols[SymbolOf(dim)];
        node.exact = false;
      }
      node.has_dims = node.has_dims && dim >= 0;
      node.dims.push_back(dim);
    }
    node.has_dims = node.has_dims && node.rank <= kMaxRank;
    if (!node.has_dims) node.dims.clear();
  } else {
    node.kind = Node::kUnknown;
  }
  return heap_.Add(std::move(node));
}

void BoundAnalysis::GiveHeader(Node* node, std::uint64_t bytes, bool exact) {
  node->header = bytes;
  node->blocks = {ClassOf({BlockPool::BlockBytes(bytes), kHostDevice, 0, exact ? 0 : Site()})};
}

// The VM's headers have room for kPooledRank dimensions.
void BoundAnalysis::GiveTensorHeader(Node* node) {
  const std::uint32_t rank = node->rank == kUnknownRank ? kMaxRank : static_cast<std::uint32_t>(node->rank);
  GiveHeader(node, TensorObject::Bytes(std::max(rank, kPooledRank)), node->rank != kUnknownRank);
}

Node BoundAnalysis::StorageNode(std::uint64_t bytes, std::uint64_t asked_alignment, std::uint32_t device,
                                bool exact, bool pinned) {
  const std::uint64_t alignment = std::max(asked_alignment, options_.least_alignment);
  Node node;
  node.kind = Node::kStorage;
  node.raw = std::min(bytes, BlockPool::kMaxBlock);
  node.alignment = alignment;
  node.on_device = module_.devices[device].type != kDLCPU;
  const ObjectHeap::Requests requests = ObjectHeap::RequestsOf(node.raw, alignment, options_.fill);
  if (!node.on_device && requests.one_block) {
    GiveHeader(&node, requests.object, exact);
    node.header = StorageObject::kOwnMemory;
    return node;
  }
  GiveHeader(&node, sizeof(StorageObject));
  if (pinned) {
    node.on_device = false;
    node.data = {ClassOf({ObjectHeap::DeviceBlockBytes(node.raw, alignment, true), device, alignment,
                          exact ? 0 : Site(), true})};
    return node;
  }
  const std::uint64_t block =
      BlockPool::BlockBytes(node.on_device ? node.raw : std::min(requests.memory, BlockPool::kMaxBlock));
  node.data = {ClassOf(
      {block, node.on_device ? device : kHostDevice, node.on_device ? alignment : 0, exact ? 0 : Site()})};
  return node;
}

void BoundAnalysis::TakeMemory(NodeId storage) {
  if (!heap_.Get(storage).data.empty()) state().SetFact(storage, 1);
}

}  // namespace rewire::bounds
