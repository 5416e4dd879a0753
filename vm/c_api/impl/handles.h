// SPDX-License-Identifier: Apache-2.0
//
// The content of the handles of the C API.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/c_api/memory.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"
#include "rewire/vm/virtual_machine.h"

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

// Sets the given limits. NULL, and members that are 0, leave a limit unchanged.
Status LimitsOf(const RewireLimits* given, Limits* limits);
REWIRE_API Status OpenOptionsOf(const RewireOpenOptions* given, OpenOptions* options);
// Sets the deadline to this many nanoseconds from now. 0 leaves it unchanged.
Status DeadlineOf(std::int64_t timeout, std::chrono::steady_clock::time_point* deadline);

REWIRE_API Result<ConstantCodec> CodecOf(const RewireCodec& codec);

// Takes over a managed tensor, also on failure.
template <typename Managed>
Result<Value> TakeDLPack(Managed* managed);

// Makes a handle, which the caller owns.
template <typename Handle, typename Content>
void Give(Content&& content, Handle** out) {
  *out = new Handle{std::forward<Content>(content)};
}

// Makes a handle of a successful result, or returns its failure.
template <typename Handle, typename Content>
Status GiveMade(Result<Content> made, Handle** out) {
  if (!made) return Forward(made);
  Give(*std::move(made), out);
  return {};
}

// Makes a handle of a managed tensor that ToDLPack has made.
template <typename Managed>
Status GiveManaged(Managed* managed, Managed** out) {
  if (managed == nullptr) return Fail(StatusCode::kOutOfMemory, "no memory for a DLPack tensor");
  *out = managed;
  return {};
}

// Returns a function of the VM's program, by index.
Result<const Function*> FunctionAt(const RewireVm* vm, std::uint32_t index);
// Returns a function of an executable, by index. FunctionAt calls it.
Result<const Function*> FunctionOf(const Executable& executable, std::uint32_t index);
// Returns references to the contents of `count` handles. `name` is the caller's name of the array.
Result<rewire::Array<Value>> ValuesOf(const char* name, const RewireValue* const* handles,
                                      std::uint32_t count);

// Converts NULL to the empty name, which stands for the entry function.
inline std::string_view NameOrEntry(const char* name) {
  return name == nullptr ? std::string_view() : std::string_view(name);
}

}  // namespace rewire::c_api
