// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of the C API.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/array.h"
#include "base/export.h"
#include "executable_format/executable.h"
#include "vm/c_api/memory.h"
#include "vm/program.h"
#include "vm/value.h"
#include "vm/virtual_machine.h"

struct RewireExecutable {
  rewire::Executable executable;
};

struct RewireValue {
  rewire::Value value;
};

struct RewireParameterSet {
  rewire::ParameterSet set;
};

struct RewireLinkOptions {
  rewire::LinkOptions options;
};

struct RewireProgram {
  rewire::Program program;
};

struct RewireVm {
  RewireVm(const rewire::Program& program, const rewire::Limits& limits) : machine(program, limits) {}
  explicit RewireVm(rewire::VirtualMachine made) : machine(std::move(made)) {}

  rewire::VirtualMachine machine;
  std::unique_ptr<rewire::Observer> observer;
};

struct RewireArena {
  rewire::SharedArena arena;
};

namespace rewire::c_api {

Status AllocatorOf(const RewireAllocator& given, Allocator* out);

// NULL leaves them as they are, and so does a member that is 0.
Status LimitsOf(const RewireLimits* given, Limits* limits);
REWIRE_API Status OpenOptionsOf(const RewireOpenOptions* given, OpenOptions* options);

REWIRE_API Result<ConstantCodec> CodecOf(const RewireCodec& codec);

// Takes over a managed tensor, also on failure.
template <typename Managed>
Result<Value> TakeDLPack(Managed* managed);

// A handle of the caller's.
template <typename Handle, typename Content>
void Give(Content&& content, Handle** out) {
  *out = new Handle{std::forward<Content>(content)};
}

// A handle of what was made, where it was.
template <typename Handle, typename Content>
Status GiveMade(Result<Content> made, Handle** out) {
  if (!made) return Forward(made);
  Give(*std::move(made), out);
  return {};
}

// A handle of a managed tensor that ToDLPack has made.
template <typename Managed>
Status GiveManaged(Managed* managed, Managed** out) {
  if (managed == nullptr) return Fail(StatusCode::kOutOfMemory, "no memory for a DLPack tensor");
  *out = managed;
  return {};
}

// A function of the VM's program, by index.
Result<const Function*> FunctionAt(const RewireVm* vm, std::uint32_t index);
// References to what `count` handles hold; `name` is what the caller calls the array.
Result<rewire::Array<Value>> ValuesOf(const char* name, const RewireValue* const* handles,
                                      std::uint32_t count);

// NULL stands for the entry function, as the empty name does.
inline std::string_view NameOrEntry(const char* name) {
  return name == nullptr ? std::string_view() : std::string_view(name);
}

}  // namespace rewire::c_api
