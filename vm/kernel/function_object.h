// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/function_object.h>.
//
// FunctionObject: a packed function with state of its own, as a tvm-ffi object. C++17.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "rewire/vm/kernel/packed.h"

namespace rewire::kernel {

// Puts a callable that CallPacked accepts behind a tvm-ffi function object. The handle of its calls is the
// object itself.
//
// The object carries its own deleter, which may run on any thread. So releasing it needs neither the VM nor
// tvm-ffi. Many threads may call it at once; the callable is called as const.
template <typename F, typename Errors = ApiErrors>
class FunctionObject {
 public:
  // Makes an object with one strong reference and stores it in `*result`. Returns false if there is no
  // memory. `name` is put in front of error messages.
  static bool New(std::string name, F callable, RewireFFIAny* result) {
    auto* self = new (std::nothrow) FunctionObject(std::move(name), std::move(callable));
    if (self == nullptr) return false;
    result->type_index = kRewireFFIFunction;
    result->zero_padding = 0;
    result->v_obj = &self->object_.header;
    return true;
  }

  // Returns the callable behind a handle. The object must still have a strong reference.
  static const F& CallableOf(void* handle) { return *static_cast<const FunctionObject*>(handle)->state_; }

 private:
  FunctionObject(std::string name, F callable)
      : object_{{(std::uint64_t{1} << 32) | 1, kRewireFFIFunction, 0, &Delete}, {&Call, nullptr}},
        name_(std::move(name)),
        state_(std::move(callable)) {}

  static int Call(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
    const auto* self = static_cast<const FunctionObject*>(handle);
    return CallPacked<Errors>(self->name_.c_str(), CallableOf(handle), args, num_args, result);
  }
  static void Delete(void* object, int flags) {
    auto* self = static_cast<FunctionObject*>(object);
    if ((flags & kRewireFFIStrongGone) != 0) self->state_.reset();
    if ((flags & kRewireFFIWeakGone) != 0) delete self;
  }

  RewireFFIFunctionObject object_;  // first member, so that a pointer to it is a pointer to this
  std::string name_;
  std::optional<F> state_;  // destroyed with the last strong reference; the rest goes with the last weak one
};

}  // namespace rewire::kernel
