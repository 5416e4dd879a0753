// SPDX-License-Identifier: Apache-2.0
// Models that were compiled before: found again, and compiled anew whenever anything is another than it was.
#include <sys/stat.h>
#define XXH_STATIC_LINKING_ONLY  // for the secret of XXH3 without a key
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// y = x w + 1, for a weight of the model or of the file "data".
onnx::ModelProto Product(float weight, bool is_external = false) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  AddFloats(graph, "w", {2, 1}, {weight, weight});
  AddFloats(graph, "one", {1}, {1});
  if (is_external) {
    onnx::TensorProto* tensor = graph->mutable_initializer(0);
    tensor->clear_float_data();
    tensor->clear_raw_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value("data");
  }
  AddNode(graph, "MatMul", {"x", "w"}, "p");
  AddNode(graph, "Add", {"p", "one"}, "y");
  SetValue(graph->add_output(), "y", {"N", 1});
  return model;
}

std::string ElementBytes(float weight) {
  std::string bytes(2 * sizeof(float), '\0');
  std::memcpy(bytes.data(), &weight, sizeof(weight));
  std::memcpy(bytes.data() + sizeof(weight), &weight, sizeof(weight));
  return bytes;
}

float Run(const Executable& executable) {
  const Result<Program> program = Program::Link(executable);
  REQUIRE(program);
  float x[2] = {1, 2};
  float y = 0;
  VirtualMachine vm(*program);
  vm.SetInput("x", TensorView(x, {1, 2}));
  vm.SetOutput("y", TensorView(&y, {1, 1}));
  vm.Invoke("main");
  return y;
}

class Scene {
 public:
  Scene() { Put(Product(2)); }

  fs::path model() const { return folder_.path() / "model.onnx"; }
  fs::path data() const { return folder_.path() / "data"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  void Put(const onnx::ModelProto& model) const { Write(this->model(), model.SerializeAsString()); }
  // The file that holds the key of the hashes.
  fs::path key() const {
    for (const auto& file : fs::directory_iterator(cache()))
      if (file.path().extension() != ".rwx") return file.path();
    return {};
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(cache()))
      if (entry.path().extension() == ".rwx") found.push_back(entry.path());
    return found;
  }

  Compilation Compile(CompileOptions options = {}) const {
    options.cache = cache();
    Result<Compilation> compiled = rewire::Compile(model(), options);
    REQUIRE(compiled);
    return *std::move(compiled);
  }
  // Whether the next compilation is from the cache.
  bool IsHit(const CompileOptions& options = {}) const {
    const Compilation made = Compile(options);
    CHECK(made.report.cache_problem == "");
    return made.report.from_cache;
  }

 private:
  TempFolder folder_;
};

// External data counts as what was read only if it is older than the call.
void Settle() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

TEST_CASE("a cache gives the executable of a model that was compiled before") {
  const Scene scene;
  const Compilation first = scene.Compile();
  CHECK_FALSE(first.report.from_cache);
  CHECK(Run(first.executable) == 7);
  REQUIRE(scene.entries().size() == 1);
  const Compilation second = scene.Compile();
  CHECK(second.report.from_cache);
  CHECK(second.report.kernels == first.report.kernels);
  CHECK(second.report.memory.bounded() == first.report.memory.bounded());
  CHECK(Run(second.executable) == 7);
  // Both are mapped, so that they share the constants.
  const Module& one = first.executable.module();
  const Module& other = second.executable.module();
  REQUIRE(one.constants.size() == other.constants.size());
  for (std::size_t i = 0; i < one.constants.size(); ++i) {
    CHECK(one.constants[i].stored.mapped);
    CHECK(one.constants[i].stored.view.data() == other.constants[i].stored.view.data());
  }
  struct stat info {};
  REQUIRE(stat(scene.entries()[0].c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

// A convolution that Winograd's form computes, with weights four times as large, and a product of one column,
// which is packed as sixteen.
onnx::ModelProto ModelOfLargeWeights() {
  constexpr std::int64_t kChannels = 16, kSide = 16;
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  const auto add = [&](const char* name, const std::vector<std::int64_t>& shape, std::size_t count) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 29) / 16 - 1);
    AddFloats(graph, name, shape, values);
  };
  SetValue(graph->add_input(), "x", {1, kChannels, kSide, kSide});
  add("w", {kChannels, kChannels, 3, 3}, kChannels * kChannels * 9);
  add("v", {kSide, 1}, kSide);
  AddIntList(AddNode(graph, "Conv", {"x", "w"}, "c"), "pads", {1, 1, 1, 1});
  AddNode(graph, "MatMul", {"c", "v"}, "y");
  SetValue(graph->add_output(), "y", {1, kChannels, kSide, 1});
  return model;
}

