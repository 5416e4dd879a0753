// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/relay_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/import/compact.h"
#include "rewire/executable_format/import/relay_fields.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/import/tables.h"

namespace rewire::tvm {
namespace {

using Fields = Array<std::int64_t>;

// Translates into code with the file's register numbers, one instruction for each of the file's. A bad field
// is recorded, and checked once per instruction.
class FunctionTranslator {
 public:
  FunctionTranslator(const RelayFunction& function, const RelayTables& tables)
      : function_(function),
        tables_(tables),
        labels_(function.instructions.size()),
        is_target_(function.instructions.size()) {
    for (const RelayInstruction& instruction : function.instructions) {
      expansion_left_ += instruction.fields.size();
    }
  }

  Result<Array<std::uint32_t>> Run();

 private:
  Status MarkTargets();
  Status MarkTarget(std::size_t pc, std::int64_t offset);
  void Translate(std::size_t pc);
  void AllocTensor(const Fields& fields);
  void AllocStorage(const RelayInstruction& instruction);
  void LoadConst(const RelayInstruction& instruction);
  void InvokePacked(const Fields& fields);
  void AllocClosure(const Fields& fields);
  void InvokeClosure(const Fields& fields);

  // Field readers: the value, or 0 with error_ set.
  std::uint32_t Number(const char* what, std::int64_t value, std::uint64_t limit);
  std::uint32_t Reg(std::int64_t value) { return Number("register", value, function_.register_count); }
  // Forgets what was known about a register that the instruction writes.
  std::uint32_t Dst(std::int64_t value);
  Array<std::uint32_t> Regs(const Fields& fields, std::size_t first);
  std::uint32_t Device(std::int64_t value, const Array<std::uint32_t>& devices);
  std::uint32_t Callee(std::int64_t value) {
    return Number("function", value, tables_.file.functions.size());
  }
  DLDataType DType(const Fields& fields, std::size_t code);
  Array<std::int64_t> Dims(const Fields& fields, std::size_t first);
  std::uint32_t Tag(std::int64_t value);
  // The register of a byte offset, or none where it is known to be 0.
  std::uint32_t Offset(std::int64_t value);
  CodeWriter::Label Jump(std::size_t pc, std::int64_t offset) {
    return labels_[pc + static_cast<std::size_t>(offset)];
  }

