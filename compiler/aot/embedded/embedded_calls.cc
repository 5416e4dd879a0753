// SPDX-License-Identifier: Apache-2.0
// Calls of the kernels in kernels/embedded: each family has a table of its kernels.
#include <algorithm>
#include <array>
#include <cstdint>

#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/kernel_calls.h"

namespace rewire::aot {
namespace {

std::array<std::span<const EmbeddedKernel>, 11> Families() {
  return {ProductKernels(),      IntegerProductKernels(), PoolKernels(),          ElementwiseKernels(),
          FusedKernels(),        MovementKernels(),       NormalizationKernels(), ReductionKernels(),
          QuantizationKernels(), RecurrentKernels(),      VisionKernels()};
}

const EmbeddedKernel* FindKernel(std::string_view name) {
  for (const std::span<const EmbeddedKernel> family : Families()) {
    const auto found = std::find_if(family.begin(), family.end(),
                                    [&](const EmbeddedKernel& kernel) { return name == kernel.name; });
    if (found != family.end()) return &*found;
  }
  return nullptr;
}

// Whether the call has what the kernel's function looks at. Sizes of embedded kernels have 32 bits.
bool Fits(const EmbeddedKernel& row, const EmbeddedCall& call) {
  const std::vector<CallArgument>& arguments = call.kernel().arguments;
  const auto is_small = [](const CallArgument& argument) {
    return argument.value.kind == Value::Kind::kTensor && argument.value.bytes <= INT32_MAX;
  };
  return call.outputs() != 0 && arguments.size() >= call.outputs() && call.inputs() >= row.least_inputs &&
         std::all_of(arguments.begin(), arguments.end(), is_small) &&
         call.InputDims(0).size() >= row.least_rank && call.OutputDims().size() >= row.least_rank;
}

class EmbeddedCalls : public KernelCalls {
 public:
  EmbeddedCalls(const Module& module, const std::string& prefix) : module_(module), definitions_(prefix) {}

  Result<std::string> Call(const KernelCall& kernel, std::string* setup) override {
    EmbeddedCall call(kernel, module_, &definitions_);
    const EmbeddedKernel* const row = FindKernel(kernel.import.name);
    if (row == nullptr) return call.Refuse("use --kernels packed, or disable the pass that makes it");
    if (!Fits(*row, call)) return call.Refuse("it has other arguments");
    Result<std::string> text = row->emit(call);
    if (!text || text->empty()) return text;
    const bool can_fail = text->back() != ';' && text->back() != '}';
    if (can_fail) return text;
    *setup = "  " + *text;
    return std::string();
  }

  std::uint64_t WorkspaceBytes(const KernelCall& kernel) const override {
    const EmbeddedKernel* const row = FindKernel(kernel.import.name);
    if (row == nullptr || row->workspace == nullptr) return 0;
    const EmbeddedCall call(kernel, module_, nullptr);
    return Fits(*row, call) ? row->workspace(call) : 0;
  }

  bool Reads(const KernelCall& kernel, std::size_t argument) const override {
    const EmbeddedKernel* const row = FindKernel(kernel.import.name);
    const Value& value = kernel.arguments[argument].value;
    const bool is_empty = value.kind == Value::Kind::kTensor && ElementsOf(value.dims) == 0;
    const bool is_unread =
        row != nullptr && argument == row->unread && !kernel.arguments[argument].is_written;
    return row == nullptr || (!is_unread && !is_empty);
  }

  std::optional<std::uint64_t> LeadOf(const KernelCall& kernel) const override {
    const EmbeddedKernel* const row = FindKernel(kernel.import.name);
    if (row == nullptr || row->lead == nullptr) return std::nullopt;
    const EmbeddedCall call(kernel, module_, nullptr);
    return Fits(*row, call) ? row->lead(call) : std::nullopt;
  }

  std::string Includes() const override {
    return "#include \"rewire/kernels/embedded/rewire_embedded_rows.h\"\n";
  }
  std::string Tables() const override { return definitions_.text(); }
  std::string Locals(std::uint32_t) const override { return {}; }

 private:
  const Module& module_;
  Definitions definitions_;
};

}  // namespace

std::unique_ptr<KernelCalls> MakeEmbeddedCalls(const Module& module, const std::string& prefix) {
  return std::make_unique<EmbeddedCalls>(module, prefix);
}

std::vector<std::string> EmbeddedKernelNames() {
  std::vector<std::string> names;
  for (const std::span<const EmbeddedKernel> family : Families()) {
    for (const EmbeddedKernel& kernel : family) names.emplace_back(kernel.name);
  }
  return names;
}

}  // namespace rewire::aot
