// SPDX-License-Identifier: Apache-2.0
//
// A libOpenCL.so.1 that gives each call to the real one, counts what is alive, and has one call fail on
// demand. It has the functions that Rewire's library of OpenCL devices calls, out of the same list.
//
// Each exported function is an indirect one: the dynamic linker asks a resolver for its address, and gets an
// instance of Forward. So no parameter is named here.
#include "rewire/devices/opencl/driver.h"

#include <CL/cl_ext.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "rewire/tests/failing_opencl/control.h"

namespace rewire::failing_opencl {
namespace {

// The functions of the extension cl_khr_command_buffer that Rewire calls.
#define REWIRE_FAILING_EXTENSIONS(X) \
  X(clCreateCommandBufferKHR)        \
  X(clFinalizeCommandBufferKHR)      \
  X(clReleaseCommandBufferKHR)       \
  X(clEnqueueCommandBufferKHR)       \
  X(clCommandNDRangeKernelKHR)       \
  X(clCommandCopyBufferKHR)          \
  X(clCommandFillBufferKHR)

#define REWIRE_OPENCL_FUNCTION(name) name,
#define REWIRE_OPENCL_OPTIONAL(name) name,
#define REWIRE_EXTENSION(name) name,
namespace number {
enum Number : std::size_t {
#include "rewire/devices/opencl/functions.def"
  REWIRE_FAILING_EXTENSIONS(REWIRE_EXTENSION) kFunctions
};
}  // namespace number
#undef REWIRE_EXTENSION

#define REWIRE_OPENCL_FUNCTION(name) #name,
#define REWIRE_OPENCL_OPTIONAL(name) #name,
#define REWIRE_EXTENSION(name) #name,
constexpr std::string_view kNames[] = {
#include "rewire/devices/opencl/functions.def"
    REWIRE_FAILING_EXTENSIONS(REWIRE_EXTENSION)};
#undef REWIRE_EXTENSION

class Calls {
 public:
  static Calls& The() {
    static auto* const calls = new Calls();  // never destroyed: drivers call while the process ends
    return *calls;
  }

  // The code with which this call fails, or CL_SUCCESS.
  cl_int Next(std::size_t function) {
    if (function == number::clGetProgramBuildInfo) return CL_SUCCESS;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    return left_ > 0 && --left_ == 0 ? code_ : CL_SUCCESS;
  }
  void Fail(std::uint64_t k, cl_int code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    left_ = k;
    code_ = code;
  }
  void Reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    count_ = left_ = 0;
  }
  std::uint64_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  Alive alive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return alive_;
  }

  // Handles of kinds that nobody counts, such as platforms, change nothing.
  template <typename Handle>
  void Change(Handle, std::uint64_t by) {
    std::uint64_t* const kind = KindOf(static_cast<Handle*>(nullptr));
    if (kind == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    *kind += by;
  }

  // A function of the real library; null if it has none.
  void* Real(std::size_t function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (real_[function] == nullptr) real_[function] = dlsym(library_, kNames[function].data());
    return real_[function];
  }
  void SetReal(std::size_t function, void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    real_[function] = address;
  }

 private:
  Calls() : library_(dlopen(REWIRE_REAL_OPENCL, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ != nullptr) return;
    std::fprintf(stderr, "the real OpenCL library cannot be opened: %s\n", dlerror());
    std::abort();
  }

  static std::uint64_t* KindOf(const void*) { return nullptr; }
  std::uint64_t* KindOf(cl_context*) { return &alive_.contexts; }
  std::uint64_t* KindOf(cl_command_queue*) { return &alive_.queues; }
  std::uint64_t* KindOf(cl_mem*) { return &alive_.memory_objects; }
  std::uint64_t* KindOf(cl_event*) { return &alive_.events; }
  std::uint64_t* KindOf(cl_program*) { return &alive_.programs; }
  std::uint64_t* KindOf(cl_kernel*) { return &alive_.kernels; }
  std::uint64_t* KindOf(cl_command_buffer_khr*) { return &alive_.command_buffers; }

  void* const library_;
  std::mutex mutex_;
  void* real_[number::kFunctions] = {};
  Alive alive_{};
  std::uint64_t count_ = 0;
  std::uint64_t left_ = 0;  // calls until one fails, that one included; 0: none does
  cl_int code_ = CL_SUCCESS;
};

// Ours in place of a function of the extension.
void* InPlaceOf(void* real, std::string_view name);

template <std::size_t function, typename Type>
struct Forward;
template <std::size_t function, typename Result, typename... Parameters>
struct Forward<function, Result(Parameters...)> {
  static constexpr bool kReleases = kNames[function].substr(0, 9) == "clRelease";
  static constexpr bool kRetains = kNames[function].substr(0, 8) == "clRetain";
  // Fails after it has waited: the real library's threads may still write memory that the caller then frees.
  static constexpr bool kWaits = kNames[function] == "clFinish" || kNames[function] == "clWaitForEvents";

