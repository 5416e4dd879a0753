// SPDX-License-Identifier: Apache-2.0
//
// rewire.branches: chains of calls of other kernels that do not depend on each other, at once on the
// program's threads. For operators that are too small to be split by themselves.
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/branches/branch_calls.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/vm/kernel/branches.h"

namespace rewire::kernel::cpu {
namespace {

// The bytes that a branch takes of its memory for a block (RewireBranch).
std::int64_t RoomOf(std::uint64_t bytes) {
  if (bytes >= static_cast<std::uint64_t>(kMostSize)) return kMostSize;
  return static_cast<std::int64_t>(((bytes | 1) + 63) & ~std::uint64_t{63});
}

struct Branches {
  static constexpr const char* kName = BranchCalls::kName;

  BranchCalls calls;

  static Status Read(Attributes& attributes, const BranchCalls::CallAttributes& of_calls,
                     Branches* branches) {
    if (RewireBranchesOf(__rewire_kernel_api) == nullptr)
      return RuntimeError("this VM cannot run branches; it needs the functions of vm/kernel/branches.h");
    return BranchCalls::Read(attributes, of_calls, &branches->calls);
  }
  // Says that the kernel has attributes. The table's entry is MakeBranches.
  static Status Make(Attributes& attributes, Branches* branches) { return Read(attributes, {}, branches); }

  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    std::int64_t all = 0;
    for (const std::vector<BranchCalls::Call>& branch : calls.branches) {
      const std::int64_t bytes =
          BytesOf(branch, [&](std::int32_t argument) { return sizes.Tensor(argument); });
      if (bytes < 0) return false;
      all = Plus(all, bytes);
    }
    if (all > 0) sizes.Take(all, 1);
    return true;
  }

  Status operator()(TensorList tensors) const {
    if (tensors.size() != calls.argument_count())
      return ValueError("expected ", calls.argument_count(), " tensors, got ", tensors.size());
    for (std::size_t i = 0; i < calls.views.size(); ++i) {
      const BranchCalls::View& view = calls.views[i];
      const TensorView of = tensors[view.of];
      if (!of.IsContiguous() || of.size() != view.size)
        return ValueError("view ", i, " has ", view.size, " elements; argument ", view.of, " has ", of.dims(),
                          of.IsContiguous() ? "" : " and is strided");
    }
    alignas(64) std::array<RewireBranch, BranchCalls::kMostBranches> branches;
    std::array<Running, BranchCalls::kMostBranches> running;
    std::array<std::int64_t, BranchCalls::kMostBranches> begin{};
    std::int64_t all = 0;
    const std::size_t count = calls.branches.size();
    for (std::size_t i = 0; i < count; ++i) {
      begin[i] = all;
      const std::int64_t bytes =
          BytesOf(calls.branches[i], [&](std::int32_t argument) { return tensors[argument].dl_tensor(); });
      if (bytes < 0) return ValueError("branch ", i, ": these shapes do not tell the scratch memory");
      all = Plus(all, bytes);
    }
    char* memory = nullptr;
    if (all > 0) {
      if (Status s = Workspace(all, &memory); !s.ok()) return s;
    }
    for (std::size_t i = 0; i < count; ++i) {
      running[i] = {this, tensors, i};
      const std::int64_t end = i + 1 < count ? begin[i + 1] : all;
      branches[i] = {&Run,    &running[i], memory + begin[i], static_cast<std::uint64_t>(end - begin[i]), 0,
                     nullptr, {}};
    }
    const RewireBranchesApi* api = RewireBranchesOf(__rewire_kernel_api);
    return api->run_branches(branches.data(), static_cast<std::int32_t>(count)) == 0 ? Status()
                                                                                     : Status::AlreadySet();
  }

 private:
  struct Running {
    const Branches* self;
    TensorList tensors;
    std::size_t branch;
  };

  static int Run(RewireBranch* branch) {
    const auto& running = *static_cast<const Running*>(branch->data);
    for (const BranchCalls::Call& call : running.self->calls.branches[running.branch]) {
      branch->doing = call.node;
      branch->used = 0;
      if (__rewire_kernel_api->cancelled() != 0) return Raise<ApiErrors>(nullptr, Stopped());
      if (running.self->RunCall(call, running.tensors) != 0) return -1;
    }
    return 0;
  }

  int RunCall(const BranchCalls::Call& call, TensorList tensors) const {
    std::array<RewireFFIAny, BranchCalls::kMostOfCall> args;
    std::array<DLTensor, BranchCalls::kMostOfCall> views;
    const std::size_t count = call.arguments.size();
    for (std::size_t i = 0; i < count; ++i) {
      args[i].type_index = kRewireFFIDLTensorPtr;
      args[i].zero_padding = 0;
      args[i].v_ptr = const_cast<DLTensor*>(TensorOf(call.arguments[i], tensors, &views[i]));
    }
    RewireFFIAny result{};
    return call.function(call.object.get(), args.data(), static_cast<std::int32_t>(count), &result);
  }

