// SPDX-License-Identifier: Apache-2.0
//
// The C functions of librewire_prepare, which a host uses before a run.
#include <cstring>
#include <string>
#include <utility>

#include "rewire/base/message.h"
#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/names/name_map.h"
#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/c_api/memory.h"
#include "rewire/vm/c_api/parameters.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/c_api/state.h"

using rewire::Fail;
using rewire::Forward;
using rewire::ParameterSet;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::Require;

RewireStatus rewire_executable_open_bundled(const char* path, const char* model,
                                            const RewireOpenOptions* options, RewireExecutable** out) {
  return Boundary(Given("path,out", path, out), [&]() -> Status {
    rewire::OpenOptions read;
    if (Status ok = rewire::c_api::OpenOptionsOf(options, &read); !ok) return ok;
    const auto bundle = rewire::OpenBundle(path, read);
    if (!bundle) return Forward(bundle);
    Result<rewire::Executable> executable = rewire::FindExecutable(*bundle, model == nullptr ? "" : model);
    if (!executable) return Forward(executable, path);
    rewire::c_api::Give(*std::move(executable), out);
    return {};
  });
}

RewireStatus rewire_executable_restore_names(const RewireExecutable* executable, const char* map_path,
                                             RewireExecutable** out) {
  return Boundary(Given("executable,map_path,out", executable, map_path, out), [&]() -> Status {
    Result<rewire::Executable> named = rewire::RestoreNames(executable->executable, map_path);
    if (!named) return Forward(named);
    rewire::c_api::Give(*std::move(named), out);
    return {};
  });
}

RewireStatus rewire_parameter_set_open(const char* path, const RewireOpenOptions* options,
                                       const RewireCodec* const* codecs, uint32_t count,
                                       RewireParameterSet** out) {
  return Boundary(Given("path,out", path, out), [&]() -> Status {
    if (count > 0) {
      if (Status ok = Require("codecs", codecs); !ok) return ok;
    }
    rewire::OpenOptions read;
    if (Status ok = rewire::c_api::OpenOptionsOf(options, &read); !ok) return ok;
    rewire::ConstantCodecs known;
    for (uint32_t i = 0; i < count; ++i) {
      if (Status ok = Require("codecs", codecs[i]); !ok) return ok;
      const Result<rewire::ConstantCodec> codec = rewire::c_api::CodecOf(*codecs[i]);
      if (!codec) return Forward(codec);
      known.push_back(*codec);
    }
    return rewire::c_api::GiveMade(ParameterSet::Open(path, read, known), out);
  });
}

RewireStatus rewire_link_options_share_init_results(RewireLinkOptions* options, int32_t share) {
  return Boundary(Given("options", options), [&]() -> Status {
    options->options.init_sharing = share != 0 ? rewire::ShareInitResults() : nullptr;
    return {};
  });
}

namespace {

// The bound that both functions below give parts of.
Result<rewire::MemoryBound> FindBound(const RewireProgram* program, const char* function,
                                      int32_t outputs_bound, const RewireMaxDim* max_dims, uint32_t count) {
  if (count > 0) {
    if (Status ok = Require("max_dims", max_dims); !ok) return Forward(ok);
  }
  rewire::MemoryBoundOptions options;
  options.outputs_bound = outputs_bound != 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Status ok = Require("max_dims", max_dims[i].name); !ok) return Forward(ok);
    options.max_dims.emplace_back(max_dims[i].name, max_dims[i].size);
  }
  Result<rewire::MemoryBound> found =
      program->program.TryMemoryBound(rewire::c_api::NameOrEntry(function), options);
  if (found && !found->bounded())
    return Fail(StatusCode::kUnsupported, "the memory of a run has no bound because " + found->unbounded);
  return found;
}

}  // namespace

RewireStatus rewire_program_memory_bound(const RewireProgram* program, const char* function,
                                         int32_t outputs_bound, const RewireMaxDim* max_dims, uint32_t count,
                                         RewireMemoryBound* bound) {
  return Boundary(Given("program,bound", program, bound), [&]() -> Status {
    const Result<rewire::MemoryBound> found = FindBound(program, function, outputs_bound, max_dims, count);
    if (!found) return Forward(found);
    RewireMemoryBound result{};
    result.bytes = found->bytes;
    result.static_bytes = found->static_bytes;
    result.arena_bytes = found->arena_bytes;
    result.storage = found->storage;
    result.objects = found->objects;
    result.stack = found->stack;
    result.workspace = found->workspace;
    result.device = found->device;
    result.undeclared = found->undeclared_workspace.size();
    return rewire::c_api::WriteStruct("RewireMemoryBound", result, bound);
  });
}

RewireStatus rewire_program_device_memory_bound(const RewireProgram* program, const char* function,
                                                int32_t outputs_bound, const RewireMaxDim* max_dims,
                                                uint32_t count, uint32_t device, uint64_t* bytes) {
  return Boundary(Given("program,bytes", program, bytes), [&]() -> Status {
    const auto& devices = program->program.executable().module().devices;
    if (device == 0 || device >= devices.size()) {
      const std::string has = devices.size() == 1
                                  ? "no device beside the host"
                                  : rewire::Format("the devices 1 to {} beside the host", devices.size() - 1);
      return Fail(StatusCode::kInvalidArgument,
                  rewire::Format("device {}: the executable has {}", device, has));
    }
    const Result<rewire::MemoryBound> found = FindBound(program, function, outputs_bound, max_dims, count);
    if (!found) return Forward(found);
    *bytes = 0;
    for (const rewire::DeviceMemoryBound& each : found->devices) {
      if (each.device == device) *bytes = each.bytes;
    }
    return {};
  });
}

RewireStatus rewire_vm_state(const RewireVm* vm, const char* function, void* bytes, size_t capacity,
                             size_t* size) {
  return Boundary(Given("vm,size", vm, size), [&]() -> Status {
    const auto state = vm->machine.TryState(rewire::c_api::NameOrEntry(function));
    if (!state) return Forward(state);
    *size = state->size();
    if (bytes == nullptr) return {};
    if (capacity < state->size()) {
      return Fail(StatusCode::kInvalidArgument, "the state takes {} bytes, there is room for {}",
                  state->size(), capacity);
    }
    std::memcpy(bytes, state->data(), state->size());
    return {};
  });
}

RewireStatus rewire_vm_set_state(RewireVm* vm, const void* bytes, size_t size, uint32_t* function) {
  return Boundary(Given("vm,bytes", vm, bytes), [&]() -> Status {
    const Result<std::uint32_t> set = vm->machine.TrySetState({static_cast<const std::byte*>(bytes), size});
    if (!set) return Forward(set);
    if (function != nullptr) *function = *set;
    return {};
  });
}

RewireStatus rewire_vm_save_state(const RewireVm* vm, const char* function, const char* path) {
  return Boundary(Given("vm,path", vm, path), [&]() -> Status {
    return vm->machine.TrySaveState(path, rewire::c_api::NameOrEntry(function));
  });
}

RewireStatus rewire_vm_load_state(RewireVm* vm, const char* path, uint32_t* function) {
  return Boundary(Given("vm,path", vm, path), [&]() -> Status {
    const Result<std::uint32_t> loaded = vm->machine.TryLoadState(path);
    if (!loaded) return Forward(loaded);
    if (function != nullptr) *function = *loaded;
    return {};
  });
}
