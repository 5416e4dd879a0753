// SPDX-License-Identifier: Apache-2.0
//
// The module of a model on a server: a function `main` with the model's signature, whose only kernel asks the
// server. A Program of it is used as one of the model itself.
#pragma once

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/serve/client/channel.h"

namespace rewire::serve {

// The kernel. It is called twice in a run. First it gets the inputs, and for each output its shape
// (i64[rank]) and its size in bytes (i64[]), which it writes. Then it gets the inputs and the outputs, which
// it writes. A model without outputs is called once, with the inputs.
inline constexpr const char kRemoteKernel[] = "rewire.remote.call";

struct RemoteModule {
  Module module;
  // The shape of each output follows from those of the inputs, so that the outputs have their memory before
  // the server is asked.
  bool derived = false;
};

// Errors: kUnsupported if the names of dimensions do not fit the shapes.
Result<RemoteModule> MakeRemoteModule(const RemoteSignature& signature);

}  // namespace rewire::serve
