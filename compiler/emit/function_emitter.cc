// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/function_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
FunctionEmitter::Reg FunctionEmitter::Of(const Value* value) {
  const auto [place, added] = regs_.try_emplace(value, registers_);
  if (added) ++registers_;
  return place->second;
}

FunctionEmitter::Reg FunctionEmitter::Integer(std::int64_t value) { return integers_.at(value); }

void FunctionEmitter::Note(const std::string& source) {
  if (source == last_note_ || source.empty()) return;
  last_note_ = source;
}

void FunctionEmitter::CallKernel(std::uint32_t kernel, std::uint32_t outputs, Reg dst,
                                 const std::vector<Reg>& args) {
  if (!last_note_.empty()) function_->notes.push_back({code_.pc(), last_note_});
  code_.InvokePacked(kernel, outputs, dst, args);
  ++kernel_calls_;
}

Status FunctionEmitter::Emit(Function* function, bool always_tuple) {
  function_ = function;
  for (const auto& [name, source] : graph_.symbols()) {
    if (uses_.NeedsSymbol(name)) symbol_sources_.insert(source.value);
  }
  for (const Value* parameter : graph_.main.parameters) Of(parameter);
  for (const Value* constant : uses_.constants()) {
    code_.LoadConst(tables_.Constant(*constant, DeviceOf(constant)), Of(constant));
  }
  for (const Value* computed : uses_.computed()) code_.LoadConst(tables_.Computed(*computed), Of(computed));
  if (graph_.arena.bytes > 0) MakeArena(graph_.arena, false);
  if (graph_.device_arena.bytes > 0) MakeArena(graph_.device_arena, true);
  for (const std::int64_t value : {0, 1}) {
    integers_[value] = NewReg();
    code_.LoadConsti(value, integers_[value]);
  }
  if (Status emitted = EmitBlock(graph_.main); !emitted) return emitted;
  const std::vector<Value*>& results = graph_.main.results;
  if (results.size() == 1 && !always_tuple) {
    code_.Ret(Of(results[0]));
  } else {
    std::vector<Reg> fields;
    fields.reserve(results.size());
    for (const Value* result : results) fields.push_back(Of(result));
    const Reg tuple = NewReg();
    code_.AllocADT(0, tuple, fields);
    code_.Ret(tuple);
  }
  Result<Array<std::uint32_t>> words = code_.Finish();
  if (!words) return Forward(words);
  function->code = *std::move(words);
  function->register_count = registers_;
  return {};
}

void FunctionEmitter::Define(const Value* value) {
  if (!symbol_sources_.contains(value)) return;
  const Reg shape = NewReg();
  shapes_[value] = shape;
  code_.ShapeOf(Of(value), shape);
}

Status FunctionEmitter::EmitBlock(const Block& block) {
  path_.push_back({&block, 0, {}});
  for (const Value* parameter : block.parameters) Define(parameter);
  if (&block == &graph_.main) {
    // The VM has checked the inputs' shapes, so tensors of the same may use them.
    for (const Value* parameter : block.parameters) {
      const auto shape = shapes_.find(parameter);
      if (shape != shapes_.end())
        path_.back().computed.emplace(ShapeText(parameter->type.dims), shape->second);
    }
    if (Status laid_out = MakeShapeArena(graph_.shape_arena, false); !laid_out) return laid_out;
    if (Status laid_out = MakeShapeArena(graph_.device_shape_arena, true); !laid_out) return laid_out;
  }
  for (std::size_t i = 0; i < block.nodes.size(); ++i) {
    const Node& node = *block.nodes[i];
    path_.back().node = i;
    Note(node.source);
    if (Status emitted = EmitNode(node); !emitted) return Forward(emitted, node.source);
    for (const Value* output : node.outputs) {
      if (!output->model_name.empty())
        values_.push_back({code_.pc(), Of(output), output->model_name, output->channels_last});
    }
    for (const Value* output : node.outputs) Define(output);
    std::vector<Reg> dying;
    for (const Value* value : uses_.DyingAfter(block, i)) {
      if (!node.in_place || value != node.inputs[*node.in_place]) dying.push_back(Of(value));
    }
    std::sort(dying.begin(), dying.end());  // the same file every time
    for (const Reg reg : dying) code_.Kill(reg);
  }
  path_.pop_back();
  return {};
}