  // An argument of a call. A view is made in `*made`.
  const DLTensor* TensorOf(std::int32_t argument, TensorList tensors, DLTensor* made) const {
    const std::int32_t at = argument - calls.argument_count();
    if (at < 0) return tensors[argument].dl_tensor();
    const BranchCalls::View& view = calls.views[static_cast<std::size_t>(at)];
    *made = *tensors[view.of].dl_tensor();
    SetDims(view, made);
    return made;
  }
  // Kernels do not write the dimensions; the ABI has no pointer to const.
  static void SetDims(const BranchCalls::View& view, DLTensor* tensor) {
    tensor->ndim = static_cast<std::int32_t>(view.dims.size());
    tensor->shape = const_cast<std::int64_t*>(view.dims.data());
    tensor->strides = const_cast<std::int64_t*>(view.strides.data());
  }

  // The memory that a branch needs: that of the call that needs most. -1 if the shapes do not tell. `given`
  // returns an argument, or null if its shape is not known.
  template <typename Given>
  std::int64_t BytesOf(const std::vector<BranchCalls::Call>& branch, const Given& given) const {
    std::int64_t most = 0;
    for (const BranchCalls::Call& call : branch) {
      if (call.workspace == nullptr) continue;
      std::array<const DLTensor*, BranchCalls::kMostOfCall> tensors;
      std::array<DLTensor, BranchCalls::kMostOfCall> views;
      const std::size_t count = call.arguments.size();
      for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t at = call.arguments[i] - calls.argument_count();
        tensors[i] = given(at < 0 ? call.arguments[i] : calls.views[static_cast<std::size_t>(at)].of);
        if (tensors[i] == nullptr) return -1;
        if (at < 0) continue;
        views[i] = *tensors[i];
        SetDims(calls.views[static_cast<std::size_t>(at)], &views[i]);
        tensors[i] = &views[i];
      }
      std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
      const std::int32_t taken =
          call.workspace(call.object.get(), tensors.data(), static_cast<std::int32_t>(count), blocks);
      if (taken < 0) return -1;
      std::int64_t bytes = 0;
      for (std::int32_t i = 0; i < taken; ++i) bytes = Plus(bytes, RoomOf(blocks[i]));
      most = std::max(most, bytes);
    }
    return most;
  }
};

// "3.axis": an attribute of call 3.
bool IsOfCall(const RewireFFIAny& name, std::size_t* call, const char** rest) {
  if (name.type_index != kRewireFFIRawStr) return false;
  const std::string_view text(name.v_c_str);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *call);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return false;
  *rest = end + 1;
  return *call < static_cast<std::size_t>(BranchCalls::kMostCalls);
}

int MakeBranches(void* /*handle*/, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  return Guard<ApiErrors>(Branches::kName, [&]() -> Status {
    std::vector<RewireFFIAny> own;
    BranchCalls::CallAttributes of_calls;
    for (std::int32_t i = 0; i < num_args; i += 2) {
      std::vector<RewireFFIAny>* to = &own;
      RewireFFIAny name = args[i];
      std::size_t call = 0;
      const char* rest = nullptr;
      if (i + 1 < num_args && IsOfCall(name, &call, &rest)) {
        if (of_calls.size() <= call) of_calls.resize(call + 1);
        to = &of_calls[call];
        name.v_c_str = rest;
      }
      to->push_back(name);
      if (i + 1 < num_args) to->push_back(args[i + 1]);
    }
    Attributes attributes(own.data(), static_cast<std::int32_t>(own.size()));
    Branches branches;
    Status made = Branches::Read(attributes, of_calls, &branches);
    Status read = attributes.Finish();
    if (!read.ok()) return read;  // reported first, because it may have caused the error of Make
    if (!made.ok()) return made;
    const bool created = FunctionObject<Branches>::New(Branches::kName, std::move(branches), result);
    return created ? Status() : RuntimeError("out of memory");
  });
}

constexpr Kernel DescribeBranches() {
  Kernel kernel = Describe<Branches>(
      "inputs... -> outputs[]", "others any",
      "inputs, outputs, kernels, calls, views = none, debug.nodes = none",
      "chains of calls of other kernels of this library, at once on the program's threads. `inputs` is the "
      "number of inputs; `outputs` has the branch that writes each of the others. `calls` has for each call "
      "its "
      "branch, how many arguments it has, and which, counted over inputs, outputs and views; `kernels` has "
      "their names with a space between two. `views` has for each the argument that it shows under another "
      "shape, its rank and its dimensions; views are only read. The attribute `axis` of call 3 is called "
      "`3.axis`. `debug.nodes` has a line for each call, which stands in front of its errors. A branch "
      "writes "
      "its outputs before it reads them, and no other branch uses them. Calls return nothing, keep nothing "
      "and "
      "take no objects. Inside, parallel loops run on the branch's thread alone");
  kernel.entry.function = &MakeBranches;
  return kernel;
}

}  // namespace

std::span<const Kernel> BranchesKernels() {
  static constexpr Kernel kKernels[] = {DescribeBranches()};
  return kKernels;
}

}  // namespace rewire::kernel::cpu
