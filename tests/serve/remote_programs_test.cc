// SPDX-License-Identifier: Apache-2.0
// All programs of tests/programs on a server. Over every transport they give what a local run gives, bit by
// bit. None is left out. Those of whose value a server cannot send everything are named, with the reason.
#include <catch2/catch.hpp>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/writer.h"
#include "rewire/serve/client/remote_program.h"
#include "rewire/serve/models/open_onnx.h"
#include "rewire/serve/models/signature.h"
#include "rewire/tests/programs/program_file.h"
#include "rewire/tests/programs/test_kernels.h"
#include "rewire/tests/serve/both_server.h"
#include "rewire/tests/serve/remote_fixture.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;

// Names of programs by a reason.
using ByReason = std::map<std::string, std::vector<std::string>>;

// A wrapper takes of a program's value what a server can give: tensors, integers as tensors, the
// shapes of tensors that nobody writes. Closures and storage are left behind.
struct Wrapped {
  std::size_t integers = 0, shapes = 0, left_behind = 0;
};

// main: calls the program's function and returns the tensors in its value as a flat tuple.
class Wrapper {
 public:
  Wrapper(Module* module, std::size_t function) : module_(module), function_(function) {}

  // `value` is what the function returns; null if it fails.
  Wrapped Write(const Value* value, bool only_shapes) {
    only_shapes_ = only_shapes;
    KernelImport to_tensor;
    to_tensor.name = "test.to_tensor";
    kernel_ = static_cast<std::uint32_t>(module_->kernels.size());
    module_->kernels.push_back(std::move(to_tensor));
    const Reg result = next_++;
    code_.Invoke(static_cast<std::uint32_t>(function_), result, {});
    if (value != nullptr) Take(*value, result);
    if (leaves_.empty()) {
      const Reg done = next_++;
      code_.LoadConsti(1, done);
      ToTensor(done);
    }
    const Reg all = next_++;
    code_.AllocADT(0, all, {leaves_.data(), leaves_.size()});
    code_.Ret(all);
    Function main;
    main.name = "main";
    main.result = AdtType(0, types_);
    for (std::size_t i = 0; i < types_.size(); ++i) main.output_names.push_back("o" + std::to_string(i));
    main.code = *code_.Finish();
    main.register_count = next_;
    module_->functions.push_back(std::move(main));
    return wrapped_;
  }

 private:
  using Reg = CodeWriter::Reg;

  void Take(const Value& value, Reg reg) {
    switch (value.kind()) {
      case ValueKind::kTensor: {
        const Span<const std::int64_t> shape = value.tensor().shape();
        if (!only_shapes_) return Add(reg, value.tensor().dtype(), {shape.begin(), shape.end()});
        ++wrapped_.shapes;
        const Reg taken = next_++;
        code_.ShapeOf(reg, taken);
        return Add(taken, kInt64, {static_cast<std::int64_t>(shape.size())});
      }
      case ValueKind::kInteger:
        ++wrapped_.integers;
        return ToTensor(reg);
      case ValueKind::kAdt:
        for (std::uint32_t i = 0; i < value.field_count(); ++i) {
          const Reg field = next_++;
          code_.GetField(reg, i, field);
          Take(value.field(i), field);
        }
        return;
      case ValueKind::kNone:
      case ValueKind::kClosure:
      case ValueKind::kStorage:
        ++wrapped_.left_behind;
        return;
    }
  }
  void ToTensor(Reg integer) {
    const Reg storage = next_++, tensor = next_++;
    const std::int64_t elements = 1;
    code_.AllocStorage(kNone, 64, kInt64, kHostDevice, storage, {&elements, 1});
    code_.AllocTensor(storage, kNone, kInt64, tensor, {});
    const Reg arguments[] = {integer, tensor};
    code_.InvokePacked(kernel_, 1, kNone, {arguments, 2});
    Add(tensor, kInt64, {});
  }
  void Add(Reg tensor, DLDataType dtype, Array<Dim> shape) {
    leaves_.push_back(tensor);
    types_.push_back(TensorType(dtype, std::move(shape)));
  }

  Module* const module_;
  const std::size_t function_;
  CodeWriter code_;
  std::uint32_t kernel_ = 0;
  bool only_shapes_ = false;
  Reg next_ = 0;
  std::vector<Reg> leaves_;
  Array<Type> types_;
  Wrapped wrapped_;
};

