// SPDX-License-Identifier: Apache-2.0
//
// An abstract run of a function: follows every path, with the objects that are held and the memory blocks
// that they take.
//
// Calls are followed into their callee with what is known about the arguments. So a function that is called
// twice is analyzed twice. A function that needs more work than the meter allows has no bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/analysis/forward_dataflow.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/plan/loop_blocks.h"
#include "rewire/vm/plan/output_plan.h"
#include "rewire/vm/prepare/abstract_heap.h"
#include "rewire/vm/program.h"

namespace rewire::bounds {

struct AnalysisOptions {
  bool outputs_bound = false;
  StorageFill fill = StorageFill::kUndefined;
  std::uint64_t least_alignment = 1;  // the smallest alignment of all storage (ObjectHeap)
  // By device of the table: copies from it to the host go to memory that it pins (PinsFor).
  Array<bool> pins;
  Array<std::int64_t> max_symbols;  // by symbol of the module; negative: no largest size is given
  Span<const LoopBlocks> loops;     // by function
};

// The results; all figures are upper bounds.
struct Findings {
  std::string unbounded;
  Array<std::uint32_t> peak;  // blocks of each class at once
  std::uint64_t storage = 0;
  std::uint64_t device = 0;
  bool copies = false;  // a copy between devices is among the instructions
  std::uint64_t objects = 0;
  std::uint64_t workspace = 0;
  Array<std::uint64_t> input_headers;  // by input: the block that the VM keeps for it; 0 for none
  std::uint32_t registers = 0;         // of all frames
  std::uint32_t frames = 0;
  std::uint32_t args = 0;           // of one kernel call, ADTs flattened
  std::uint32_t temporaries = 0;    // of one kernel call
  std::uint32_t workspaces = 0;     // blocks of one kernel call
  std::uint32_t destinations = 0;   // of all frames
  Array<std::uint32_t> undeclared;  // imports whose workspace is not declared
};

class BoundAnalysis {
 public:
  // `kernels` has one entry per import; null for unknown ones. The meter must outlive it.
  BoundAnalysis(const Module& module, Span<const FunctionPlan> plans, Array<const PackedFunction*> kernels,
                AnalysisOptions options, WorkMeter* meter);
  const Findings& Run(std::uint32_t function);

  struct Class {
    std::uint64_t bytes;
    std::uint32_t device;     // index in the table; kHostDevice for the host, however the table names it
    std::uint64_t alignment;  // of a block on a device, which serves no other; 0 on the host
    std::uint32_t
        site;  // for sizes that are only upper bounds: made by this one instruction; 0: a class of the pool
    bool pinned = false;  // on the host, pinned for copies from `device`
    bool on_device() const { return device != kHostDevice; }
  };
  const Class& ClassAt(BlockClass index) const { return classes_[index]; }

 private:
  // One call that is being analyzed.
  struct Activation {
    std::uint32_t function = 0;
    std::uint32_t path = 0;       // number of the sequence of calls that leads here
    Array<bool> bound;            // by leaf: it is made in the caller's memory
    std::uint32_t registers = 0;  // of this and all frames below
    std::uint32_t destinations = 0;
    Array<BasicBlock> blocks;
    ForwardDataflow<State> flow{0};
    Array<std::uint32_t> turns;  // by block: how often its entry state has changed; 0: not reached
    std::uint32_t block = 0;
    std::uint32_t pc = 0;
    bool in_block = false;
    State state;
    std::size_t most_facts = 0;  // of `state`, before those of the dead are looked for
    State result;                // one register; none when no Ret has been met
  };

  bool Enter(std::uint32_t function, std::uint32_t path, Array<bool> bound, State state);
  void Step();
  void Finish();
  void Flow();
  void Return(NodeId value);
  // A number for the current instruction on its path of calls; with `word`, for that word of it.
  std::uint32_t Site(std::uint32_t word = 0);
  bool Stop(const std::string& why);

