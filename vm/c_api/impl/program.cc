// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/program.h"

#include <memory>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/c_api/impl/services.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/kernel_table.h"

using rewire::Fail;
using rewire::Forward;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::c_api::Boundary;
using rewire::c_api::Give;
using rewire::c_api::Given;
using rewire::c_api::NameOrEntry;
using rewire::c_api::Require;

namespace rewire::c_api {

Status AllocatorOf(const RewireAllocator& given, Allocator* out) {
  RewireAllocator read;
  if (Status ok = ReadStruct("RewireAllocator", &given, &read); !ok) return ok;
  if (read.allocate == nullptr || read.deallocate == nullptr) {
    return Fail(StatusCode::kInvalidArgument, "RewireAllocator: allocate and deallocate are needed");
  }
  *out = {read.context, read.allocate, read.deallocate};
  return {};
}

Status LimitsOf(const RewireLimits* given, Limits* limits) {
  if (given == nullptr) return {};
  RewireLimits read;
  if (Status ok = ReadStruct("RewireLimits", given, &read); !ok) return ok;
  if (read.depth != 0) limits->depth = read.depth;
  if (read.steps != 0) limits->steps = read.steps;
  if (read.bytes != 0) limits->bytes = read.bytes;
  return {};
}

}  // namespace rewire::c_api

namespace {

Status AddParameter(RewireLinkOptions* options, const char* name, const rewire::Value& value) {
  if (value.kind() != rewire::ValueKind::kTensor) {
    return Fail(StatusCode::kInvalidArgument, "parameter {}: a tensor expected, {} given", name,
                ValueKindName(value.kind()));
  }
  rewire::Array<rewire::ParameterSet>& sets = options->options.parameters;
  if (sets.empty() || sets.back().is_offer()) sets.emplace_back();
  sets.back().Set(name, value.tensor());
  return {};
}

}  // namespace

RewireStatus rewire_link_options_make(RewireLinkOptions** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    *out = new RewireLinkOptions;
    return {};
  });
}

void rewire_link_options_destroy(RewireLinkOptions* options) { delete options; }

RewireStatus rewire_link_options_add_library_path(RewireLinkOptions* options, const char* directory) {
  return Boundary(Given("options,directory", options, directory), [&]() -> Status {
    options->options.kernels.library_path.emplace_back(directory);
    return {};
  });
}

RewireStatus rewire_link_options_add_library(RewireLinkOptions* options, const char* path) {
  return Boundary(Given("options,path", options, path),
                  [&]() -> Status { return options->options.kernels.AddLibrary(path); });
}

RewireStatus rewire_link_options_add_kernel(RewireLinkOptions* options, const char* name,
                                            RewirePackedFunction function, void* handle,
                                            void (*deleter)(void* handle)) {
  return Boundary([&]() -> Status {
    rewire::PackedFunction packed;
    if (deleter != nullptr) packed.owner.reset(handle, deleter);
    if (Status ok = Require("options,name", options, name); !ok) return ok;
    if (function == nullptr) return Fail(StatusCode::kInvalidArgument, "function is NULL");
    packed.call = function;
    packed.handle = handle;
    options->options.kernels.AddFunction(name, std::move(packed));
    return {};
  });
}

RewireStatus rewire_link_options_add_table(RewireLinkOptions* options, const RewireKernelTable* table,
                                           const char* description) {
  return Boundary(Given("options,table", options, table), [&]() -> Status {
    if (table->struct_size < rewire::KernelTableIndex::kLeastSize)
      return Fail(StatusCode::kInvalidArgument, "table: struct_size is smaller than a RewireKernelTable");
    if (table->count > 0) {
      if (Status ok = Require("table->entries", table->entries); !ok) return ok;
    }
    options->options.kernels.AddTable(*table, description == nullptr ? "a table of the host's" : description);
    return {};
  });
}

RewireStatus rewire_link_options_use_stock_kernels(RewireLinkOptions* options, int32_t use) {
  return Boundary(Given("options", options), [&]() -> Status {
    options->options.stock_kernels = use != 0;
    return {};
  });
}

