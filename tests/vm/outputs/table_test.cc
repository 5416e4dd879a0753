// SPDX-License-Identifier: Apache-2.0
// The table of programs in table/*.asm: each function case_* is run unbound and bound as its comments say.
//
//   ; set c = 1                     an integer input (0 otherwise); all f32 inputs count up from 1, 11, 21,
//   ... ; bind y: strided               how an output is bound; "exact" without a line:
//                                   exact, strided, misaligned, unbound, capacity N, allocator, allocator
//                                   null, over INPUT, over INPUT + BYTES, over output NAME, over constant
//                                   NAME, donate INPUT, f64 (another dtype), [2, 2] (another shape), on cuda
//   ; plan y: rewired               the plan's verdict, "rewired" or "copied: <reason>"
//   ; run y: copied: <reason>       the run's, "in place" or "copied: <reason>"; follows from the plan
//   without a line ; made by an instruction        no kernel writes what is made in place (DeviceCopy,
//   ShapeOf) ; saves 262144                  the bound run takes that many bytes less ; zero copy with
//   RequireZeroCopy ; fails: <message>              binding or running is an error; the next, unbound, run is
//   right
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "rewire/base/array.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/outputs/bound_memory.h"
#include "rewire/tests/vm/outputs/memory_device.h"
#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

constexpr char kStridedThere[] = "strided memory on a device cannot be an output";

struct Case {
  std::string function;
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> bind;  // by output
  std::map<std::string, std::string> plan;
  std::map<std::string, std::string> run;
  std::string by_instruction;  // an output
  bool zero_copy = false;
  std::uint64_t saves = 0;
  std::string message;
};

// "what rest" -> rest
bool Take(const std::string& line, const std::string& what, std::string* rest) {
  if (line.compare(0, what.size(), what) != 0) return false;
  *rest = line.substr(what.size());
  return true;
}

// "y: text" into the map.
void TakeNamed(const std::string& text, std::map<std::string, std::string>* map) {
  const std::size_t colon = text.find(": ");
  REQUIRE(colon != std::string::npos);
  (*map)[text.substr(0, colon)] = text.substr(colon + 2);
}

std::vector<Case> ParseCases(const std::string& text) {
  std::vector<Case> cases;
  Case next;
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (Take(line, "; set ", &rest)) {
      next.integers[rest.substr(0, rest.find(' '))] = std::stoll(rest.substr(rest.find('=') + 1));
    } else if (Take(line, "; bind ", &rest)) {
      TakeNamed(rest, &next.bind);
    } else if (Take(line, "; plan ", &rest)) {
      TakeNamed(rest, &next.plan);
    } else if (Take(line, "; run ", &rest)) {
      TakeNamed(rest, &next.run);
    } else if (Take(line, "; saves ", &rest)) {
      next.saves = std::stoull(rest);
    } else if (Take(line, "; fails: ", &rest)) {
      next.message = rest;
    } else if (Take(line, "; made by an instruction: ", &rest)) {
      next.by_instruction = rest;
    } else if (line == "; zero copy") {
      next.zero_copy = true;
    } else if (Take(line, ".func ", &rest)) {
      next.function = rest.substr(0, rest.find('('));
      if (next.function.rfind("case_", 0) == 0) cases.push_back(next);
      next = {};
    }
  }
  return cases;
}

// One function's inputs and bound memory.
class CaseRun {
 public:
  // `device`: where the floats are.
  CaseRun(const Program& program, const Case& c, KernelLog* log, DLDevice device = kHost)
      : program_(program),
        case_(c),
        log_(log),
        device_(device),
        function_(*program.FindFunction(c.function)),
        signature_(program.executable().module().functions[function_]) {
    for (std::uint32_t i = 0; i < signature_.inputs.size(); ++i) {
      std::uint32_t node = 0;
      inputs_.push_back(MakeInput(signature_.inputs[i].type, &node, static_cast<float>(10 * i + 1), i));
    }
  }

