// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/c_api.h"

#include <chrono>
#include <utility>

#include "rewire/serve/client/remote_program.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

struct RewireRemote {
  rewire::RemoteProgram remote;
};

namespace {

using rewire::Fail;
using rewire::Forward;
using rewire::Result;
using rewire::Span;
using rewire::Status;
using rewire::StatusCode;
using rewire::Tensor;
using rewire::c_api::Boundary;
using rewire::c_api::Give;
using rewire::c_api::GiveMade;
using rewire::c_api::Given;
using rewire::c_api::Require;

}  // namespace

RewireStatus rewire_remote_connect(const char* url, const RewireConnectOptions* options,
                                   const RewireLinkOptions* link, RewireRemote** out) {
  return Boundary(Given("url,out", url, out), [&]() -> Status {
    rewire::RemoteOptions chosen;
    if (options != nullptr) {
      RewireConnectOptions given{};
      if (Status ok = rewire::c_api::ReadStruct("options", options, &given); !ok) return ok;
      if (given.timeout < 0) {
        return Fail(StatusCode::kInvalidArgument,
                    "options.timeout: expected at least 0 nanoseconds, {} given", given.timeout);
      }
      if (given.timeout > 0) chosen.connect_time = std::chrono::nanoseconds(given.timeout);
    }
    if (link != nullptr) chosen.link = link->options;
    return GiveMade(rewire::RemoteProgram::TryConnect(url, std::move(chosen)), out);
  });
}

void rewire_remote_destroy(RewireRemote* remote) { delete remote; }

RewireStatus rewire_remote_program(const RewireRemote* remote, RewireProgram** out) {
  return Boundary(Given("remote,out", remote, out), [&]() -> Status {
    Give(remote->remote.program(), out);
    return {};
  });
}

RewireStatus rewire_remote_make_tensor(const RewireRemote* remote, DLDataType dtype, uint32_t ndim,
                                       const int64_t* shape, RewireValue** out) {
  return Boundary(Given("remote,out", remote, out), [&]() -> Status {
    if (ndim > 0) {
      if (Status ok = Require("shape", shape); !ok) return ok;
    }
    Result<Tensor> tensor = remote->remote.TryMakeTensor(dtype, Span<const std::int64_t>(shape, ndim));
    if (!tensor) return Forward(tensor);
    Give(rewire::Value(*std::move(tensor)), out);
    return {};
  });
}
