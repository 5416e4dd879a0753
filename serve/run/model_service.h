// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/models/settings.h"
#include "rewire/serve/run/model_queue.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/program.h"

namespace rewire::serve {

// ServiceHooks: additions of a program that is a server itself.
struct ServiceHooks {
  LogSink log;  // gets what programs log when they are linked
  // Kernels of models, beside the stock ones.
  KernelSet kernels;
  // The log of the server itself, whose level clients may set. It must outlive the service. Null: there is
  // none.
  ServerLog* server_log = nullptr;
  // Is told of sequences that have given their place or memory to others, or were idle for too long. It is
  // called on any thread of the server, and must not block. It may call the service.
  SequenceListener sequence_evicted = {};
};

// Finds and loads all models of the settings. The service reads folders again when a client loads a model.
// Errors: of all models, a line each, so that they can be mended at once.
Result<std::unique_ptr<Service>> MakeService(ServeSettings settings, ServiceHooks hooks = {});

}  // namespace rewire::serve
