// SPDX-License-Identifier: Apache-2.0
//
// Allocators that sessions share: those with the config entry session.use_env_allocators take the memory of
// their VMs from the one that is registered.
#include <array>
#include <cstring>
#include <string_view>

#include "rewire/onnxruntime_api/allocator.h"
#include "rewire/onnxruntime_api/env.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtArenaCfg {};

namespace rewire::onnxruntime_api {
namespace {

constexpr std::string_view kStrategy = "arena_extend_strategy";
// The entries of an arena's configuration. Here they have no effect: VMs keep what the next run needs.
constexpr std::array<std::string_view, 6> kArenaKeys = {"max_mem",
                                                        kStrategy,
                                                        "initial_chunk_size_bytes",
                                                        "max_dead_bytes_per_chunk",
                                                        "initial_growth_chunk_size_bytes",
                                                        "max_power_of_two_extend_bytes"};

OrtStatus* NewArena(OrtArenaCfg** out) {
  *out = new OrtArenaCfg;
  return nullptr;
}

OrtStatus* RegisterDefault(OrtEnv* env) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (env == nullptr) return InvalidArgument("Env is null");
    env->Register(DefaultOrtAllocator());
    return nullptr;
  });
}

}  // namespace

OrtStatus* CreateArenaCfg(std::size_t, int strategy, int first_chunk, int, OrtArenaCfg** out) noexcept {
  return Guard([&] {
    // -1 stands for the library's own choice.
    const bool valid = strategy >= -1 && strategy <= 1 && first_chunk >= -1;
    return valid ? NewArena(out) : InvalidArgument("Invalid configuration value was provided.");
  });
}
OrtStatus* CreateArenaCfgV2(const char* const* keys, const std::size_t* values, std::size_t count,
                            OrtArenaCfg** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    for (std::size_t i = 0; i < count; ++i) {
      bool known = false;
      for (const std::string_view key : kArenaKeys) known = known || key == keys[i];
      if (!known) return InvalidArgument("Invalid key found: " + std::string(keys[i]));
      const auto strategy = static_cast<int>(values[i]);
      if (kStrategy == keys[i] && (strategy < -1 || strategy > 1))
        return InvalidArgument("Invalid configuration value was provided.");
    }
    return NewArena(out);
  });
}
void ReleaseArenaCfg(OrtArenaCfg* arena) noexcept { delete arena; }

OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo*, const OrtArenaCfg*) noexcept {
  return RegisterDefault(env);
}
OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider, const OrtMemoryInfo*,
                                        const OrtArenaCfg*, const char* const*, const char* const*,
                                        std::size_t) noexcept {
  if (std::strcmp(provider, "CPUExecutionProvider") == 0) return RegisterDefault(env);
  return Guard([&] {
    return InvalidArgument(std::string(provider) + " is not implemented in CreateAndRegisterAllocatorV2()");
  });
}

// The host keeps its allocator until it has unregistered it and has released what sessions made with it.
OrtStatus* RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (env == nullptr) return InvalidArgument("Env is null");
    if (allocator == nullptr) return InvalidArgument("Provided OrtAllocator is null");
    env->Register(allocator);
    return nullptr;
  });
}
OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* memory) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (env == nullptr) return InvalidArgument("Env is null");
    if (memory == nullptr) return InvalidArgument("Provided OrtMemoryInfo is null");
    if (env->Unregister()) return nullptr;
    return InvalidArgument("No allocator for this device has been registered for sharing.");
  });
}

OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo*, OrtAllocator** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    OrtAllocator* const registered = env->Registered();
    *out = registered == nullptr ? DefaultOrtAllocator() : registered;
    return nullptr;
  });
}
// Does nothing: there are no allocators of devices.
OrtStatus* ReleaseSharedAllocator(OrtEnv*, const OrtEpDevice*, OrtDeviceMemoryType) noexcept {
  return nullptr;
}

}  // namespace rewire::onnxruntime_api
