// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/tls/openssl.h"

#include <dlfcn.h>

namespace rewire::serve {
namespace {

constexpr char kLibrary[] = "libssl.so.3";

Result<const OpenSsl*> Open() {
  // It stays open: threads and handlers of its own may use it until the process ends.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Fail(StatusCode::kUnsupported, "TLS needs OpenSSL 3 (Debian's package libssl3): {}", dlerror());
  }
  static OpenSsl functions;
  // A library's symbols are also looked for in those that it is linked with, so libcrypto's are found here.
#define REWIRE_OPENSSL_FIND(name)                                                     \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (functions.name == nullptr)                                                      \
    return Fail(StatusCode::kUnsupported, "TLS needs OpenSSL 3: {} has no function {}", kLibrary, #name);
  REWIRE_OPENSSL_FUNCTIONS(REWIRE_OPENSSL_FIND)
#undef REWIRE_OPENSSL_FIND
  return &functions;
}

}  // namespace

Result<const OpenSsl*> FindOpenSsl() {
  static const Result<const OpenSsl*> found = Open();
  if (!found) return Forward(found);
  return *found;
}

const char* OpenSsl::Reason(const char* otherwise) const {
  const char* const reason = ERR_reason_error_string(ERR_get_error());
  return reason == nullptr ? otherwise : reason;
}

}  // namespace rewire::serve