KernelSet Kernels() {
  KernelSet kernels = rewire::test::TestKernels();
  kernels.AddFunction(
      "test.to_tensor", MakePackedFunction([](kernel::TensorView integer, kernel::TensorView tensor) {
        tensor.data<std::int64_t>()[0] = integer.dtype().bits == 64 ? *integer.data<const std::int64_t>()
                                                                    : *integer.data<const std::int32_t>();
      }));
  return kernels;
}

Result<Value> RunLocally(const Program& program, const std::string& function, const Limits& limits) {
  VirtualMachine vm(program, limits);
  return vm.TryInvoke(function, Span<const Value>());
}

// Messages of limits say bytes, which depend on whether outputs are bound, as a server binds them.
std::string WithoutNumbers(const std::string& text) {
  std::string without;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) without += c;
  }
  return without;
}

struct Served {
  std::string name, what;
  Limits limits;
  Program program;
};

class Programs {
 public:
  Programs(const rewire::test::TempFolder* folder, ServeSettings* settings)
      : folder_(folder), settings_(settings) {
    options_.kernels = Kernels();
  }

  void Add(const rewire::test::ProgramFile& file, const rewire::test::ProgramCase& one) {
    const std::string what = file.name + " " + one.function;
    INFO(what);
    const std::size_t function = PositionOfFunction(file.module, one.function);
    const Program alone = Linked(file.module, file.module.functions[function].name);
    const Result<Value> value = RunLocally(alone, one.function, one.limits);
    const bool unwritten = ReadsUnwritten(file.module, one);
    Module module = file.module;
    // A server runs main. Functions are called by their numbers, so that a helper may have another name.
    if (const std::size_t other = PositionOfFunction(module, "main"); other < module.functions.size())
      module.functions[other].name = "helper_main";
    const Wrapped wrapped = Wrapper(&module, function).Write(value ? &*value : nullptr, unwritten);
    Program program = Linked(module, "main");
    const Result<ModelSignature> signature = ReadSignature(program);
    INFO((signature ? "" : signature.error().message()));
    REQUIRE(signature);
    if (wrapped.integers > 0) forms["integers are sent as tensors"].push_back(what);
    if (wrapped.shapes > 0) forms["nobody writes the elements: only the shape is compared"].push_back(what);
    if (wrapped.left_behind > 0) forms["closures, storage and empty values are not compared"].push_back(what);
    const Result<std::vector<std::byte>> bytes = SerializeModule(module);
    REQUIRE(bytes);
    const std::string name = "p" + std::to_string(served.size());
    (void)folder_->Write(name + ".rwx",
                         std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
    // The call by main takes one instruction and one call more.
    const Limits usual;
    Limits limits = one.limits;
    if (limits.steps != usual.steps) ++limits.steps;
    if (limits.depth != usual.depth) ++limits.depth;
    ModelSettings& model = settings_->models[name];
    if (limits.bytes != usual.bytes) model.memory_bytes = limits.bytes;
    if (limits.steps != usual.steps) model.steps = limits.steps;
    if (limits.depth != usual.depth) model.depth = limits.depth;
    model.instances = 1;
    served.push_back({name, what, limits, std::move(program)});
  }

  std::vector<Served> served;
  ByReason forms;  // programs of whose value not everything is sent as it is

 private:
  Program Linked(const Module& module, const std::string& function,
                 StorageFill fill = StorageFill::kUndefined) const {
    const Result<Executable> executable = Executable::FromModule(module);
    INFO(function << (executable ? "" : ": " + executable.error().message()));
    REQUIRE(executable);
    LinkOptions options = options_;
    options.storage_fill = fill;
    Result<Program> program = Program::Link(*executable, options);
    INFO((program ? "" : program.error().message()));
    REQUIRE(program);
    return *std::move(program);
  }

  // Whether a result has elements that nobody has written, so that no two runs need agree.
  bool ReadsUnwritten(const Module& module, const rewire::test::ProgramCase& one) const {
    std::vector<std::vector<std::string>> results;
    for (const StorageFill fill : {StorageFill::kZero, StorageFill::kPoison}) {
      const Result<Value> value = RunLocally(Linked(module, one.function, fill), one.function, one.limits);
      std::vector<std::string>& leaves = results.emplace_back();
      if (value) AddTensors(*value, &leaves);
    }
    return results[0] != results[1];
  }
  static void AddTensors(const Value& value, std::vector<std::string>* leaves) {
    if (value.kind() == ValueKind::kTensor) AddLeaves(value, leaves);
    if (value.kind() != ValueKind::kAdt) return;
    for (std::uint32_t i = 0; i < value.field_count(); ++i) AddTensors(value.field(i), leaves);
  }

  const rewire::test::TempFolder* folder_;
  ServeSettings* settings_;
  LinkOptions options_;
};

TEST_CASE("remote: programs of tests/programs give over every transport what they give locally") {
  const Result<std::vector<rewire::test::ProgramFile>> files = rewire::test::ReadProgramFiles();
  REQUIRE(files);
  const rewire::test::TempFolder folder;
  ServeSettings settings = SettingsOf(folder.path().string());
  Programs programs(&folder, &settings);
  std::size_t all = 0;
  for (const rewire::test::ProgramFile& file : *files) {
    for (const rewire::test::ProgramCase& one : file.cases) {
      programs.Add(file, one);
      ++all;
    }
  }
  std::size_t compared = 0, failed = 0;
  BothServer server(std::move(settings), Kernels());
  for (const Served& one : programs.served) {
    const Result<Value> local = RunLocally(one.program, "main", one.limits);
    failed += local ? 0 : 1;
    for (const std::string& url : server.Urls(one.name)) {
      const RemoteProgram remote = Connected(url);
      const Result<Value> value = remote.program().TryRun({}, Span<const Value>());
      INFO(one.what << ", " << url << ": " << (local ? "" : local.error().message()) << " / "
                    << (value ? "" : value.error().message()));
      CHECK(local.has_value() == value.has_value());
      if (local.has_value() != value.has_value()) continue;
      if (local) {
        CHECK(Leaves(*local) == Leaves(*value));
      } else {
        CHECK_THAT(WithoutNumbers(value.error().message()),
                   Contains(WithoutNumbers(local.error().message())));
      }
      ++compared;
    }
  }
  std::cout << all << " programs, " << failed << " of them fail as they do locally; " << compared
            << " comparisons; none is left out\n";
  for (const auto& [reason, names] : programs.forms) {
    std::cout << names.size() << ": " << reason << '\n';
    for (const std::string& name : names) std::cout << "  " << name << '\n';
  }
  CHECK(compared == 4 * all);
}

TEST_CASE("remote: models that the server has compiled give over every transport what they give locally") {
  // A sample; tests/models/served.py takes all real models.
  const std::filesystem::path root = rewire::test::SourceDir();
  for (const char* const file : {"examples/digits/digits.onnx", "tests/packaging/first_screen.onnx"}) {
    const std::filesystem::path path = root / file;
    const Result<CompiledOnnx> compiled = OpenOnnx(path.string(), {}, "");
    if (!compiled) FAIL(compiled.error().message());
    const Program local = *Program::Link(compiled->executable);
    const ModelSignature signature = *ReadSignature(local);
    BothServer server(path.string());
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{7}}) {
      std::vector<Value> inputs;
      for (const ModelInput& input : signature.inputs) {
        REQUIRE(DTypeName(input.dtype) == "f32");
        std::vector<std::int64_t> shape(input.dims.begin(), input.dims.end());
        for (std::int64_t& dim : shape) dim = dim < 0 ? size : dim;
        const Tensor tensor = *Tensor::Make(kFloat32, shape);
        float* const elements = tensor.data<float>();
        for (std::uint64_t i = 0; i < tensor.view().bytes() / 4; ++i)
          elements[i] = static_cast<float>((i * 37 + static_cast<std::uint64_t>(size)) % 101) / 101;
        inputs.emplace_back(tensor);
      }
      const Result<Value> expected = local.TryRun({}, {inputs.data(), inputs.size()});
      REQUIRE(expected);
      for (const std::string& url : server.Urls(path.stem().string())) {
        INFO(url);
        const Result<Value> value = Connected(url).program().TryRun({}, {inputs.data(), inputs.size()});
        INFO((value ? "" : value.error().message()));
        REQUIRE(value);
        CHECK(Leaves(*value) == Leaves(*expected));
      }
    }
  }
}

}  // namespace
}  // namespace rewire::serve::test