std::ptrdiff_t ComputedConstants(const Executable& executable) {
  const auto& constants = executable.module().constants;
  return std::count_if(constants.begin(), constants.end(),
                       [](const Constant& constant) { return constant.kind == ConstantKind::kComputed; });
}

TEST_CASE("an executable of a cache holds all that linking would compute, so that processes share it") {
  const Scene scene;
  scene.Put(ModelOfLargeWeights());
  const Result<Compilation> apart = rewire::Compile(scene.model(), {});
  REQUIRE(apart);
  CHECK(ComputedConstants(apart->executable) > 0);
  const Compilation kept = scene.Compile();
  CHECK(ComputedConstants(kept.executable) == 0);
  const Shape shape = {1, 16, 16, 16};
  const Answer one = RunOnCounts(apart->executable.module(), shape);
  const Answer other = RunOnCounts(kept.executable.module(), shape);
  CHECK(one.error == "");
  CHECK(one.values == other.values);
}

TEST_CASE("a model of the same content is found under another name, one of other content is not") {
  const Scene scene;
  scene.Compile();
  fs::rename(scene.model(), scene.model().string() + ".old");
  scene.Put(Product(2));
  CHECK(scene.IsHit());
  // As long as before, and in place.
  scene.Put(Product(3));
  const Compilation changed = scene.Compile();
  CHECK_FALSE(changed.report.from_cache);
  CHECK(Run(changed.executable) == 10);
  CHECK(scene.entries().size() == 2);
}

OperatorSchema Own() {
  OperatorSchema schema;
  schema.domain = "my.domain";
  schema.name = "Op";
  schema.inputs.push_back({.name = "x"});
  schema.outputs.push_back({.name = "y"});
  return schema;
}

TEST_CASE("each option that changes an executable has entries of its own") {
  using Change = std::function<void(CompileOptions*)>;
  const std::vector<Change> changes = {
      [](auto*) {},
      [](auto* options) {
        options->dims = {{"N", 1}};
      },
      [](auto* options) {
        options->max_dims = {{"N", 1}};
      },
      [](auto* options) { options->disabled_passes = {"fuse-elementwise"}; },
      [](auto* options) { options->operators = {Own()}; },
      [](auto* options) { options->external_folders = {"/tmp"}; },
      [](auto* options) { options->limits.work /= 2; },
      [](auto* options) { options->limits.fold_bytes /= 2; },
      [](auto* options) { options->limits.fold_node_time /= 2; },
      [](auto* options) { options->limits.fold_time /= 2; },
      [](auto* options) { options->strict = true; },
      [](auto* options) { options->device = "cpu"; },
      [](auto* options) { options->least_device_work = 7; },
      [](auto* options) { options->precision = Precision::kBf16; },
      [](auto* options) { options->parallel = Parallel::kOff; },
      [](auto* options) { options->cpu = Cpu::kVectors; },
      [](auto* options) { options->compress = false; },
  };
  const Scene scene;
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      INFO("change " << i);
      CompileOptions options;
      changes[i](&options);
      CHECK(scene.IsHit(options) == (turn == 1));
    }
  }
  // Options that only tell about compiling change nothing.
  CompileOptions options;
  options.bound_memory = false;
  options.check_passes = true;
  options.progress = [](const std::string&) {};
  CHECK(scene.IsHit(options));
}

