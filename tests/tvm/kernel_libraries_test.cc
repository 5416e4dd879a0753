// SPDX-License-Identifier: Apache-2.0
// Kernel libraries that TVM 0.8, 0.9, 0.16 and 0.19 (classic ABI), TVM 0.25 and 0.27 and tvm-ffi's C++ build
// (tvm-ffi ABI) made, in one process and called from one program.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

// A kernel of one library with arguments and what it gives for them.
struct Case {
  std::string name;  // in the program: "relay-0.9/classic/add"
  PackedFunction function;
  std::vector<HostTensor> inputs;
  HostTensor expected;
};

struct Library {
  std::string name;
  std::string description;
  std::vector<Case> cases;
};

std::filesystem::path CasesFolder() {
  const char* folder = std::getenv("REWIRE_TVM_CASES");
  if (folder == nullptr) FAIL("REWIRE_TVM_CASES must name the folder that tests/tvm/generate.py has filled");
  return folder;
}

Library Load(const std::string& environment, const std::string& name) {
  const std::filesystem::path folder = CasesFolder() / environment / "kernels" / name;
  INFO(folder);
  std::ifstream file(folder / "case.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  KernelSet kernels;
  const Status loaded = kernels.AddLibrary((folder / json.at("files").at("library")).string());
  if (!loaded) FAIL(loaded.error().message());
  Library library;
  library.name = environment;
  library.name += "/";
  library.name += name;
  library.description = kernels.sources()[0]->Description();
  for (const nlohmann::json& kernel : json.at("kernels")) {
    Case entry;
    KernelImport import;
    import.name = kernel.at("name");
    entry.name = library.name + "/" + import.name;
    entry.function = *kernels.Resolve(import);
    for (const std::string input : kernel.at("inputs"))
      entry.inputs.push_back(*ReadNpy((folder / input).string()));
    entry.expected = *ReadNpy((folder / kernel.at("expected")).string());
    library.cases.push_back(std::move(entry));
  }
  return library;
}

std::vector<Library> LoadAll() {
  std::vector<Library> libraries;
  for (const char* environment : {"relay-0.8", "relay-0.9", "relay-0.16", "relay-0.19"}) {
    libraries.push_back(Load(environment, "classic"));
    CHECK(libraries.back().description == "lib.so (classic TVM ABI)");
    CHECK(libraries.back().cases.size() == 4);
  }
  for (const char* environment : {"tvm-0.25", "tvm-ffi"}) {
    libraries.push_back(Load(environment, "compiled"));
    CHECK(libraries.back().description == "lib.so (tvm-ffi ABI)");
    CHECK(libraries.back().cases.size() == 4);
  }
  libraries.push_back(Load("tvm-ffi", "cpp"));
  CHECK(libraries.back().description == "lib.so (tvm-ffi ABI)");
  CHECK(libraries.back().cases.size() == 1);
  return libraries;
}

// One function that calls every kernel and gives all results: inputs of all kernels in order, an ADT of
// outputs.
Program CallAll(const std::vector<Library>& libraries) {
  Module module;
  Function& function = module.functions.emplace_back();
  function.name = "main";
  function.result = SimpleType(TypeKind::kValue);
  function.output_names = {"results"};
  LinkOptions options;
  options.threads = ThreadPool::Make(3);

  std::uint32_t next = 0;
  std::vector<std::vector<std::uint32_t>> arguments;
  for (const Library& library : libraries) {
    for (const Case& entry : library.cases) {
      KernelImport& import = module.kernels.emplace_back();
      import.name = entry.name;
      import.alignment = 128;
      options.kernels.AddFunction(entry.name, entry.function);
      std::vector<std::uint32_t>& registers = arguments.emplace_back();
      for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
        function.inputs.push_back({"i" + std::to_string(next), UnrankedTensorType()});
        registers.push_back(next++);
      }
    }
  }
  CodeWriter code;
  std::vector<std::uint32_t> outputs;
  std::uint32_t kernel = 0;
  for (const Library& library : libraries) {
    for (const Case& entry : library.cases) {
      const std::uint32_t storage = next++;
      const std::uint32_t output = next++;
      code.AllocStorage(kNone, 128, entry.expected.dtype, 0, storage, entry.expected.shape);
      code.AllocTensor(storage, kNone, entry.expected.dtype, output, entry.expected.shape);
      arguments[kernel].push_back(output);
      code.InvokePacked(kernel, 1, kNone, arguments[kernel]);
      outputs.push_back(output);
      ++kernel;
    }
  }
  code.AllocADT(0, next, outputs);
  code.Ret(next++);
  function.register_count = next;
  function.code = *code.Finish();
  return *Program::Link(*Executable::FromModule(std::move(module)), std::move(options));
}

