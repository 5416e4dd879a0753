// SPDX-License-Identifier: Apache-2.0
//
// The element types of the Open Inference Protocol, and the codes that its transports have for errors.
#pragma once

#include <optional>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// "FP32", "INT64", "BOOL" and so on; empty for a type that the protocol does not have.
std::string_view WireName(DLDataType dtype);
// The inverse. BYTES is not among them: no model has tensors of texts as inputs or outputs yet.
std::optional<DLDataType> ParseWireName(std::string_view name);

// WireCode: how a front end answers an error. The code of a Status alone decides: kBusy is a server that
// is full, draining or still loading, so that a client may try again.
struct WireCode {
  int http;  // status of HTTP
  int grpc;  // status of gRPC
};
WireCode WireCodeOf(StatusCode code);
// The code that a client gives such an answer: kRuntimeFailed for one that says no more than that the server
// has failed.
StatusCode CodeOfHttp(int status);
StatusCode CodeOfGrpc(int status);

}  // namespace rewire::serve
