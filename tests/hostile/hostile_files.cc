// SPDX-License-Identifier: Apache-2.0
// Changed bytes in the other files that a host may get from a stranger: bundles of executables, .safetensors,
// .npy, TVM's parameters, states of VMs. Whatever opens is read to its last byte.
//
//   hostile_files BUNDLE --mutants 100000
//
// Exit code 0: nothing was found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/state/state_format.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/tests/hostile/campaign.h"
#include "rewire/tests/hostile/container.h"
#include "rewire/tests/hostile/dice.h"
#include "rewire/tests/hostile/watch.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::hostile {
namespace {

constexpr double kMilliseconds = kSanitized ? 4000 : 1000;
constexpr std::int64_t kHeapBytes = 64 << 20;

Bytes Npy(const std::string& header, std::size_t data) {
  ByteWriter writer;
  writer.Raw("\x93NUMPY\x01");
  writer.Number(std::uint8_t{0});
  writer.Number(static_cast<std::uint16_t>(header.size() + 1));
  writer.Raw(header + "\n");
  writer.Zeros(data);
  return writer.bytes();
}

Bytes Safetensors(const std::string& header, std::size_t data) {
  ByteWriter writer;
  writer.Number(static_cast<std::uint64_t>(header.size()));
  writer.Raw(header);
  writer.Zeros(data);
  return writer.bytes();
}

// One tensor of TVM's, f32[2, 3], in its list of parameters.
Bytes TvmParameters() {
  ByteWriter writer;
  for (const std::uint64_t word : {0xF7E58D4F05049CB7u, 0ul, 1ul, 1ul}) writer.Number(word);
  writer.Raw("w");
  for (const std::uint64_t word : {1ul, 0xDD5E40F096B4A13Fu, 0ul}) writer.Number(word);
  for (const std::int32_t word : {1, 0, 2}) writer.Number(word);
  for (const std::uint8_t byte : {2, 32, 1, 0}) writer.Number(byte);
  for (const std::uint64_t word : {2ul, 3ul, 24ul}) writer.Number(word);
  writer.Zeros(24);
  return writer.bytes();
}

// A program that does nothing, with inputs of all kinds that a state has.
Program StateProgram() {
  Module module;
  Function function;
  function.name = "main";
  module.symbols.push_back("N");
  function.inputs = {{"x", TensorType(kFloat32, {SymbolDim(0), 2})},
                     {"n", SimpleType(TypeKind::kInteger)},
                     {"pair", AdtType(0, {TensorType(kBool8, {3}), UnrankedTensorType()})},
                     {"open", SimpleType(TypeKind::kValue)}};
  function.result = SimpleType(TypeKind::kValue);
  function.output_names = {"y"};
  function.register_count = 4;
  CodeWriter code;
  code.Ret(0);
  function.code = *code.Finish();
  module.functions.push_back(std::move(function));
  return *Program::Link(*Executable::FromModule(std::move(module)));
}

// A state of that program.
Bytes State() {
  VirtualMachine vm(StateProgram());
  const auto zeros = [](DLDataType dtype, Span<const std::int64_t> shape) {
    Tensor tensor = *Tensor::Make(dtype, shape);
    std::memset(tensor.view().data(), 0, tensor.view().bytes());
    return Value(std::move(tensor));
  };
  vm.SetInput("x", zeros(kFloat32, {3, 2}));
  vm.SetInput("n", Value(std::int64_t{5}));
  vm.SetInput("pair", *Value::Adt(0, {zeros(kBool8, {3}), zeros(kFloat16, {2, 0, 1})}));
  vm.SetInput("open", zeros(kInt8, {5}));
  const Array<std::byte> state = vm.State();
  return Bytes(reinterpret_cast<const char*>(state.data()), state.size());
}

std::vector<Bytes> SeedFiles(const std::string& bundle) {
  std::ifstream file(bundle, std::ios::binary);
  return {
      Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()),
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24),
      Npy("{'descr': '|b1', 'fortran_order': True, 'shape': (), }", 1),
      Safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"I64","shape":[2],"data_offsets":[8,24]},"__metadata__":{"x":"\u0041"}})",
                  24),
      TvmParameters(),
      State()};
}

void ChangeBytes(Bytes& file, Dice& dice) {
  static const std::vector<std::string> kTokens = {"[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "\"",
                                                   ",",
                                                   ":",
                                                   "-",
                                                   "(",
                                                   ")",
                                                   "'",
                                                   "0",
                                                   "1e9",
                                                   "\\u",
                                                   "18446744073709551615",
                                                   "9223372036854775807",
                                                   "999999999999"};
  for (std::uint64_t i = dice.Below(4) + 1; i > 0; --i) {
    const std::size_t at = dice.Below(file.size() + 1);
    switch (dice.Below(6)) {
      case 0:
        file.erase(at, dice.Below(17));
        break;
      case 1:
        file.insert(at, dice.Pick(kTokens));
        break;
      case 2:
        file.insert(at, file.substr(dice.Below(file.size() + 1), dice.Below(65)));
        break;
      case 3: {
        const auto value = static_cast<std::uint64_t>(dice.Interesting());
        const std::size_t width = std::size_t{1} << dice.Below(4);
        const std::size_t place = at / width * width;
        if (place + width <= file.size()) std::memcpy(file.data() + place, &value, width);
        break;
      }
      default:
        if (at < file.size()) file[at] = static_cast<char>(file[at] ^ 1 << dice.Below(8));
    }
  }
}