Status FunctionEmitter::EmitNode(const Node& node) {
  switch (node.kind) {
    case NodeKind::kKernel:
      return EmitKernel(node);
    case NodeKind::kShapeOf:
      code_.ShapeOf(Of(node.inputs[0]), Of(node.outputs[0]));
      return {};
    case NodeKind::kReshape:
      return EmitReshape(node);
    case NodeKind::kDeviceCopy:
      if (!last_note_.empty()) function_->notes.push_back({code_.pc(), last_note_});
      code_.DeviceCopy(Of(node.inputs[0]), DeviceOf(node.inputs[0]), DeviceOf(node.outputs[0]),
                       Of(node.outputs[0]));
      return {};
    case NodeKind::kDims:
      return EmitDims(node);
    case NodeKind::kMakeAdt: {
      std::vector<Reg> fields;
      for (const Value* input : node.inputs) fields.push_back(Of(input));
      code_.AllocADT(0, Of(node.outputs[0]), fields);
      return {};
    }
    case NodeKind::kField:
      code_.GetField(Of(node.inputs[0]), node.field, Of(node.outputs[0]));
      return {};
    case NodeKind::kIf:
      return EmitIf(node);
    case NodeKind::kLoop:
      return EmitLoop(node);
  }
  return {};
}

Status FunctionEmitter::EmitKernel(const Node& node) {
  std::vector<Reg> args;
  for (const Value* input : node.inputs) args.push_back(Of(input));
  const std::uint32_t kernel = tables_.Kernel(node.kernel, node.attributes, node.flags);
  if (node.returns) {
    EmitReturned(node, kernel, args);
    return {};
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.in_place) {  // the register is the output's from here on
      args.push_back(regs_[node.outputs[i]] = Of(node.inputs[*node.in_place]));
      continue;
    }
    const Reg dst = Of(node.outputs[i]);
    if (Status made = Allocate(node.outputs[i], node.extents[i], dst); !made) return made;
    args.push_back(dst);
  }
  CallKernel(kernel, static_cast<std::uint32_t>(node.outputs.size()), kNone, args);
  return {};
}

// One output is returned as it is, several as a tuple.
void FunctionEmitter::EmitReturned(const Node& node, std::uint32_t kernel, const std::vector<Reg>& args) {
  if (node.outputs.size() == 1) {
    CallKernel(kernel, 0, Of(node.outputs[0]), args);
    return;
  }
  const Reg returned = NewReg();
  CallKernel(kernel, 0, returned, args);
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    code_.GetField(returned, static_cast<std::uint32_t>(i), Of(node.outputs[i]));
  code_.Kill(returned);
}

Status FunctionEmitter::EmitReshape(const Node& node) {
  const Node::Extent& extent = node.extents[0];
  Reg shape = 0;
  if (extent.shape != nullptr) {
    shape = Of(extent.shape);
  } else if (const auto dims = ConstantDims(extent.dims)) {
    shape = NewReg();
    code_.LoadConst(tables_.ShapeConstant(*dims), shape);
  } else {
    const Result<Extent> evaluated = EvaluateDims(extent.dims, 0);
    if (!evaluated) return Forward(evaluated);
    shape = evaluated->shape;
  }
  if (!last_note_.empty()) function_->notes.push_back({code_.pc(), last_note_});
  code_.ReshapeTensor(Of(node.inputs[0]), shape, Of(node.outputs[0]));
  return {};
}

Status FunctionEmitter::EmitDims(const Node& node) {
  const Result<Reg> values = EvaluateElements(node.extents[0].dims);
  if (!values) return Forward(values);
  code_.Move(*values, Of(node.outputs[0]));
  return {};
}

void FunctionEmitter::KillResults(const Block& block, const std::vector<Reg>& carried) {
  std::set<const Value*> own;
  for (const Node* node : block.nodes) own.insert(node->outputs.begin(), node->outputs.end());
  for (const Value* result : block.results) {
    // A value that is updated in place lies in the register that carries it.
    if (own.erase(result) > 0 && std::find(carried.begin(), carried.end(), Of(result)) == carried.end())
      code_.Kill(Of(result));
  }
}

