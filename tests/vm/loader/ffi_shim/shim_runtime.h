// SPDX-License-Identifier: Apache-2.0
// The runtime of tvm-ffi that Rewire brings, called as libraries call it.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire::test {

// It stays open behind this object: types are registered for ever.
class ShimRuntime {
 public:
  ShimRuntime() {
    REQUIRE(kernels_.AddLibrary(TestLibrary("linked")));  // opens the runtime
    library_ = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library_ != nullptr);
  }
  ShimRuntime(const ShimRuntime&) = delete;

  // An exported function of type F.
  template <typename F>
  F* Get(const char* name) const {
    void* const found = dlsym(library_, name);
    INFO(name);
    REQUIRE(found != nullptr);
    return reinterpret_cast<F*>(found);
  }

  // "Kind: message" of this thread's error, which is then gone. Empty without one.
  std::string TakeError() const {
    void* raised = nullptr;
    Get<void(void**)>("TVMFFIErrorMoveFromRaised")(&raised);
    if (raised == nullptr) return "";
    struct Error {
      RewireFFIObject header;
      RewireFFIErrorCell cell;
    };
    auto* const error = static_cast<Error*>(raised);
    std::string text = std::string(error->cell.kind.data, error->cell.kind.size) + ": " +
                       std::string(error->cell.message.data, error->cell.message.size);
    ReleaseObject(&error->header);
    return text;
  }

 private:
  KernelSet kernels_;
  void* library_ = nullptr;
};

inline RewireFFIByteArray BytesOf(std::string_view text) { return {text.data(), text.size()}; }

// The characters of an owned string, which is then gone.
inline std::string TakeText(RewireFFIAny* text) {
  struct Text {
    RewireFFIObject header;
    RewireFFIByteArray bytes;
  };
  std::string taken;
  if (text->type_index == kRewireFFISmallStr) {
    taken.assign(text->v_bytes, text->small_str_len);
  } else {
    REQUIRE(text->type_index == kRewireFFIStr);
    const auto* object = reinterpret_cast<const Text*>(text->v_obj);
    taken.assign(object->bytes.data, object->bytes.size);
  }
  ReleaseAny(text);
  return taken;
}

}  // namespace rewire::test
