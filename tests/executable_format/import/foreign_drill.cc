// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/import/foreign_drill.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/executable_format/import/foreign_mutators.h"
#include "rewire/tests/executable_format/import/memory_watch.h"
#include "rewire/vm/loader/classic_blob.h"
#include "rewire/vm/loader/elf_file.h"
#include "rewire/vm/loader/library_abi.h"
#include "rewire/vm/loader/library_bin.h"
#include "rewire/vm/program.h"

// A function of the sanitizers' runtimes, where there is one.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace rewire::tvm {
namespace {

// The mutant that is being tried, for when the process ends on it.
char current_mutant[200];

void TellCurrent() { (void)!write(STDERR_FILENO, current_mutant, std::strlen(current_mutant)); }

void EndSlow(int /*signal*/) {
  constexpr char kWhy[] = "a mutant took too long: ";
  (void)!write(STDERR_FILENO, kWhy, sizeof(kWhy) - 1);
  TellCurrent();
  _exit(1);
}

// Has every kernel that is asked for. None is ever called.
class AnyKernel : public KernelSource {
 public:
  Found Find(const std::string& /*name*/) const override {
    Found found;
    found.function.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return 0; };
    return found;
  }
  Array<std::string> Names() const override { return {}; }
  std::string Description() const override { return "any"; }
};

Result<Module> ImportBlob(const SharedBytes& bytes) {
  Result<LibraryBlob> blob = ReadLibraryBlob(bytes.view);
  if (!blob) return Forward(blob);
  if (blob->graph_json.empty()) return ImportRelayExecutable({blob->relay_executable, bytes.owner});
  return ImportGraph(blob->graph_json, blob->parameters, bytes.owner);
}

// Reads what is read of a library before its code runs.
bool ReadLibrary(const SharedBytes& bytes) {
  const Result<ElfFile> elf = ElfFile::Parse(bytes);
  if (!elf) return false;
  (void)FindAbi(*elf);
  (void)elf->NamesAfter("__tvm_ffi_");
  (void)elf->NamesAfter("__TVM");
  (void)elf->HasText("Assert fail: num_args == ");
  if (const auto blob = elf->SymbolBytes("__tvm_dev_mblob")) {
    (void)ReadClassicBlob(*blob);
    (void)ReadLibraryBlob(*blob);
  }
  const auto bin = elf->SymbolBytes("__tvm_ffi__library_bin");
  const Result<Array<LibraryModule>> modules = bin ? ParseLibraryBin(*bin) : Array<LibraryModule>();
  if (!modules) return true;
  for (const LibraryModule& module : *modules) {
    ByteReader reader(module.content);
    (void)ReadDeviceModule(module.kind, DeviceModuleForm::kTvmFfi, reader);
  }
  return true;
}

// The module of a mutant that holds one.
Result<Module> Import(ForeignKind kind, const SharedBytes& bytes, ForeignDrillCounts& counts) {
  const auto none = [&](bool read) {
    if (read) ++counts.past_reader;
    return Fail(StatusCode::kUnsupported, "no module");
  };
  switch (kind) {
    case ForeignKind::kRelay:
      return ImportRelayExecutable(bytes);
    case ForeignKind::kGraph:
      return ImportGraph({reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size()}, {}, nullptr);
    case ForeignKind::kParameters:
      return none(ReadParameterList(bytes.view).has_value());
    case ForeignKind::kLibraryBlob:
      return ImportBlob(bytes);
    case ForeignKind::kLibrary:
      return none(ReadLibrary(bytes));
  }
  return none(false);
}

void Link(const Executable& executable, ForeignDrillCounts& counts) {
  LinkOptions options;
  options.stock_kernels = false;
  options.kernels.AddSource(std::make_shared<AnyKernel>());
  if (Program::Link(executable, std::move(options))) ++counts.past_linker;
}

void Try(ForeignKind kind, std::string mutant, ForeignDrillCounts& counts) {
  ++counts.mutants;
  const SharedBytes bytes = Share(std::move(mutant));
  const auto start = std::chrono::steady_clock::now();
  alarm(kSecondsAMutant);
  const MemoryWatch memory;
  Result<Module> module = Import(kind, bytes, counts);
  const std::uint64_t allowed = kMemoryPerByte * bytes.view.size();
  counts.peak_bytes = std::max<std::uint64_t>(counts.peak_bytes, memory.peak());
  counts.peak_beyond = std::max<std::uint64_t>(
      counts.peak_beyond, memory.peak() - std::min<std::uint64_t>(memory.peak(), allowed));
  if (module) {
    ++counts.past_reader;
    if (const Result<Executable> executable = Executable::FromModule(std::move(*module))) {
      ++counts.past_verifier;
      Link(*executable, counts);
    }
  }
  alarm(0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  counts.slowest = std::max(counts.slowest, took.count());
}

}  // namespace

ForeignDrillCounts& ForeignDrillCounts::operator+=(const ForeignDrillCounts& other) {
  mutants += other.mutants;
  past_reader += other.past_reader;
  past_verifier += other.past_verifier;
  past_linker += other.past_linker;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  peak_beyond = std::max(peak_beyond, other.peak_beyond);
  slowest = std::max(slowest, other.slowest);
  return *this;
}

std::string ForeignDrillCounts::Text() const {
  const auto percent = [&](std::uint64_t count) {
    return 100 * static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(mutants, 1));
  };
  return fmt::format(
      "{} mutants: {:.1f} % past the reader, {:.1f} % past the verifier, {:.1f} % past the linker; at most "
      "{:.0f} "
      "KiB, {:.1f} ms",
      mutants, percent(past_reader), percent(past_verifier), percent(past_linker),
      static_cast<double>(peak_bytes) / 1024, 1000 * slowest);
}

ForeignDrillReport RunForeignDrill(ForeignKind kind, const std::string& file, std::uint64_t mutants,
                                   std::uint64_t seed) {
  std::signal(SIGALRM, EndSlow);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(TellCurrent);
  Random random(file.size() + (seed << 32));
  ForeignDrillReport report;
  std::vector<std::size_t> places;
  if (kind == ForeignKind::kRelay) places = FindInstructions(file);
  const bool knows = kind == ForeignKind::kGraph || kind == ForeignKind::kLibrary || !places.empty();
  const auto mutate = [&](bool aware) {
    if (!aware) return Damage(file, random);
    if (kind == ForeignKind::kGraph) return ChangeJson(file, random);
    if (kind == ForeignKind::kLibrary) return ChangeElf(file, random);
    return ChangeField(file, places[Below(random, places.size())], random);
  };
  for (std::uint64_t i = 0; i < mutants; ++i) {
    const bool aware = knows && i % 2 == 1;
    std::snprintf(current_mutant, sizeof(current_mutant), "mutant %llu of seed %llu, %zu bytes, kind %d\n",
                  static_cast<unsigned long long>(i), static_cast<unsigned long long>(seed), file.size(),
                  static_cast<int>(kind));
    Try(kind, mutate(aware), aware ? report.aware : report.plain);
  }
  return report;
}

}  // namespace rewire::tvm
