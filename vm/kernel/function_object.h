// SPDX-License-Identifier: Apache-2.0
// Function objects: packed functions with state of their own, as tvm-ffi objects. C++17.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "vm/kernel/packed.h"

namespace rewire::kernel {

// A callable of any kind that CallPacked takes, behind a tvm-ffi function object. Its handle is the object
// itself. The object needs neither the VM nor tvm-ffi to be released: it carries its own deleter, which may
// run on any thread. Calls come from many threads at once: the callable is called as const.
template <typename F, typename Errors = ApiErrors>
class FunctionObject {
 public:
  // Gives a new object with one strong reference to `*result`. False when there is no memory. `name` goes in
  // front of error messages.
  static bool New(std::string name, F callable, RewireFFIAny* result) {
    auto* self = new (std::nothrow) FunctionObject(std::move(name), std::move(callable));
    if (self == nullptr) return false;
    result->type_index = kRewireFFIFunction;
    result->zero_padding = 0;
    result->v_obj = &self->object_.header;
    return true;
  }

  // The callable behind a handle of such an object that has not lost its last strong reference.
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

  RewireFFIFunctionObject object_;  // first: a pointer to it is a pointer to this
  std::string name_;
  std::optional<F> state_;  // goes with the last strong reference, the rest with the last weak one
};

}  // namespace rewire::kernel
