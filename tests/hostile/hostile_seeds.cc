// SPDX-License-Identifier: Apache-2.0
// Writes the sound files that hostile_containers changes: the text programs of the tests and of the digits
// example, and ONNX's operator cases, compiled, as far as each brings a kernel that few others have.
//
//   hostile_seeds FOLDER TEXT_FOLDER... [--models DIR]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {
namespace {

namespace fs = std::filesystem;

// A model is kept when it has a kernel that fewer programs before it have.
constexpr int kUsesOfKernel = 2;
constexpr std::uintmax_t kLargestModel = 16 << 10;

std::vector<fs::path> Sorted(const fs::path& folder, const std::string& name_end) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().string().ends_with(name_end)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The tests' own kernels do not take just any argument. Calls of theirs become moves, one becomes relu.
void WithoutTestKernels(Program& program) {
  for (Kernel& kernel : program.kernels) {
    if (kernel.name == "test.add_one") kernel.name = "rewire.relu";
  }
  for (Function& function : program.functions) {
    for (Instruction& instruction : function.code) {
      if (instruction.op != kInvokePacked) continue;
      const auto kernel = static_cast<std::size_t>(instruction.operands[0].value);
      const std::vector<std::int64_t>& arguments = instruction.operands[3].list;
      if (kernel >= program.kernels.size() || !program.kernels[kernel].name.starts_with("test.") ||
          arguments.empty())
        continue;
      const std::int64_t to = instruction.operands[2].value;
      Operand read, write;
      read.kind = 'r';
      read.value = arguments[0];
      write.kind = 'w';
      write.value = to == 0xFFFFFFFF ? arguments[0] : to;
      instruction.op = kMove;
      instruction.operands = {read, write};
    }
    function.notes.clear();
  }
  for (Kernel& kernel : program.kernels) {
    if (kernel.name.starts_with("test.")) kernel = {"rewire.copy", "", {}, 0, 0, {}};
  }
}

class Writer {
 public:
  explicit Writer(fs::path folder) : folder_(std::move(folder)) { fs::create_directories(folder_); }

  bool Write(const std::string& name, const Module& module, bool is_text) {
    if (!VerifyModule(module)) return true;  // the tests have programs that are wrong
    const Result<std::vector<std::byte>> bytes = SerializeModule(module);
    if (!bytes) return ReportError(name, bytes.error().message());
    const std::string_view file(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    std::optional<Program> program = ParseFile(file);
    if (!program || WriteFile(*program) != file) return ReportError(name, "is not as docs/format.md says");
    for (const Function& function : program->functions) {
      // Code that has been read is a list of instructions; else it is left as words.
      if (!function.words.empty()) {
        return ReportError(
            name, fmt::format("function {} has an instruction that tests/hostile/code.cc has no row for, "
                              "or another one; docs/isa.md has its operands",
                              function.name));
      }
    }
    if (is_text) WithoutTestKernels(*program);
    bool is_new = is_text;
    for (const Kernel& kernel : program->kernels) is_new = uses_[kernel.name] < kUsesOfKernel || is_new;
    if (!is_new) return true;
    for (const Kernel& kernel : program->kernels) ++uses_[kernel.name];
    std::ofstream(folder_ / (name + ".rwx"), std::ios::binary) << WriteFile(*program);
    ++written_;
    return true;
  }
  std::string Text() const { return fmt::format("{} programs with {} kernels", written_, uses_.size()); }

 private:
  static bool ReportError(const std::string& name, const std::string& what) {
    fmt::print("{}: {}\n", name, what);
    return false;
  }

  fs::path folder_;
  std::map<std::string, int> uses_;
  int written_ = 0;
};

int Main(const std::string& folder, const std::vector<std::string>& texts, const std::string& models) {
  Writer writer(folder);
  bool good = true;
  for (const std::string& text : texts) {
    for (const fs::path& path : Sorted(text, ".asm")) {
      const Result<Module> module = AssembleFile(path.string());
      if (!module) fmt::print("{}\n", module.error().message());
      good = module && writer.Write(path.stem().string(), *module, true) && good;
    }
  }
  for (const fs::path& path : Sorted(models, "model.onnx")) {
    std::error_code error;
    if (fs::file_size(path, error) > kLargestModel || error) continue;
    std::vector<compiler::Unsupported> unsupported;
    const Result<compiler::Compiled> compiled = compiler::CompileOnnx(path.string(), {}, &unsupported);
    if (!compiled) continue;  // not every operator is known
    good = writer.Write(path.parent_path().filename().string(), compiled->module, false) && good;
  }
  fmt::print("{}\n", writer.Text());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace rewire::hostile

int main(int argc, char** argv) {
  CLI::App app("Writes sound executables to make hostile ones of", "hostile_seeds");
  std::string folder;
  std::vector<std::string> texts;
  std::string models = "/usr/share/libonnx-testdata/data";
  app.add_option("folder", folder, "Where they are written")->required();
  app.add_option("texts", texts, "Folders with .asm files")->required();
  app.add_option("--models", models, "A folder with ONNX models");
  CLI11_PARSE(app, argc, argv);
  return rewire::hostile::Main(folder, texts, models);
}
