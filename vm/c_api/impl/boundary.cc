// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/impl/boundary.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "rewire/vm/value/shape.h"

namespace rewire::c_api {
namespace {

// The thread's last failure. Keeping one moves a pointer, so it cannot fail itself.
struct LastError {
  RewireStatus code = kRewireOk;
  const char* text = "";
  std::optional<Error> kept;  // owns `text` where that is not static
};

LastError& Last() {
  static thread_local LastError last;
  return last;
}

RewireStatus RecordStatic(StatusCode code, const char* text) noexcept {
  LastError& last = Last();
  last.code = static_cast<RewireStatus>(code);
  last.text = text;
  return last.code;
}

// struct_size, which every struct that grows begins with: the smallest it may have is itself and one more
// word.
constexpr std::uint32_t kMinStructSize = 8;
constexpr std::uint32_t kMaxStructSize = 4096;  // beyond any later version: not a size at all

Status SizeMissing(const char* name, std::uint32_t given) {
  return Fail(StatusCode::kInvalidArgument, "{}: struct_size is {}; set it to sizeof the struct", name,
              given);
}

Status CheckStructSize(const char* name, std::uint32_t given, std::size_t known, const void* bytes) {
  if (given < kMinStructSize || given > kMaxStructSize) return SizeMissing(name, given);
  for (std::size_t i = known; i < given; ++i) {
    if (static_cast<const unsigned char*>(bytes)[i] != 0) {
      return Fail(StatusCode::kUnsupported,
                  "{}: uses members that are newer than this library; leave them zero or use a later library",
                  name);
    }
  }
  return {};
}

}  // namespace

RewireStatus Record(const Status& status) noexcept {
  if (status) return kRewireOk;
  const Error& kept = Last().kept.emplace(status.error());
  return RecordStatic(kept.code(), kept.what());
}

RewireStatus RecordCaught() noexcept {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const Error& error) {
    return Record(error);
  } catch (const std::bad_alloc&) {
    return RecordStatic(StatusCode::kOutOfMemory, "the host has no memory left");
  } catch (...) {
  }
#endif
  return RecordStatic(StatusCode::kInternal, "an unexpected C++ exception; please report it");
}

Status internal::RequireAll(const char* names, std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    const std::size_t length = std::strcspn(names, ",");
    if (pointer == nullptr) {
      return Fail(StatusCode::kInvalidArgument, "{} is NULL", std::string_view(names, length));
    }
    names += length;
    if (*names == ',') ++names;
  }
  return {};
}

Result<TensorView> ViewOf(const DLTensor* tensor, const char* name) {
  if (Status ok = Require(name, tensor); !ok) return Forward(ok);
  const std::string what = name;
  if (tensor->ndim < 0 || tensor->ndim > kMaxRank) {
    return Fail(StatusCode::kInvalidArgument, "{}: rank {} given, 0 to {} expected", what, tensor->ndim,
                kMaxRank);
  }
  if (tensor->ndim > 0 && tensor->shape == nullptr)
    return Fail(StatusCode::kInvalidArgument, "{}: shape is NULL", what);
  TensorView view(*tensor);
  if (!IsValidDType(view.dtype()) || !TensorBytes(view.dtype(), view.shape())) {
    return Fail(StatusCode::kInvalidArgument, "{}: {} has a wrong element type or dimension", what,
                TensorText(*tensor));
  }
  if (tensor->data == nullptr && view.bytes() > 0)
    return Fail(StatusCode::kInvalidArgument, "{}: data is NULL", what);
  return view;
}

Status ReadStructBytes(const char* name, const void* given, void* out, std::size_t known) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (Status ok = CheckStructSize(name, size, known, given); !ok) return ok;
  std::memset(out, 0, known);
  std::memcpy(out, given, std::min<std::size_t>(size, known));
  return {};
}

Status WriteStructBytes(const char* name, const void* value, void* out, std::size_t known) {
  std::uint32_t size = 0;
  std::memcpy(&size, out, sizeof(size));
  if (size < kMinStructSize) return SizeMissing(name, size);
  std::memcpy(out, value, std::min<std::size_t>(size, known));
  std::memcpy(out, &size, sizeof(size));
  return {};
}

}  // namespace rewire::c_api

namespace {
// The two lists of codes are one.
using rewire::StatusCode;
static_assert(kRewireOk == static_cast<int>(StatusCode::kOk) &&
              kRewireInvalidArgument == static_cast<int>(StatusCode::kInvalidArgument) &&
              kRewireNotFound == static_cast<int>(StatusCode::kNotFound) &&
              kRewireIo == static_cast<int>(StatusCode::kIo) &&
              kRewireInvalidFile == static_cast<int>(StatusCode::kInvalidFile) &&
              kRewireUnsupported == static_cast<int>(StatusCode::kUnsupported) &&
              kRewireVerificationFailed == static_cast<int>(StatusCode::kVerificationFailed) &&
              kRewireLinkFailed == static_cast<int>(StatusCode::kLinkFailed) &&
              kRewireRuntimeFailed == static_cast<int>(StatusCode::kRuntimeFailed) &&
              kRewireKernelFailed == static_cast<int>(StatusCode::kKernelFailed) &&
              kRewireDepthLimit == static_cast<int>(StatusCode::kDepthLimit) &&
              kRewireStepLimit == static_cast<int>(StatusCode::kStepLimit) &&
              kRewireMemoryLimit == static_cast<int>(StatusCode::kMemoryLimit) &&
              kRewireDeadlineExceeded == static_cast<int>(StatusCode::kDeadlineExceeded) &&
              kRewireCancelled == static_cast<int>(StatusCode::kCancelled) &&
              kRewireOutOfMemory == static_cast<int>(StatusCode::kOutOfMemory) &&
              kRewireBusy == static_cast<int>(StatusCode::kBusy) &&
              kRewireInternal == static_cast<int>(StatusCode::kInternal));
}  // namespace

uint32_t rewire_api_version(void) { return REWIRE_API_VERSION; }

RewireStatus rewire_check_api_version(uint32_t version) {
  return rewire::c_api::Boundary([&]() -> rewire::Status {
    constexpr std::uint32_t kMinorMask = 0xFFFF;
    const bool fits = version >> 16 == REWIRE_API_VERSION >> 16 &&
                      (version & kMinorMask) <= (REWIRE_API_VERSION & kMinorMask);
    if (fits) return {};
    const auto text = [](std::uint32_t number) {
      return rewire::Format("{}.{}", number >> 16, number & kMinorMask);
    };
    return rewire::Fail(StatusCode::kUnsupported,
                        "the program was built for version {} of the C API, this library has {}",
                        text(version), text(REWIRE_API_VERSION));
  });
}

const char* rewire_status_name(RewireStatus status) {
  if (status < kRewireOk || status > kRewireInternal) return "unknown status";
  return rewire::StatusCodeName(static_cast<StatusCode>(status));
}

RewireStatus rewire_last_error_code(void) { return rewire::c_api::Last().code; }

const char* rewire_last_error_message(void) { return rewire::c_api::Last().text; }
