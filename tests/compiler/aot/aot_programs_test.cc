// SPDX-License-Identifier: Apache-2.0
// Programs as C source beside the VM: the same codes, the same bytes. REWIRE_AOT_PROGRAMS=n compares so many
// random programs.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/programs/program_file.h"
#include "rewire/tests/programs/test_kernels.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/tests/vm/outputs/random/program_generator.h"
#include "rewire/tests/vm/outputs/random/program_inputs.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// A function of a program, and its C source.
struct Emitted {
  std::string prefix;
  Program program;
  std::string function;
  std::string what;  // for messages
  std::uint64_t seed = 0;
};

// The tensors and integers of a value, in the order of a C function's outputs.
void FlattenResult(const Value& value, std::vector<std::vector<std::byte>>* leaves,
                   std::vector<std::string>* types) {
  if (value.kind() == ValueKind::kAdt) {
    for (std::uint32_t i = 0; i < value.field_count(); ++i) FlattenResult(value.field(i), leaves, types);
    return;
  }
  std::vector<std::byte> bytes;
  if (value.kind() == ValueKind::kTensor) {
    const TensorView view = value.tensor().view();
    const auto* data = static_cast<const std::byte*>(view.data());
    bytes.assign(data, data + view.bytes());
    types->push_back(DTypeName(view.dtype()));
  } else {
    const std::int64_t integer = value.integer();
    const bool is_narrow = value.any().type_index != kInt64Kind;
    const auto narrow = static_cast<std::int32_t>(integer);
    const auto* data = is_narrow ? reinterpret_cast<const std::byte*>(&narrow)
                                 : reinterpret_cast<const std::byte*>(&integer);
    bytes.assign(data, data + (is_narrow ? 4 : 8));
    types->push_back(is_narrow ? "i32" : "i64");
  }
  leaves->push_back(std::move(bytes));
}

std::vector<RewireAotKernel> KernelsOf(const Module& module, const KernelSet& set,
                                       std::vector<PackedFunction>* functions) {
  std::vector<RewireAotKernel> kernels;
  for (const KernelImport& import : module.kernels) {
    const Result<PackedFunction> function = set.Resolve(import);
    if (!function) FAIL(function.error().message());
    functions->push_back(*function);
    kernels.push_back({function->call, function->handle, nullptr, nullptr, nullptr});
  }
  kernels.push_back({});
  return kernels;
}

// Compares one function with the VM; `inputs` are those of the call.
void Compare(const CLibrary& library, const Emitted& emitted, const KernelSet& set,
             const std::vector<Value>& inputs, const std::vector<const void*>& memory) {
  INFO(emitted.what);
  const auto* const info = library.Find<RewireAotFunctionInfo>(emitted.prefix + "_functions");
  REQUIRE(static_cast<std::size_t>(info->input_count) == memory.size());
  VirtualMachine vm(emitted.program);
  const Result<Value> expected = vm.TryInvoke(emitted.function, {inputs.data(), inputs.size()});
  std::vector<PackedFunction> functions;
  std::vector<RewireAotKernel> kernels = KernelsOf(emitted.program.executable().module(), set, &functions);
  // Twice in a row: nothing is kept between calls.
  for (int round = 0; round < 2; ++round) {
    const CResult given = CallC(*info, kernels.data(), memory);
    CHECK(given.is_within);
    REQUIRE(given.code == (expected ? 0 : static_cast<int>(expected.error().code())));
    if (!expected) continue;
    std::vector<std::vector<std::byte>> leaves;
    std::vector<std::string> types;
    FlattenResult(*expected, &leaves, &types);
    REQUIRE(given.outputs == leaves);
    for (std::size_t i = 0; i < types.size(); ++i) CHECK(types[i] == info->outputs[i].dtype);
  }
}

// Refusals by their reason, without what differs from program to program.
void Report(const char* what, std::size_t compared, const std::map<std::string, int>& refused) {
  std::printf("%s: %zu compared\n", what, compared);
  for (const auto& [reason, count] : refused) std::printf("  %5d refused: %s\n", count, reason.c_str());
}

std::string ReasonOf(const std::string& message) {
  const std::size_t place = message.find("): ");
  const std::size_t note = message.find("]: ");
  const std::size_t from = place == std::string::npos ? note : place;
  return from == std::string::npos ? message : message.substr(from + 3);
}