  // Instructions; false ends the analysis.
  bool Transfer();
  bool TransferCall();
  bool TransferKernel();
  void LoadConstant();
  bool AllocTensor();
  bool AllocStorage();
  bool FinishTensor(std::uint32_t storage, DLDataType dtype, NodeId shaped, std::uint32_t dst);
  void MakeTuple(Node::Kind kind, std::uint32_t function, Span<const std::uint32_t> fields,
                 std::uint32_t dst);
  void GetField();
  bool Reshape();
  void ShapeOf();
  bool DeviceCopy();
  bool Fold(const KernelImport& import, const PackedFunction* kernel, Span<const std::uint32_t> args,
            std::uint32_t outputs);
  // The same for the call of `rewire.shape.eval`.
  bool FoldExpressions(const KernelImport& import, Span<const std::uint32_t> args, std::uint32_t outputs);
  // The same for that of `rewire.shape.sizes`.
  bool FoldSizes(const KernelImport& import, Span<const std::uint32_t> args, std::uint32_t outputs);
  // The same for that of `rewire.shape.layout`.
  bool FoldLayout(const KernelImport& import, Span<const std::uint32_t> args, std::uint32_t outputs);
  // The known contents of these registers' elements; null for nothing.
  Array<const Contents*> ShapesOf(Span<const std::uint32_t> args, bool* exact) const;
  bool BoundByFirst(Span<const std::uint32_t> args, std::uint32_t outputs);
  // The device of the first of these tensors that the VM has allocated on one; kHostDevice if none is.
  std::uint32_t DeviceOf(const Array<NodeId>& args) const;
  bool AddWorkspace(std::uint32_t index, const Array<NodeId>& args, Array<BlockClass>* scratch);
  // The first place where the kernel is called with tensors of these shapes, whatever they turn out to be.
  std::uint32_t FirstSiteOf(std::uint32_t index, const Array<NodeId>& args);

  // A tensor with memory of its own, as the VM's instructions make it; `bytes` of data at most.
  NodeId NewTensor(Node tensor, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t device,
                   bool pinned = false);
  NodeId Box();
  // A tensor header without memory, shaped by what is known of a shape operand.
  Node Shaped(NodeId shape, DLDataType dtype) const;
  void Invalidate(NodeId tensor);
  void ForgetTheDead();
  bool BytesOf(const Node& tensor, std::uint64_t* bytes) const;
  void GiveHeader(Node* node, std::uint64_t bytes, bool exact = true);
  void GiveTensorHeader(Node* node);
  // `pinned`: on the host, for a copy from the device.
  Node StorageNode(std::uint64_t bytes, std::uint64_t asked_alignment, std::uint32_t device, bool exact,
                   bool pinned = false);
  void TakeMemory(NodeId storage);
  NodeId InputNode(const TypeNode& type);
  BlockClass ClassOf(const Class& wanted);

  // Measure counts all that is held now, with `extra`; it raises the peaks.
  void Measure(const Array<NodeId>& extra, const Array<BlockClass>& scratch = {});
  // The blocks that are free when the function begins.
  Array<BlockClass> LoopBlocksOf(std::uint32_t function);
  // The roots are all that the VM and the calls hold, without the innermost so many.
  AbstractHeap::Roots Roots(std::size_t without = 0) const;
  void Put(std::uint32_t dst, NodeId node) { state().registers[dst] = node; }
  bool RewiredHere() const;

  State& state() { return stack_.back().state; }
  const State& state() const { return stack_.back().state; }
  NodeId Reg(std::uint32_t index) const { return state().registers[index]; }
  const Function& function() const { return module_.functions[stack_.back().function]; }
  const std::uint32_t* words() const { return &function().code[stack_.back().pc]; }

  const Module& module_;
  Span<const FunctionPlan> plans_;
  Array<const PackedFunction*> kernels_;
  AnalysisOptions options_;
  AbstractHeap heap_;
  Array<Activation> stack_;
  Array<std::pair<std::uint32_t, std::uint32_t>> paths_;  // (parent, pc); a path is an index + 1
  Array<Class> classes_;
  std::map<Array<std::int64_t>, std::uint32_t> first_sites_;
  Array<NodeId> inputs_;  // headers that the VM keeps for set inputs
  WorkMeter& meter_;
  Findings findings_;
};

}  // namespace rewire::bounds
