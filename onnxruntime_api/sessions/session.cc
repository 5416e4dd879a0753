// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/session.h"

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtPrepackedWeightsContainer {};

namespace rewire::onnxruntime_api {
namespace {

template <typename Source>
OrtStatus* Create(const OrtEnv* env, const Source& source, const OrtSessionOptions* options,
                  OrtSession** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = nullptr;
    if (env == nullptr) return InvalidArgument("the environment is null");
    static const OrtSessionOptions* const defaults = new OrtSessionOptions;
    if (options == nullptr) options = defaults;
    auto session = std::make_unique<OrtSession>();
    if (!options->profile_prefix.empty())
      session->profile = std::make_unique<Profile>(options->profile_prefix);
    const std::int64_t begin = Profile::Now();
    OrtStatus* const failed = OpenModel(*env, source, *options, &session->model);
    if (failed != nullptr) return failed;
    if (session->profile != nullptr)
      session->profile->AddSession("session_initialization", begin, Profile::Now());
    *out = session.release();
    return nullptr;
  });
}

OrtStatus* Name(const std::vector<Port>& ports, std::size_t index, OrtAllocator* allocator,
                char** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (index >= ports.size()) return MakeStatus(ORT_FAIL, "index out of range");
    *out = AllocateText(allocator, ports[index].name);
    return *out == nullptr ? OutOfMemory() : nullptr;
  });
}

OrtStatus* Type(const std::vector<Port>& ports, std::size_t index, OrtTypeInfo** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (index >= ports.size()) return MakeStatus(ORT_FAIL, "out of index");
    *out = new OrtTypeInfo(ports[index].type);
    return nullptr;
  });
}

}  // namespace

OrtStatus* CreateSession(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                         OrtSession** out) noexcept {
  return Guard([&] { return Create(env, std::string(path), options, out); });
}
OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* data, std::size_t size,
                                  const OrtSessionOptions* options, OrtSession** out) noexcept {
  return Create(env, Span<const std::byte>(static_cast<const std::byte*>(data), size), options, out);
}
void ReleaseSession(OrtSession* session) noexcept {
  if (session != nullptr && session->profile != nullptr) {
    Quietly([&] {
      std::string file;
      ReleaseStatus(session->profile->Finish(&file));
    });
  }
  delete session;
}

// Sessions of one model share what is made of its weights in any case, so that the container stays empty.
OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) noexcept {
  *out = new (std::nothrow) OrtPrepackedWeightsContainer;
  return *out == nullptr ? OutOfMemory() : nullptr;
}
void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* container) noexcept { delete container; }
OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env, const char* path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer*,
                                                      OrtSession** out) noexcept {
  return CreateSession(env, path, options, out);
}
OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(const OrtEnv* env, const void* data,
                                                               std::size_t size,
                                                               const OrtSessionOptions* options,
                                                               OrtPrepackedWeightsContainer*,
                                                               OrtSession** out) noexcept {
  return CreateSessionFromArray(env, data, size, options, out);
}

OrtStatus* SessionGetInputCount(const OrtSession* session, std::size_t* out) noexcept {
  *out = session->model->ports().inputs.size();
  return nullptr;
}
OrtStatus* SessionGetOutputCount(const OrtSession* session, std::size_t* out) noexcept {
  *out = session->model->ports().outputs.size();
  return nullptr;
}
OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, std::size_t* out) noexcept {
  *out = session->model->ports().overridable.size();
  return nullptr;
}
OrtStatus* SessionGetInputName(const OrtSession* session, std::size_t index, OrtAllocator* allocator,
                               char** out) noexcept {
  return Name(session->model->ports().inputs, index, allocator, out);
}
OrtStatus* SessionGetOutputName(const OrtSession* session, std::size_t index, OrtAllocator* allocator,
                                char** out) noexcept {
  return Name(session->model->ports().outputs, index, allocator, out);
}
OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, std::size_t index,
                                                OrtAllocator* allocator, char** out) noexcept {
  return Name(session->model->ports().overridable, index, allocator, out);
}
OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, std::size_t index, OrtTypeInfo** out) noexcept {
  return Type(session->model->ports().inputs, index, out);
}
OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, std::size_t index,
                                    OrtTypeInfo** out) noexcept {
  return Type(session->model->ports().outputs, index, out);
}
OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, std::size_t index,
                                                    OrtTypeInfo** out) noexcept {
  return Type(session->model->ports().overridable, index, out);
}
OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, std::uint64_t* out) noexcept {
  *out = session->profile == nullptr ? 0 : session->profile->start_ns();
  return nullptr;
}
OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    std::string file;  // empty if there is no profile, or none any more
    if (session->profile != nullptr) {
      if (OrtStatus* const failed = session->profile->Finish(&file); failed != nullptr) return failed;
    }
    *out = AllocateText(allocator, file);
    return *out == nullptr ? OutOfMemory() : nullptr;
  });
}

}  // namespace rewire::onnxruntime_api
