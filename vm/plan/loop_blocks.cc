// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/loop_blocks.h"

#include <algorithm>

#include "rewire/executable_format/analysis/forward_dataflow.h"
#include "rewire/executable_format/analysis/register_set.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/heap/object_heap.h"

namespace rewire {
namespace {

// Registers hold one of these kinds, by number. A tensor's register holds its header and, by it, its storage.
constexpr std::uint32_t kInteger = 0;  // takes blocks when a kernel is called with it
constexpr std::uint32_t kHeader = 1;   // of a tensor
constexpr std::uint32_t kFirstOther = 2;
constexpr std::uint64_t kHeaderBytes = TensorObject::Bytes(kPooledRank);

// The data of a boxed integer or of a shape, in bytes at most.
constexpr std::uint64_t kSmallData = kPooledRank * sizeof(std::int64_t);

// Whether it jumps backwards. Most functions do not, and then nothing else is to be found out.
bool HasLoop(const Array<std::uint32_t>& code) {
  bool has_loop = false;
  for (std::uint32_t pc = 0; pc < code.size() && !has_loop; pc += WordsOf(code[pc])) {
    const Flow flow = Info(OpcodeOf(code[pc])).flow;
    if (flow != Flow::kJump && flow != Flow::kBranch) continue;
    ForEachTarget(&code[pc], pc, [&](std::uint32_t target) { has_loop = has_loop || target <= pc; });
  }
  return has_loop;
}

// Follows the registers of one function along all paths.
class LoopAnalysis {
 public:
  LoopAnalysis(const Module& module, const Function& function, StorageFill fill,
               std::uint32_t least_alignment, WorkMeter* meter)
      : module_(module),
        function_(function),
        fill_(fill),
        least_alignment_(least_alignment),
        meter_(*meter),
        blocks_(FindBlocks(function.code)) {}

  // Cold, so that it is compiled for size.
  [[gnu::cold, gnu::noinline]] LoopBlocks Run() {
    FindLoops();
    if (!FindKinds()) return {};
    const std::uint64_t words = RegisterSet::Words(Bits());
    if (!meter_.Spend(words * blocks_.size())) return {};
    const auto merge = [](RegisterSet* known, const RegisterSet& more) { return known->Merge(more); };
    ForwardDataflow<RegisterSet> flow(blocks_.size());
    RegisterSet first(Bits());
    for (std::uint32_t i = 0; i < function_.inputs.size(); ++i) {
      if (function_.inputs[i].type.nodes[0].kind == TypeKind::kInteger) first.Add(Bit(kInteger, i));
    }
    flow.Reach(0, first, merge);
    for (std::uint32_t block = flow.Next(); block != flow.kNowhere; block = flow.Next()) {
      const std::uint64_t length = blocks_[block].end - blocks_[block].begin;
      if (!meter_.Spend(1 + words + length * sizes_.size())) return {};
      Follow(block, flow.entry(block));
      for (const std::uint32_t successor : blocks_[block].successors()) {
        meter_.Spend(1 + words);
        flow.Reach(successor, held_, merge);
      }
    }
    return Found();
  }

 private:
  std::uint32_t Bits() const { return static_cast<std::uint32_t>(sizes_.size()) * function_.register_count; }
  std::uint32_t Bit(std::uint32_t kind, std::uint32_t reg) const {
    return kind * function_.register_count + reg;
  }

  // A loop is what lies between the target of a jump backwards and the jump.
  [[gnu::cold, gnu::noinline]] void FindLoops() {
    in_loop_.resize(blocks_.size(), false);
    auto first = static_cast<std::uint32_t>(blocks_.size());  // target of jumps from here or farther on
    for (std::uint32_t i = first; i-- > 0;) {
      for (const std::uint32_t successor : blocks_[i].successors()) {
        if (successor <= i) first = std::min(first, successor);
      }
      in_loop_[i] = first <= i;
    }
    meter_.Spend(blocks_.size());
  }

  // Gives each size of a small block a number.
  [[gnu::cold, gnu::noinline]] bool FindKinds() {
    sizes_ = {0, kHeaderBytes};
    const auto add = [this](const TwoBlocks& blocks) {
      for (const std::uint64_t bytes : blocks.bytes) {
        if (bytes != 0 && KindOf(bytes) == sizes_.size()) sizes_.push_back(bytes);
      }
    };
    add(StorageBlocks(kSmallData, 1));
    add(StorageBlocks(BlockPool::kMaxBlock, 1));
    const Array<std::uint32_t>& code = function_.code;
    for (std::uint32_t pc = 0; pc < code.size(); pc += WordsOf(code[pc])) {
      const std::uint32_t* const at = &code[pc];
      const Effects& effects = EffectsOf(at);
      if (effects.makes == Makes::kStorage) add(StorageBlocks(at));
      if (effects.makes == Makes::kTuple || effects.makes == Makes::kClosure)
        add(TupleBlocks(at[effects.source]));
    }
    counts_.resize(sizes_.size(), 0);
    most_.resize(sizes_.size(), 0);
    return meter_.Spend(code.size());
  }
  // The kind of a block that is no tensor's header; sizes_.size() if there is none.
  std::uint32_t KindOf(std::uint64_t bytes) const {
    std::uint32_t kind = kFirstOther;
    while (kind < sizes_.size() && sizes_[kind] != bytes) ++kind;
    return kind;
  }