TEST_CASE("executables with parameters and those that samples are for are compiled in any case") {
  const Scene scene;
  CompileOptions parameters;
  parameters.parameters = {"w"};
  CompileOptions all;
  all.all_parameters = true;
  CompileOptions dump;
  dump.dump = [](const std::string&, const std::string&) {};
  for (const CompileOptions& options : {parameters, all, dump}) {
    for (int turn = 0; turn < 2; ++turn) CHECK_FALSE(scene.IsHit(options));
  }
  CHECK_FALSE(fs::exists(scene.cache()));
}

TEST_CASE("external data that has changed is compiled anew") {
  const Scene scene;
  scene.Put(Product(0, true));
  Write(scene.data(), ElementBytes(2));
  Settle();
  CHECK(Run(scene.Compile().executable) == 7);
  CHECK(scene.IsHit());
  // The same content in another file, which is read.
  fs::rename(scene.data(), scene.data().string() + ".old");
  Write(scene.data(), ElementBytes(2));
  CHECK(scene.IsHit());
  Write(scene.data(), ElementBytes(3));
  Settle();
  const Compilation changed = scene.Compile();
  CHECK_FALSE(changed.report.from_cache);
  CHECK(Run(changed.executable) == 10);
  CHECK(scene.IsHit());
  fs::remove(scene.data());
  CompileOptions options;
  options.cache = scene.cache();
  const Result<Compilation> missing = rewire::Compile(scene.model(), options);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == StatusCode::kNotFound);
}

TEST_CASE("external data that changes while a model compiles makes no entry") {
  const Scene scene;
  scene.Put(Product(0, true));
  Write(scene.data(), ElementBytes(2));
  Settle();
  CompileOptions options;
  options.progress = [&](const std::string& what) {
    if (what == "emitting") Write(scene.data(), ElementBytes(3));
  };
  const Compilation made = scene.Compile(options);
  CHECK(made.report.cache_problem.find("external data 'data' has just been written") != std::string::npos);
  CHECK(scene.entries().empty());
}

TEST_CASE("a model that changes while it compiles makes no entry") {
  const Scene scene;
  CompileOptions options;
  options.progress = [&](const std::string& what) {
    if (what == "emitting") scene.Put(Product(3));
  };
  CHECK(scene.Compile(options).report.cache_problem ==
        "the executable is not kept: the model has changed since it was read");
  CHECK(scene.entries().empty());
}

TEST_CASE("a damaged entry is compiled anew, wherever it is damaged") {
  const Scene scene;
  scene.Compile();
  const fs::path entry = scene.entries().at(0);
  const std::string whole = ReadWholeFile(entry);
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0) {
      damaged.resize(random() % whole.size());
    } else {
      damaged[random() % whole.size()] ^= static_cast<char>(1 + random() % 255);
    }
    Write(entry, damaged);
    INFO("damage " << i);
    const Compilation made = scene.Compile();
    CHECK_FALSE(made.report.from_cache);
    CHECK(made.report.cache_problem == "");
    CHECK(Run(made.executable) == 7);
    CHECK(ReadWholeFile(entry) == whole);
  }
}

TEST_CASE("an entry of another key under this name is not taken") {
  const Scene scene;
  scene.Compile();
  const fs::path entry = scene.entries().at(0);
  fs::remove(entry);
  scene.Put(Product(3));
  scene.Compile();
  fs::rename(scene.entries().at(0), entry);
  scene.Put(Product(2));
  CHECK(Run(scene.Compile().executable) == 7);
}

constexpr std::int64_t kWeights = 256;

// y = x + w of i32. The bytes of w begin at a multiple of 8 in the file, or are in the file "data".
onnx::ModelProto Sum(const std::vector<std::int32_t>& weights, bool is_external) {
  const std::string elements(reinterpret_cast<const char*>(weights.data()), sizeof(std::int32_t) * kWeights);
  for (std::size_t padding = 0;; ++padding) {
    onnx::ModelProto model = EmptyModel();
    model.set_producer_name(std::string(padding, ' '));
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {kWeights}, onnx::TensorProto::INT32);
    SetValue(graph->add_output(), "y", {kWeights}, onnx::TensorProto::INT32);
    AddNode(graph, "Add", {"x", "w"}, "y");
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::INT32);
    tensor->add_dims(kWeights);
    if (is_external) {
      tensor->set_data_location(onnx::TensorProto::EXTERNAL);
      onnx::StringStringEntryProto* entry = tensor->add_external_data();
      entry->set_key("location");
      entry->set_value("data");
      return model;
    }
    tensor->set_raw_data(elements);
    if (model.SerializeAsString().find(elements) % 8 == 0) return model;
  }
}

