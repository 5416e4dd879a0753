// SPDX-License-Identifier: Apache-2.0
//
// The table by which hosts compile a model to a file. Here that is an executable (.rwx), which is a model
// path.
#include <cstring>
#include <optional>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/sessions/model.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtModelCompilationOptions {
  OrtSessionOptions session;
  // The input: a path, or the host's memory.
  std::string path;
  rewire::Span<const std::byte> bytes;
  // The output: one of these.
  std::string output_path;
  OrtAllocator* allocator = nullptr;  // for `data`
  void** data = nullptr;
  std::size_t* size = nullptr;
  OrtWriteBufferFunc write = nullptr;
  void* state = nullptr;

  void ClearOutput() {
    output_path.clear();
    allocator = nullptr;
    data = nullptr;
    size = nullptr;
    write = nullptr;
    state = nullptr;
  }
};

namespace rewire::onnxruntime_api {
namespace compile_api {
namespace {

using Options = OrtModelCompilationOptions;

void Release(Options* options) noexcept { delete options; }

OrtStatus* Create(const OrtEnv*, const OrtSessionOptions* session, Options** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = nullptr;
    if (session == nullptr) return InvalidArgument("the session options are null");
    *out = new Options{};
    (*out)->session = *session;
    return nullptr;
  });
}

OrtStatus* SetInputPath(Options* options, const char* path) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (path == nullptr || *path == '\0') return InvalidArgument("Invalid input model: path string is empty");
    options->path = path;
    options->bytes = {};
    return nullptr;
  });
}

OrtStatus* SetInputBytes(Options* options, const void* data, std::size_t size) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (data == nullptr || size == 0)
      return InvalidArgument("Invalid input model buffer: data pointer is null or size is 0");
    options->path.clear();
    options->bytes = {static_cast<const std::byte*>(data), size};
    return nullptr;
  });
}

OrtStatus* SetOutputPath(Options* options, const char* path) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (path == nullptr || *path == '\0') return InvalidArgument("Invalid output model path: path is empty");
    options->ClearOutput();
    options->output_path = path;
    return nullptr;
  });
}

OrtStatus* SetOutputBytes(Options* options, OrtAllocator* allocator, void** data,
                          std::size_t* size) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (allocator == nullptr || data == nullptr || size == nullptr)
      return InvalidArgument("Invalid output model buffer: allocator, data or size is null");
    options->ClearOutput();
    options->allocator = allocator;
    options->data = data;
    options->size = size;
    return nullptr;
  });
}

OrtStatus* SetOutputFunction(Options* options, OrtWriteBufferFunc write, void* state) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (write == nullptr) return InvalidArgument("OrtWriteBufferFunc function is null");
    options->ClearOutput();
    options->write = write;
    options->state = state;
    return nullptr;
  });
}

OrtStatus* SetLevel(Options* options, GraphOptimizationLevel level) noexcept {
  return SetSessionGraphOptimizationLevel(&options->session, level);
}

// Accepted without effect: executables have no parts of other providers, and files are always replaced.
OrtStatus* SetEmbedMode(Options*, bool) noexcept { return nullptr; }
OrtStatus* SetFlags(Options*, std::uint32_t) noexcept { return nullptr; }
OrtStatus* SetBinaryInformation(Options*, const char*, const char*) noexcept { return nullptr; }

// Refused functions, which name themselves.
#define REFUSE(name) \
  OrtStatus* Refuse##name() noexcept { return RefuseFunction("ModelCompilationOptions_" #name); }
REFUSE(SetOutputModelExternalInitializersFile)
REFUSE(SetOutputModelGetInitializerLocationFunc)
REFUSE(SetInputModel)
REFUSE(SetWeightlessEnabled)
REFUSE(SetEpContextDataWriteFunc)
REFUSE(SetOutputModelExternalInitializersBuffer)
REFUSE(SetOutputModelExternalInitializersAlignment)
REFUSE(SetWeightlessMode)
#undef REFUSE

OrtStatus* Give(const std::vector<std::byte>& file, const Options& options) {
  if (options.write != nullptr) return options.write(options.state, file.data(), file.size());
  void* const copy = options.allocator->Alloc(options.allocator, file.size());
  if (copy == nullptr) return OutOfMemory();
  std::memcpy(copy, file.data(), file.size());
  *options.data = copy;
  *options.size = file.size();
  return nullptr;
}

OrtStatus* Compile(const OrtEnv* env, const Options* options) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (env == nullptr) return InvalidArgument("the environment is null");
    if (options->path.empty() && options->bytes.empty())
      return InvalidArgument("Input model to compile must be loaded from either a file or a memory buffer");
    if (options->output_path.empty() && options->data == nullptr && options->write == nullptr)
      return InvalidArgument("an output is needed: a path, a buffer or a function");
    std::optional<Executable> executable;
    OrtStatus* const failed =
        CompileModelOnly(*env, options->path, options->bytes, options->session, &executable);
    if (failed != nullptr) return failed;
    if (!options->output_path.empty()) {
      const Status written = WriteExecutable(*executable, options->output_path);
      return written ? nullptr : FromError(written.error(), ORT_FAIL);
    }
    const Result<std::vector<std::byte>> file = SerializeExecutable(*executable);
    return file ? Give(*file, *options) : FromError(file.error());
  });
}

constexpr OrtCompileApi kTable = {
    Release,
    Create,
    SetInputPath,
    SetInputBytes,
    SetOutputPath,
    RefuseSetOutputModelExternalInitializersFile,
    SetOutputBytes,
    SetEmbedMode,
    Compile,
    SetFlags,
    SetBinaryInformation,
    SetLevel,
    SetOutputFunction,
    RefuseSetOutputModelGetInitializerLocationFunc,
    RefuseSetInputModel,
    RefuseSetWeightlessEnabled,
    RefuseSetEpContextDataWriteFunc,
    RefuseSetOutputModelExternalInitializersBuffer,
    RefuseSetOutputModelExternalInitializersAlignment,
    RefuseSetWeightlessMode,
};

}  // namespace
}  // namespace compile_api

const OrtCompileApi* GetCompileApi() noexcept { return &compile_api::kTable; }

}  // namespace rewire::onnxruntime_api
