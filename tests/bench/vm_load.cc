// SPDX-License-Identifier: Apache-2.0
// Opening executables: many instructions, and a large constant that must not be read.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/bench/vm_load.h"
#include "rewire/vm/program.h"

namespace rewire::bench {
namespace {

constexpr int kInstructions = 10'000;
constexpr std::size_t kLargeBytes = std::size_t{64} << 20;

// Operators in a row as a compiler writes them: storage, tensor, kernel, the two released.
Module LongModule() {
  constexpr std::uint32_t kPrevious = 0;
  constexpr std::uint32_t kMemory = 1;
  constexpr std::uint32_t kMade = 2;
  const std::vector<std::int64_t> shape = {4};
  CodeWriter code;
  for (int i = 0; i + 5 < kInstructions; i += 5) {
    code.AllocStorage(kNone, 64, kFloat32, 0, kMemory, shape);
    code.AllocTensor(kMemory, kNone, kFloat32, kMade, shape);
    code.InvokePacked(0, 1, kNone, std::vector<std::uint32_t>{kPrevious, kMade});
    code.Kill(kMemory);
    code.Move(kMade, kPrevious);
  }
  for (int i = 0; i < 4; ++i) code.LoadConsti(i, kMemory);
  code.Ret(kPrevious);
  Function function;
  function.name = "main";
  function.inputs = {{"x", TensorType(kFloat32, {4})}};
  function.result = TensorType(kFloat32, {4});
  function.output_names = {"y"};
  function.register_count = 3;
  function.code = Take(code.Finish());
  Module module;
  module.kernels.push_back({"empty", "", {}, 0, 0, {}});
  module.functions.push_back(std::move(function));
  return module;
}

// A file with one constant of kLargeBytes, removed with the object.
class LargeFile {
 public:
  LargeFile()
      : path_(std::filesystem::temp_directory_path() /
              ("rewire-bench-" + std::to_string(::getpid()) + ".rwx")) {
    const std::vector<std::byte> bytes(kLargeBytes, std::byte{1});
    Module module = LongModule();
    Constant constant;
    constant.name = "large";
    constant.type = TensorType(kUInt8, {static_cast<Dim>(kLargeBytes)}).nodes[0];
    constant.raw_bytes = kLargeBytes;
    constant.stored.view = bytes;
    module.constants.push_back(std::move(constant));
    CodeWriter code;
    code.Ret(0);
    module.functions[0].code = Take(code.Finish());
    Require(WriteModule(module, path_.string()));
  }
  LargeFile(const LargeFile&) = delete;
  LargeFile& operator=(const LargeFile&) = delete;
  ~LargeFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Executable Open() const { return Take(Executable::Open(path_.string())); }

 private:
  std::filesystem::path path_;
};

// Pages of these bytes that this process has in memory, as /proc/self/pagemap tells. (mincore would count
// what the page cache holds, and that is the whole of a file just written.)
std::size_t ResidentPages(Span<const std::byte> bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = reinterpret_cast<std::uintptr_t>(bytes.data()) / page;
  const std::size_t last = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size() - 1) / page;
  std::vector<std::uint64_t> entries(last - first + 1);
  std::ifstream pagemap("/proc/self/pagemap", std::ios::binary);
  pagemap.seekg(static_cast<std::streamoff>(first * sizeof(std::uint64_t)));
  pagemap.read(reinterpret_cast<char*>(entries.data()),
               static_cast<std::streamsize>(entries.size() * sizeof(std::uint64_t)));
  Require(pagemap.good(), "/proc/self/pagemap cannot be read");
  std::size_t resident = 0;
  for (const std::uint64_t entry : entries) resident += entry >> 63;
  return resident;
}

}  // namespace

void AddLoadCases(std::vector<Case>& cases) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(Take(SerializeModule(LongModule())));
  cases.push_back({"load and verify, per instruction", kInstructions,
                   [bytes] {
                     Take(Executable::FromBytes({*bytes, bytes}));
                   },
                   Target{Target::kNanoseconds, 30}});
  const Executable executable = Take(Executable::FromBytes({*bytes, bytes}));
  cases.push_back({"link, per instruction", kInstructions,
                   [executable] {
                     LinkOptions options;
                     PackedFunction empty;
                     empty.call = EmptyKernel;
                     options.kernels.AddFunction("empty", empty);
                     Take(Program::Link(executable, std::move(options)));
                   },
                   Target{Target::kDirectCalls, 90}});
  cases.push_back({"open a file with a 64 MiB constant", 1,
                   [file = std::make_shared<LargeFile>()] { file->Open(); },
                   Target{Target::kNanoseconds, 1e6}});
}

Residency MeasureResidency() {
  const LargeFile file;
  const Executable executable = file.Open();
  const Span<const std::byte> constant = executable.module().constants[0].stored.view;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {ResidentPages(constant), (constant.size() + page - 1) / page};
}

}  // namespace rewire::bench
