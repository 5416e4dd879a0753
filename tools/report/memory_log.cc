// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/memory_log.h"

#include <algorithm>
#include <utility>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/io/register_text.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/value/objects.h"

namespace rewire::tools {
namespace {

std::uint64_t AddressOf(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// Visits what a value holds, trees included. A deep tree is a list, and its first cells are enough.
constexpr std::uint32_t kMostDepth = 64;

template <typename Visit>
void VisitMemory(const RewireFFIAny& value, std::uint32_t depth, const Visit& visit) {
  if (value.type_index == kStorageKind) {
    const StorageObject& storage = *StorageOf(value);
    if (storage.data != nullptr && IsHostDevice(storage.device))
      visit(AddressOf(storage.data), storage.size, true);
  } else if (value.type_index == kTensorKind && IsRewireObject(ObjectOf(value))) {
    const TensorObject& tensor = *TensorOf(value);
    if (tensor.local == kUncounted || tensor.storage == nullptr || !IsHostDevice(tensor.tensor.device))
      return;
    const StorageObject& storage = *tensor.storage;
    if (storage.data != nullptr) visit(AddressOf(storage.data), storage.size, true);
    visit(AddressOf(tensor.tensor.data), tensor.bytes, false);
  } else if (IsTupleKind(value.type_index) && depth < kMostDepth) {
    const TupleObject& tuple = *TupleOf(value);
    for (std::uint32_t i = 0; i < tuple.count; ++i) VisitMemory(tuple.fields()[i], depth + 1, visit);
  }
}

// "%y f32[2, 3]" for a tensor; "%y" for a storage, and for what lies in a tree.
std::string NameOf(const Observer::Instruction& found, std::uint32_t reg, bool is_storage) {
  std::string name = rewire::RegisterText(found.module.functions[found.function], reg);
  const RewireFFIAny& value = found.registers[reg];
  if (!is_storage && value.type_index == kTensorKind) name += " " + RegisterText(value);
  return name;
}

}  // namespace

void MemoryLog::Replace(Frame* frame, Frame now, const Instruction* found) {
  for (const auto& [key, reg] : *frame) {
    if (now.find(key) != now.end()) continue;
    const auto ended = open_.find(key);
    if (--ended->second.holders > 0) continue;
    const auto& [address, bytes, is_storage] = key;
    blocks_.push_back({address, bytes, is_storage, ended->second.from, step_, std::move(ended->second.name)});
    open_.erase(ended);
  }
  for (const auto& [key, reg] : now) {
    if (frame->find(key) != frame->end()) continue;
    Open& open = open_[key];
    if (open.holders++ == 0) open = {1, step_, NameOf(*found, reg, std::get<2>(key))};
  }
  *frame = std::move(now);
}

void MemoryLog::OnInstruction(const Instruction& instruction) {
  if (step_ >= most_) {
    complete_ = false;
    return;
  }
  while (frames_.size() > instruction.depth) {
    Replace(&frames_.back(), {}, nullptr);
    frames_.pop_back();
  }
  frames_.resize(instruction.depth);
  const Function& function = instruction.module.functions[instruction.function];
  Frame now;
  for (std::uint32_t reg = 0; reg < instruction.registers.size(); ++reg) {
    VisitMemory(instruction.registers[reg], 0,
                [&](std::uint64_t address, std::uint64_t bytes, bool is_storage) {
                  if (bytes > 0) now.emplace(Key(address, bytes, is_storage), reg);
                });
  }
  Replace(&frames_.back(), std::move(now), &instruction);
  if (OpcodeOf(function.code[instruction.pc]) == Opcode::kInvokePacked) calls_.push_back(step_);
  ++step_;
}

void MemoryLog::Finish() {
  for (Frame& frame : frames_) Replace(&frame, {}, nullptr);
  frames_.clear();
}

}  // namespace rewire::tools