RewireStatus rewire_link_options_trust_device_code(RewireLinkOptions* options, int32_t trust) {
  return Boundary(Given("options", options), [&]() -> Status {
    options->options.trust_device_code = trust != 0;
    return {};
  });
}

const RewireKernelApi* rewire_kernel_api(void) { return rewire::KernelApi(); }

RewireStatus rewire_link_options_add_parameters(RewireLinkOptions* options, const RewireParameterSet* set) {
  return Boundary(Given("options,set", options, set), [&]() -> Status {
    options->options.parameters.push_back(set->set);
    return {};
  });
}

RewireStatus rewire_link_options_ignore_extra_parameters(RewireLinkOptions* options, int32_t ignore) {
  return Boundary(Given("options", options), [&]() -> Status {
    options->options.ignore_extra_parameters = ignore != 0;
    return {};
  });
}

RewireStatus rewire_link_options_add_codec(RewireLinkOptions* options, const RewireCodec* codec) {
  return Boundary(Given("options,codec", options, codec), [&]() -> Status {
    const Result<rewire::ConstantCodec> read = rewire::c_api::CodecOf(*codec);
    if (!read) return Forward(read);
    options->options.codecs.push_back(*read);
    return {};
  });
}

RewireStatus rewire_link_options_add_parameter(RewireLinkOptions* options, const char* name,
                                               const RewireValue* tensor) {
  return Boundary(Given("options,name,tensor", options, name, tensor),
                  [&]() -> Status { return AddParameter(options, name, tensor->value); });
}

RewireStatus rewire_link_options_borrow_parameter(RewireLinkOptions* options, const char* name,
                                                  const DLTensor* tensor) {
  return Boundary(Given("options,name", options, name), [&]() -> Status {
    const auto view = rewire::c_api::ViewOf(tensor, "tensor");
    if (!view) return Forward(view);
    Result<rewire::Tensor> wrapped = rewire::Tensor::Wrap(*view, nullptr);
    if (!wrapped) return Forward(wrapped);
    return AddParameter(options, name, rewire::Value(*std::move(wrapped)));
  });
}

RewireStatus rewire_link_options_take_parameter(RewireLinkOptions* options, const char* name,
                                                DLManagedTensor* managed) {
  return Boundary([&]() -> Status {
    const Result<rewire::Value> value = rewire::c_api::TakeDLPack(managed);
    if (!value) return Forward(value);
    if (Status ok = Require("options,name", options, name); !ok) return ok;
    return AddParameter(options, name, *value);
  });
}

RewireStatus rewire_link_options_set_allocator(RewireLinkOptions* options, const RewireAllocator* allocator) {
  return Boundary(Given("options,allocator", options, allocator), [&]() -> Status {
    return rewire::c_api::AllocatorOf(*allocator, &options->options.allocator);
  });
}

RewireStatus rewire_link_options_set_thread_pool(RewireLinkOptions* options, const RewireThreadPool* pool) {
  return Boundary(Given("options,pool", options, pool), [&]() -> Status {
    Result<std::shared_ptr<rewire::ThreadPool>> made = rewire::c_api::MakeHostPool(*pool);
    if (!made) return Forward(made);
    options->options.threads = *std::move(made);
    return {};
  });
}

RewireStatus rewire_link_options_set_thread_count(RewireLinkOptions* options, int32_t threads) {
  return Boundary(Given("options", options), [&]() -> Status {
    if (threads < 1) {
      return Fail(StatusCode::kInvalidArgument, "{} threads asked for, at least 1 expected", threads);
    }
    options->options.threads = rewire::ThreadPool::Make(threads);
    return {};
  });
}

RewireStatus rewire_link_options_set_log(RewireLinkOptions* options,
                                         void (*write)(void* context, const char* message, size_t size),
                                         void* context) {
  return Boundary(Given("options", options), [&]() -> Status {
    options->options.log = {context, write};
    return {};
  });
}

RewireStatus rewire_link_options_add_device(RewireLinkOptions* options, const RewireDeviceApi* device) {
  return Boundary(Given("options,device", options, device), [&]() -> Status {
    if (!rewire::IsWholeDevice(*device)) {
      return Fail(StatusCode::kInvalidArgument,
                  "RewireDeviceApi: struct_size, name, error, allocate, deallocate, copy and synchronize are "
                  "needed, and each optional group of functions is given as a whole or not at all");
    }
    options->options.devices.push_back(device);
    return {};
  });
}