  void Check() {
    VirtualMachine unbound(program_);
    const std::vector<std::string> expected = RunUnbound(&unbound);
    CheckPlan();
    VirtualMachine vm(program_);
    vm.RequireZeroCopy(case_.zero_copy);
    Fill();
    log_->written.clear();
    const Status status = RunBound(&vm, unbound);
    if (!status) {
      const std::string message = status.error().message();
      const std::string expected_message = ExpectedMessage();
      CHECK((message == expected_message ||
             (expected_message == kStridedThere && message.find(kStridedThere) != std::string::npos)));
      for (const Bound& bound : bounds_) CHECK((bound.view == nullptr || bound.GuardsStand()));
    } else {
      CHECK(ExpectedMessage().empty());
      CheckBound(vm, expected);
      if (case_.saves > 0) CHECK(vm.bytes_peak() + case_.saves <= unbound.bytes_peak() + 16384);
    }
    // The next run gives the right answer, whatever happened.
    vm.ClearOutputs(case_.function);
    vm.RequireZeroCopy(false);
    Fill();
    CHECK(RunUnbound(&vm) == expected);
  }

 private:
  Value MakeInput(const Type& type, std::uint32_t* node, float first, std::uint32_t index) {
    const TypeNode& here = type.nodes[(*node)++];
    if (here.kind == TypeKind::kAdt) {
      std::vector<Value> fields;
      for (std::uint32_t i = 0; i < here.field_count; ++i)
        fields.push_back(MakeInput(type, node, first + static_cast<float>(100 * i), index));
      return *Value::Adt(here.tag, fields);
    }
    Array<std::int64_t> shape = here.dims;
    if (here.kind != TypeKind::kTensor || here.rank == kUnknownRank) shape = {4};
    for (std::int64_t& dim : shape) dim = dim < 0 ? 4 : dim;
    const bool integer = here.dtype == kInt64;
    Tensor tensor = *Tensor::Make(integer ? kInt64 : kFloat32, shape);
    if (!integer && !IsHostDevice(device_)) {
      // The same memory, as the device's.
      const auto owner = std::make_shared<Tensor>(tensor);
      tensor = *Tensor::Wrap(TensorView(tensor.dl().data, kFloat32, tensor.shape(), device_), owner);
    }
    const auto given = case_.integers.find(signature_.inputs[index].name);
    tensors_.push_back({tensor, first, given == case_.integers.end() ? 0 : given->second});
    return Value(tensor);
  }

  // Fresh contents, the same for every run.
  void Fill() {
    for (const InputTensor& input : tensors_) {
      const std::int64_t count = input.tensor.view().size();
      for (std::int64_t i = 0; i < count; ++i) {
        if (input.tensor.dtype() == kFloat32)
          static_cast<float*>(input.tensor.dl().data)[i] = input.first + static_cast<float>(i % 64);
        else
          input.tensor.data<std::int64_t>()[i] = input.integer;
      }
    }
  }

  void SetInputs(VirtualMachine* vm) {
    for (std::uint32_t i = 0; i < inputs_.size(); ++i) vm->SetInput(InputHandle{function_, i}, inputs_[i]);
  }

  std::vector<std::string> RunUnbound(VirtualMachine* vm) {
    Fill();
    SetInputs(vm);
    vm->Invoke(case_.function);
    std::vector<std::string> values;
    for (std::uint32_t leaf = 0; leaf < signature_.output_names.size(); ++leaf)
      values.push_back(Serialized(*vm->TryOutput(leaf)));
    CHECK_FALSE(log_->read_poison);
    return values;
  }

  // On a device types say so, and outputs cannot be strided.
  std::string ExpectedMessage() const {
    if (IsHostDevice(device_)) return case_.message;
    for (const Bound& bound : bounds_) {
      if (bound.how == "strided" && case_.message.empty()) return kStridedThere;
    }
    std::string message = case_.message;
    const std::size_t type = message.find("f32[4] expected, ");
    if (type != std::string::npos) message.insert(type + 6, "@1");
    return message;
  }

