// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/nan_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/tools/io/register_text.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/run/outputs.h"
#include "rewire/vm/vm.h"

namespace rewire::tools {
namespace {

// The program that a call gives to rewire.fused; null for another kernel.
const std::string* FusedProgramOf(const Module& module, const std::uint32_t* instruction) {
  constexpr std::uint32_t kKernel = WordOf(Opcode::kInvokePacked, "kernel");
  const KernelImport& kernel = module.kernels[instruction[kKernel]];
  if (kernel.name != names::kFused) return nullptr;
  for (const Attribute& attribute : kernel.attributes) {
    if (attribute.name == "program") return std::get_if<std::string>(&attribute.value);
  }
  return nullptr;
}

std::vector<std::string> StepsOf(const std::string& program) {
  std::vector<std::string> steps;
  for (std::size_t begin = 0; begin <= program.size();) {
    const std::size_t end = std::min(program.find(';', begin), program.size());
    steps.push_back(program.substr(begin, end - begin));
    begin = end + 1;
  }
  return steps;
}

// A program of the first steps, and which of the arguments it reads: the kernel takes no others.
struct Beginning {
  std::string program;
  std::vector<std::size_t> arguments;
};

Beginning BeginningOf(const std::vector<std::string>& steps, std::size_t count) {
  Beginning beginning;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) beginning.program += ";";
    std::istringstream words(steps[i]);
    for (std::string word; words >> word;) {
      if (word.size() > 1 && word[0] == 'x' && word.find_first_not_of("0123456789", 1) == std::string::npos) {
        const std::size_t argument = std::stoul(word.substr(1));
        auto& known = beginning.arguments;
        const auto at = std::find(known.begin(), known.end(), argument);
        word = fmt::format("x{}", at - known.begin());
        if (at == known.end()) known.push_back(argument);
      }
      beginning.program += (beginning.program.empty() || beginning.program.back() == ';' ? "" : " ") + word;
    }
  }
  return beginning;
}

std::vector<float> FloatsOf(const HostTensor& tensor) {
  const auto* first = reinterpret_cast<const float*>(tensor.bytes.view.data());
  return {first, first + tensor.bytes.view.size() / sizeof(float)};
}

}  // namespace

void NanMaker::BeforeInstruction(const Observer::Instruction& instruction) {
  passes_nan_on_ = false;
  steps_.clear();
  arguments_.clear();
  const std::uint32_t* code = instruction.module.functions[instruction.function].code.data() + instruction.pc;
  if (OpcodeOf(*code) != Opcode::kInvokePacked) return;
  const std::string* program = FusedProgramOf(instruction.module, code);
  if (program != nullptr) steps_ = StepsOf(*program);
  constexpr std::uint32_t kOutputs = WordOf(Opcode::kInvokePacked, "outputs");
  ForEachOperand(code, [&](const OperandInfo& operand, const std::uint32_t* words, std::uint32_t count) {
    if (TraitsOf(operand.kind).use != RegisterUse::kRead) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Result<std::optional<HostTensor>> held =
          HostTensorOf(ShareRegister(instruction.registers[words[i]]));
      if (!held || !*held) continue;
      // The last ones are written by the call. They hold values from before it.
      const bool is_read = i + code[kOutputs] < count;
      passes_nan_on_ = passes_nan_on_ || (is_read && CountNan(**held) > 0);
      if (!steps_.empty())
        arguments_.push_back({(*held)->dtype, (*held)->shape, CopyBytes((*held)->bytes.view)});
    }
  });
}

std::optional<HostTensor> NanMaker::Compute(std::size_t steps) const {
  const Beginning beginning = BeginningOf(steps_, steps);
  std::string inputs, registers;
  std::vector<Value> values;
  for (std::size_t i = 0; i < beginning.arguments.size(); ++i) {
    // The last argument is the result.
    if (beginning.arguments[i] + 1 >= arguments_.size()) return std::nullopt;
    const HostTensor& argument = arguments_[beginning.arguments[i]];
    const Result<Tensor> tensor = ToTensor(argument);
    if (!tensor) return std::nullopt;
    values.emplace_back(*tensor);
    inputs += fmt::format("{}x{}: {}", i == 0 ? "" : ", ", i, TensorTypeText(argument.dtype, argument.shape));
    registers += fmt::format("%x{}, ", i);
  }
  const std::string type = TensorTypeText(kFloat32, arguments_.back().shape);
  const Result<Module> module =
      Assemble(fmt::format(".kernel fused = \"{}\" {{program=\"{}\"}}\n"
                           ".func main({}) -> y: {}\n"
                           "  %s = alloc_storage _, alignment=64, {}, cpu\n"
                           "  %y = alloc_tensor %s, _, {}\n"
                           "  invoke_packed fused({}%y), outputs=1\n"
                           "  ret %y\n.end\n",
                           names::kFused, beginning.program, inputs, type, type, type, registers));
  if (!module) return std::nullopt;
  const Result<Executable> executable = Executable::FromModule(*module);
  if (!executable) return std::nullopt;
  LinkOptions options;
  if (!options.kernels.AddLibrary(names::kCpuLibrary)) return std::nullopt;
  const Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) return std::nullopt;
  VirtualMachine vm(*program);
  const Result<Value> result = vm.TryInvoke("main", Span<const Value>(values.data(), values.size()));
  if (!result) return std::nullopt;
  Result<std::optional<HostTensor>> tensor = HostTensorOf(*result);
  return tensor ? *std::move(tensor) : std::nullopt;
}

std::string NanMaker::Of(const Module& module, std::uint32_t function, std::uint32_t pc) const {
  const std::string note = SourceTextAt(module.functions[function], pc);
  if (passes_nan_on_) return "";
  if (steps_.empty() || arguments_.empty()) return note;
  const std::vector<NoteStage> stages = StagesOf(note);
  std::size_t noted = 0;
  for (const NoteStage& stage : stages) noted += stage.steps;
  const std::optional<HostTensor> result = Compute(steps_.size());
  if (noted != steps_.size() || !result) return note;
  // A step may make NaN where the result has none, as behind Where. Only elements that stay NaN count.
  const std::vector<float> wrong = FloatsOf(*result);
  std::size_t steps = 0;
  for (const NoteStage& stage : stages) {
    steps += stage.steps;
    const std::optional<HostTensor> values = Compute(steps);
    if (!values) return note;
    const std::vector<float> elements = FloatsOf(*values);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (std::isnan(wrong[i]) && std::isnan(elements[i]))
        return fmt::format("{}", fmt::join(stage.nodes, ", "));
    }
  }
  return note;
}

}  // namespace rewire::tools