// Two lists of weights, which a content holds from `offset` on, under which it has the same XXH3 without a
// key. XXH3 adds, for each word of 8 bytes, the product of its two halves, each after an XOR with a known
// secret; and the word itself to the sum beside it. Words whose lower half is that of the secret have a
// product of 0, so their upper halves may change if their sum does not.
std::array<std::vector<std::int32_t>, 2> Colliding(std::size_t offset) {
  unsigned char secret[XXH3_SECRET_DEFAULT_SIZE];
  XXH3_generateSecret_fromSeed(secret, 0);
  std::array<std::vector<std::int32_t>, 2> lists;
  for (std::vector<std::int32_t>& list : lists) {
    for (std::int32_t i = 0; i < kWeights; ++i) list.push_back(i);
  }
  std::int32_t change = 1000;
  for (const std::size_t stripe : {8, 9}) {  // of the first block of 16 stripes, each of 8 words
    const std::size_t word = 3, at = 64 * stripe + 8 * word - offset;
    for (std::vector<std::int32_t>& list : lists)
      std::memcpy(&list[at / 4], secret + 8 * stripe + 8 * word, sizeof(std::int32_t));
    lists[1][at / 4 + 1] += change;
    change = -change;
  }
  return lists;
}

std::vector<std::int32_t> RunSum(const Executable& executable) {
  const Result<Program> program = Program::Link(executable);
  REQUIRE(program);
  std::vector<std::int32_t> x(kWeights), y(kWeights);
  VirtualMachine vm(*program);
  vm.SetInput("x", TensorView(x.data(), {kWeights}));
  vm.SetOutput("y", TensorView(y.data(), {kWeights}));
  vm.Invoke("main");
  return y;
}

TEST_CASE("two models of one XXH3 are never taken for each other") {
  const Scene scene;
  const std::vector<std::int32_t> any(kWeights, 0x5A5A5A5A);
  const std::string elements(reinterpret_cast<const char*>(any.data()), sizeof(std::int32_t) * kWeights);
  const auto lists = Colliding(Sum(any, false).SerializeAsString().find(elements));
  REQUIRE(lists[0] != lists[1]);
  std::vector<std::string> contents;
  for (const auto& list : lists) contents.push_back(Sum(list, false).SerializeAsString());
  REQUIRE(XXH3_64bits(contents[0].data(), contents[0].size()) ==
          XXH3_64bits(contents[1].data(), contents[1].size()));
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Write(scene.model(), contents[i]);
      const Compilation made = scene.Compile();
      CHECK(made.report.from_cache == (turn == 1));
      CHECK(RunSum(made.executable) == lists[i]);
    }
  }
}

TEST_CASE("two files of external data of one XXH3 are never taken for each other") {
  const Scene scene;
  const auto lists = Colliding(0);
  Write(scene.model(), Sum(lists[0], true).SerializeAsString());
  for (const auto& list : lists) {
    const std::string content(reinterpret_cast<const char*>(list.data()), sizeof(std::int32_t) * kWeights);
    Write(scene.data(), content);
    Settle();
    const Compilation made = scene.Compile();
    CHECK_FALSE(made.report.from_cache);
    CHECK(RunSum(made.executable) == list);
    CHECK(scene.IsHit());
  }
}

