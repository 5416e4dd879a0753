// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/wire_types.h"

#include <array>
#include <cstring>

namespace rewire::serve {
namespace {

struct Row {
  std::string_view name;
  DLDataType dtype;
};
constexpr std::array kRows = {
    Row{"BOOL", kBool8},
    Row{"UINT8", MakeDType(kUInt, 8)},
    Row{"UINT16", MakeDType(kUInt, 16)},
    Row{"UINT32", MakeDType(kUInt, 32)},
    Row{"UINT64", MakeDType(kUInt, 64)},
    Row{"INT8", MakeDType(kInt, 8)},
    Row{"INT16", MakeDType(kInt, 16)},
    Row{"INT32", MakeDType(kInt, 32)},
    Row{"INT64", MakeDType(kInt, 64)},
    Row{"FP16", MakeDType(kFloat, 16)},
    Row{"FP32", MakeDType(kFloat, 32)},
    Row{"FP64", MakeDType(kFloat, 64)},
    Row{"BF16", MakeDType(kBFloat, 16)},
};

// The first of those that share a code is what it most probably means.
constexpr std::array kClientCodes = {
    StatusCode::kInvalidArgument,
    StatusCode::kNotFound,
    StatusCode::kUnsupported,
    StatusCode::kLinkFailed,
    StatusCode::kBusy,
    StatusCode::kMemoryLimit,
    StatusCode::kCancelled,
    StatusCode::kDeadlineExceeded,
};

}  // namespace

void AppendWireText(std::string_view text, std::string* wire) {
  const auto size = static_cast<std::uint32_t>(text.size());
  char bytes[sizeof size];
  std::memcpy(bytes, &size, sizeof size);
  wire->append(bytes, sizeof bytes);
  wire->append(text);
}

std::optional<std::string_view> TakeWireText(std::string_view* wire) {
  std::uint32_t size = 0;
  if (wire->size() < sizeof size) return std::nullopt;
  std::memcpy(&size, wire->data(), sizeof size);
  if (size > wire->size() - sizeof size) return std::nullopt;
  const std::string_view text = wire->substr(sizeof size, size);
  wire->remove_prefix(sizeof size + size);
  return text;
}

std::string_view WireName(DLDataType dtype) {
  if (dtype == kWireText) return "BYTES";
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return {};
}

std::optional<DLDataType> ParseWireName(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

WireCode WireCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return {200, 0};
    case StatusCode::kInvalidArgument:
      return {400, 3};  // INVALID_ARGUMENT
    case StatusCode::kNotFound:
      return {404, 5};  // NOT_FOUND
    case StatusCode::kInvalidFile:
    case StatusCode::kVerificationFailed:
    case StatusCode::kLinkFailed:
      return {400, 9};  // FAILED_PRECONDITION: the model cannot be loaded
    case StatusCode::kUnsupported:
      return {501, 12};  // UNIMPLEMENTED
    case StatusCode::kDepthLimit:
    case StatusCode::kStepLimit:
    case StatusCode::kMemoryLimit:
    case StatusCode::kOutOfMemory:
      return {503, 8};  // RESOURCE_EXHAUSTED
    case StatusCode::kDeadlineExceeded:
      return {504, 4};  // DEADLINE_EXCEEDED
    case StatusCode::kCancelled:
      return {499, 1};  // CANCELLED
    case StatusCode::kBusy:
      return {503, 14};  // UNAVAILABLE
    case StatusCode::kIo:
    case StatusCode::kRuntimeFailed:
    case StatusCode::kKernelFailed:
    case StatusCode::kInternal:
      return {500, 13};  // INTERNAL
  }
  return {500, 13};
}

StatusCode CodeOfHttp(int status) {
  for (const StatusCode code : kClientCodes) {
    if (WireCodeOf(code).http == status) return code;
  }
  return StatusCode::kRuntimeFailed;
}

StatusCode CodeOfGrpc(int status) {
  for (const StatusCode code : kClientCodes) {
    if (WireCodeOf(code).grpc == status) return code;
  }
  return StatusCode::kRuntimeFailed;
}

}  // namespace rewire::serve