  // The small blocks of an object; 0 for none.
  struct TwoBlocks {
    std::uint64_t bytes[2];
  };
  static TwoBlocks TupleBlocks(std::uint32_t fields) {
    const std::uint64_t bytes = TupleObject::Bytes(fields);
    return {{bytes <= BlockPool::kMaxSmall ? BlockPool::BlockBytes(bytes) : 0, 0}};
  }
  [[gnu::cold, gnu::noinline]] TwoBlocks StorageBlocks(std::uint64_t bytes,
                                                       std::uint32_t asked_alignment) const {
    const std::uint32_t alignment = std::max(asked_alignment, least_alignment_);
    const ObjectHeap::Requests requests = ObjectHeap::RequestsOf(bytes, alignment, fill_);
    const bool small = !requests.one_block && requests.memory <= BlockPool::kMaxSmall;
    return {{BlockPool::BlockBytes(requests.object), small ? BlockPool::BlockBytes(requests.memory) : 0}};
  }
  TwoBlocks StorageBlocks(const std::uint32_t* at) const {
    constexpr Opcode kOp = Opcode::kAllocStorage;
    const bool on_host = module_.devices[at[WordOf(kOp, "device")]].type == kDLCPU;
    std::uint64_t bytes = BlockPool::kMaxBlock;  // stands for a size that is not known, or not the pool's
    if (on_host && at[WordOf(kOp, "size")] == kNone) {
      const DimsView shape(at + WordOf(kOp, "shape"));
      bytes = ElementBytes(DecodeDType(at[WordOf(kOp, "dtype")]));
      for (std::uint32_t i = 0; i < shape.size(); ++i) bytes *= static_cast<std::uint64_t>(shape[i]);
    }
    return StorageBlocks(bytes, at[WordOf(kOp, "alignment")]);
  }

  [[gnu::cold, gnu::noinline]] void Set(std::uint32_t kind, std::uint32_t reg, bool holds) {
    const std::uint32_t bit = Bit(kind, reg);
    if (held_.Has(bit) == holds) return;
    if (holds) {
      held_.Add(bit);
      ++counts_[kind];
      Note(kind, 0);
    } else {
      held_.Remove(bit);
      --counts_[kind];
    }
  }
  // So many more are held for a moment.
  void Note(std::uint32_t kind, std::uint32_t more) {
    if (noted_) most_[kind] = std::max(most_[kind], counts_[kind] + more);
  }
  // `to` holds what `from` does.
  [[gnu::cold, gnu::noinline]] void Copy(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t kind = 0; kind < sizes_.size(); ++kind) Set(kind, to, held_.Has(Bit(kind, from)));
  }
  [[gnu::cold, gnu::noinline]] void Clear(std::uint32_t reg) {
    for (std::uint32_t kind = 0; kind < sizes_.size(); ++kind) Set(kind, reg, false);
  }
  template <typename Visit>
  void ForEachKind(const TwoBlocks& blocks, Visit visit) {
    for (const std::uint64_t bytes : blocks.bytes) {
      if (bytes != 0) visit(KindOf(bytes));
    }
  }
  // A register's new object is made before the one that it held goes.
  [[gnu::cold, gnu::noinline]] void MakeStorage(const TwoBlocks& blocks, std::uint32_t dst) {
    ForEachKind(blocks, [&](std::uint32_t kind) { Note(kind, 1); });
    Clear(dst);
    ForEachKind(blocks, [&](std::uint32_t kind) { Set(kind, dst, true); });
  }
  // A tensor that keeps what `storage` keeps.
  [[gnu::cold, gnu::noinline]] void MakeTensor(std::uint32_t storage, std::uint32_t dst) {
    Note(kHeader, 1);
    Copy(storage, dst);
    Set(kInteger, dst, false);
    Set(kHeader, dst, true);
  }
  [[gnu::cold, gnu::noinline]] void MakeTensor(const TwoBlocks& storage, std::uint32_t dst) {
    Note(kHeader, 1);
    MakeStorage(storage, dst);
    Set(kHeader, dst, true);
  }
  // The register may be among the fields.
  [[gnu::cold, gnu::noinline]] void MakeTuple(Span<const std::uint32_t> fields, std::uint32_t dst) {
    for (const std::uint32_t field : fields) {
      for (std::uint32_t kind = kHeader; kind < sizes_.size(); ++kind) {
        if (held_.Has(Bit(kind, field))) Set(kind, dst, true);
      }
    }
    Set(kInteger, dst, false);
    ForEachKind(TupleBlocks(static_cast<std::uint32_t>(fields.size())), [&](std::uint32_t kind) {
      Note(kind, 1);
      Set(kind, dst, true);
    });
  }

