// SPDX-License-Identifier: Apache-2.0
//
// The part of FunctionEmitter that computes shapes, and the bytes of tensors of them.
#include <fmt/format.h>

#include <algorithm>

#include "rewire/compiler/emit/function_emitter.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

// The bytes of a tensor, the same for equal ones: "8*N", of i64[N, 1] as of f32[2, N].
std::string SizeText(const Shape& dims, std::int64_t element_bytes) {
  return (ProductOf(dims) * DimExpr(element_bytes)).text();
}

}  // namespace

DimExpr::Source FunctionEmitter::DimProgram::SourceOf(const std::string& name) {
  if (const auto found = stored.find(name); found != stored.end()) return {-1, found->second};
  const auto& symbols = emitter_.graph_.symbols();
  const auto source = symbols.find(name);
  const auto shape =
      source == symbols.end() ? emitter_.shapes_.end() : emitter_.shapes_.find(source->second.value);
  if (shape == emitter_.shapes_.end()) {
    missing_ = name;
    return {};
  }
  const auto [place, added] =
      positions_.try_emplace(source->second.value, static_cast<std::int64_t>(args.size()));
  if (added) args.push_back(shape->second);
  return {place->second, source->second.axis};
}

void FunctionEmitter::DimProgram::Append(const DimExpr& dim) {
  dim.AppendProgram([this](const std::string& name) { return SourceOf(name); }, &codes);
}

Status FunctionEmitter::DimProgram::Check(const Shape& dims) const {
  if (!missing_) return {};
  return Fail(StatusCode::kInternal,
              fmt::format("dimension '{}' of {} stands in no shape", *missing_, ShapeText(dims)));
}

// A size is computed once, however often it is asked for.
class FunctionEmitter::SizesCall {
 public:
  explicit SizesCall(FunctionEmitter* emitter) : emitter_(*emitter), program_(emitter_) {}

  bool HasRoom() const { return stored_ < kMostNumbers; }

  Status Add(const Shape& dims, std::int64_t element_bytes) {
    const std::string text = ShapeText(dims);
    if (emitter_.Computed(text) == kNone) {
      shapes_[text] = stored_;
      for (const DimExpr& dim : dims) {
        program_.Append(dim);
        program_.Append({SizeCodes::kStore});
      }
      Make(text, static_cast<std::int64_t>(dims.size()));
    }
    if (element_bytes > 0 && emitter_.Computed(SizeText(dims, element_bytes)) == kNone) {
      program_.Append({SizeCodes::kPush, element_bytes});
      const auto stored = shapes_.find(text);
      for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].Is(1)) continue;
        if (stored == shapes_.end() || dims[i].IsConstant())
          program_.Append(dims[i]);
        else
          program_.Append({SizeCodes::kDim, -1, stored->second + static_cast<std::int64_t>(i)});
        program_.Append({SizeCodes::kMultiply});
      }
      program_.Append({SizeCodes::kStore});
      Make(SizeText(dims, element_bytes), -1);
    }
    return program_.Check(dims);
  }

  void Emit() {
    if (outputs_.empty()) return;
    emitter_.MakeIntegers(outputs_, lengths_);
    std::vector<Reg> args = program_.args;
    args.insert(args.end(), outputs_.begin(), outputs_.end());
    emitter_.CallKernel(
        emitter_.tables_.Kernel(names::kShapeSizes, {{"program", program_.codes}, {"outputs", lengths_}}, 0),
        static_cast<std::uint32_t>(outputs_.size()), kNone, args);
  }

 private:
  // The kernel has room for twice as many, so one more shape always fits.
  static constexpr std::int64_t kMostNumbers = 512;

  void Make(const std::string& key, std::int64_t length) {
    outputs_.push_back(emitter_.NewReg());
    lengths_.push_back(length);
    stored_ += std::abs(length);
    emitter_.path_.back().computed[key] = outputs_.back();
  }

  FunctionEmitter& emitter_;
  DimProgram program_;
  std::map<std::string, std::int64_t> shapes_;  // which number is the first of theirs
  std::vector<Reg> outputs_;
  std::vector<std::int64_t> lengths_;  // as the attribute has them
  std::int64_t stored_ = 0;
};

FunctionEmitter::Reg FunctionEmitter::Computed(const std::string& key) const {
  for (const Place& place : path_) {
    const auto found = place.computed.find(key);
    if (found != place.computed.end()) return found->second;
  }
  return kNone;
}

bool FunctionEmitter::IsKnownHere(const Shape& dims) const {
  std::set<std::string> names;
  for (const DimExpr& dim : dims) {
    if (dim.Bounds().least < 0) return false;
    dim.CollectSymbols(&names);
  }
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto source = graph_.symbols().find(name);
    return source != graph_.symbols().end() && shapes_.contains(source->second.value);
  });
}

Result<FunctionEmitter::Extent> FunctionEmitter::EvaluateDims(const Shape& dims, std::int64_t element_bytes) {
  const auto computed = [&] {
    const Reg bytes = element_bytes == 0 ? kNone : Computed(SizeText(dims, element_bytes));
    return Extent{Computed(ShapeText(dims)), bytes};
  };
  const Extent before = computed();
  if (before.shape != kNone && (element_bytes == 0 || before.bytes != kNone)) return before;
  SizesCall call(this);
  if (Status added = call.Add(dims, element_bytes); !added) return Forward(added);
  const std::vector<Node*>& nodes = path_.back().block->nodes;
  for (std::size_t i = path_.back().node + 1; i < nodes.size() && call.HasRoom(); ++i) {
    const Node& node = *nodes[i];
    const bool kernel = node.kind == NodeKind::kKernel && !node.returns && !node.in_place;
    if (!kernel && node.kind != NodeKind::kReshape) continue;
    for (std::size_t k = 0; k < node.extents.size(); ++k) {
      const Node::Extent& extent = node.extents[k];
      const Type& type = node.outputs[k]->type;
      if (extent.shape != nullptr || !type.ranked || ConstantDims(extent.dims) || !IsKnownHere(extent.dims))
        continue;
      const bool allocated = kernel && !LiesInArena(node.outputs[k]);
      const std::int64_t bytes = allocated ? static_cast<std::int64_t>(ElementBytes(type.dtype)) : 0;
      if (Status added = call.Add(extent.dims, bytes); !added) return Forward(added);
    }
  }
  call.Emit();
  return computed();
}

Result<FunctionEmitter::Reg> FunctionEmitter::EvaluateElements(const Shape& dims) {
  const std::string key = "elements " + ShapeText(dims);
  if (const Reg before = Computed(key); before != kNone) return before;
  DimProgram program(*this);
  for (const DimExpr& dim : dims) {
    program.Append(dim);
    program.Append({SizeCodes::kStore});
  }
  if (Status known = program.Check(dims); !known) return Forward(known);
  const Reg values = NewReg(), bytes = NewReg();
  AllocateStatic(kInt64, {static_cast<std::int64_t>(dims.size())}, values);
  AllocateStatic(kInt64, {}, bytes);
  program.args.insert(program.args.end(), {values, bytes});
  const std::vector<Attribute> attributes = {{"program", program.codes},
                                             {"element_bytes", std::int64_t{sizeof(std::int64_t)}}};
  CallKernel(tables_.Kernel(names::kShapeEval, attributes, 0), 2, kNone, program.args);
  path_.back().computed[key] = values;
  return values;
}

}  // namespace rewire::compiler
