// SPDX-License-Identifier: Apache-2.0
//
// The element types of the Open Inference Protocol, and the codes that its transports have for errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/base/status.h"

namespace rewire::serve {

// BYTES: elements are texts. Each is its number of bytes as a uint32, and the bytes. No tensor of a program
// has this type.
inline constexpr DLDataType kWireText = MakeDType(kOpaqueHandle, 8);
void AppendWireText(std::string_view text, std::string* wire);
// Takes the next text off the elements of a BYTES tensor. Nothing if they are damaged.
std::optional<std::string_view> TakeWireText(std::string_view* wire);

// "FP32", "INT64", "BOOL" and so on; empty for a type that the protocol does not have.
std::string_view WireName(DLDataType dtype);
// The inverse. BYTES is not among them, because a program cannot have it.
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