  const RelayFunction& function_;
  const RelayTables& tables_;
  CodeWriter writer_;
  Array<CodeWriter::Label> labels_;
  Array<bool> is_target_;
  // Integers that registers are known to hold since the last jump target. TVM keeps known sizes and offsets
  // in constants, and reads them at every allocation.
  std::unordered_map<std::int64_t, std::int64_t> known_;
  // Closures that registers are known to hold since the last jump target. `writes` has the write counts of
  // the captured registers when the closure was made, to detect later changes. TVM calls functions that it
  // has lifted out through closures made just before.
  struct Closure {
    std::uint32_t function;
    Array<std::int64_t> captured;
    Array<std::uint64_t> writes;
  };
  std::unordered_map<std::int64_t, Closure> closures_;
  std::unordered_map<std::int64_t, std::uint64_t> writes_;  // per register
  // How many captured values may still be expanded at calls. Closures that are made and called once need no
  // more than their fields. A closure with many captures that is called often stays a closure.
  std::size_t expansion_left_ = 0;
  std::string error_;
};

std::uint32_t FunctionTranslator::Number(const char* what, std::int64_t value, std::uint64_t limit) {
  if (value >= 0 && static_cast<std::uint64_t>(value) < limit) return static_cast<std::uint32_t>(value);
  if (error_.empty()) error_ = fmt::format("names {} {}, there are {}", what, value, limit);
  return 0;
}

std::uint32_t FunctionTranslator::Dst(std::int64_t value) {
  known_.erase(value);
  closures_.erase(value);
  ++writes_[value];
  return Reg(value);
}

Array<std::uint32_t> FunctionTranslator::Regs(const Fields& fields, std::size_t first) {
  Array<std::uint32_t> regs;
  for (std::size_t i = first; i < fields.size(); ++i) regs.push_back(Reg(fields[i]));
  return regs;
}

std::uint32_t FunctionTranslator::Device(std::int64_t value, const Array<std::uint32_t>& devices) {
  const std::uint32_t index = Number("device", value, devices.size());
  return index < devices.size() ? devices[index] : 0;
}

DLDataType FunctionTranslator::DType(const Fields& fields, std::size_t code) {
  const DLDataType dtype = FromTvmDType(DLDataType{static_cast<std::uint8_t>(fields[code]),
                                                   static_cast<std::uint8_t>(fields[code + 1]),
                                                   static_cast<std::uint16_t>(fields[code + 2])});
  const bool fits =
      (fields[code] & ~0xFF) == 0 && (fields[code + 1] & ~0xFF) == 0 && (fields[code + 2] & ~0xFFFF) == 0;
  if ((!fits || !IsValidDType(dtype)) && error_.empty()) {
    error_ = fmt::format("has a dtype of code {}, {} bits and {} lanes", fields[code], fields[code + 1],
                         fields[code + 2]);
  }
  return dtype;
}

Array<std::int64_t> FunctionTranslator::Dims(const Fields& fields, std::size_t first) {
  Array<std::int64_t> dims(fields.begin() + static_cast<std::ptrdiff_t>(first), fields.end());
  const auto negative = std::find_if(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 0; });
  if (negative != dims.end() && error_.empty()) error_ = fmt::format("has a dimension of {}", *negative);
  return dims;
}

std::uint32_t FunctionTranslator::Tag(std::int64_t value) {
  // Tags are 32-bit, signed in TVM: those of constructors are hashes and often negative.
  const bool fits =
      value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::uint32_t>::max();
  if (!fits && error_.empty()) error_ = fmt::format("has tag {}, which is not a 32-bit integer", value);
  return static_cast<std::uint32_t>(value);
}

std::uint32_t FunctionTranslator::Offset(std::int64_t value) {
  const auto known = known_.find(value);
  const std::uint32_t reg = Reg(value);
  return known != known_.end() && known->second == 0 ? kNone : reg;
}

Status FunctionTranslator::MarkTarget(std::size_t pc, std::int64_t offset) {
  const std::optional<std::int64_t> target = CheckedAdd(static_cast<std::int64_t>(pc), offset);
  if (offset == 0 || !target || *target < 0 || static_cast<std::size_t>(*target) >= labels_.size()) {
    return Malformed(fmt::format("{}@{} ({}): jumps by {}, which is not to another of the {} instructions",
                                 function_.name, pc, RelayName(function_.instructions[pc].opcode), offset,
                                 labels_.size()));
  }
  const auto index = static_cast<std::size_t>(*target);
  if (!is_target_[index]) labels_[index] = writer_.NewLabel();
  is_target_[index] = true;
  return {};
}

Status FunctionTranslator::MarkTargets() {
  for (std::size_t pc = 0; pc < function_.instructions.size(); ++pc) {
    const RelayInstruction& instruction = function_.instructions[pc];
    Status status;
    if (instruction.opcode == RelayOpcode::kGoto) status = MarkTarget(pc, instruction.fields[0]);
    if (instruction.opcode == RelayOpcode::kIf) {
      status = MarkTarget(pc, instruction.fields[field::kIfTrue]);
      if (status) status = MarkTarget(pc, instruction.fields[field::kIfFalse]);
    }
    if (!status) return status;
  }
  return {};
}

void FunctionTranslator::InvokePacked(const Fields& fields) {
  const std::uint32_t kernel = Number("kernel", fields[field::kPackedIndex], tables_.file.kernels.size());
  const std::uint32_t outputs = Number("output count", fields[field::kPackedOutputs], fields.size());
  writer_.InvokePacked(kernel, outputs, kNone, Regs(fields, field::kPackedArgs));
}

void FunctionTranslator::AllocClosure(const Fields& fields) {
  const Array<std::uint32_t> captured = Regs(fields, field::kCallArgs);
  const std::int64_t dst = fields[field::kCallDst];
  Closure closure{Callee(fields[field::kCallee]), {fields.begin() + field::kCallArgs, fields.end()}, {}};
  writer_.AllocClosure(closure.function, Dst(dst), captured);
  for (std::int64_t reg : closure.captured) closure.writes.push_back(writes_[reg]);
  // A closure that overwrites a register it captures is not tracked.
  if (std::find(closure.captured.begin(), closure.captured.end(), dst) == closure.captured.end()) {
    closures_[dst] = std::move(closure);
  }
}

void FunctionTranslator::InvokeClosure(const Fields& fields) {
  Array<std::uint32_t> args = Regs(fields, field::kCallArgs);
  const std::uint32_t callee = Reg(fields[field::kCallee]);
  const auto known = closures_.find(fields[field::kCallee]);
  bool same = known != closures_.end() && known->second.captured.size() <= expansion_left_;
  for (std::size_t i = 0; same && i < known->second.captured.size(); ++i) {
    same = writes_[known->second.captured[i]] == known->second.writes[i];
  }
  if (!same) {
    writer_.InvokeClosure(callee, Dst(fields[field::kCallDst]), args);
    return;
  }
  expansion_left_ -= known->second.captured.size();
  const std::uint32_t function = known->second.function;
  const Array<std::int64_t>& captured = known->second.captured;
  Array<std::uint32_t> all(captured.begin(), captured.end());
  all.append(args.begin(), args.end());
  writer_.Invoke(function, Dst(fields[field::kCallDst]), all);
}

void FunctionTranslator::AllocTensor(const Fields& fields) {
  const std::uint32_t storage = Reg(fields[field::kTensorStorage]);
  const std::uint32_t offset = Offset(fields[field::kTensorOffset]);
  const DLDataType dtype = DType(fields, field::kTensorCode);
  const Array<std::int64_t> dims = Dims(fields, field::kTensorShape);
  writer_.AllocTensor(storage, offset, dtype, Dst(fields[field::kTensorDst]), dims);
}

void FunctionTranslator::AllocStorage(const RelayInstruction& instruction) {
  const Fields& fields = instruction.fields;
  const bool new_form = HasShapeFields(instruction);
  const DLDataType dtype = DType(fields, field::kStorageCode);
  const std::int64_t dst = fields[new_form ? field::kStorageDst : field::kStorageDstOld];
  if (new_form && fields[field::kStorageRank] > 0) {
    // Size and alignment are not filled in. Only this form has a scope.
    const Array<std::int64_t> dims = Dims(fields, field::kStorageShape);
    const std::uint32_t device = Device(fields[field::kStorageDevice], tables_.scoped_devices);
    writer_.AllocStorage(kNone, tables_.alignment, dtype, device, Dst(dst), dims);
    return;
  }
  const std::uint32_t device = Device(fields[field::kStorageDevice], tables_.devices);
  const std::int64_t asked = fields[field::kStorageAlignment];
  if ((asked <= 0 || asked > 4096 || !IsPowerOfTwo(static_cast<std::uint64_t>(asked))) && error_.empty()) {
    error_ = fmt::format("asks for an alignment of {}; it is a power of two up to 4096", asked);
  }
  const std::uint32_t alignment = std::max(static_cast<std::uint32_t>(asked), tables_.alignment);
  const std::uint32_t size = Reg(fields[field::kStorageSize]);
  const auto known = known_.find(fields[field::kStorageSize]);
  if (known != known_.end() && known->second >= 0) {
    const std::int64_t bytes = known->second;
    writer_.AllocStorage(kNone, alignment, kUInt8, device, Dst(dst), {bytes});
    return;
  }
  writer_.AllocStorage(size, alignment, dtype, device, Dst(dst), {});
}

void FunctionTranslator::LoadConst(const RelayInstruction& instruction) {
  const Fields& fields = instruction.fields;
  const std::uint32_t constant = Number("constant", fields[0], tables_.file.constants.size());
  // A device field repeats what the table of constants says; the table is used.
  const std::int64_t dst = fields[HasDeviceField(instruction) ? 2 : 1];
  writer_.LoadConst(constant, Dst(dst));
  if (error_.empty() && tables_.is_scalar[constant]) known_[dst] = tables_.scalars[constant];
}

void FunctionTranslator::Translate(std::size_t pc) {
  const RelayInstruction& instruction = function_.instructions[pc];
  const Fields& fields = instruction.fields;
  switch (instruction.opcode) {
    case RelayOpcode::kMove: {
      const std::uint32_t from = Reg(fields[field::kMoveFrom]);
      writer_.Move(from, Dst(fields[field::kMoveDst]));
      break;
    }
    case RelayOpcode::kRet:
      writer_.Ret(Reg(fields[0]));
      break;
    case RelayOpcode::kInvoke: {
      const Array<std::uint32_t> args = Regs(fields, field::kCallArgs);
      writer_.Invoke(Callee(fields[field::kCallee]), Dst(fields[field::kCallDst]), args);
      break;
    }
    case RelayOpcode::kInvokeClosure:
      InvokeClosure(fields);
      break;
    case RelayOpcode::kInvokePacked:
      InvokePacked(fields);
      break;
    case RelayOpcode::kAllocTensor:
      AllocTensor(fields);
      break;
    case RelayOpcode::kAllocTensorReg: {
      const std::uint32_t offset = Offset(fields[field::kRegOffset]);
      writer_.AllocTensorReg(Reg(fields[field::kRegStorage]), offset, Reg(fields[field::kRegShape]),
                             DType(fields, field::kRegCode), Dst(fields[field::kRegDst]));
      break;
    }
    case RelayOpcode::kAllocADT: {
      const Array<std::uint32_t> values = Regs(fields, field::kAdtFields);
      writer_.AllocADT(Tag(fields[field::kAdtTag]), Dst(fields[field::kAdtDst]), values);
      break;
    }
    case RelayOpcode::kAllocClosure:
      AllocClosure(fields);
      break;
    case RelayOpcode::kGetField: {
      const std::uint32_t index = Number("field", fields[field::kFieldIndex], kNone);
      const std::uint32_t object = Reg(fields[field::kFieldObject]);
      writer_.GetField(object, index, Dst(fields[field::kFieldDst]));
      break;
    }
    case RelayOpcode::kIf:
      writer_.If(Reg(fields[field::kIfTest]), Reg(fields[field::kIfTarget]), Jump(pc, fields[field::kIfTrue]),
                 Jump(pc, fields[field::kIfFalse]));
      break;
    case RelayOpcode::kLoadConst:
      LoadConst(instruction);
      break;
    case RelayOpcode::kGoto:
      writer_.Goto(Jump(pc, fields[0]));
      break;
    case RelayOpcode::kGetTag: {
      const std::uint32_t object = Reg(fields[0]);
      writer_.GetTag(object, Dst(fields[1]));
      break;
    }
    case RelayOpcode::kLoadConsti:
      writer_.LoadConsti(fields[0], Dst(fields[1]));
      break;
    case RelayOpcode::kFatal:
      writer_.Fatal(tables_.fatal_note);
      break;
    case RelayOpcode::kAllocStorage:
      AllocStorage(instruction);
      break;
    case RelayOpcode::kShapeOf: {
      const std::uint32_t tensor = Reg(fields[0]);
      writer_.ShapeOf(tensor, Dst(fields[1]));
      break;
    }
    case RelayOpcode::kReshapeTensor: {
      const std::uint32_t tensor = Reg(fields[0]);
      const std::uint32_t shape = Reg(fields[1]);
      writer_.ReshapeTensor(tensor, shape, Dst(fields[2]));
      break;
    }
    case RelayOpcode::kDeviceCopy: {
      const std::uint32_t src = Reg(fields[field::kCopySrc]);
      writer_.DeviceCopy(src, Device(fields[field::kCopySrcDevice], tables_.devices),
                         Device(fields[field::kCopyDstDevice], tables_.devices),
                         Dst(fields[field::kCopyDst]));
      break;
    }
    case RelayOpcode::kKillRegister:
      writer_.Kill(Dst(fields[0]));
      break;
  }
}

Result<Array<std::uint32_t>> FunctionTranslator::Run() {
  if (Status marked = MarkTargets(); !marked) return Forward(marked);
  for (std::size_t pc = 0; pc < function_.instructions.size(); ++pc) {
    if (is_target_[pc]) {
      writer_.Bind(labels_[pc]);
      // New ones, because clearing takes as long as the largest size that they ever had.
      known_ = {};
      closures_ = {};
    }
    Translate(pc);
    if (!error_.empty()) {
      return Malformed(fmt::format("{}@{} ({}) {}", function_.name, pc,
                                   RelayName(function_.instructions[pc].opcode), error_));
    }
  }
  return writer_.Finish();
}

}  // namespace

Result<Function> TranslateRelayFunction(const RelayFunction& function, const RelayTables& tables,
                                        Array<std::string>* strings) {
  Function result;
  result.name = function.name;
  UniqueNames names;
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    Type type = SimpleType(TypeKind::kValue);
    type.nodes[0].device = tables.devices[static_cast<std::size_t>(function.parameter_devices[i])];
    result.inputs.push_back({names.Make(function.parameters[i], fmt::format("input{}", i)), std::move(type)});
  }
  result.result = SimpleType(TypeKind::kValue);
  result.output_names = {"output"};
  Result<Array<std::uint32_t>> code = FunctionTranslator(function, tables).Run();
  if (!code) return Forward(code);
  result.code = std::move(*code);
  if (Status compacted = CompactFunction(result, strings); !compacted) {
    return Forward(compacted, "function '" + function.name + "'");
  }
  return result;
}

}  // namespace rewire::tvm
