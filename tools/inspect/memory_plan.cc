// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::tools {
namespace {

// The content of a register. Fields of trees are shared, as the objects are.
struct Held {
  enum class Kind { kOther, kInteger, kStorage, kTensor, kTree };
  Kind kind = Kind::kOther;
  std::int64_t integer = 0;
  std::size_t storage = 0;                          // by number; of a tensor the one that it lies in
  std::size_t block = 0;                            // of a tensor
  std::shared_ptr<const std::vector<Held>> fields;  // of a tree
};

struct Life {
  std::uint64_t bytes = 0, offset = 0;  // of a tensor in its storage
  std::size_t storage = 0;
  std::optional<std::uint32_t> from;
  std::uint32_t to = 0;
  std::string name;
};

class Planner {
 public:
  Planner(const Module& module, std::uint32_t index)
      : module_(module),
        printer_(module),
        function_(module.functions[index]),
        registers_(function_.register_count) {}

  MemoryPlan Plan() {
    MemoryPlan plan;
    for (std::uint32_t pc = 0; pc < function_.code.size() && plan.unknown.empty();
         pc += WordsOf(function_.code[pc]), ++step_) {
      Live();
      if (const char* why = Step(function_.code.data() + pc); why != nullptr) {
        plan.unknown = fmt::format("{}@{} ({}): {}", function_.name, pc,
                                   printer_.Text(function_, pc, kMostOperands), why);
      }
    }
    plan.steps = step_;
    if (plan.unknown.empty()) Place(&plan);
    return plan;
  }

 private:
  static constexpr std::uint32_t kMostOperands = 16;
  static constexpr const char* kSize = "its size is known only when it runs";

  // Notes that what registers hold is alive before this step.
  void Live() {
    std::vector<const Held*> open;
    for (const Held& held : registers_) open.push_back(&held);
    while (!open.empty()) {
      const Held& held = *open.back();
      open.pop_back();
      if (held.kind == Held::Kind::kTree) {
        for (const Held& field : *held.fields) open.push_back(&field);
      } else if (held.kind == Held::Kind::kTensor) {
        Extend(&tensors_[held.block]);
        Extend(&storages_[held.storage]);
      } else if (held.kind == Held::Kind::kStorage && storages_[held.storage].from) {
        Extend(&storages_[held.storage]);  // it has its memory since its first tensor
      }
    }
  }
  void Extend(Life* life) const {
    if (!life->from) life->from = step_;
    life->to = step_ + 1;
  }

  // Returns why the memory is not known from here on, or null.
  const char* Step(const std::uint32_t* instruction) {
    const Opcode opcode = OpcodeOf(*instruction);
    Held result;
    switch (opcode) {
      case Opcode::kIf:
      case Opcode::kGoto:
        return "which way it goes is known only when it runs";
      case Opcode::kInvoke:
      case Opcode::kInvokeClosure:
        return "the function that it calls is not followed";
      case Opcode::kLoadConsti:
        result.kind = Held::Kind::kInteger;
        result.integer = DecodeInt64(instruction + 1);
        break;
      case Opcode::kLoadConst:
        result = ScalarOf(module_.constants[instruction[1]]);
        break;
      case Opcode::kMove:
      case Opcode::kReshapeTensor:
        result = registers_[instruction[1]];
        break;
      case Opcode::kAllocStorage:
        if (const char* why = AllocStorage(instruction, &result); why != nullptr) return why;
        break;
      case Opcode::kAllocTensor:
        if (const char* why = AllocTensor(instruction, &result); why != nullptr) return why;
        break;
      case Opcode::kAllocTensorReg:
        return kSize;
      case Opcode::kAllocADT: {
        std::vector<Held> fields;
        for (const std::uint32_t reg : ReadsView(instruction + 3)) fields.push_back(registers_[reg]);
        result.kind = Held::Kind::kTree;
        result.fields = std::make_shared<const std::vector<Held>>(std::move(fields));
        break;
      }
      case Opcode::kGetField: {
        const Held& object = registers_[instruction[1]];
        if (object.kind == Held::Kind::kTree && instruction[2] < object.fields->size())
          result = (*object.fields)[instruction[2]];
        break;
      }
      default:
        break;
    }
    ForEachRegister(instruction, [&](std::uint32_t reg, RegisterUse use) {
      if (use == RegisterUse::kKill) registers_[reg] = {};
      if (use == RegisterUse::kWrite) {
        registers_[reg] = result;
        if (opcode == Opcode::kAllocTensor) NameTensor(instruction, reg, tensors_[result.block]);
        if (opcode == Opcode::kAllocStorage) storages_[result.storage].name = RegisterText(function_, reg);
      }
    });
    return nullptr;
  }