Status FunctionEmitter::EmitIf(const Node& node) {
  const CodeWriter::Label otherwise = code_.NewLabel(), then = code_.NewLabel(), end = code_.NewLabel();
  code_.If(Of(node.inputs[0]), Integer(0), otherwise, then);
  for (const std::size_t branch : {0, 1}) {
    code_.Bind(branch == 0 ? then : otherwise);
    const Block& block = node.blocks[branch];
    if (Status emitted = EmitBlock(block); !emitted) return emitted;
    if (!block.failure.empty()) {
      if (!node.source.empty()) function_->notes.push_back({code_.pc(), node.source});
      code_.Fatal(tables_.String(block.failure));
      continue;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      code_.Move(Of(block.results[i]), Of(node.outputs[i]));
    }
    KillResults(block, {});
    if (branch == 0) code_.Goto(end);
  }
  code_.Bind(end);
  Note(node.source);
  return {};
}

// Carried values that swap places must not overwrite each other: those that are parameters go through
// registers of their own first.
void FunctionEmitter::EmitLoopResults(const Block& body, const std::vector<Reg>& carried, Reg condition) {
  std::vector<Reg> sources;
  std::vector<Reg> copies;
  const std::set<const Value*> parameters(body.parameters.begin(), body.parameters.end());
  for (std::size_t i = 0; i < body.results.size(); ++i) {
    if (body.results[i] == nullptr) {
      sources.push_back(kNone);
      continue;
    }
    Reg source = Of(body.results[i]);
    if (parameters.contains(body.results[i]) && (i == 0 || source != carried[i - 1])) {
      copies.push_back(NewReg());
      code_.Move(source, copies.back());
      source = copies.back();
    }
    sources.push_back(source);
  }
  if (condition != kNone) code_.Move(sources[0], condition);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    if (sources[i + 1] != carried[i]) code_.Move(sources[i + 1], carried[i]);
  }
  for (const Reg copy : copies) code_.Kill(copy);
  KillResults(body, carried);
}

Status FunctionEmitter::EmitLoop(const Node& node) {
  const Block& body = node.blocks[0];
  const Value* trip = node.inputs[0];
  const bool conditional = node.inputs[1] != nullptr || body.results[0] != nullptr;
  std::vector<Reg> carried;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Reg reg = Of(node.outputs[i]);
    code_.Move(Of(node.inputs[i + 2]), reg);
    carried.push_back(reg);
    regs_[body.parameters[i + 1]] = reg;
  }
  // A counter of its own: the parameter's register is emptied where the body reads it last. A tensor from the
  // start: kernels that take objects get integers as they are.
  const Reg iteration = NewReg();
  code_.LoadConst(tables_.ScalarConstant(0), iteration);
  Reg condition = kNone;
  if (conditional) {
    condition = NewReg();
    if (node.inputs[1] != nullptr) {
      code_.Move(Of(node.inputs[1]), condition);
    } else {
      code_.LoadConsti(1, condition);
    }
  }
  const CodeWriter::Label head = code_.NewLabel(), done = code_.NewLabel();
  code_.Bind(head);
  if (trip != nullptr) {
    const CodeWriter::Label more = code_.NewLabel();
    code_.If(iteration, Of(trip), done, more);
    code_.Bind(more);
  }
  if (conditional) {
    const CodeWriter::Label go_on = code_.NewLabel();
    code_.If(condition, Integer(0), done, go_on);
    code_.Bind(go_on);
  }
  code_.Move(iteration, Of(body.parameters[0]));
  if (Status emitted = EmitBlock(body); !emitted) return emitted;
  EmitLoopResults(body, carried, body.results[0] == nullptr ? kNone : condition);
  const Reg next = NewReg();
  AllocateStatic(kInt64, {}, next);
  CallKernel(tables_.Kernel(names::kAdd, {}, 0), 1, kNone, {iteration, Integer(1), next});
  code_.Move(next, iteration);
  code_.Kill(next);
  code_.Goto(head);
  code_.Bind(done);
  code_.Kill(iteration);
  if (conditional) code_.Kill(condition);
  Note(node.source);
  return {};
}

}  // namespace rewire::compiler