// The last input of kernel number `wrong_kernel` is given as integers.
void SetInputs(VirtualMachine* vm, const std::vector<Library>& libraries, int wrong_kernel = -1) {
  int index = 0;
  int kernel = 0;
  for (const Library& library : libraries) {
    for (const Case& entry : library.cases) {
      for (const HostTensor& input : entry.inputs) {
        const bool wrong = kernel == wrong_kernel && &input == &entry.inputs.back();
        const void* data = input.bytes.view.data();
        vm->SetInput(index++, TensorView(const_cast<void*>(data), wrong ? kInt32 : input.dtype, input.shape));
      }
      ++kernel;
    }
  }
}

void CheckResults(const std::vector<Library>& libraries) {
  VirtualMachine vm(CallAll(libraries));
  SetInputs(&vm, libraries);
  for (int run = 0; run < 3; ++run) vm.Invoke();
  std::uint32_t field = 0;
  for (const Library& library : libraries) {
    for (const Case& entry : library.cases) {
      INFO(entry.name);
      const Tensor result = vm.result().field(field++).tensor();
      REQUIRE(result);
      const auto* values = result.data<float>();
      const auto* expected = reinterpret_cast<const float*>(entry.expected.bytes.view.data());
      REQUIRE(values != nullptr);
      const auto count = entry.expected.bytes.view.size() / sizeof(float);
      REQUIRE(static_cast<std::size_t>(result.view().size()) == count);
      std::size_t wrong = 0;
      // numpy does not fuse a multiplication with an addition, compilers may.
      for (std::size_t i = 0; i < count; ++i)
        wrong += std::abs(values[i] - expected[i]) <= 1e-6F * std::abs(expected[i]) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

std::string ErrorOfKernel(const std::vector<Library>& libraries, int kernel) {
  VirtualMachine vm(CallAll(libraries));
  SetInputs(&vm, libraries, kernel);
  const Status status = vm.TryInvoke();
  return status ? "no error" : status.error().message();
}

void CheckErrors(const std::vector<Library>& libraries) {
  int kernel = 0;
  for (const Library& library : libraries) {
    for (const Case& entry : library.cases) {
      const std::string message = ErrorOfKernel(libraries, kernel++);
      CHECK_THAT(message, Catch::Contains(entry.name));
      if (library.name == "tvm-ffi/cpp") {
        CHECK_THAT(message, Catch::EndsWith("x must be a float tensor"));
      } else {
        CHECK_THAT(message, Catch::Contains("dtype") && Catch::Contains("float32"));
      }
    }
  }
}

TEST_CASE("kernel libraries of every ABI and version run in one program") {
  const std::vector<Library> libraries = LoadAll();
  CheckResults(libraries);
  CheckErrors(libraries);
}

// tvm-ffi's own runtime, from the environment that made the cases.
std::string RealRuntime() {
  // The folder where tests/support/environments.py puts them.
  const char* cache = std::getenv("REWIRE_TEST_CACHE");
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder = (cache != nullptr  ? std::filesystem::path(cache)
                                        : base != nullptr ? std::filesystem::path(base) / "rewire"
                                                          : std::filesystem::path(home) / ".cache/rewire") /
                                       "tvm";
  std::string found;
  for (const auto& environment : std::filesystem::directory_iterator(folder)) {
    if (environment.path().filename().string().rfind("tvm-ffi-", 0) != 0) continue;
    for (const auto& python : std::filesystem::directory_iterator(environment.path() / "lib")) {
      const std::filesystem::path library = python.path() / "site-packages/tvm_ffi/lib/libtvm_ffi.so";
      if (std::filesystem::exists(library)) found = library.string();
    }
  }
  return found;
}

// In a process of its own, so that nothing else has loaded a runtime before.
TEST_CASE("a real tvm-ffi runtime that is already loaded is the one that libraries use", "[.real]") {
  const std::string path = RealRuntime();
  INFO(path);
  void* runtime = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  REQUIRE(runtime != nullptr);
  const std::vector<Library> libraries = LoadAll();
  CheckResults(libraries);
  CheckErrors(libraries);
  CHECK(dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaised") == dlsym(runtime, "TVMFFIErrorSetRaised"));
}

// As when a host loads a library of kernels first and Python's tvm_ffi later.
TEST_CASE("a real tvm-ffi runtime that comes later leaves libraries with the one they have",
          "[.real_later]") {
  const Library first = Load("tvm-ffi", "compiled");
  const void* set_raised = dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaised");
  REQUIRE(set_raised != nullptr);
  void* runtime = dlopen(RealRuntime().c_str(), RTLD_LAZY | RTLD_GLOBAL);
  REQUIRE(runtime != nullptr);
  CHECK(dlsym(runtime, "TVMFFIErrorSetRaised") != set_raised);
  const std::vector<Library> libraries = LoadAll();
  CheckResults(libraries);
  CheckErrors(libraries);
  CHECK(dlsym(RTLD_DEFAULT, "TVMFFIErrorSetRaised") == set_raised);
}

}  // namespace
}  // namespace rewire
