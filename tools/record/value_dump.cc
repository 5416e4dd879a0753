// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/value_dump.h"

#include <fmt/format.h>

#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/dtype.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tools/record/new_folder.h"
#include "rewire/tools/run/outputs.h"
#include "rewire/tools/run/value_spec.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

// The kernel that the instruction calls; empty if it calls none.
const KernelImport* KernelAt(const MadeValue& made) {
  const std::uint32_t* instruction = made.module.functions[made.function].code.data() + made.pc;
  if (OpcodeOf(*instruction) != Opcode::kInvokePacked) return nullptr;
  constexpr std::uint32_t kKernel = WordOf(Opcode::kInvokePacked, "kernel");
  return &made.module.kernels[instruction[kKernel]];
}

}  // namespace

ValueDump::ValueDump(std::string folder, VirtualMachine* vm)
    : folder_(std::move(folder)),
      vm_(*vm),
      watcher_(vm->program().executable().module(), [this](const MadeValue& made) { Take(made); }) {}

void ValueDump::OnInstruction(const Instruction& instruction) {
  // First what the last instruction has made, with what is known of that one.
  watcher_.OnInstruction(instruction);
  nan_maker_.BeforeInstruction(instruction);
}

void ValueDump::Take(const MadeValue& made) {
  for (const ValueLeaf& leaf : LeavesOf(made.value)) {
    if (status_) Write(made, leaf);
  }
  if (!status_) vm_.Cancel();
}

void ValueDump::Write(const MadeValue& made, const ValueLeaf& leaf) {
  const Function& function = made.module.functions[made.function];
  const KernelImport* kernel = KernelAt(made);
  const std::string note = SourceTextAt(function, made.pc);
  const std::vector<std::string_view> nodes = NodesOf(note);
  const NoteParts parts = SplitNote(nodes.front());
  const std::string node(parts.name.empty() ? parts.whole : parts.name);
  const std::string value = made.name.empty() ? "" : made.name + leaf.path;
  Json entry = {{"value", value},
                {"node", node},
                {"operator", parts.kind},
                {"nodes", note.empty() ? Json::array() : Json(nodes)},
                {"kernel", kernel == nullptr ? "" : kernel->name},
                {"function", function.name},
                {"pc", made.pc},
                {"register", rewire::RegisterText(function, made.reg) + leaf.path}};
  const Result<std::optional<HostTensor>> held = HostTensorOf(leaf.value);
  if (!held || !*held) {
    entry["type"] = held ? ValueKindName(leaf.value.kind()) : held.error().message();
    entry["file"] = nullptr;
    entries_.push_back(std::move(entry));
    return;
  }
  const HostTensor tensor = made.channels_last ? ChannelsFirst(**held) : **held;
  entry["dtype"] = DTypeName(tensor.dtype);
  entry["shape"] = tensor.shape;
  const bool first_nan = first_nan_.empty() && CountNan(tensor) > 0;
  std::string maker;
  if (first_nan) {
    maker = nan_maker_.Of(made.module, made.function, made.pc);
    if (maker.empty()) maker = kernel == nullptr ? rewire::RegisterText(function, made.reg) : kernel->name;
    entry["makes_nan"] = maker;
  }
  const Result<std::vector<std::byte>> bytes = SerializeNpy(tensor);
  if (!bytes) {
    entry["type"] = bytes.error().message();
    entry["file"] = nullptr;
    entries_.push_back(std::move(entry));
    return;
  }
  const std::string of = !value.empty()      ? value
                         : !node.empty()     ? node
                         : kernel != nullptr ? kernel->name
                                             : "";
  const std::string name = fmt::format("{:05}-{}.npy", entries_.size(), FileNamePart(of));
  entry["file"] = name;
  if (first_nan) first_nan_ = fmt::format("{} has made the first NaN, in {}", maker, name);
  entries_.push_back(std::move(entry));
  status_ = WriteFileAtomically(folder_ + "/" + name, {bytes->data(), bytes->size()});
  if (status_) ++files_;
}

Status ValueDump::WriteIndex(const std::string& model, const std::string& function, bool complete) {
  const Json index = {{"model", model}, {"function", function}, {"complete", complete}, {"values", entries_}};
  const std::string text = index.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return WriteFileAtomically(folder_ + "/index.json",
                             {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

}  // namespace rewire::tools
