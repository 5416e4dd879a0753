// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/names/strip.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/linked/linked_copy.h"
#include "rewire/tests/vm/c_api/model.h"
#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/c_api/linked_executable.h"

namespace rewire::test {
namespace {

struct Destroy {
  void operator()(RewireExecutable* executable) const { rewire_executable_destroy(executable); }
};
using ExecutablePtr = std::unique_ptr<RewireExecutable, Destroy>;

ExecutablePtr OpenModel() {
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr, nullptr,
                                        &executable) == kRewireOk);
  return ExecutablePtr(executable);
}

template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

TEST_CASE("an executable tells its functions, inputs, outputs, parameters, kernels and devices") {
  const ExecutablePtr executable = OpenModel();
  auto info = Sized<RewireExecutableInfo>();
  REQUIRE(rewire_executable_info(executable.get(), &info) == kRewireOk);
  CHECK(info.function_count == 5);
  CHECK(info.parameter_count == 1);
  CHECK(info.kernel_count == 2);
  CHECK(info.device_count == 1);
  CHECK(info.symbol_count == 1);

  std::uint32_t index = 99;
  REQUIRE(rewire_executable_find_function(executable.get(), "swap", &index) == kRewireOk);
  CHECK(index == 1);
  auto function = Sized<RewireFunctionInfo>();
  REQUIRE(rewire_executable_function(executable.get(), 1, &function) == kRewireOk);
  CHECK(std::string(function.name) == "swap");
  CHECK(function.input_count == 1);
  CHECK(function.output_count == 2);
  CHECK(function.result_node_count == 3);

  const char* name = nullptr;
  std::uint32_t nodes = 0;
  REQUIRE(rewire_executable_input(executable.get(), 1, 0, &name, &nodes) == kRewireOk);
  CHECK(std::string(name) == "pair");
  CHECK(nodes == 3);
  auto type = Sized<RewireTypeNode>();
  REQUIRE(rewire_executable_input_node(executable.get(), 1, 0, 0, &type) == kRewireOk);
  CHECK(type.kind == kRewireTypeAdt);
  CHECK(type.field_count == 2);
  REQUIRE(rewire_executable_input_node(executable.get(), 1, 0, 1, &type) == kRewireOk);
  CHECK(type.kind == kRewireTypeTensor);
  REQUIRE(rewire_executable_result_node(executable.get(), 1, 1, &type) == kRewireOk);
  CHECK(type.kind == kRewireTypeInteger);
  REQUIRE(rewire_executable_output(executable.get(), 1, 1, &name, &type) == kRewireOk);
  CHECK(std::string(name) == "vector");
  CHECK(type.dims[0] == 2);

  REQUIRE(rewire_executable_output(executable.get(), 4, 0, &name, &type) == kRewireOk);
  CHECK(type.rank == 2);
  CHECK(type.dims[0] == -2);
  CHECK(type.dims[1] == REWIRE_UNKNOWN_DIM);
  REQUIRE(rewire_executable_symbol(executable.get(), 0, &name) == kRewireOk);
  CHECK(std::string(name) == "N");
  REQUIRE(rewire_executable_parameter(executable.get(), 0, &name, &type) == kRewireOk);
  CHECK(std::string(name) == "w");
  CHECK(type.dtype.code == kDLFloat);
  CHECK(type.dtype.bits == 32);
  const char* debug_name = nullptr;
  REQUIRE(rewire_executable_kernel(executable.get(), 0, &name, &debug_name) == kRewireOk);
  CHECK(std::string(name) == "host.add");
  CHECK(std::string(debug_name) == "add");
  DLDevice device{};
  const char* scope = nullptr;
  REQUIRE(rewire_executable_device(executable.get(), 0, &device, &scope) == kRewireOk);
  CHECK(device.device_type == kDLCPU);
  CHECK(std::string(scope).empty());
}

TEST_CASE("signatures are told as text, cut to the caller's buffer") {
  const ExecutablePtr executable = OpenModel();
  const auto text = [&](std::uint32_t function) {
    char buffer[200];
    REQUIRE(rewire_executable_signature_text(executable.get(), function, buffer, sizeof(buffer), nullptr) ==
            kRewireOk);
    return std::string(buffer);
  };
  CHECK(text(0) == "main(x: f32[2]) -> (y: f32[2])");
  CHECK(text(1) == "swap(pair: (f32[2], integer)) -> (integer, f32[2]) as number, vector");
  CHECK(text(4) == "batch(b: f32[N, ?]) -> (b: f32[N, ?])");

  std::size_t length = 0;
  REQUIRE(rewire_executable_signature_text(executable.get(), 0, nullptr, 0, &length) == kRewireOk);
  CHECK(length == 30);
  CHECK(rewire_executable_signature_text(executable.get(), 0, nullptr, 1, &length) == kRewireInvalidArgument);
  CHECK(std::string(rewire_last_error_message()) == "buffer is NULL, capacity is not 0");
  char small[5] = "????";
  REQUIRE(rewire_executable_signature_text(executable.get(), 0, small, sizeof(small), nullptr) == kRewireOk);
  CHECK(std::string(small) == "main");
}

