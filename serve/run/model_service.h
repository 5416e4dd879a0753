// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/models/settings.h"
#include "rewire/vm/program.h"

namespace rewire::serve {

// Finds and loads all models of the settings. The service reads folders again when a client loads a model. `log` gets what programs log
// when they are linked, and what is loaded. Errors: of all models, a line each, so that they can be mended at once.
Result<std::unique_ptr<Service>> MakeService(ServeSettings settings, LogSink log = {});

}  // namespace rewire::serve