// Bundles, executables and states carry checksums, without which nothing behind them would be reached.
Bytes WithChecksums(const Bytes& file, Dice& dice) {
  if (file.compare(0, 8, "RWXSTATE") == 0) {
    Bytes state = file.substr(0, file.size() - 4);
    ChangeBytes(state, dice);
    state.resize(std::max<std::size_t>(state.size(), kRewireStateHeaderBytes));
    const std::uint64_t size = state.size() + 4;
    std::memcpy(state.data() + 24, &size, sizeof(size));
    const std::uint32_t sum =
        RewireStateChecksum(reinterpret_cast<const unsigned char*>(state.data()), state.size());
    return state.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  }
  std::optional<Container> container = ParseContainer(file);
  if (!container) return file;
  for (Section& section : container->sections) {
    if (dice.OneIn(3)) ChangeBytes(section.bytes, dice);
  }
  return WriteContainer(*container);
}

bool IsSoundState(const Bytes& file) {
  RewireStateReader reader;
  return RewireStateOpen(&reader, file.data(), file.size()) == kRewireStateOk;
}

class FileJudge {
 public:
  explicit FileJudge(Progress* progress) : progress_(progress) {}

  Verdict Try(const Bytes& file) {
    Verdict verdict;
    const std::int64_t heap = HeapBytes();
    RestartHeapPeak();
    const double begin = CpuMilliseconds();
    const std::optional<GuardedBlock> block = memory_.Take(file.size(), 64);
    if (!block) return verdict;
    if (!file.empty()) std::memcpy(block->write, file.data(), file.size());
    Open({{block->read, file.size()}, nullptr}, verdict);
    if (CpuMilliseconds() - begin > kMilliseconds) verdict.faults.emplace_back("slow to open: a small file");
    if (HeapPeak() - heap > kHeapBytes)
      verdict.faults.emplace_back("memory to open: " + std::to_string(HeapPeak() - heap));
    if (!memory_.Release()) verdict.faults.emplace_back("beside memory: bytes around the file were written");
    return verdict;
  }

 private:
  void At(const char* stage) { std::strncpy(progress_->stage, stage, sizeof(progress_->stage) - 1); }
  // So that a sanitizer sees a tensor that reaches out of the file.
  void Touch(const void* data, std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; ++i) sum_ = sum_ + static_cast<const unsigned char*>(data)[i];
  }

  void Open(const SharedBytes& bytes, Verdict& verdict) {
    OpenOptions options;
    options.verify_data = true;
    At("bundle");
    const auto bundle = BundleFromBytes(bytes, options);
    verdict.read = bundle.has_value();
    if (bundle) {
      for (const BundledExecutable& model : *bundle) {
        for (const rewire::Constant& constant : model.executable.module().constants)
          Touch(constant.stored.view.data(), constant.stored.view.size());
      }
    }
    At("npy");
    if (const Result<HostTensor> tensor = ParseNpy(bytes)) {
      verdict.read = true;
      Touch(tensor->bytes.view.data(), tensor->bytes.view.size());
    }
    At("safetensors");
    if (const Result<std::vector<NamedTensor>> tensors = ParseSafetensors(bytes)) {
      verdict.read = true;
      for (const NamedTensor& named : *tensors)
        Touch(named.tensor.bytes.view.data(), named.tensor.bytes.view.size());
    }
    At("state");
    if (IsSoundState(Bytes(reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size())))
      TryState(bytes.view, verdict);
    At("parameters");
    const Result<ParameterSet> set = ParameterSet::FromBytes(bytes, options);
    if (!set) return;
    verdict.read = true;
    for (std::size_t i = 0; i < set->size(); ++i) {
      const Result<Tensor> tensor = set->TryGet(i);
      if (tensor) Touch(tensor->view().data(), tensor->view().bytes());
    }
  }

  // A VM saves what it takes as the same bytes.
  void TryState(Span<const std::byte> bytes, Verdict& verdict) {
    VirtualMachine vm(program_);
    const Array<std::byte> none = vm.State();
    const bool set = vm.TrySetState(bytes).has_value();
    verdict.read = verdict.read || set;
    const Array<std::byte> state = vm.State();
    const Span<const std::byte> expected = set ? bytes : Span<const std::byte>(none);
    if (!std::equal(state.begin(), state.end(), expected.begin(), expected.end()))
      verdict.faults.emplace_back(set ? "a state that was taken is saved as other bytes"
                                      : "a state that was refused has changed an input");
  }

  const Program program_ = StateProgram();
  GuardedMemory memory_;
  Progress* progress_;
  volatile unsigned sum_ = 0;
};

}  // namespace
}  // namespace rewire::hostile

int main(int argc, char** argv) {
  using namespace rewire::hostile;
  CLI::App app("Opens hostile bundles and parameter files", "hostile_files");
  std::string bundle;
  CampaignOptions options;
  app.add_option("bundle", bundle, "A sound bundle")->required();
  app.add_option("--first", options.first, "The first mutant's number");
  app.add_option("--mutants", options.mutants, "End after so many mutants")->required();
  CLI11_PARSE(app, argc, argv);
  const std::vector<Bytes> seeds = SeedFiles(bundle);
  const auto make = [&](std::uint64_t number) {
    Dice dice(number);
    Bytes file = dice.Pick(seeds);
    if (dice.OneIn(2)) file = WithChecksums(file, dice);
    const bool is_sound = ParseContainer(file) || IsSoundState(file);
    if (is_sound && !dice.OneIn(8)) return file;
    ChangeBytes(file, dice);
    return file;
  };
  auto judge = std::make_shared<std::unique_ptr<FileJudge>>();
  const auto judge_one = [judge](const Task& task, Progress* progress) {
    if (!*judge) *judge = std::make_unique<FileJudge>(progress);
    return (*judge)->Try(task.file);
  };
  return RunCampaign(make, judge_one, options) ? 0 : 1;
}