TEST_CASE("wrong names and indices are told with what there is") {
  const ExecutablePtr executable = OpenModel();
  std::uint32_t index = 0;
  CHECK(rewire_executable_find_function(executable.get(), "mian", &index) == kRewireNotFound);
  CHECK(LastError() ==
        "the executable has no function named \"mian\"; did you mean 'main'? The functions: main, swap, "
        "forever, "
        "fail, batch");
  auto function = Sized<RewireFunctionInfo>();
  CHECK(rewire_executable_function(executable.get(), 5, &function) == kRewireInvalidArgument);
  CHECK(LastError() == "function 5 asked for, there are 5");
  auto type = Sized<RewireTypeNode>();
  CHECK(rewire_executable_input_node(executable.get(), 1, 0, 3, &type) == kRewireInvalidArgument);
  CHECK(LastError() == "type node 3 asked for, there are 3");
  CHECK(rewire_executable_output(executable.get(), 0, 1, nullptr, &type) == kRewireInvalidArgument);
  CHECK(LastError() == "output 1 asked for, there are 1");
  const char* name = nullptr;
  CHECK(rewire_executable_parameter(executable.get(), 1, &name, nullptr) == kRewireInvalidArgument);
  CHECK(LastError() == "parameter 1 asked for, there are 1");
}

TEST_CASE("structs of older and newer callers are read and written in part") {
  const ExecutablePtr executable = OpenModel();
  // An older caller's struct ends earlier: nothing behind it is touched.
  RewireExecutableInfo info;
  std::memset(&info, 0x55, sizeof(info));
  info.struct_size = 12;
  REQUIRE(rewire_executable_info(executable.get(), &info) == kRewireOk);
  CHECK(info.struct_size == 12);
  CHECK(info.parameter_count == 1);
  CHECK(info.kernel_count == 0x55555555u);

  // A newer caller's struct is longer: unknown members must be zero.
  struct {
    RewireOpenOptions known;
    std::uint64_t unknown;
  } longer{};
  longer.known.struct_size = sizeof(longer);
  RewireExecutable* opened = nullptr;
  const auto open = [&] {
    return rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr,
                                         &longer.known, &opened);
  };
  REQUIRE(open() == kRewireOk);
  rewire_executable_destroy(opened);
  longer.unknown = 1;
  CHECK(open() == kRewireUnsupported);
  CHECK(LastError() ==
        "RewireOpenOptions: uses members that are newer than this library; leave them zero or use a later "
        "library");
  longer.known.struct_size = 0;
  CHECK(open() == kRewireInvalidArgument);
  CHECK(LastError() == "RewireOpenOptions: struct_size is 0; set it to sizeof the struct");
}

TEST_CASE("opening: limits, files, bytes that are no executable, memory that is not aligned") {
  RewireExecutable* executable = nullptr;
  CHECK(rewire_executable_open("/nonexistent/model.rwx", nullptr, &executable) == kRewireNotFound);
  CHECK(LastError().find("/nonexistent/model.rwx") != std::string::npos);

  int released = 0;
  const auto release = [](void* context) { ++*static_cast<int*>(context); };
  const std::string text = "this is no executable";
  CHECK(rewire_executable_open_memory(text.data(), text.size(), release, &released, nullptr, &executable) ==
        kRewireInvalidFile);
  CHECK(released == 1);

  RewireFormatLimits limits{};
  limits.struct_size = sizeof(limits);
  limits.functions = 1;
  RewireOpenOptions options{};
  options.struct_size = sizeof(options);
  options.limits = &limits;
  CHECK(rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr, &options,
                                      &executable) != kRewireOk);

  // Not aligned: copied and released at once.
  std::vector<std::byte> shifted(ModelBytes().size() + 1);
  std::memcpy(shifted.data() + 1, ModelBytes().data(), ModelBytes().size());
  REQUIRE(rewire_executable_open_memory(shifted.data() + 1, ModelBytes().size(), release, &released, nullptr,
                                        &executable) == kRewireOk);
  CHECK(released == 2);
  shifted.assign(shifted.size(), std::byte{0});
  auto info = Sized<RewireExecutableInfo>();
  REQUIRE(rewire_executable_info(executable, &info) == kRewireOk);
  CHECK(info.function_count == 5);
  rewire_executable_destroy(executable);
}

