// SPDX-License-Identifier: Apache-2.0
//
// Emits the code of one function. Each value has one register. Control flow is jumps, so values of outer
// blocks are just registers. Registers are emptied where their values die, which returns memory to the VM's
// free lists.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/emit/emit.h"
#include "rewire/compiler/emit/module_tables.h"
#include "rewire/compiler/emit/uses.h"
#include "rewire/compiler/emit/value_names.h"
#include "rewire/executable_format/code_writer.h"

namespace rewire::compiler {

class FunctionEmitter {
 public:
  FunctionEmitter(const Graph& graph, ModuleTables* tables) : graph_(graph), uses_(graph), tables_(*tables) {}

  // Fills in code, notes and register count; the caller fills in the signature. A single output is returned
  // as it is, unless `always_tuple`.
  Status Emit(Function* function, bool always_tuple = false);
  std::size_t kernel_calls() const { return kernel_calls_; }
  // The places of the model's values, in the order of the code.
  const std::vector<ValuePlace>& values() const { return values_; }

 private:
  using Reg = CodeWriter::Reg;

  // A shape in a register, and the bytes of a tensor with that shape.
  struct Extent {
    Reg shape;
    Reg bytes;
  };

  // The place of a tensor in an arena.
  struct ArenaPlace {
    Reg storage;
    Reg offset;
  };

  // Expressions as a program for rewire.shape.eval, and the shapes that the program reads.
  class DimProgram {
   public:
    explicit DimProgram(const FunctionEmitter& emitter) : emitter_(emitter) {}

    void Append(const DimExpr& dim);
    void Append(std::initializer_list<std::int64_t> more) { codes.insert(codes.end(), more); }
    // Rounds what was computed last up to a multiple.
    void RoundUp(std::int64_t multiple) {
      Append({SizeCodes::kPush, multiple - 1, SizeCodes::kAdd, SizeCodes::kPush, multiple,
              SizeCodes::kFloorDivide, SizeCodes::kPush, multiple, SizeCodes::kMultiply});
    }
    // Fails if the value of a symbol was not found; `dims` is what was to be computed.
    Status Check(const Shape& dims) const;

    std::vector<std::int64_t> codes;
    std::vector<Reg> args;
    std::map<std::string, std::int64_t> stored;  // symbols that the program has stored itself

   private:
    DimExpr::Source SourceOf(const std::string& name);

    const FunctionEmitter& emitter_;
    std::map<const Value*, std::int64_t> positions_;
    std::optional<std::string> missing_;
  };

  // Shapes and sizes that one call computes.
  class SizesCall;

  Status EmitBlock(const Block& block);
  Status EmitNode(const Node& node);
  Status EmitKernel(const Node& node);
  void EmitReturned(const Node& node, std::uint32_t kernel, const std::vector<Reg>& args);
  Status EmitReshape(const Node& node);
  Status EmitDims(const Node& node);
  Status EmitIf(const Node& node);
  Status EmitLoop(const Node& node);
  void EmitLoopResults(const Block& body, const std::vector<Reg>& carried, Reg condition);

  Reg NewReg() { return registers_++; }
  // Returns the register of a value. It is made where the value is written.
  Reg Of(const Value* value);
  Reg Integer(std::int64_t value);
  // Makes the storage of the graph's arenas, on the host or on the device.
  void MakeArena(const Arena& arena, bool device);
  Status MakeShapeArena(const ShapeArena& arena, bool device);
  // Makes tensors of i64 on one storage: i64[] with a length of -1, and otherwise i64[length].
  void MakeIntegers(const std::vector<Reg>& tensors, const std::vector<std::int64_t>& lengths);
  std::optional<ArenaPlace> PlaceOf(const Value* value);
  bool LiesInArena(const Value* value) const {
    return shape_offsets_.contains(value) ||
           (value->on_device ? graph_.device_arena : graph_.arena).offsets.contains(value);
  }
  Status Allocate(const Value* output, const Node::Extent& extent, Reg dst);
  void AllocateStatic(DLDataType dtype, const std::vector<std::int64_t>& dims, Reg dst,
                      std::uint32_t device = kHostDevice);
  // The entry of the device table where a value lies.
  std::uint32_t DeviceOf(const Value* value) { return DeviceIf(value->on_device); }
  std::uint32_t DeviceIf(bool device) { return device ? tables_.Device(*graph_.device) : kHostDevice; }
  // The shape, and the bytes of a tensor of it; without bytes if `element_bytes` is 0. What the block needs
  // later, and can be computed here, is computed by the same call.
  Result<Extent> EvaluateDims(const Shape& dims, std::int64_t element_bytes);
  // A tensor of them, i64[n]. Kernels may read it or return it, so it has memory of its own.
  Result<Reg> EvaluateElements(const Shape& dims);
  // The register of what has been computed in this block or those around it; kNone if it has not.
  Reg Computed(const std::string& key) const;
  // True if the dimensions can be computed here, and no run makes them negative: another node's error would
  // come first.
  bool IsKnownHere(const Shape& dims) const;
  void CallKernel(std::uint32_t kernel, std::uint32_t outputs, Reg dst, const std::vector<Reg>& args);
  // Reads the shapes of a value that later allocations use.
  void Define(const Value* value);
  // Empties the registers of values that the block made.
  void KillResults(const Block& block, const std::vector<Reg>& carried);
  void Note(const std::string& source);

  const Graph& graph_;
  Uses uses_;
  ModuleTables& tables_;
  CodeWriter code_;
  Function* function_ = nullptr;
  std::uint32_t registers_ = 0;
  std::size_t kernel_calls_ = 0;
  std::vector<ValuePlace> values_;
  std::unordered_map<const Value*, Reg> regs_;
  std::set<const Value*> symbol_sources_;         // values whose shapes are used in computations
  std::unordered_map<const Value*, Reg> shapes_;  // the registers of those shapes
  std::map<std::int64_t, Reg> integers_;          // loaded at the function's start
  // The storage of the arenas, on the host and on the device; and the offset of what is being made in one.
  Reg arenas_[2] = {kNone, kNone}, shape_arenas_[2] = {kNone, kNone}, arena_offset_ = kNone;
  std::unordered_map<const Value*, Reg> shape_offsets_;  // offsets of the tensors that lie there
  // The blocks that are being emitted, outermost first.
  struct Place {
    const Block* block;
    std::size_t node;                     // that is being emitted
    std::map<std::string, Reg> computed;  // shapes by their texts, and sizes by SizeText
  };
  std::vector<Place> path_;
  std::string last_note_;
};

}  // namespace rewire::compiler
