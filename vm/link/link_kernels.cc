// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/link_kernels.h"

#include <optional>
#include <string>

#include "rewire/base/message.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/link/error_list.h"

namespace rewire {
namespace {

constexpr Opcode kInvokePackedOp = Opcode::kInvokePacked;

class RowCheck {
 public:
  explicit RowCheck(LinkedCode* code) : code_(*code) {}

  Status Run() {
    for (LinkedKernel& kernel : code_.kernels) {
      if (kernel.calls.known()) CheckImport(kernel);
    }
    for (const Function& function : code_.module().functions) {
      for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
        if (OpcodeOf(function.code[pc]) == kInvokePackedOp) CheckCall(function, pc);
      }
    }
    return errors_.ToStatus("kernels are declared otherwise than their libraries describe them:");
  }

 private:
  static constexpr std::uint32_t kMostErrors = 16;

  void AddError(const LinkedKernel& kernel, const Message& where, const Message& what) {
    if (errors_.full()) return;
    errors_.Add({"{}: {}; kernel '{}' takes ({})", where, what, kernel.import->name, kernel.calls.Text()});
  }

  void CheckImport(const LinkedKernel& kernel) {
    const KernelImport& import = *kernel.import;
    const Message where{"import of '{}'", import.name};
    const bool objects = (kernel.calls.row().traits & REWIRE_KERNEL_OBJECTS) != 0;
    if (((import.flags & kKernelObjects) != 0) != objects) {
      AddError(kernel, where,
               objects ? Message{"without the flag `objects`, but the kernel takes ADTs whole"}
                       : Message{"with the flag `objects`, but the kernel takes tensors"});
    }
    if (!import.also_written.empty()) {
      AddError(
          kernel, where,
          {"argument {} is declared as written besides the outputs, expected none", import.also_written[0]});
    }
    if ((import.flags & kKernelInPlace) != 0 && !MayLieOverInputs(kernel.calls.row())) {
      AddError(kernel, where, {"with the flag `in_place`, but the kernel's outputs may lie over no input"});
    }
  }

  static bool MayLieOverInputs(const RewireKernelRow& row) {
    for (std::uint32_t i = 0; i < row.argument_count; ++i) {
      if (row.arguments[i].over != 0) return true;
    }
    return false;
  }

  void CheckCall(const Function& function, std::uint32_t pc) {
    const std::uint32_t* words = &function.code[pc];
    LinkedKernel& kernel = code_.kernels[words[WordOf(kInvokePackedOp, "kernel")]];
    if (!kernel.calls.known()) return;
    const std::uint32_t outputs = words[WordOf(kInvokePackedOp, "outputs")];
    const std::uint32_t registers = words[WordOf(kInvokePackedOp, "args")];
    const bool objects = (kernel.import->flags & kKernelObjects) != 0;
    const KernelCalls::Range any = kernel.calls.Outputs();
    const std::optional<KernelCalls::Range> exact = kernel.calls.Outputs(registers);
    if (!any.Has(outputs)) {
      AddCallError(kernel, function, pc, {"{} outputs are declared, expected {}", outputs, RangeText(any)});
    } else if (!exact || !exact->Has(outputs)) {
      kernel.plain = false;
      if (objects) {  // its arguments are the registers
        AddCallError(kernel, function, pc, {"{} arguments with {} outputs are given", registers, outputs});
      }
    }
    const bool returns = (kernel.calls.row().traits & REWIRE_KERNEL_RETURNS) != 0;
    if (words[WordOf(kInvokePackedOp, "dst")] != kNone && !returns) {
      AddCallError(kernel, function, pc, {"a result is expected, but the kernel returns none"});
    }
  }

  void AddCallError(const LinkedKernel& kernel, const Function& function, std::uint32_t pc,
                    const Message& what) {
    if (errors_.full()) return;
    AddError(kernel, {"{}@{} ({})", function.name, pc, ShortInstructionText(code_.module(), function, pc)},
             what);
  }

  static std::string RangeText(const KernelCalls::Range& range) {
    if (range.least == range.most) return Format("{}", range.least);
    if (range.most == ~std::uint32_t{0}) return Format("at least {}", range.least);
    return Format("{} to {}", range.least, range.most);
  }

  LinkedCode& code_;
  ErrorList errors_{kMostErrors};
};

}  // namespace

Status CheckKernelRows(LinkedCode* code) { return RowCheck(code).Run(); }

}  // namespace rewire
