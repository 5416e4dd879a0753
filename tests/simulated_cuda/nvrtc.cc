// SPDX-License-Identifier: Apache-2.0
// A simulation of NVRTC: compiles CUDA C++ with the host's compiler into an image for the simulated CUDA
// driver. What it gives for a cubin and for PTX is the same image.
//
// REWIRE_SIMULATED_CUDA_COMPILER names another compiler, REWIRE_SIMULATED_CUDA_INCLUDE another folder of
// headers.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "rewire/devices/cuda/nvrtc_abi.h"
#include "rewire/tests/simulated_cuda/kernel_names.h"

// NOLINTBEGIN(readability-identifier-naming): NVRTC's names

namespace rewire::cuda {

struct _nvrtcProgram {  // NOLINT(bugprone-reserved-identifier)
  std::string source, name;
  std::map<std::string, std::string> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  bool compiled = false;
  std::string image, log;
};

namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// A folder for one compilation, removed with it.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "simulated-nvrtc-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The host compiler's options for NVRTC's; false for one that NVRTC does not know either.
bool Translate(int count, const char* const* options, std::string* flags) {
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    const auto value_of = [&](std::string_view name) -> const char* {
      return option.substr(0, name.size()) == name ? options[i] + name.size() : nullptr;
    };
    if (option == "-I" || option == "-D" || option == "-U" || option == "-include") {
      if (++i == count) return false;
      *flags += fmt::format(" {} {}", option, Quoted(options[i]));
    } else if (value_of("-I") != nullptr || value_of("-D") != nullptr || value_of("-U") != nullptr) {
      *flags += " " + Quoted(option);
    } else if (const char* folder = value_of("--include-path=")) {
      *flags += " -I" + Quoted(folder);
    } else if (const char* define = value_of("--define-macro=")) {
      *flags += " -D" + Quoted(define);
    } else if (option.empty() || option[0] != '-') {
      return false;
    }
    // All others are about code for a GPU, or about a language of which device_code.h needs a newer one.
  }
  return true;
}

// A compiler's run; false if it failed. What it printed goes to the file `log`.
bool RunCompiler(const std::string& arguments, const fs::path& log) {
  const std::string include = Environment("REWIRE_SIMULATED_CUDA_INCLUDE", REWIRE_SOURCE_INCLUDE);
  const std::string command =
      fmt::format("{} -std=gnu++20 -w -I{} -I{}/rewire/tests/simulated_cuda/include {} >{} 2>&1",
                  Quoted(Environment("REWIRE_SIMULATED_CUDA_COMPILER", REWIRE_HOST_COMPILER)),
                  Quoted(include), Quoted(include), arguments, Quoted(log.string()));
  // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c): a test library; all names are quoted
  return std::system(command.c_str()) == 0;
}

// The source with its macros replaced, because kernels may be declared by macros. The source itself if that
// fails; compiling it then says why.
std::string Preprocessed(const std::string& source, const std::string& flags, const fs::path& folder) {
  const fs::path plain = folder / "plain.cc";
  const fs::path result = folder / "plain.ii";
  std::ofstream(plain) << source;
  const std::string arguments = fmt::format("-E -P -D__CUDACC__ -I{}{} -o {} {}", Quoted(folder.string()),
                                            flags, Quoted(result.string()), Quoted(plain.string()));
  return RunCompiler(arguments, folder / "plain.log") ? ReadFile(result) : source;
}

// The source with a table of its kernels behind it; `names` is the source in which they are found.
std::string WithTable(_nvrtcProgram* program, const std::string& names) {
  std::string source = fmt::format("#line 1 \"{}\"\n", program->name) +
                       simulated_cuda::ReplaceDynamicShared(program->source) + "\n#line 1 \"kernels\"\n";
  for (const simulated_cuda::KernelName& kernel : simulated_cuda::FindKernels(names)) {
    if (kernel.is_extern_c) {
      source += fmt::format("REWIRE_SIMULATED_KERNEL_AS(\"{0}\", {0})\n",
                            kernel.qualified.substr(kernel.qualified.rfind(':') + 1));
    }
  }
  for (const std::string& expression : program->expressions) {
    std::string name = expression;
    name.erase(0, name.find_first_not_of("& \t"));
    program->lowered[expression] = fmt::format("simulated_{}", name);
    source += fmt::format("REWIRE_SIMULATED_KERNEL_AS(\"simulated_{0}\", {0})\n", name);
  }
  return source;
}

nvrtcResult CopyOut(const std::string& text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return NVRTC_SUCCESS;
}

}  // namespace

#define REWIRE_NVRTC_EXPORT extern "C" __attribute__((visibility("default")))

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = REWIRE_NVRTC_MAJOR;
  *minor = 0;
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
#define REWIRE_ROW(name, value) \
  case name:                    \
    return #name;
    REWIRE_NVRTC_RESULTS(REWIRE_ROW)
#undef REWIRE_ROW
  }
  return "NVRTC_ERROR unknown";
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                                                   const char* name, int header_count,
                                                   const char* const* headers,
                                                   const char* const* include_names) {
  if (program == nullptr || source == nullptr || header_count < 0) return NVRTC_ERROR_INVALID_INPUT;
  auto made = std::make_unique<_nvrtcProgram>();
  made->source = source;
  made->name = name == nullptr || *name == '\0' ? "default_program" : name;
  for (int i = 0; i < header_count; ++i) made->headers[include_names[i]] = headers[i];
  *program = made.release();
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program == nullptr || *program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  program->expressions.emplace_back(expression);
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression,
                                                    const char** name) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!program->compiled) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const auto found = program->lowered.find(expression);
  if (found == program->lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *name = found->second.c_str();
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                                    const char* const* options) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  std::string flags;
  program->log.clear();
  if (!Translate(option_count, options, &flags)) {
    program->log = "nvrtc: error: invalid option";
    return NVRTC_ERROR_INVALID_OPTION;
  }
  const Folder folder;
  if (folder.path().empty()) return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  for (const auto& [name, text] : program->headers) {
    std::error_code ignored;
    fs::create_directories((folder.path() / name).parent_path(), ignored);
    std::ofstream(folder.path() / name) << text;
  }
  const fs::path source = folder.path() / "source.cc";
  std::ofstream(source) << WithTable(program, Preprocessed(program->source, flags, folder.path()));
  const std::string arguments = fmt::format(
      "-O1 -fPIC -fno-gnu-unique -shared -include rewire/tests/simulated_cuda/device_code.h -I{}{} -o {} {}",
      Quoted(folder.path().string()), flags, Quoted((folder.path() / "image.so").string()),
      Quoted(source.string()));
  const bool failed = !RunCompiler(arguments, folder.path() / "log");
  program->log = ReadFile(folder.path() / "log");
  if (failed) return NVRTC_ERROR_COMPILATION;
  program->image = ReadFile(folder.path() / "image.so");
  program->compiled = true;
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* bytes) {
  if (program == nullptr || !program->compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->image.size();
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  if (program == nullptr || !program->compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  return CopyOut(program->image, cubin);
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  return nvrtcGetCUBIN(program, ptx);
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* bytes) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

REWIRE_NVRTC_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace rewire::cuda

// NOLINTEND(readability-identifier-naming)
