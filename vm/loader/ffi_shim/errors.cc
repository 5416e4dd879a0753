// SPDX-License-Identifier: Apache-2.0
// Error objects and the error of the calling thread.
#include <utility>

#include "rewire/vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

struct ErrorObject {
  RewireFFIObject header;
  RewireFFIErrorCell cell;
  std::string kind, message, backtrace;

  void Drop() {
    for (void* child : {cell.cause_chain, cell.extra_context}) {
      if (child != nullptr) ReleaseObject(static_cast<RewireFFIObject*>(child));
    }
    cell.cause_chain = cell.extra_context = nullptr;
  }
};

RewireFFIByteArray Bytes(const std::string& text) { return {text.data(), text.size()}; }

void UpdateBacktrace(void* self, const RewireFFIByteArray* more, std::int32_t append) {
  auto* error = static_cast<ErrorObject*>(self);
  if (append == 0) error->backtrace.clear();
  error->backtrace += View(*more);
  error->cell.backtrace = Bytes(error->backtrace);
}

// Takes over the references to `cause` and `context`, which may be null.
RewireFFIObject* NewError(std::string_view kind, std::string_view message, std::string_view backtrace,
                          void* cause, void* context) {
  auto* error = new ErrorObject{NewHeader<ErrorObject>(kRewireFFIError),
                                {},
                                std::string(kind),
                                std::string(message),
                                std::string(backtrace)};
  error->cell = {
      Bytes(error->kind), Bytes(error->message), Bytes(error->backtrace), &UpdateBacktrace, cause, context};
  return &error->header;
}

// Owns the reference that it holds.
class ThreadError {
 public:
  ~ThreadError() { Set(nullptr); }
  void Set(RewireFFIObject* error) {
    if (RewireFFIObject* before = std::exchange(error_, error); before != nullptr) ReleaseObject(before);
  }
  RewireFFIObject* Take() { return std::exchange(error_, nullptr); }

 private:
  RewireFFIObject* error_ = nullptr;
};
thread_local ThreadError t_error;

}  // namespace

int Raise(const char* kind, std::string_view message) {
  t_error.Set(NewError(kind, message, {}, nullptr, nullptr));
  return -1;
}

int RaiseHostError() {
  Raise("RuntimeError", "a function of the VM failed without a message");
  Host()->take_error([](const char* kind, const char* message) { Raise(kind, message); });
  return -1;
}

REWIRE_FFI_API void TVMFFIErrorSetRaised(void* error) {
  auto* object = static_cast<RewireFFIObject*>(error);
  if (object != nullptr) RetainObject(object);
  t_error.Set(object);
}

REWIRE_FFI_API void TVMFFIErrorMoveFromRaised(void** error) { *error = t_error.Take(); }

REWIRE_FFI_API void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  Raise(kind, message);
}

REWIRE_FFI_API void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts,
                                                      std::int32_t count) {
  std::string message;
  for (std::int32_t i = 0; i < count; ++i) {
    if (parts[i] != nullptr) message += parts[i];
  }
  Raise(kind, message);
}

REWIRE_FFI_API int TVMFFIErrorCreateWithCauseAndExtraContext(const RewireFFIByteArray* kind,
                                                             const RewireFFIByteArray* message,
                                                             const RewireFFIByteArray* backtrace, void* cause,
                                                             void* context, void** out) {
  for (void* child : {cause, context}) {
    if (child != nullptr) RetainObject(static_cast<RewireFFIObject*>(child));
  }
  *out = NewError(View(*kind), View(*message), View(*backtrace), cause, context);
  return 0;
}

REWIRE_FFI_API int TVMFFIErrorCreate(const RewireFFIByteArray* kind, const RewireFFIByteArray* message,
                                     const RewireFFIByteArray* backtrace, void** out) {
  return TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, nullptr, nullptr, out);
}

// Rewire's errors say which instruction called the kernel; a walk of the native stack would cost each
// throwing kernel milliseconds.
REWIRE_FFI_API const RewireFFIByteArray* TVMFFIBacktrace(const char* /*file*/, int /*line*/,
                                                         const char* /*function*/,
                                                         int /*cross_ffi_boundary*/) {
  static const RewireFFIByteArray kEmpty = {"", 0};
  return &kEmpty;
}

}  // namespace rewire::ffi_shim