RewireStatus rewire_link_options_set_init_limits(RewireLinkOptions* options, const RewireLimits* limits) {
  return Boundary(Given("options", options), [&]() -> Status {
    rewire::Limits read;
    if (Status ok = rewire::c_api::LimitsOf(limits, &read); !ok) return ok;
    options->options.init_limits = read;
    return {};
  });
}

RewireStatus rewire_link_options_set_limits(RewireLinkOptions* options, const RewireLinkLimits* limits) {
  return Boundary(Given("options", options), [&]() -> Status {
    rewire::LinkLimits read;
    if (limits != nullptr) {
      RewireLinkLimits given;
      if (Status ok = rewire::c_api::ReadStruct("RewireLinkLimits", limits, &given); !ok) return ok;
      read.work = given.work;
      read.bytes = given.bytes;
      if (Status ok = rewire::c_api::DeadlineOf(given.timeout, &read.deadline); !ok) return ok;
    }
    options->options.limits = read;
    return {};
  });
}

RewireStatus rewire_link_options_set_storage_fill(RewireLinkOptions* options, RewireStorageFill fill) {
  return Boundary(Given("options", options), [&]() -> Status {
    if (fill < kRewireFillUndefined || fill > kRewireFillPoison)
      return Fail(StatusCode::kInvalidArgument, "there is no storage fill {}", fill);
    options->options.storage_fill = static_cast<rewire::StorageFill>(fill);
    return {};
  });
}

RewireStatus rewire_program_link(const RewireExecutable* executable, const RewireLinkOptions* options,
                                 RewireProgram** out) {
  return Boundary(Given("executable,out", executable, out), [&]() -> Status {
    return rewire::c_api::GiveMade(
        rewire::Program::Link(executable->executable,
                              options == nullptr ? rewire::LinkOptions() : options->options),
        out);
  });
}

void rewire_program_destroy(RewireProgram* program) { delete program; }

RewireStatus rewire_program_rebind(const RewireProgram* program, const RewireParameterSet* const* sets,
                                   uint32_t count, RewireProgram** out) {
  return Boundary(Given("program,out", program, out), [&]() -> Status {
    if (count > 0) {
      if (Status ok = Require("sets", sets); !ok) return ok;
    }
    rewire::Array<rewire::ParameterSet> given;
    for (uint32_t i = 0; i < count; ++i) {
      if (Status ok = Require("sets", sets[i]); !ok) return ok;
      given.push_back(sets[i]->set);
    }
    return rewire::c_api::GiveMade(program->program.Rebind(given), out);
  });
}

RewireStatus rewire_parameter_set_of_program(const RewireProgram* program, RewireParameterSet** out) {
  return Boundary(Given("program,out", program, out), [&]() -> Status {
    Give(rewire::ParameterSet::Of(program->program), out);
    return {};
  });
}

RewireStatus rewire_program_find_function(const RewireProgram* program, const char* name,
                                          uint32_t* function) {
  return Boundary(Given("program,function", program, function), [&]() -> Status {
    const Result<std::uint32_t> found = program->program.FindFunction(NameOrEntry(name));
    if (!found) return Forward(found);
    *function = *found;
    return {};
  });
}

RewireStatus rewire_program_find_input(const RewireProgram* program, const char* function, const char* name,
                                       RewireInput* input) {
  return Boundary(Given("program,name,input", program, name, input), [&]() -> Status {
    const Result<rewire::InputHandle> found =
        program->program.FindInput(std::string_view(name), NameOrEntry(function));
    if (!found) return Forward(found);
    *input = {found->function, found->index};
    return {};
  });
}

RewireStatus rewire_program_find_output(const RewireProgram* program, const char* function, const char* name,
                                        RewireOutput* output) {
  return Boundary(Given("program,name,output", program, name, output), [&]() -> Status {
    const Result<rewire::OutputHandle> found =
        program->program.FindOutput(std::string_view(name), NameOrEntry(function));
    if (!found) return Forward(found);
    *output = {found->function, found->leaf};
    return {};
  });
}
