// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/judge.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/kernels/cpu/kernels_cpu.h"
#include "rewire/tests/hostile/inputs.h"
#include "rewire/tests/hostile/peer_check.h"
#include "rewire/tests/hostile/run.h"
#include "rewire/tests/hostile/storages_apart.h"
#include "rewire/tests/hostile/watch.h"

namespace rewire::hostile {
namespace {

constexpr std::uint32_t kMostFunctions = 4;
// Sanitizers make everything slower, kernels most: those are not optimized then.
constexpr double kOpenMilliseconds = kSanitized ? 4000 : 1000;
constexpr double kLinkMilliseconds = kSanitized ? 4000 : 1000;
// `__init` may run for as long as it likes.
constexpr std::chrono::milliseconds kLinkDeadline{500};
constexpr std::int64_t kOpenBytes = 64 << 20;
constexpr std::int64_t kLinkBytes = 256 << 20;
// One file in so many runs out of memory somewhere.
constexpr std::uint64_t kOneInStarved = 16;
// How often a file must be slow for that to be a fault of the library: other processes on the machine
// lengthen this thread's time too, through shared caches, cores and the pages that the kernel clears.
constexpr int kSlowTimes = 3;

// Reports what a stage took of time and heap when it ends.
class Meter {
 public:
  Meter() : begin_(CpuMilliseconds()), heap_(HeapBytes()) { RestartHeapPeak(); }
  double Milliseconds() const { return CpuMilliseconds() - begin_; }
  std::int64_t Heap() const { return HeapPeak() - heap_; }

