// SPDX-License-Identifier: Apache-2.0
//
// Tarjan's algorithm for strongly connected components. It uses an explicit stack, because a file may nest
// calls to any depth.
#include "rewire/vm/plan/call_order.h"

#include <algorithm>

#include "rewire/executable_format/instruction.h"

namespace rewire {
namespace {

constexpr std::uint32_t kUnseen = 0;

class Components {
 public:
  Components(const Module& module, CallOrder* order)
      : module_(module),
        order_(*order),
        number_(module.functions.size(), kUnseen),
        lowest_(module.functions.size(), 0),
        on_stack_(module.functions.size(), false),
        recursive_(module.functions.size(), false) {}

  void Find() {
    for (std::uint32_t function = 0; function < number_.size(); ++function) {
      if (number_[function] == kUnseen) Visit(function);
    }
  }

 private:
  struct Active {
    std::uint32_t function;
    std::uint32_t pc;  // of the next instruction to look at
  };

  void Enter(std::uint32_t function) {
    number_[function] = lowest_[function] = ++count_;
    stack_.push_back(function);
    on_stack_[function] = true;
    active_.push_back({function, 0});
  }

  void Visit(std::uint32_t root) {
    Enter(root);
    while (!active_.empty()) {
      const std::uint32_t function = active_.back().function;
      const Array<std::uint32_t>& code = module_.functions[function].code;
      std::uint32_t& pc = active_.back().pc;
      std::uint32_t callee = kNone;
      for (; pc < code.size() && callee == kNone; pc += WordsOf(code[pc])) {
        if (OpcodeOf(code[pc]) == Opcode::kInvoke) callee = code[pc + WordOf(Opcode::kInvoke, "function")];
      }
      if (callee == kNone) {
        Leave(function);
      } else if (number_[callee] == kUnseen) {
        Enter(callee);
      } else if (on_stack_[callee]) {
        lowest_[function] = std::min(lowest_[function], number_[callee]);
        if (callee == function) recursive_[function] = true;
      }
    }
  }

  void Leave(std::uint32_t function) {
    active_.pop_back();
    if (!active_.empty()) {
      std::uint32_t& callers = lowest_[active_.back().function];
      callers = std::min(callers, lowest_[function]);
    }
    if (lowest_[function] != number_[function]) return;
    CallOrder::Group group;
    group.begin = static_cast<std::uint32_t>(order_.functions.size());
    std::uint32_t member = kNone;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_[member] = false;
      order_.functions.push_back(member);
    } while (member != function);
    group.end = static_cast<std::uint32_t>(order_.functions.size());
    group.recursive = group.end - group.begin > 1 || recursive_[function];
    order_.groups.push_back(group);
  }

  const Module& module_;
  CallOrder& order_;
  Array<std::uint32_t> number_;  // by function: in the order of first sight, from 1
  Array<std::uint32_t> lowest_;  // the first that can be reached by way of those on the stack
  Array<std::uint8_t> on_stack_;
  Array<std::uint8_t> recursive_;
  Array<std::uint32_t> stack_;
  Array<Active> active_;
  std::uint32_t count_ = 0;
};

}  // namespace

CallOrder::CallOrder(const Module& module) { Components(module, this).Find(); }

}  // namespace rewire
