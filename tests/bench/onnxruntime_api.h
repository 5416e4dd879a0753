// SPDX-License-Identifier: Apache-2.0
// The part of ONNX Runtime's C API that the benchmark calls, for the library inside its Python package, which
// comes without a header.
//
// The library gives out one table of function pointers. Its rows never move: a version of the API only adds
// rows at the end. So a function is named here by its row and its type, and the version asked for is the one
// that added the last of them.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace rewire::bench {

class OnnxRuntime {
 public:
  // Objects of the library: seen as pointers alone.
  struct Status;
  struct Env;
  struct Session;
  struct Options;
  struct Tensor;
  struct MemoryInfo;
  struct Binding;

  // Throws std::runtime_error with the reason, as everything here does.
  explicit OnnxRuntime(const std::string& library) {
    struct Base {
      const void* const* (*table)(std::uint32_t version);
      const char* (*version)();
    };
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    const auto base = reinterpret_cast<const Base* (*)()>(dlsym(handle, "OrtGetApiBase"));
    if (base == nullptr) throw std::runtime_error(library + " has no OrtGetApiBase");
    rows_ = base()->table(kVersion);
    if (rows_ == nullptr) throw std::runtime_error(library + " is older than this program expects");
  }

  static constexpr int kWarnings = 3;        // a log level: errors and worse
  static constexpr int kNoOptimization = 0;  // levels of optimization
  static constexpr int kAllOptimizations = 99;

  Env* MakeEnv() const { return Make<3, Env>(kWarnings, "bench"); }
  Options* MakeOptions(int threads, int optimization) const {
    auto* options = Make<10, Options>();
    Call<22>(options, kWarnings);
    Call<23>(options, optimization);
    Call<24>(options, threads);
    Call<25>(options, 1);
    return options;
  }
  Session* MakeSession(const Env* env, const std::string& model, const Options* options) const {
    return Make<7, Session>(env, model.c_str(), options);
  }
  MemoryInfo* MakeHostMemoryInfo() const { return Make<69, MemoryInfo>(/*arena*/ 1, /*default*/ 0); }
  // Over the caller's memory. `type` as ElementType gives it.
  Tensor* MakeTensor(const MemoryInfo* info, void* data, std::size_t bytes, const std::int64_t* shape,
                     std::size_t rank, int type) const {
    return Make<49, Tensor>(info, data, bytes, shape, rank, type);
  }
  Binding* MakeBinding(Session* session) const { return Make<134, Binding>(session); }
  void BindInput(Binding* binding, const std::string& name, const Tensor* tensor) const {
    Call<136>(binding, name.c_str(), tensor);
  }
  void BindOutput(Binding* binding, const std::string& name, const Tensor* tensor) const {
    Call<137>(binding, name.c_str(), tensor);
  }
  void Run(Session* session, const Binding* binding) const {
    Call<133>(session, static_cast<const void*>(nullptr), binding);
  }

 private:
  static constexpr std::uint32_t kVersion = 5;

  // A function that returns null or what went wrong.
  template <std::size_t row, typename... Arguments>
  void Call(Arguments... arguments) const {
    Check(reinterpret_cast<Status* (*)(Arguments...)>(const_cast<void*>(rows_[row]))(arguments...));
  }
  // One that makes an object, through its last argument. The benchmark's live as long as its process.
  template <std::size_t row, typename T, typename... Arguments>
  T* Make(Arguments... arguments) const {
    T* made = nullptr;
    Call<row>(arguments..., &made);
    return made;
  }
  void Check(const Status* status) const {
    if (status == nullptr) return;
    throw std::runtime_error(
        reinterpret_cast<const char* (*)(const Status*)>(const_cast<void*>(rows_[2]))(status));
  }

  const void* const* rows_ = nullptr;
};

}  // namespace rewire::bench
