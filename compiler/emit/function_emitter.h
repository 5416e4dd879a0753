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
  // Where the values of the model are, in the order of the code.
  const std::vector<ValuePlace>& values() const { return values_; }

 private:
  using Reg = CodeWriter::Reg;

  // A shape in a register, and the bytes of a tensor with that shape.
  struct Extent {
    Reg shape;
    Reg bytes;
  };

  // Where a tensor lies in an arena.
  struct Place {
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
      Append({DimExpr::kPush, multiple - 1, DimExpr::kAdd, DimExpr::kPush, multiple, DimExpr::kFloorDivide,
              DimExpr::kPush, multiple, DimExpr::kMultiply});
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

  Status EmitBlock(const Block& block);
  Status EmitNode(const Node& node);
  Status EmitKernel(const Node& node);
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
  // Makes i64[] tensors on one storage.
  void MakeScalars(const std::vector<Reg>& scalars);
  std::optional<Place> PlaceOf(const Value* value);
  Status Allocate(const Value* output, const Node::Extent& extent, Reg dst);
  void AllocateStatic(DLDataType dtype, const std::vector<std::int64_t>& dims, Reg dst,
                      std::uint32_t device = kHostDevice);
  // The entry of the device table where a value lies.
  std::uint32_t DeviceOf(const Value* value) { return DeviceIf(value->on_device); }
  std::uint32_t DeviceIf(bool device) { return device ? tables_.Device(*graph_.device) : kHostDevice; }
  Result<Extent> EvaluateDims(const Shape& dims, DLDataType dtype);
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
  std::vector<std::map<std::string, Extent>> extents_;   // evaluated in this block and the blocks around it
  std::string last_note_;
};

}  // namespace rewire::compiler