 private:
  double begin_;
  std::int64_t heap_;
};

}  // namespace

Judge::Judge(Progress* progress) : progress_(progress) {
  kernels_.AddTable(*RewireCpuKernels(), "linked in");
}

void Judge::At(const char* stage) {
  if (progress_ != nullptr) std::strncpy(progress_->stage, stage, sizeof(progress_->stage) - 1);
}

void Judge::Fault(const char* kind, const std::string& what) {
  verdict_.faults.push_back(std::string(kind) + ": " + what);
}

void Judge::Answer(const Error& error) {
  verdict_.answer = std::string(StatusCodeName(error.code())) + ": " + error.message();
  if (error.message().empty()) Fault("error without words", StatusCodeName(error.code()));
}

void Judge::Slow(const char* kind, double milliseconds) {
  verdict_.slow.push_back(std::string(kind) + ": " + std::to_string(milliseconds) + " ms");
}

Verdict Judge::Try(std::string_view file, std::uint64_t number) {
  Verdict verdict = TryOnce(file, number);
  for (int i = 1; i < kSlowTimes && !verdict.slow.empty(); ++i) verdict.slow = TryOnce(file, number).slow;
  for (std::string& fault : verdict.slow) verdict.faults.push_back(std::move(fault));
  verdict.slow.clear();
  return verdict;
}

Verdict Judge::TryOnce(std::string_view file, std::uint64_t number) {
  verdict_ = {};
  const std::int64_t heap = HeapBytes();
  Open(file, number);
  At("after");
  if (!memory_.Release()) Fault("beside memory", "bytes around an input, an output or the file were written");
  // The verdict itself stays.
  constexpr std::int64_t kOfTheVerdict = 1 << 16;
  if (HeapBytes() - heap > kOfTheVerdict)
    Fault("leak", std::to_string(HeapBytes() - heap) + " bytes were not given back");
  return std::move(verdict_);
}

void Judge::Open(std::string_view file, std::uint64_t number) {
  At("open");
  const std::optional<GuardedBlock> block = memory_.Take(file.size(), 64);
  if (!block) return Fault("harness", "the file is too large for guarded memory");
  if (!file.empty()) std::memcpy(block->write, file.data(), file.size());
  const SharedBytes bytes{{block->read, file.size()}, nullptr};
  OpenOptions options;
  options.verify_data = number % 4 != 0;
  const Meter meter;
  Result<Module> module = ReadModule(bytes, options);
  const double read_in = meter.Milliseconds();
  if (read_in > kOpenMilliseconds) Slow("slow to read", read_in);
  if (module) {
    verdict_.read = true;
    At("verify");
    const Result<Executable> executable = Executable::FromModule(*std::move(module), options.limits);
    verdict_.verified = executable.has_value();
    if (meter.Milliseconds() > kOpenMilliseconds) Slow("slow to verify", meter.Milliseconds());
    if (meter.Heap() > kOpenBytes + 100 * static_cast<std::int64_t>(file.size()))
      Fault("memory to open", std::to_string(meter.Heap()) + " bytes");
    if (executable) {
      At("write");
      const std::string difference = CheckPeer(executable->module(), file, options.verify_data);
      if (!difference.empty()) Fault("written otherwise", difference);
      Run(*executable, number);
    } else {
      Answer(executable.error());
    }
  } else {
    Answer(module.error());
  }
  if (file != std::string_view(reinterpret_cast<const char*>(block->read), file.size()))
    Fault("constants written", "the file's bytes have changed");
}

void Judge::Run(const Executable& executable, std::uint64_t number) {
  Dice dice(number ^ 0x5EED);
  const std::optional<ParameterSet> parameters = Inputs::Parameters(executable.module(), memory_, dice);
  if (!parameters) return;
  CountingAllocator allocator;
  const auto link = [&](const Executable& linked, StorageFill fill) {
    LinkOptions options;
    options.kernels = kernels_;
    options.stock_kernels = false;
    options.parameters.push_back(*parameters);
    options.allocator = allocator.Get();
    options.init_limits = RunLimits();
    options.limits.deadline = std::chrono::steady_clock::now() + kLinkDeadline;
    options.storage_fill = fill;
    return Program::Link(linked, std::move(options));
  };
  {
    At("link");
    const Meter meter;
    const Result<Program> program = link(executable, StorageFill::kZero);
    if (meter.Milliseconds() > kLinkMilliseconds) Slow("slow to link", meter.Milliseconds());
    if (meter.Heap() > kLinkBytes) Fault("memory to link", std::to_string(meter.Heap()) + " bytes");
    verdict_.linked = program.has_value();
    if (program) {
      const auto vary = [&](FunctionRuns::Variant variant) -> Result<Program> {
        if (variant == FunctionRuns::Variant::kPoisoned) return link(executable, StorageFill::kPoison);
        const Result<Executable> apart = StoragesApart(executable.module());
        if (!apart) return Forward(apart);
        return link(*apart, StorageFill::kPoison);
      };
      const auto functions = static_cast<std::uint32_t>(executable.module().functions.size());
      for (std::uint32_t i = 0; i < std::min(functions, kMostFunctions); ++i) {
        const auto function =
            functions <= kMostFunctions ? i : static_cast<std::uint32_t>(dice.Below(functions));
        RunFunction(*program, vary, function, number * kMostFunctions + i);
      }
      if (dice.OneIn(kOneInStarved)) {
        At("starved");
        allocator.FailAfter(static_cast<std::int64_t>(dice.Below(40)));
        RunFunction(*program, vary, 0, number);
        allocator.FailAfter(-1);
      }
    } else {
      Answer(program.error());
    }
  }
  At("release");
  if (allocator.bytes() != 0)
    Fault("memory kept",
          std::to_string(allocator.bytes()) + " bytes of the allocator's after everything has gone");
  if (!allocator.balanced()) Fault("memory given back otherwise", "with another size or alignment");
}

void Judge::RunFunction(const Program& program, const FunctionRuns::Linker& link, std::uint32_t index,
                        std::uint64_t number) {
  Dice dice(number);
  const Module& module = program.executable().module();
  std::optional<Inputs> inputs = Inputs::For(module, module.functions[index], memory_, dice);
  if (!inputs) return;
  FunctionRuns runs(program, link, index, *inputs, memory_, dice);
  At("run");
  ++verdict_.runs;
  const bool good = runs.Unbound();
  if (verdict_.answer.empty()) verdict_.answer = runs.answer();
  verdict_.good_runs += good ? 1 : 0;
  if (good) {
    At("run bound");
    verdict_.bound_runs += runs.Bound() ? 1 : 0;
    At("run over inputs");
    runs.OverInputs();
  } else {
    At("run bound after an error");
    runs.BoundAsDeclared();
  }
  for (std::string& fault : runs.faults()) verdict_.faults.push_back(std::move(fault));
  for (std::string& fault : runs.slow()) verdict_.slow.push_back(std::move(fault));
}

}  // namespace rewire::hostile
