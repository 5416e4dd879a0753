// SPDX-License-Identifier: Apache-2.0
//
// The part of FunctionEmitter that allocates tensors.
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "rewire/base/checked_math.h"
#include "rewire/compiler/emit/function_emitter.h"
#include "rewire/compiler/passes/memory/arena_layout.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

// Allocations are aligned to a cache line and the widest vector.
constexpr std::uint32_t kAlignment = 64;

// A block's bytes: a number, and the dimensions that it is multiplied by during the run.
std::pair<std::int64_t, Shape> SizeOf(const ShapeArena::Block& block) {
  auto known = static_cast<std::int64_t>(ElementBytes(block.value->type.dtype));
  Shape open;
  for (const DimExpr& dim : block.dims) {
    const std::optional<std::int64_t> size = dim.constant();
    const std::optional<std::int64_t> product = size ? CheckedMul(known, *size) : std::nullopt;
    if (product) known = *product;
    if (!product) open.push_back(dim);
  }
  return {known, std::move(open)};
}

}  // namespace

void FunctionEmitter::MakeArena(const Arena& arena, bool device) {
  arenas_[device] = NewReg();
  if (arena_offset_ == kNone) arena_offset_ = NewReg();
  const auto bytes = static_cast<std::int64_t>(arena.bytes);
  code_.AllocStorage(kNone, kAlignment, kUInt8, DeviceIf(device), arenas_[device], {&bytes, 1});
}

// Sizes that are equal are computed once, and so are offsets of blocks that lie on the same ones.
Status FunctionEmitter::MakeShapeArena(const ShapeArena& arena, bool device) {
  if (arena.blocks.empty()) return {};
  DimProgram program(*this);
  std::int64_t count = 0;
  for (const auto& [name, dim] : arena.symbols) {
    program.Append(dim);
    program.Append({SizeCodes::kStore});
    if (Status known = program.Check({dim}); !known) return known;
    program.stored[name] = count++;
  }
  std::vector<std::int64_t> blocks, told;
  std::map<std::string, std::int64_t> sizes;
  std::map<std::vector<std::size_t>, Reg> offsets;
  std::vector<Reg> outputs;
  for (std::size_t i = 0; i < arena.blocks.size(); ++i) {
    const ShapeArena::Block& block = arena.blocks[i];
    const auto [known, open] = SizeOf(block);
    const auto [size, is_new] = sizes.try_emplace(ShapeText(open) + "*" + std::to_string(known), count);
    if (is_new) {
      program.Append({SizeCodes::kPush, known});
      for (const DimExpr& dim : open) {
        program.Append(dim);
        program.Append({SizeCodes::kMultiply});
      }
      if (device) program.RoundUp(static_cast<std::int64_t>(kDeviceArenaAlignment));
      program.Append({SizeCodes::kStore});
      if (Status found = program.Check(block.dims); !found) return found;
      ++count;
    }
    blocks.push_back(size->second);
    blocks.push_back(static_cast<std::int64_t>(block.on.size()));
    blocks.insert(blocks.end(), block.on.begin(), block.on.end());
    const auto [offset, is_first] = offsets.try_emplace(block.on, kNone);
    if (is_first && !block.on.empty()) {
      offset->second = NewReg();
      outputs.push_back(offset->second);
      told.push_back(static_cast<std::int64_t>(i));
    }
    shape_offsets_[block.value] = offset->second;
  }
  const Reg total = NewReg();
  outputs.push_back(total);
  MakeIntegers(outputs, std::vector<std::int64_t>(outputs.size(), -1));
  program.args.insert(program.args.end(), outputs.begin(), outputs.end());
  CallKernel(tables_.Kernel(names::kShapeLayout,
                            {{"program", program.codes}, {"blocks", blocks}, {"offsets", told}}, 0),
             static_cast<std::uint32_t>(outputs.size()), kNone, program.args);
  shape_arenas_[device] = NewReg();
  code_.AllocStorage(total, kAlignment, kUInt8, DeviceIf(device), shape_arenas_[device], {});
  return {};
}

