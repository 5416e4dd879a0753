// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/serve/core/front_end.h"
#include "rewire/serve/core/service.h"

namespace rewire::serve {

// The Open Inference Protocol over gRPC: HTTP/2 without TLS. `service` must outlive it. Destroy it when no
// loop runs any more.
std::unique_ptr<FrontEnd> MakeGrpcFrontEnd(Service* service, const FrontEndLimits& limits);

}  // namespace rewire::serve