  static Result Call(Parameters... given) {
    Calls& calls = Calls::The();
    const cl_int code = calls.Next(function);
    if (code != CL_SUCCESS && !kReleases && !kWaits) return Failed(code, given...);
    const Result result = reinterpret_cast<Result (*)(Parameters...)>(calls.Real(function))(given...);
    Count(result, given...);
    if (code != CL_SUCCESS) return Failed(code, given...);
    if constexpr (function == number::clGetExtensionFunctionAddressForPlatform) {
      return InPlaceOf(result, std::get<1>(std::tie(given...)));
    } else {
      return result;
    }
  }

  static Result Failed(cl_int code, Parameters... given) {
    if constexpr (std::is_same_v<Result, cl_int>) {
      return code;
    } else {
      const auto last = std::get<sizeof...(Parameters) - 1>(std::tie(given...));
      if constexpr (std::is_same_v<std::remove_const_t<decltype(last)>, cl_int*>) {
        if (last != nullptr) *last = code;
      }
      return nullptr;
    }
  }

  static void Count(Result result, Parameters... given) {
    if constexpr (!std::is_same_v<Result, cl_int>) {
      if (result != nullptr) Calls::The().Change(result, 1);
    } else if (result == CL_SUCCESS) {
      if constexpr (kReleases || kRetains) {
        Calls::The().Change(std::get<0>(std::tie(given...)), kReleases ? ~std::uint64_t{0} : 1);
      }
      (CountEvent(given), ...);
    }
  }
  static void CountEvent(cl_event* made) {
    if (made != nullptr) Calls::The().Change(*made, 1);
  }
  template <typename Other>
  static void CountEvent(Other) {}
};

void* InPlaceOf(void* real, std::string_view name) {
#define REWIRE_EXTENSION(function)                                                                         \
  if (real != nullptr && name == #function) {                                                              \
    Calls::The().SetReal(number::function, real);                                                          \
    return reinterpret_cast<void*>(Forward<number::function, std::remove_pointer_t<function##_fn>>::Call); \
  }
  REWIRE_FAILING_EXTENSIONS(REWIRE_EXTENSION)
#undef REWIRE_EXTENSION
  return real;
}

}  // namespace
}  // namespace rewire::failing_opencl

using rewire::failing_opencl::Forward;
namespace number = rewire::failing_opencl::number;

extern "C" {

#define REWIRE_OPENCL_FUNCTION(name)                                             \
  __attribute__((visibility("hidden"))) decltype(&::name) rewire_find_##name() { \
    return Forward<number::name, decltype(::name)>::Call;                        \
  }
#define REWIRE_OPENCL_OPTIONAL(name) REWIRE_OPENCL_FUNCTION(name)
#include "rewire/devices/opencl/functions.def"

#define REWIRE_OPENCL_FUNCTION(name) \
  __attribute__((visibility("default"), ifunc("rewire_find_" #name))) decltype(::name) name;
#define REWIRE_OPENCL_OPTIONAL(name) REWIRE_OPENCL_FUNCTION(name)
#include "rewire/devices/opencl/functions.def"

#pragma GCC visibility push(default)
void rewire_failing_opencl_Reset() { rewire::failing_opencl::Calls::The().Reset(); }

void rewire_failing_opencl_FailCall(std::uint64_t k, int code) {
  rewire::failing_opencl::Calls::The().Fail(k, code);
}

std::uint64_t rewire_failing_opencl_CountCalls() { return rewire::failing_opencl::Calls::The().count(); }

void rewire_failing_opencl_GetAlive(rewire::failing_opencl::Alive* alive) {
  *alive = rewire::failing_opencl::Calls::The().alive();
}
#pragma GCC visibility pop

}  // extern "C"