  void CheckPlan() {
    CHECK(case_.plan.size() == signature_.output_names.size());
    for (std::uint32_t leaf = 0; leaf < signature_.output_names.size(); ++leaf) {
      const std::string& name = signature_.output_names[leaf];
      INFO("output " << name << "\n" << program_.ExplainOutput({function_, leaf}));
      const LeafPlan& plan = program_.rep().plans[function_].leaves[leaf];
      const auto stated = case_.plan.find(name);
      CHECK((stated == case_.plan.end() ? "none" : stated->second) ==
            (plan.rewired ? "rewired" : std::string("copied: ") + CopyReasonText(plan.reason)));
    }
  }

  Status RunBound(VirtualMachine* vm, const VirtualMachine& unbound) {
    SetInputs(vm);
    bounds_.resize(signature_.output_names.size());
    for (std::uint32_t leaf = 0; leaf < bounds_.size(); ++leaf) {
      const std::string& name = signature_.output_names[leaf];
      const auto how = case_.bind.find(name);
      if (Status ok = Bind(vm, {function_, leaf}, *unbound.TryOutput(leaf),
                           how == case_.bind.end() ? "exact" : how->second);
          !ok) {
        return ok;
      }
    }
    return vm->TryInvoke(case_.function);
  }

  unsigned char* InputMemory(const std::string& name) const {
    for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
      if (signature_.inputs[i].name != name) continue;
      Value value = inputs_[i];
      while (value.kind() == ValueKind::kAdt) value = value.field(0);
      return static_cast<unsigned char*>(value.tensor().dl().data);
    }
    FAIL("no input " << name);
    return nullptr;
  }
  unsigned char* ConstantMemory(const std::string& name) const {
    const Array<Constant>& constants = program_.executable().module().constants;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if (constants[i].name == name)
        return static_cast<unsigned char*>(TensorOf(program_.rep().constants[i])->tensor.data);
    }
    FAIL("no constant " << name);
    return nullptr;
  }

  struct Bound : GuardedMemory {
    std::string how;
    std::unique_ptr<TensorView> view;  // none: the leaf is unbound
    bool asked = false;
  };

  Status Bind(VirtualMachine* vm, OutputHandle output, const Value& value, const std::string& how) {
    Bound& bound = bounds_[output.leaf];
    bound.how = how;
    if (how == "unbound") return {};
    DLDataType dtype = kInt64;
    std::vector<std::int64_t> shape;
    if (value.kind() == ValueKind::kTensor) {
      dtype = value.tensor().dtype();
      const Span<const std::int64_t> dims = value.tensor().shape();
      shape.assign(dims.begin(), dims.end());
    } else if (value.kind() != ValueKind::kInteger) {
      dtype = kFloat32;  // a tree, which cannot be bound: any memory will show it
      shape = {4};
    }
    if (how == "f64") dtype = kFloat64;
    if (how == "[2, 2]") shape = {2, 2};
    std::vector<std::int64_t> strides;
    if (how == "strided") strides = EverySecond(shape);
    const std::uint64_t bytes = TensorView(nullptr, dtype, shape).bytes();
    bound.Take(how == "strided" ? 2 * bytes : bytes, how == "misaligned" ? 1 : 0);
    std::string what;
    if (Take(how, "over output ", &what)) {
      for (std::uint32_t leaf = 0; leaf < output.leaf; ++leaf) {
        if (signature_.output_names[leaf] == what) bound.data = bounds_[leaf].data;
      }
      bound.block.clear();
    } else if (Take(how, "over constant ", &what)) {
      bound.data = ConstantMemory(what);
      bound.block.clear();
    } else if (Take(how, "over ", &what)) {
      const std::size_t plus = what.find(" + ");
      bound.data = InputMemory(what.substr(0, plus));
      if (plus != std::string::npos) bound.data += std::stoul(what.substr(plus + 3));
      bound.block.clear();
    } else if (Take(how, "donate ", &what)) {
      bound.data = InputMemory(what);
      bound.block.clear();
    }
    const DLDevice device = how == "on cuda" ? DLDevice{kDLCUDA, 0} : dtype == kInt64 ? kHost : device_;
    bound.view = std::make_unique<TensorView>(bound.data, dtype, shape, device, strides);
    if (how.rfind("donate ", 0) == 0) return vm->TryDonate(*program_.FindInput(what, case_.function), output);
    if (Take(how, "capacity ", &what)) {
      bound.Take(std::stoul(what), 0);
      *bound.view = TensorView(bound.data, dtype, shape, device);
      return vm->TrySetOutput(output, OutputCapacity{bound.data, bound.bytes, device});
    }
    if (how.rfind("allocator", 0) == 0) {
      return vm->TrySetOutput(
          output, OutputAllocator{&bound,
                                  [](void* context, std::uint64_t size, std::uint64_t alignment) -> void* {
                                    auto* self = static_cast<Bound*>(context);
                                    self->asked = true;
                                    const bool fits = size == self->bytes && alignment >= 64;
                                    return fits && self->how == "allocator" ? self->data : nullptr;
                                  },
                                  device});
    }
    return vm->TrySetOutput(output, *bound.view);
  }

  void CheckBound(const VirtualMachine& vm, const std::vector<std::string>& expected) {
    for (std::uint32_t leaf = 0; leaf < bounds_.size(); ++leaf) {
      const Bound& bound = bounds_[leaf];
      const std::string& name = signature_.output_names[leaf];
      INFO("output " << name);
      if (bound.how == "unbound") {
        CHECK(Serialized(*vm.TryOutput(leaf)) == expected[leaf]);
        continue;
      }
      CHECK(bound.GuardsStand());
      const std::size_t elements = expected[leaf].find(':');
      CHECK(ElementsOf(*bound.view) == (elements == std::string::npos ? IntegerBytes(expected[leaf])
                                                                      : expected[leaf].substr(elements + 1)));
      const Result<OutputReport> report = vm.TryOutputReport(OutputHandle{function_, leaf});
      REQUIRE(report.has_value());
      const std::string verdict = report->copied ? "copied: " + report->reason : "in place";
      const auto stated = case_.run.find(name);
      const auto plan = case_.plan.find(name);
      if (stated != case_.run.end()) {
        CHECK(verdict == stated->second);
      } else if (plan != case_.plan.end()) {
        CHECK(verdict == (plan->second == "rewired" ? "in place" : plan->second));
      }
      if (report->copied) continue;
      // The kernel that made it saw the caller's memory.
      const bool written = std::count(log_->written.begin(), log_->written.end(), bound.data) > 0;
      CHECK(written == (name != case_.by_instruction));
      if (bound.how == "allocator") CHECK(bound.asked);
    }
  }

  static std::string IntegerBytes(const std::string& text) {
    const std::int64_t integer = std::stoll(text.substr(text.find(' ')));
    return {reinterpret_cast<const char*>(&integer), sizeof(integer)};
  }

  struct InputTensor {
    Tensor tensor;
    float first;
    std::int64_t integer;
  };

  const Program& program_;
  const Case& case_;
  KernelLog* log_;
  DLDevice device_;
  std::uint32_t function_;
  const Function& signature_;
  std::vector<Value> inputs_;
  std::vector<InputTensor> tensors_;  // all that are in the inputs
  std::vector<Bound> bounds_;         // by leaf
};

TEST_CASE("every program of the table gives the same bound and unbound, with the verdicts it states") {
  const std::filesystem::path folder = std::string(SourceDir()) + "/tests/vm/outputs/table";
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    KernelLog log;
    INFO(entry.path().filename().string());
    const Program program = LinkText(text, &log);
    for (const Case& c : ParseCases(text)) {
      INFO(c.function);
      CaseRun(program, c, &log).Check();
      ++count;
    }
  }
  CHECK(count >= 60);
}

// With the same verdicts: where memory is has no influence on which kernel may write it.
TEST_CASE("the table holds for memory on a device") {
  const std::filesystem::path folder = std::string(SourceDir()) + "/tests/vm/outputs/table";
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    KernelLog log;
    INFO(entry.path().filename().string());
    LinkOptions options;
    options.devices.push_back(&MemoryDevice());
    const Program program = LinkText(text, &log, std::move(options), &MoveToMemoryDevice);
    for (const Case& c : ParseCases(text)) {
      INFO(c.function);
      CaseRun(program, c, &log, kMemoryDevice).Check();
      ++count;
    }
  }
  CHECK(count >= 60);
}

}  // namespace
}  // namespace rewire::test