TEST_CASE("text programs give as C what they give in the VM") {
  const Result<std::vector<ProgramFile>> files = ReadProgramFiles();
  REQUIRE(files);
  CLibrary library;
  std::vector<Emitted> all;
  std::map<std::string, int> refused;
  for (const ProgramFile& file : *files) {
    const Result<Executable> executable = Executable::FromModule(file.module);
    REQUIRE(executable);
    LinkOptions link;
    link.kernels = TestKernels();
    link.stock_kernels = false;
    link.storage_fill = StorageFill::kPoison;  // as CallC does: some programs return what nobody has written
    const Result<Program> program = Program::Link(*executable, link);
    REQUIRE(program);
    for (const ProgramCase& c : file.cases) {
      EmitCOptions options;
      options.prefix = "t" + std::to_string(all.size());
      options.functions = {c.function};
      options.kernels = CKernels::kPacked;
      options.constants = ParameterSet::Of(*program);
      options.depth = 100;
      const Result<CSource> source = EmitC(*executable, options, options.prefix + ".h");
      if (!source) {
        INFO(source.error().message());
        CHECK(source.error().code() == StatusCode::kUnsupported);
        ++refused[ReasonOf(source.error().message())];
        continue;
      }
      // Limits are the VM's own affair.
      const bool is_limited = c.limits.steps != Limits().steps || c.limits.bytes != Limits().bytes ||
                              c.limits.depth != Limits().depth;
      if (is_limited) continue;
      library.Add(options.prefix, *source);
      all.push_back({options.prefix, *program, c.function, file.name + ": " + c.function});
    }
  }
  library.Compile();
  for (const Emitted& emitted : all) Compare(library, emitted, TestKernels(), {}, {});
  Report("text programs", all.size(), refused);
  CHECK(all.size() >= 100);
}

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The program with the host in place of its devices, and a move in place of the kernel that returns its
// argument: C takes neither, and most programs have one of them.
std::string OnTheHost(const std::string& text) {
  std::string result = std::regex_replace(text, std::regex("\\.device [^\n]*\n"), "");
  result = std::regex_replace(result, std::regex("\\b(other|second)\\b"), "cpu");
  return std::regex_replace(result, std::regex("invoke_packed give\\((%[a-z0-9_]+)\\), outputs=0"),
                            "move $1");
}

TEST_CASE("random programs give as C what they give in the VM") {
  const std::uint64_t count = Setting("REWIRE_AOT_PROGRAMS", 300);
  const std::uint64_t first = Setting("REWIRE_AOT_FIRST", 0);
  constexpr std::size_t kInOneFile = 100;
  KernelSet kernels;
  AddTestKernels(&kernels, nullptr);
  std::map<std::string, int> refused;
  std::size_t compared = 0;
  std::unique_ptr<CLibrary> library = std::make_unique<CLibrary>();
  std::vector<Emitted> batch;
  const auto flush = [&] {
    if (batch.empty()) return;
    library->Compile();
    for (const Emitted& emitted : batch) {
      const ProgramInputs inputs(emitted.seed);
      const std::vector<Value> values = inputs.Values();
      const std::int64_t c = static_cast<std::int64_t>(emitted.seed % 3);
      Compare(*library, emitted, kernels, values,
              {inputs.Memory(0), inputs.Memory(1), inputs.Memory(2), inputs.Memory(3), &c});
    }
    compared += batch.size();
    batch.clear();
    library = std::make_unique<CLibrary>();
  };
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = OnTheHost(GenerateProgram(seed).text);
    Result<Module> module = Assemble(text);
    REQUIRE(module);
    const Result<Executable> executable = Executable::FromModule(*std::move(module));
    REQUIRE(executable);
    EmitCOptions options;
    options.prefix = "r" + std::to_string(seed);
    options.functions = {"main"};
    options.kernels = CKernels::kPacked;
    const Result<CSource> source = EmitC(*executable, options, options.prefix + ".h");
    if (!source) {
      INFO(source.error().message());
      CHECK(source.error().code() == StatusCode::kUnsupported);
      ++refused[ReasonOf(source.error().message())];
      continue;
    }
    LinkOptions link;
    link.kernels = kernels;
    link.stock_kernels = false;
    const Result<Program> program = Program::Link(*executable, link);
    if (!program) {
      ++refused[program.error().message()];
      continue;
    }
    library->Add(options.prefix, *source);
    batch.push_back({options.prefix, *program, "main", "seed " + std::to_string(seed) + "\n" + text, seed});
    if (batch.size() == kInOneFile) flush();
  }
  flush();
  Report("random programs", compared, refused);
  CHECK(compared * 4 >= count);
}

constexpr char kStock[] = R"(
.const w: f32[4, 3] = {0.5, -1, 2, 0.25, 1, -0.5, 3, 0.125, -2, 1, 1, 0.75}
.kernel transpose = "rewire.transpose" {perm=[1, 0]}
.kernel matmul = "rewire.matmul"
.kernel softmax = "rewire.softmax" {axis=1}
.func main(x: f32[3, 4]) -> y: f32[4, 4]
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[4, 3], cpu
  %t = alloc_tensor %s, _, f32[4, 3]
  invoke_packed transpose(%x, %t), outputs=1
  %s2 = alloc_storage _, alignment=64, f32[3, 4], cpu
  %u = alloc_tensor %s2, _, f32[3, 4]
  invoke_packed transpose(%w, %u), outputs=1
  %s3 = alloc_storage _, alignment=64, f32[4, 4], cpu
  %y = alloc_tensor %s3, _, f32[4, 4]
  invoke_packed matmul(%t, %u, %y), outputs=1
  invoke_packed softmax(%y, %y), outputs=1
  ret %y