void FunctionEmitter::MakeIntegers(const std::vector<Reg>& tensors,
                                   const std::vector<std::int64_t>& lengths) {
  const Reg storage = NewReg(), offset = NewReg();
  std::int64_t count = 0;
  for (const std::int64_t length : lengths) count += std::abs(length);
  code_.AllocStorage(kNone, kAlignment, kInt64, kHostDevice, storage, {&count, 1});
  count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (count > 0) code_.LoadConsti(count * static_cast<std::int64_t>(sizeof(std::int64_t)), offset);
    const bool scalar = lengths[i] < 0;
    code_.AllocTensor(storage, count > 0 ? offset : kNone, kInt64, tensors[i],
                      {&lengths[i], scalar ? std::size_t{0} : std::size_t{1}});
    count += std::abs(lengths[i]);
  }
  code_.Kill(storage);
}

void FunctionEmitter::AllocateStatic(DLDataType dtype, const std::vector<std::int64_t>& dims, Reg dst,
                                     std::uint32_t device) {
  const Reg storage = NewReg();
  code_.AllocStorage(kNone, kAlignment, dtype, device, storage, dims);
  code_.AllocTensor(storage, kNone, dtype, dst, dims);
  code_.Kill(storage);
}

std::optional<FunctionEmitter::ArenaPlace> FunctionEmitter::PlaceOf(const Value* value) {
  if (const auto found = shape_offsets_.find(value); found != shape_offsets_.end()) {
    return ArenaPlace{shape_arenas_[value->on_device], found->second};
  }
  const Arena& arena = value->on_device ? graph_.device_arena : graph_.arena;
  const auto found = arena.offsets.find(value);
  if (found == arena.offsets.end()) return std::nullopt;
  const Reg storage = arenas_[value->on_device];
  if (found->second == 0) return ArenaPlace{storage, kNone};
  code_.LoadConsti(static_cast<std::int64_t>(found->second), arena_offset_);
  return ArenaPlace{storage, arena_offset_};
}

Status FunctionEmitter::Allocate(const Value* output, const Node::Extent& extent, Reg dst) {
  const DLDataType dtype = output->type.dtype;
  const std::optional<ArenaPlace> place = PlaceOf(output);
  if (extent.shape == nullptr) {
    if (!output->type.ranked) {
      return Fail(StatusCode::kUnsupported, fmt::format("the rank of '{}' is not known", output->name));
    }
    if (const auto dims = ConstantDims(extent.dims)) {
      if (!TensorBytes(dtype, *dims)) {
        return Fail(StatusCode::kInvalidFile,
                    fmt::format("'{}' with shape {} is too large", output->name, ShapeText(extent.dims)));
      }
      if (place) {
        code_.AllocTensor(place->storage, place->offset, dtype, dst, *dims);
      } else {
        AllocateStatic(dtype, *dims, dst, DeviceOf(output));
      }
      return {};
    }
  }
  Extent sizes{};
  if (extent.shape != nullptr) {
    sizes = {Of(extent.shape), NewReg()};
    AllocateStatic(kInt64, {}, sizes.bytes);
    const auto element_bytes = static_cast<std::int64_t>(ElementBytes(dtype));
    CallKernel(tables_.Kernel(names::kShapeBytes, {{"element_bytes", element_bytes}}, 0), 1, kNone,
               {sizes.shape, sizes.bytes});
  } else {
    const Result<Extent> evaluated =
        EvaluateDims(extent.dims, place ? 0 : static_cast<std::int64_t>(ElementBytes(dtype)));
    if (!evaluated) return Forward(evaluated);
    sizes = *evaluated;
  }
  if (place) {
    code_.AllocTensorReg(place->storage, place->offset, sizes.shape, dtype, dst);
    return {};
  }
  const Reg storage = NewReg();
  code_.AllocStorage(sizes.bytes, kAlignment, dtype, DeviceOf(output), storage, {});
  code_.AllocTensorReg(storage, kNone, sizes.shape, dtype, dst);
  code_.Kill(storage);
  return {};
}

}  // namespace rewire::compiler
