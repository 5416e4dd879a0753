// SPDX-License-Identifier: Apache-2.0
// Calls of kernels that are computed while the source is made: sizes and shapes, once the inputs' are known.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/static_program.h"
#include "rewire/executable_format/instruction.h"

namespace rewire::aot {
namespace {

using Kind = Value::Kind;
using Base = Place::Base;

constexpr std::uint64_t kMostBytes = 4096;

bool CanBeLiteral(DLDataType dtype) { return dtype == kInt64 || dtype == kInt32 || dtype == kBool8; }

// Whether both places have a byte in common.
bool Overlap(const Place& a, std::uint64_t a_bytes, const Place& b, std::uint64_t b_bytes) {
  return a.base == b.base && a.index == b.index && a.offset < b.offset + b_bytes &&
         b.offset < a.offset + a_bytes;
}

}  // namespace

std::optional<KnownTensor> StaticProgram::KnownOf(const Value& tensor) {
  if (tensor.kind != Kind::kTensor || tensor.bytes > kMostBytes) return std::nullopt;
  KnownTensor known{tensor.dtype, tensor.dims, std::vector<std::byte>(tensor.bytes)};
  if (tensor.place.base == Base::kConstant) {
    const Result<const Literals::Decoded*> decoded = literals_->Decode(tensor.place.index);
    if (!decoded) return std::nullopt;
    const auto begin = (*decoded)->bytes.begin() + static_cast<std::ptrdiff_t>(tensor.place.offset);
    std::copy_n(begin, tensor.bytes, known.bytes.begin());
    return known;
  }
  if (tensor.place.base != Base::kLiteral) return std::nullopt;
  const std::size_t element = ElementBytes(tensor.dtype);
  std::size_t at = 0;
  for (const std::int64_t number : literals_->ElementsAt(tensor.place.index)) {
    std::memcpy(known.bytes.data() + at, &number, element);  // the low bytes come first
    at += element;
  }
  return known;
}

// Whether something other than these registers of the frame names the memory of `tensor` behind the
// instruction.
bool StaticProgram::IsShared(const State& state, const Value& tensor,
                             const std::set<std::uint32_t>& registers) {
  bool is_shared = false;
  const auto visit = [&](const Value& part) {
    const bool may_point = part.place.base == Base::kVariable || tensor.place.base == Base::kVariable;
    const bool is_memory = part.kind == Kind::kTensor && part.bytes != 0;
    is_shared = is_shared ||
                (is_memory && (may_point || Overlap(part.place, part.bytes, tensor.place, tensor.bytes)));
  };
  frame_->facts->live_after.at(pc_).ForEach([&](std::uint32_t reg) {
    if (registers.count(reg) == 0) ForEachPart(state[reg], visit);
  });
  const State* values = &frame_->caller_state;
  std::uint32_t pc = frame_->call_pc;
  for (const Frame* frame = frame_->caller; frame != nullptr; frame = frame->caller) {
    frame->facts->live_after.at(pc).ForEach([&](std::uint32_t reg) { ForEachPart((*values)[reg], visit); });
    values = &frame->caller_state;
    pc = frame->call_pc;
  }
  return is_shared;
}

// A tensor that nothing else names becomes a literal, so its memory is never written. Returns false, and
// changes nothing, if the call has to be made when the program runs.
bool StaticProgram::ComputeNow(State* state, const KernelImport& import) {
  constexpr Opcode kOp = Opcode::kInvokePacked;
  if (known_calls_ == nullptr || !import.also_written.empty()) return false;
  const Span<const std::uint32_t> arguments = ReadsView(code_ + WordOf(kOp, "args"));
  const std::uint32_t outputs = code_[WordOf(kOp, "outputs")];
  if (outputs == 0 || arguments.size() <= outputs) return false;
  const std::uint32_t inputs = static_cast<std::uint32_t>(arguments.size()) - outputs;
  std::vector<KnownTensor> given;
  for (std::uint32_t i = 0; i < inputs; ++i) {
    const Value& value = (*state)[arguments[i]];
    if (value.kind == Kind::kInteger && !value.number.known) return false;
    std::optional<KnownTensor> known = KnownOf(value.kind == Kind::kInteger ? BoxInteger(value) : value);
    if (!known) return false;
    given.push_back(*std::move(known));
  }
  std::vector<KnownTensor> written;
  std::set<std::uint32_t> registers;
  for (std::uint32_t i = inputs; i < arguments.size(); ++i) registers.insert(arguments[i]);
  for (const std::uint32_t reg : registers) {
    const Value& tensor = (*state)[reg];
    const bool fits =
        tensor.kind == Kind::kTensor && CanBeLiteral(tensor.dtype) && tensor.bytes <= kMostBytes;
    const bool is_own = !tensor.is_read_only && (!tensor.is_unsure || tensor.place.base == Base::kLiteral);
    if (!fits || !is_own || IsShared(*state, tensor, registers)) return false;
  }
  for (std::uint32_t i = inputs; i < arguments.size(); ++i) {
    written.push_back({(*state)[arguments[i]].dtype, (*state)[arguments[i]].dims, {}});
  }
  if (registers.size() != written.size()) return false;
  const KnownCalls::Results& results = known_calls_->Run(import, given, written);
  if (!results) return false;
  for (std::uint32_t i = 0; i < outputs; ++i) {
    const KnownTensor& result = (*results)[i];
    Value& tensor = (*state)[arguments[inputs + i]];
    const std::uint64_t count = aot::ElementsOf(tensor.dims);
    tensor.place = {Base::kLiteral,
                    literals_->Add(result.dtype, *IntegersIn(result.bytes, result.dtype, 0, count)), 0};
    tensor.is_unsure = true;  // a kernel may write it again in the VM
  }
  return true;
}

}  // namespace rewire::aot
