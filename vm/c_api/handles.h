// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of the C API.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "executable_format/executable.h"
#include "vm/c_api/machine.h"
#include "vm/program.h"
#include "vm/value.h"
#include "vm/virtual_machine.h"

struct RewireExecutable {
  rewire::Executable executable;
};

struct RewireValue {
  rewire::Value value;
};

struct RewireLinkOptions {
  rewire::LinkOptions options;
};

struct RewireProgram {
  rewire::Program program;
};

struct RewireVm {
  RewireVm(const rewire::Program& program, const rewire::Limits& limits) : machine(program, limits) {}

  rewire::VirtualMachine machine;
  std::unique_ptr<rewire::Observer> observer;
};

namespace rewire::c_api {

// NULL gives the defaults.
Result<Limits> LimitsOf(const RewireLimits* limits);

// Takes over a managed tensor, also on failure.
template <typename Managed>
Result<Value> TakeDLPack(Managed* managed);

// A handle of the caller's.
template <typename Handle, typename Content>
void Give(Content&& content, Handle** out) {
  *out = new Handle{std::forward<Content>(content)};
}

// The same of a managed tensor that ToDLPack has made.
template <typename Managed>
Status GiveManaged(Managed* managed, Managed** out) {
  if (managed == nullptr) return Fail(StatusCode::kOutOfMemory, "no memory for a DLPack tensor");
  *out = managed;
  return {};
}

// NULL stands for the entry function, as the empty name does.
inline std::string_view NameOrEntry(const char* name) {
  return name == nullptr ? std::string_view() : std::string_view(name);
}

}  // namespace rewire::c_api