TEST_CASE("an executable that is linked in opens without a file, and is refused if it is another library's") {
  const auto owner = std::make_shared<std::vector<std::byte>>(ModelBytes());
  const LinkedCopy copy(*Executable::FromBytes({{owner->data(), owner->size()}, owner}));
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_executable_open_linked(&copy.linked(), &executable) == kRewireOk);
  auto info = Sized<RewireExecutableInfo>();
  REQUIRE(rewire_executable_info(executable, &info) == kRewireOk);
  CHECK(info.function_count == 5);
  CHECK(info.parameter_count == 1);
  rewire_executable_destroy(executable);

  RewireLinkedExecutable other = copy.linked();
  other.version = nullptr;
  CHECK(rewire_executable_open_linked(&other, &executable) == kRewireInvalidArgument);
  CHECK(LastError() == "no executable that vm-aot --bytecode has made for this library; make it again");
}

TEST_CASE("a model of a bundle opens by its name, or when it is the only one") {
  const Folder folder;
  const auto owner = std::make_shared<std::vector<std::byte>>(ModelBytes());
  const Executable model = *Executable::FromBytes({{owner->data(), owner->size()}, owner});
  const std::string several = folder / "several.rwx";
  const std::string one = folder / "one.rwx";
  const std::string plain = folder / "plain.rwx";
  REQUIRE(WriteBundle(std::vector<BundledExecutable>{{"encoder", model}, {"decoder", model}}, several));
  REQUIRE(WriteBundle(std::vector<BundledExecutable>{{"encoder", model}}, one));
  REQUIRE(WriteModule(model.module(), plain));

  const std::pair<std::string, const char*> good[] = {
      {several, "encoder"}, {several, "decoder"}, {one, "encoder"}, {one, nullptr}, {one, ""}};
  for (const auto& [path, name] : good) {
    CAPTURE(path);
    RewireExecutable* opened = nullptr;
    REQUIRE(rewire_executable_open_bundled(path.c_str(), name, nullptr, &opened) == kRewireOk);
    const ExecutablePtr executable(opened);
    auto info = Sized<RewireExecutableInfo>();
    REQUIRE(rewire_executable_info(opened, &info) == kRewireOk);
    CHECK(info.function_count == 5);
  }

  RewireExecutable* none = nullptr;
  CHECK(rewire_executable_open_bundled(several.c_str(), "encoders", nullptr, &none) == kRewireNotFound);
  CHECK(LastError() ==
        several +
            ": the bundle has no model 'encoders'; did you mean 'encoder'? The models: encoder, decoder");
  CHECK(rewire_executable_open_bundled(several.c_str(), nullptr, nullptr, &none) == kRewireNotFound);
  CHECK(LastError() == several + ": the bundle has several models, name one; the models: encoder, decoder");
  CHECK(rewire_executable_open_bundled(plain.c_str(), "main", nullptr, &none) == kRewireInvalidFile);
  CHECK(LastError().find(plain + ": this is no bundle: it has section ") == 0);
  CHECK(rewire_executable_open_bundled("/nonexistent.rwx", "m", nullptr, &none) == kRewireNotFound);
  CHECK(rewire_executable_open(several.c_str(), nullptr, &none) == kRewireInvalidFile);
  CHECK(none == nullptr);
}

}  // namespace
TEST_CASE("a stripped executable gets its names back from a map") {
  const Folder folder;
  const auto owner = std::make_shared<std::vector<std::byte>>(ModelBytes());
  const Executable model = *Executable::FromBytes({{owner->data(), owner->size()}, owner});
  const StrippedModule stripped = *StripModule(model.module());
  const std::string path = folder / "small.rwx", map = folder / "names.json", wrong = folder / "wrong.json";
  REQUIRE(WriteModule(stripped.module, path));
  std::ofstream(map) << stripped.map;
  std::ofstream(wrong) << "[]";

  RewireExecutable* opened = nullptr;
  REQUIRE(rewire_executable_open(path.c_str(), nullptr, &opened) == kRewireOk);
  const ExecutablePtr small(opened);
  RewireExecutable* restored = nullptr;
  REQUIRE(rewire_executable_restore_names(opened, map.c_str(), &restored) == kRewireOk);
  const ExecutablePtr named(restored);
  for (std::uint32_t i = 0; i < model.module().functions.size(); ++i) {
    auto info = Sized<RewireFunctionInfo>();
    REQUIRE(rewire_executable_function(restored, i, &info) == kRewireOk);
    CHECK(info.name == model.module().functions[i].name);
  }

  RewireExecutable* none = nullptr;
  CHECK(rewire_executable_restore_names(opened, wrong.c_str(), &none) == kRewireInvalidArgument);
  CHECK(LastError() == wrong + ": the map of names is malformed: it has no 'rewire_names'");
  CHECK(rewire_executable_restore_names(opened, "/nonexistent.json", &none) == kRewireNotFound);
  CHECK(none == nullptr);
}

}  // namespace rewire::test
