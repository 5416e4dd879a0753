// SPDX-License-Identifier: Apache-2.0
//
// Apart from executable.cc, so that a program has these functions, and by them the reader and the verifier,
// only if it calls them.
#include <memory>

#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Status;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::Require;

namespace {

template <typename T>
void Override(T given, T* value) {
  if (given != 0) *value = given;
}

// Calls the caller's release function when the last copy goes.
std::shared_ptr<const void> Owner(const void* data, void (*release)(void*), void* context) {
  if (release == nullptr) return nullptr;
  return {data, [release, context](const void*) { release(context); }};
}

}  // namespace

namespace rewire::c_api {

Status OpenOptionsOf(const RewireOpenOptions* given, OpenOptions* options) {
  if (given == nullptr) return {};
  RewireOpenOptions read;
  if (Status ok = ReadStruct("RewireOpenOptions", given, &read); !ok) return ok;
  options->verify_data = read.verify_data != 0;
  options->copy = read.copy != 0;
  if (read.limits == nullptr) return {};
  RewireFormatLimits limits;
  if (Status ok = ReadStruct("RewireFormatLimits", read.limits, &limits); !ok) return ok;
  FormatLimits& overridden = options->limits;
  Override(limits.functions, &overridden.functions);
  Override(limits.registers, &overridden.registers);
  Override(limits.constants, &overridden.constants);
  Override(limits.kernels, &overridden.kernels);
  Override(limits.code_words, &overridden.code_words);
  Override(limits.verifier_state, &overridden.verifier_state);
  Override(limits.verifier_steps, &overridden.verifier_steps);
  return DeadlineOf(limits.timeout, &overridden.deadline);
}

}  // namespace rewire::c_api

RewireStatus rewire_executable_open(const char* path, const RewireOpenOptions* options,
                                    RewireExecutable** out) {
  return Boundary(Given("path,out", path, out), [&]() -> Status {
    rewire::OpenOptions read;
    if (Status ok = rewire::c_api::OpenOptionsOf(options, &read); !ok) return ok;
    return rewire::c_api::GiveMade(rewire::Executable::Open(path, read), out);
  });
}

RewireStatus rewire_executable_open_memory(const void* data, size_t size, void (*release)(void* context),
                                           void* context, const RewireOpenOptions* options,
                                           RewireExecutable** out) {
  return Boundary([&]() -> Status {
    std::shared_ptr<const void> owner = Owner(data, release, context);
    if (Status ok = Require("data,out", data, out); !ok) return ok;
    rewire::OpenOptions read;
    if (Status ok = rewire::c_api::OpenOptionsOf(options, &read); !ok) return ok;
    return rewire::c_api::GiveMade(
        rewire::Executable::FromBytes({{static_cast<const std::byte*>(data), size}, std::move(owner)}, read),
        out);
  });
}