  // From the block's beginning to its end, in held_.
  [[gnu::cold, gnu::noinline]] void Follow(std::uint32_t block, const RegisterSet& entry) {
    held_ = entry;
    noted_ = in_loop_[block] != 0;
    std::fill(counts_.begin(), counts_.end(), 0);
    held_.ForEach([this](std::uint32_t bit) { ++counts_[bit / function_.register_count]; });
    for (std::uint32_t kind = 0; kind < sizes_.size(); ++kind) Note(kind, 0);
    const Array<std::uint32_t>& code = function_.code;
    for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end; pc += WordsOf(code[pc]))
      Step(&code[pc]);
  }

  [[gnu::cold, gnu::noinline]] void Step(const std::uint32_t* at) {
    const Effects& effects = EffectsOf(at);
    if (effects.kernel != 0) BoxIntegers(at);
    const std::uint32_t dst = ChangedRegister(at);
    if (dst == kNone) return;
    switch (effects.makes) {
      case Makes::kNone:
        return;
      case Makes::kNothing:
      case Makes::kLoaded:
        return Clear(dst);
      case Makes::kSame:
      case Makes::kField:
        return Copy(at[effects.source], dst);
      case Makes::kView:
      case Makes::kTensor:
        return MakeTensor(at[effects.source], dst);
      case Makes::kTuple:
      case Makes::kClosure:
        return MakeTuple(ReadsView(at + effects.source), dst);
      case Makes::kShape:
      case Makes::kCalled:  // what a call gives is not known here: a small tensor, most likely
      case Makes::kComputed:
        return MakeTensor(StorageBlocks(kSmallData, 1), dst);
      case Makes::kCopy:
        return MakeTensor(StorageBlocks(BlockPool::kMaxBlock, 1), dst);
      case Makes::kStorage:
        return MakeStorage(StorageBlocks(at), dst);
      case Makes::kInteger:
        return SetInteger(dst);
    }
  }
  void SetInteger(std::uint32_t reg) {
    Clear(reg);
    Set(kInteger, reg, true);
  }

  // Integers that a kernel call makes tensors, until it returns.
  [[gnu::cold, gnu::noinline]] void BoxIntegers(const std::uint32_t* at) {
    constexpr Opcode kOp = Opcode::kInvokePacked;
    if (!noted_ || (module_.kernels[at[WordOf(kOp, "kernel")]].flags & kKernelObjects) != 0) return;
    std::uint32_t boxes = 0;
    for (const std::uint32_t reg : ReadsView(at + WordOf(kOp, "args")))
      boxes += held_.Has(Bit(kInteger, reg)) ? 1 : 0;
    if (boxes == 0) return;
    temporaries_ = std::max(temporaries_, boxes);
    Note(kHeader, boxes);
    ForEachKind(StorageBlocks(kSmallData, 1), [&](std::uint32_t kind) { Note(kind, boxes); });
  }

  [[gnu::cold, gnu::noinline]] LoopBlocks Found() const {
    LoopBlocks found;
    found.temporaries = temporaries_;
    for (std::uint32_t kind = kHeader; kind < sizes_.size(); ++kind) {
      if (most_[kind] == 0) continue;
      const auto same = [&](const LoopBlocks::Class& each) { return each.bytes == sizes_[kind]; };
      auto* const known = std::find_if(found.classes.begin(), found.classes.end(), same);
      if (known != found.classes.end()) {
        known->count += most_[kind];
      } else {
        found.classes.push_back({sizes_[kind], most_[kind]});
      }
    }
    return found;
  }

  const Module& module_;
  const Function& function_;
  StorageFill fill_;
  std::uint32_t least_alignment_;
  WorkMeter& meter_;
  Array<BasicBlock> blocks_;
  Array<std::uint8_t> in_loop_;  // by block
  Array<std::uint64_t> sizes_;   // by kind: of its blocks
  RegisterSet held_;             // at the instruction that is being looked at, by Bit
  Array<std::uint32_t> counts_;  // by kind: registers in held_
  Array<std::uint32_t> most_;    // by kind: the largest count in a loop
  bool noted_ = false;           // the block that is being followed is in a loop
  std::uint32_t temporaries_ = 0;
};

}  // namespace

Array<LoopBlocks> FindLoopBlocks(const Module& module, StorageFill fill, std::uint32_t least_alignment,
                                 WorkMeter* meter) {
  Array<LoopBlocks> found(module.functions.size());
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    const Function& function = module.functions[i];
    if (HasLoop(function.code)) found[i] = LoopAnalysis(module, function, fill, least_alignment, meter).Run();
  }
  return found;
}

}  // namespace rewire
