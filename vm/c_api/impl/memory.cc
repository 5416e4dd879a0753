// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/memory.h"

#include <string>
#include <utility>

#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Forward;
using rewire::Result;
using rewire::Status;
using rewire::c_api::Boundary;
using rewire::c_api::Given;

namespace {

Status MakeVm(const RewireProgram* program, const RewireLimits* limits, rewire::VmOptions options,
              RewireVm** out) {
  if (Status ok = rewire::c_api::LimitsOf(limits, &options.limits); !ok) return ok;
  Result<rewire::VirtualMachine> machine = rewire::VirtualMachine::TryMake(program->program, options);
  if (!machine) return Forward(machine);
  *out = new RewireVm(*std::move(machine));
  return {};
}

}  // namespace

RewireStatus rewire_vm_make_static(const RewireProgram* program, const RewireLimits* limits, void* memory,
                                   uint64_t bytes, RewireVm** out) {
  return Boundary(Given("program,memory,out", program, memory, out), [&]() -> Status {
    rewire::VmOptions options;
    options.memory = {memory, bytes};
    return MakeVm(program, limits, std::move(options), out);
  });
}

RewireStatus rewire_arena_make(uint64_t bytes, const RewireAllocator* allocator, RewireArena** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    rewire::Allocator upstream = rewire::DefaultAllocator();
    if (allocator != nullptr) {
      if (Status ok = rewire::c_api::AllocatorOf(*allocator, &upstream); !ok) return ok;
    }
    Result<rewire::SharedArena> arena = rewire::SharedArena::TryMake(bytes, upstream);
    if (!arena) return Forward(arena);
    *out = new RewireArena{*std::move(arena)};
    return {};
  });
}

void rewire_arena_destroy(RewireArena* arena) { delete arena; }

RewireStatus rewire_vm_make_in_arena(const RewireProgram* program, const RewireLimits* limits,
                                     const RewireArena* arena, RewireVm** out) {
  return Boundary(Given("program,arena,out", program, arena, out), [&]() -> Status {
    rewire::VmOptions options;
    options.arena = arena->arena;
    return MakeVm(program, limits, std::move(options), out);
  });
}
