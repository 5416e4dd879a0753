// SPDX-License-Identifier: Apache-2.0
// Function objects and the registry of global functions.
#include <map>
#include <mutex>

#include "rewire/vm/loader/ffi_shim/runtime.h"
#include "rewire/vm/loader/ffi_shim/type_info.h"

namespace rewire::ffi_shim {
namespace {

// A C function with state. Callers of a function object pass the object; the C function wants its state.
struct StateFunction {
  RewireFFIObject header;
  RewireFFIFunctionCell cell;
  void* state;
  RewirePackedFunction call;
  void (*deleter)(void* state);

  void Drop() const {
    if (deleter != nullptr) deleter(state);
  }
  static int Call(void* self, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
    const auto* function = static_cast<const StateFunction*>(self);
    return function->call(function->state, args, num_args, result);
  }
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, RewireFFIObject*, std::less<>> functions;
};
Registry& TheRegistry() {
  static auto* registry = new Registry;  // libraries use it while they are unloaded
  return *registry;
}

}  // namespace

REWIRE_FFI_API int TVMFFIFunctionCreate(void* state, RewirePackedFunction call, void (*deleter)(void* state),
                                        void** out) {
  *out = new StateFunction{
      NewHeader<StateFunction>(kRewireFFIFunction), {&StateFunction::Call, nullptr}, state, call, deleter};
  return 0;
}

REWIRE_FFI_API int TVMFFIFunctionCall(void* function, RewireFFIAny* args, std::int32_t num_args,
                                      RewireFFIAny* result) {
  return static_cast<RewireFFIFunctionObject*>(function)->cell.safe_call(function, args, num_args, result);
}

REWIRE_FFI_API int TVMFFIFunctionGetGlobal(const RewireFFIByteArray* name, void** out) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.functions.find(View(*name));
  *out = found == registry.functions.end() ? nullptr : found->second;
  if (*out != nullptr) RetainObject(found->second);
  return 0;
}

REWIRE_FFI_API int TVMFFIFunctionSetGlobal(const RewireFFIByteArray* name, void* function,
                                           int allow_override) {
  auto* object = static_cast<RewireFFIObject*>(function);
  Registry& registry = TheRegistry();
  RewireFFIObject* before = nullptr;
  {
    const std::lock_guard<std::mutex> lock(registry.mutex);
    RewireFFIObject*& entry = registry.functions[std::string(View(*name))];
    if (entry != nullptr && allow_override == 0) {
      return Raise("RuntimeError",
                   "the global function '" + std::string(View(*name)) + "' is registered already");
    }
    RetainObject(object);
    before = entry;
    entry = object;
  }
  if (before != nullptr) ReleaseObject(before);  // not under the lock: its deleter is anybody's code
  return 0;
}

REWIRE_FFI_API int TVMFFIFunctionSetGlobalFromMethodInfo(const MethodInfo* method, int allow_override) {
  return TVMFFIFunctionSetGlobal(&method->name, method->method.v_obj, allow_override);
}

}  // namespace rewire::ffi_shim
