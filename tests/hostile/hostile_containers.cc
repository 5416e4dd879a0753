// SPDX-License-Identifier: Apache-2.0
// Runs hostile files against reader, verifier, linker and VM (judge.h). Mutants have numbers: the same
// number, the same seeds and the same build give the same file and the same runs.
//
//   hostile_containers SEEDS --mutants 20000            20,000 mutants of the files in the folder SEEDS
//   hostile_containers SEEDS --read 1000000 --run 300000 --first 5000000
//   hostile_containers SEEDS --replay 4711 --out m.rwx  one of them, written to a file
//   hostile_containers SEEDS --minimize 4711 --out m.rwx
//   hostile_containers --files FOLDER                   the files of a folder, as they are
//
// Exit code 0: nothing was found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/kernels_cpu.h"
#include "rewire/tests/hostile/campaign.h"
#include "rewire/tests/hostile/minimize.h"
#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string seeds;
  std::string files;
  std::string out;
  CampaignOptions campaign;
  std::int64_t replay = -1;
  std::int64_t minimize = -1;
};

Bytes ReadBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<fs::path> FilesIn(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".rwx") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// In the order of their names, so that a number means the same mutant everywhere.
std::vector<Seed> ReadSeeds(const std::string& folder) {
  std::vector<Seed> seeds;
  for (const fs::path& path : FilesIn(folder)) {
    const Bytes file = ReadBytes(path);
    std::optional<Program> program = ParseFile(file);
    if (!program || WriteFile(*program) != file) {
      fmt::print("{} is not as docs/format.md says\n", path.string());
      return {};
    }
    seeds.push_back({path.filename().string(), *std::move(program)});
  }
  return seeds;
}

Pool PoolOf(const std::vector<Seed>& seeds) {
  Pool pool;
  pool.seeds = &seeds;
  const RewireKernelTable* table = RewireCpuKernels();
  for (std::uint32_t i = 0; i < table->count; ++i) pool.kernel_names.emplace_back(table->entries[i].name);
  return pool;
}

void Write(const std::string& path, const Bytes& bytes) {
  if (path.empty()) return;
  std::ofstream(path, std::ios::binary) << bytes;
  fmt::print("{} bytes in {}\n", bytes.size(), path);
}

// Judged in a child each; true when none has a finding.
bool JudgeFiles(const std::string& folder) {
  bool good = !FilesIn(folder).empty();
  for (const fs::path& path : FilesIn(folder)) {
    bool first = true;
    const ChildReport report = JudgeInChild(
        [&](Task* task) {
          *task = {0, ReadBytes(path)};
          return std::exchange(first, false);
        },
        JudgeOfExecutables());
    fmt::print("{}: {}\n", path.filename().string(), report.answer);
    for (const auto& [_, findings] : report.findings) {
      for (const Finding& finding : findings) {
        fmt::print("{}: found: {}: {}\n", path.filename().string(), finding.kind, finding.text);
        good = false;
      }
    }
  }
  return good;
}

int Main(const Options& options) {
  if (!options.files.empty()) return JudgeFiles(options.files) ? 0 : 1;
  const std::vector<Seed> seeds = ReadSeeds(options.seeds);
  if (seeds.empty()) {
    fmt::print("no seeds in {}\n", options.seeds);
    return 2;
  }
  const Mutator mutator(PoolOf(seeds));
  if (options.replay >= 0) {
    const auto number = static_cast<std::uint64_t>(options.replay);
    const Mutant mutant = mutator.Make(number);
    fmt::print("mutant {} of {}\n", number, mutant.seed);
    for (const std::string& what : mutant.what) fmt::print("  {}\n", what);
    Write(options.out, mutant.file);
    const Verdict verdict = Judge(nullptr).Try(mutant.file, number);
    fmt::print("{}\n", verdict.answer);
    for (const std::string& fault : verdict.faults) fmt::print("found: {}\n", fault);
    return verdict.faults.empty() ? 0 : 1;
  }
  if (options.minimize >= 0) {
    Write(options.out, Minimize(mutator, static_cast<std::uint64_t>(options.minimize)));
    return 0;
  }
  fmt::print("{} seeds\n", seeds.size());
  const auto make = [&](std::uint64_t number) { return mutator.Make(number).file; };
  return RunCampaign(make, JudgeOfExecutables(), options.campaign) ? 0 : 1;
}

}  // namespace
}  // namespace rewire::hostile

int main(int argc, char** argv) {
  CLI::App app("Runs hostile files against Rewire", "hostile_containers");
  rewire::hostile::Options options;
  app.add_option("seeds", options.seeds, "A folder of sound .rwx files (hostile_seeds writes one)");
  app.add_option("--files", options.files, "Judge the files of a folder as they are");
  app.add_option("--first", options.campaign.first, "The first mutant's number");
  app.add_option("--mutants", options.campaign.mutants, "End after so many mutants");
  app.add_option("--read", options.campaign.read, "End when so many have passed the reader");
  app.add_option("--run", options.campaign.run, "End when so many have been run");
  app.add_option("--seconds", options.campaign.seconds, "End after this time");
  app.add_option("--known", options.campaign.known, "Kinds of finding that pass, one a line");
  app.add_option("--replay", options.replay, "Judge this mutant in this process");
  app.add_option("--minimize", options.minimize, "Make this mutant as small as its finding allows");
  app.add_option("--out", options.out, "Where the mutant is written");
  CLI11_PARSE(app, argc, argv);
  return rewire::hostile::Main(options);
}
