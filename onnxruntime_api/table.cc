// SPDX-License-Identifier: Apache-2.0
//
// The table itself, and the two symbols that the library exports.
#include <cstdio>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

// One function for each name that is refused, so that the status can say the name.
#define SERVED(result, name, parameters)
#define REFUSED(name) \
  OrtStatus* Refuse##name() noexcept { return RefuseFunction(#name); }
#define ABSENT(name)
#define EMPTY(name)
#include "rewire/onnxruntime_api/slots.def"
#undef REFUSED
#undef SERVED
#undef ABSENT
#undef EMPTY

void* NoObject() noexcept { return nullptr; }
void ReleaseNothing(void*) noexcept {}

constexpr OrtApi kTable = {
#define SERVED(result, name, parameters) onnxruntime_api::name,
#define REFUSED(name) Refuse##name,
#define ABSENT(name) NoObject,
#define EMPTY(name) ReleaseNothing,
#include "rewire/onnxruntime_api/slots.def"
#undef REFUSED
#undef SERVED
#undef ABSENT
#undef EMPTY
};

const OrtApi* GetApi(std::uint32_t version) noexcept {
  if (version >= 1 && version <= REWIRE_ORT_API_VERSION) return &kTable;
  std::fprintf(stderr,
               "The requested API version [%u] is not available, only API versions [1, %d] are supported by "
               "Rewire's libonnxruntime.\n",
               version, REWIRE_ORT_API_VERSION);
  return nullptr;
}

// Hosts compare the second number with the version of their own header.
const char* GetVersionString() noexcept { return "1.32.0"; }

constexpr OrtApiBase kBase = {GetApi, GetVersionString};

}  // namespace
}  // namespace rewire::onnxruntime_api

extern "C" {

const OrtApiBase* OrtGetApiBase() noexcept { return &rewire::onnxruntime_api::kBase; }

OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions*, int) noexcept { return nullptr; }
}