.end
)";

// The stock kernels once more in the process, with the functions of packed_host.c in place of the VM's.
class StockKernels {
 public:
  explicit StockKernels(const CLibrary& library) {
    const std::string copy = (folder_.path() / "kernels.so").string();
    std::filesystem::copy_file(std::string(BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so", copy);
    // Lazily: Highway's Abort, which failed assertions of sanitized builds call, is in no library.
    handle_ = dlopen(copy.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) FAIL(dlerror());
    *static_cast<const RewireKernelApi**>(dlsym(handle_, "__rewire_kernel_api")) =
        library.Function<const RewireKernelApi*()>("RewireAotKernelApi")();
  }
  ~StockKernels() { dlclose(handle_); }
  StockKernels(const StockKernels&) = delete;
  StockKernels& operator=(const StockKernels&) = delete;

  const RewireKernelTable* table() const {
    return static_cast<const RewireKernelTable*>(dlsym(handle_, "__rewire_kernel_table"));
  }

 private:
  TempFolder folder_;
  void* handle_ = nullptr;
};

TEST_CASE("calls that would be written out too often are refused") {
  std::string text = ".func main(x: f32[4]) -> f32[4]\n  %y = invoke f5(%x)\n  ret %y\n.end\n";
  for (int i = 5; i > 0; --i) {
    const std::string callee = "f" + std::to_string(i - 1);
    text += ".func f" + std::to_string(i) + "(x: value) -> value\n  %a = invoke " + callee +
            "(%x)\n  %b = invoke " + callee + "(%a)\n  ret %b\n.end\n";
  }
  text += ".func f0(x: value) -> value\n  ret %x\n.end\n";
  Result<Module> module = Assemble(text);
  REQUIRE(module);
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  REQUIRE(executable);
  EmitCOptions options;
  CHECK(EmitC(*executable, options, "model.h"));
  options.max_instructions = 40;
  const Result<CSource> refused = EmitC(*executable, options, "model.h");
  REQUIRE(!refused);
  CHECK_THAT(refused.error().message(),
             Catch::Contains("with all calls expanded, there are more than 40 instructions"));
}

TEST_CASE("a host without the VM links stock kernels, and is told which it lacks") {
  Result<Module> module = Assemble(kStock);
  REQUIRE(module);
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  REQUIRE(executable);
  EmitCOptions options;
  options.prefix = "stock";
  options.kernels = CKernels::kPacked;
  const Result<CSource> source = EmitC(*executable, options, "stock.h");
  REQUIRE(source);
  CLibrary library;
  library.Add("stock", *source);
  library.Compile();
  const StockKernels stock(library);
  auto* const link = library.Function<decltype(RewireAotLink)>("RewireAotLink");
  const auto* const imports = library.Find<RewireAotImport>("stock_imports");
  RewireAotKernel kernels[3];
  std::int32_t failed = -1;
  REQUIRE(link(imports, 3, stock.table(), kernels, &failed) == 0);

  std::vector<float> x;
  for (int i = 0; i < 12; ++i) x.push_back(0.25F * static_cast<float>(i * i % 7) - 0.5F);
  const Value input(*Tensor::CopyOf(TensorView(x.data(), {3, 4})));
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  const Result<Value> expected = VirtualMachine(*program).TryInvoke("main", {&input, 1});
  REQUIRE(expected);
  const CResult given = CallC(*library.Find<RewireAotFunctionInfo>("stock_functions"), kernels, {x.data()});
  CHECK(given.code == 0);
  CHECK(given.is_within);
  std::vector<std::vector<std::byte>> leaves;
  std::vector<std::string> types;
  FlattenResult(*expected, &leaves, &types);
  CHECK(given.outputs == leaves);
  library.Function<decltype(RewireAotUnlink)>("RewireAotUnlink")(kernels, 3);

  auto* const error = library.Function<decltype(RewireAotError)>("RewireAotError");
  const RewireKernelTable none = {sizeof(RewireKernelTable), 0, nullptr, nullptr};
  CHECK(link(imports, 3, &none, kernels, &failed) == -1);
  CHECK(failed == 0);
  CHECK(error() == std::string("no kernel is called rewire.transpose"));
  const RewireAotAttribute wrong = {"axes", kRewireAotInt, 1, 0, nullptr, nullptr, nullptr};
  const RewireAotImport refused = {"rewire.softmax", &wrong, 1};
  CHECK(link(&refused, 1, stock.table(), kernels, &failed) == -1);
  CHECK_THAT(error(), Catch::Contains("axes"));
}

}  // namespace
}  // namespace rewire::test