TEST_CASE("the key of a cache's hashes is the folder's own, and without it nothing is found") {
  const Scene scene, other;
  scene.Compile();
  other.Compile();
  const std::string key = ReadWholeFile(scene.key());
  CHECK(key != ReadWholeFile(other.key()));
  CHECK(scene.entries().at(0).filename() != other.entries().at(0).filename());
  struct stat info {};
  REQUIRE(stat(scene.key().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  SECTION("gone") { fs::remove(scene.key()); }
  SECTION("cut short") { fs::resize_file(scene.key(), key.size() - 1); }
  SECTION("written by others") { REQUIRE(chmod(scene.key().c_str(), 0622) == 0); }
  CHECK_FALSE(scene.IsHit());
  CHECK(ReadWholeFile(scene.key()) != key);
  CHECK(scene.IsHit());
}

TEST_CASE("a folder that cannot keep a key is not used") {
  const Scene scene;
  scene.Compile();
  const fs::path key = scene.key();
  fs::remove(key);
  fs::create_directory(key);
  const Compilation made = scene.Compile();
  CHECK_FALSE(made.report.from_cache);
  CHECK(made.report.cache_problem ==
        "the cache '" + scene.cache().string() + "' is not used: the key of its hashes cannot be kept in it");
  CHECK(Run(made.executable) == 7);
}

TEST_CASE("a folder or an entry that others can write is not used") {
  const Scene scene;
  scene.Compile();
  REQUIRE(chmod(scene.entries().at(0).c_str(), 0622) == 0);
  CHECK_FALSE(scene.IsHit());
  CHECK(scene.IsHit());
  REQUIRE(chmod(scene.cache().c_str(), 0777) == 0);
  const Compilation made = scene.Compile();
  CHECK_FALSE(made.report.from_cache);
  CHECK(made.report.cache_problem ==
        "the cache '" + scene.cache().string() + "' is not used: others than its owner can write it");
  CHECK(Run(made.executable) == 7);
}

TEST_CASE("a folder that cannot be made is said, and the model is compiled") {
  const Scene scene;
  CompileOptions options;
  options.cache = scene.cache() / "not" / "there";
  const Result<Compilation> made = rewire::Compile(scene.model(), options);
  REQUIRE(made);
  CHECK(made->report.cache_problem ==
        "the cache '" + options.cache + "' is not used: there is no such folder");
}

TEST_CASE("threads that compile one model at once all get it") {
  const Scene scene;
  std::vector<float> results(8);
  std::vector<std::thread> threads;
  for (float& result : results) {
    threads.emplace_back([&] {
      CompileOptions options;
      options.cache = scene.cache();
      const Result<Compilation> made = rewire::Compile(scene.model(), options);
      if (!made) return;
      const Result<Program> program = Program::Link(made->executable);
      if (!program) return;
      float x[2] = {1, 2};
      VirtualMachine vm(*program);
      vm.SetInput("x", TensorView(x, {1, 2}));
      vm.SetOutput("y", TensorView(&result, {1, 1}));
      vm.Invoke("main");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const float result : results) CHECK(result == 7);
  CHECK(scene.entries().size() == 1);
  CHECK(scene.IsHit());
}

TEST_CASE("models in memory have entries, too, and the C interface tells where an executable comes from") {
  const Scene scene;
  const std::string bytes = Product(2).SerializeAsString(), cache = scene.cache().string();
  std::string problem;
  RewireCompileOptions options{};
  options.struct_size = sizeof(options);
  options.cache = cache.c_str();
  options.context = &problem;
  options.cache_problem = [](void* context, const char* reason) {
    *static_cast<std::string*>(context) = reason;
  };
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    RewireCompileReport report{};
    report.struct_size = sizeof(report);
    RewireExecutable* executable = nullptr;
    REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, &report,
                                  &executable) == kRewireOk);
    CHECK(report.from_cache == turn);
    rewire_executable_destroy(executable);
  }
  CHECK(problem.empty());
  CHECK(scene.IsHit());
  REQUIRE(chmod(cache.c_str(), 0777) == 0);
  RewireExecutable* executable = nullptr;
  REQUIRE(rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, &options, nullptr,
                                &executable) == kRewireOk);
  rewire_executable_destroy(executable);
  CHECK(problem.find("others than its owner can write it") != std::string::npos);
}

}  // namespace
}  // namespace rewire::test