  // Sizes and offsets may be constants with one integer.
  static Held ScalarOf(const Constant& constant) {
    Held held;
    const std::optional<std::uint64_t> bytes = TensorBytes(constant.type.dtype, constant.type.dims);
    if (constant.kind != ConstantKind::kData || constant.codec != kCodecNone || bytes != std::uint64_t{8} ||
        !(constant.type.dtype.code == kDLInt && constant.type.dtype.bits == 64) ||
        constant.stored.view.size() != 8)
      return held;
    held.kind = Held::Kind::kInteger;
    std::memcpy(&held.integer, constant.stored.view.data(), 8);
    return held;
  }

  const char* AllocStorage(const std::uint32_t* instruction, Held* result) {
    // Operands: size or none, alignment, dtype, device, dst, shape.
    std::optional<std::uint64_t> bytes;
    if (instruction[1] == kNone) {
      bytes = BytesOf(DecodeDType(instruction[3]), DimsView(instruction + 6));
    } else if (registers_[instruction[1]].kind == Held::Kind::kInteger) {
      bytes = static_cast<std::uint64_t>(registers_[instruction[1]].integer);
    }
    if (!bytes) return kSize;
    result->kind = Held::Kind::kStorage;
    result->storage = storages_.size();
    storages_.push_back({*bytes, 0, result->storage, std::nullopt, 0, ""});
    return nullptr;
  }

  const char* AllocTensor(const std::uint32_t* instruction, Held* result) {
    // Operands: storage, offset or none, dtype, dst, shape.
    const Held& storage = registers_[instruction[1]];
    std::uint64_t offset = 0;
    if (instruction[2] != kNone) {
      if (registers_[instruction[2]].kind != Held::Kind::kInteger)
        return "where it lies is known only when it runs";
      offset = static_cast<std::uint64_t>(registers_[instruction[2]].integer);
    }
    const std::optional<std::uint64_t> bytes =
        BytesOf(DecodeDType(instruction[3]), DimsView(instruction + 5));
    if (storage.kind != Held::Kind::kStorage || !bytes) return kSize;
    result->kind = Held::Kind::kTensor;
    result->storage = storage.storage;
    result->block = tensors_.size();
    tensors_.push_back({*bytes, offset, storage.storage, std::nullopt, 0, ""});
    return nullptr;
  }

  static Array<Dim> DimsOf(const DimsView& view) {
    Array<Dim> dims;
    for (std::uint32_t i = 0; i < view.size(); ++i) dims.push_back(view[i]);
    return dims;
  }
  static std::optional<std::uint64_t> BytesOf(DLDataType dtype, const DimsView& view) {
    return TensorBytes(dtype, DimsOf(view));
  }
  void NameTensor(const std::uint32_t* instruction, std::uint32_t reg, Life& tensor) {
    const Type type = TensorType(DecodeDType(instruction[3]), DimsOf(DimsView(instruction + 5)));
    tensor.name = RegisterText(function_, reg) + " " + TypeText(type, module_.symbols);
  }

  // Gives each storage the lowest place that is free as long as it lives, in the order in which they begin.
  void Place(MemoryPlan* plan) {
    std::vector<std::uint64_t> places(storages_.size());
    std::vector<std::size_t> placed;
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      const Life& life = storages_[i];
      if (!life.from || life.bytes == 0) continue;
      std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
      for (const std::size_t other : placed) {
        if (storages_[other].to > *life.from && *storages_[other].from < life.to)
          taken.emplace_back(places[other], places[other] + storages_[other].bytes);
      }
      std::sort(taken.begin(), taken.end());
      for (const auto& [from, to] : taken) {
        if (from < places[i] + life.bytes) places[i] = std::max(places[i], to);
      }
      placed.push_back(i);
      plan->height = std::max(plan->height, places[i] + life.bytes);
      plan->blocks.push_back({places[i], life.bytes, true, *life.from, life.to, life.name});
    }
    for (const Life& tensor : tensors_) {
      if (!tensor.from || tensor.bytes == 0) continue;
      plan->blocks.push_back({places[tensor.storage] + tensor.offset, tensor.bytes, false, *tensor.from,
                              tensor.to, tensor.name});
    }
  }

  const Module& module_;
  const InstructionPrinter printer_;
  const Function& function_;
  std::vector<Held> registers_;
  std::vector<Life> storages_, tensors_;
  std::uint32_t step_ = 0;
};

}  // namespace

MemoryPlan PlanOf(const Module& module, std::uint32_t function) { return Planner(module, function).Plan(); }

}  // namespace rewire::tools
