// SPDX-License-Identifier: Apache-2.0
// Code words as docs/isa.md describes them.
#include <iterator>
#include <map>

#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {
namespace {

constexpr const char* kOperands[] = {
    "rw",      // move
    "r",       // ret
    "fwR",     // invoke
    "rwR",     // invoke_closure
    "pivR",    // invoke_packed
    "rodwD",   // alloc_tensor
    "rordw",   // alloc_tensor_reg
    "iwR",     // alloc_adt
    "fwR",     // alloc_closure
    "riw",     // get_field
    "rrtt",    // if
    "cw",      // load_const
    "t",       // goto
    "rw",      // get_tag
    "lw",      // load_consti
    "s",       // fatal
    "oidewD",  // alloc_storage
    "rw",      // shape_of
    "rrw",     // reshape_tensor
    "reew",    // device_copy
    "k",       // kill
};

bool IsWide(char kind) { return kind == 'l' || kind == 'D'; }

std::int64_t Wide(std::uint32_t low, std::uint32_t high) {
  return static_cast<std::int64_t>(std::uint64_t{high} << 32 | low);
}

void Push(char kind, std::int64_t value, std::vector<std::uint32_t>* words) {
  words->push_back(static_cast<std::uint32_t>(value));
  if (IsWide(kind)) words->push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32));
}

}  // namespace

std::uint32_t OpCount() { return std::size(kOperands); }

const char* OperandsOf(std::uint32_t op) { return op < OpCount() ? kOperands[op] : ""; }

bool DecodeWords(const std::vector<std::uint32_t>& words, std::vector<Instruction>* code) {
  std::map<std::size_t, std::size_t> starts;  // word to instruction
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < words.size();) {
    starts[at] = code->size();
    begins.push_back(at);
    Instruction instruction;
    instruction.op = words[at] & 0xFF;
    const std::size_t length = words[at] >> 8;
    if (instruction.op >= OpCount() || length == 0 || length > words.size() - at) return false;
    std::size_t next = at + 1;
    const std::size_t end = at + length;
    const auto number = [&](char kind, std::int64_t* value) {
      const std::size_t size = IsWide(kind) ? 2 : 1;
      if (end - next < size) return false;
      *value = IsWide(kind) ? Wide(words[next], words[next + 1]) : words[next];
      if (kind == 't') *value = static_cast<std::int32_t>(words[next]);
      next += size;
      return true;
    };
    for (const char* kind = kOperands[instruction.op]; *kind != 0; ++kind) {
      Operand operand;
      operand.kind = *kind;
      if (!number(*kind == 'R' || *kind == 'D' ? 'i' : *kind, &operand.value)) return false;
      if (*kind == 'R' || *kind == 'D') {
        const std::int64_t count = operand.value;
        for (std::int64_t i = 0; i < count; ++i) {
          std::int64_t element = 0;
          if (!number(*kind, &element)) return false;
          operand.list.push_back(element);
        }
      }
      instruction.operands.push_back(std::move(operand));
    }
    if (next != end) return false;
    code->push_back(std::move(instruction));
    at = end;
  }
  for (std::size_t i = 0; i < code->size(); ++i) {
    for (Operand& operand : (*code)[i].operands) {
      if (operand.kind != 't') continue;
      const auto found = starts.find(begins[i] + static_cast<std::size_t>(operand.value));
      operand.raw = found == starts.end();
      if (!operand.raw) operand.value = static_cast<std::int64_t>(found->second);
    }
  }
  return true;
}

std::vector<std::uint32_t> EncodeWords(const std::vector<Instruction>& code) {
  std::vector<std::uint32_t> words;
  std::vector<std::int64_t> begins;
  struct Jump {
    std::size_t word, from, to;
  };
  std::vector<Jump> jumps;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::size_t begin = words.size();
    begins.push_back(static_cast<std::int64_t>(begin));
    words.push_back(0);
    for (const Operand& operand : code[i].operands) {
      if (operand.kind == 'R' || operand.kind == 'D') {
        words.push_back(operand.count.value_or(static_cast<std::uint32_t>(operand.list.size())));
        for (const std::int64_t element : operand.list) Push(operand.kind, element, &words);
        continue;
      }
      if (operand.kind == 't' && !operand.raw)
        jumps.push_back({words.size(), i, static_cast<std::size_t>(operand.value)});
      Push(operand.kind, operand.value, &words);
    }
    const auto length = static_cast<std::uint32_t>(words.size() - begin);
    words[begin] = code[i].length.value_or(length) << 8 | (code[i].op & 0xFF);
  }
  begins.push_back(static_cast<std::int64_t>(words.size()));
  for (const Jump& jump : jumps) {
    // One behind the code where an instruction was taken away that was jumped to.
    const std::int64_t to = begins[std::min(jump.to, code.size())];
    words[jump.word] = static_cast<std::uint32_t>(to - begins[jump.from]);
  }
  return words;
}

}  // namespace rewire::hostile
