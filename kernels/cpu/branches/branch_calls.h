// SPDX-License-Identifier: Apache-2.0
//
// The calls of stock kernels that rewire.branches makes, read from its attributes and checked.
//
// Linking checks this, so a run need not. Each argument that is written belongs to one branch, which
// writes it before it reads it. Nobody else uses it, so branches may run at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/kernels/contract/branches.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

struct BranchCalls {
  static constexpr const char* kName = names::kBranches;
  static constexpr std::int64_t kMostBranches = 16;
  static constexpr std::int64_t kMostCalls = 256;
  static constexpr std::int64_t kMostArguments = 1024;
  static constexpr std::int64_t kMostOfCall = 64;  // arguments
  static constexpr std::int64_t kMostViews = 256;

  struct DeleteObject {
    void operator()(RewireFFIObject* object) const { object->deleter(object, kRewireFFIBothGone); }
  };
  struct Call {
    RewirePackedFunction function = nullptr;
    std::unique_ptr<RewireFFIObject, DeleteObject>
        object;                                // the handle of `function`; null without attributes
    RewireWorkspaceBound workspace = nullptr;  // null: the kernel takes none
    std::vector<std::int32_t> arguments;       // places: inputs, then outputs, then views
    const char* node = nullptr;                // of `node_texts`; null: it has no name
  };
  // The elements of another argument under another shape. It is only read.
  struct View {
    std::int32_t of = 0;
    std::int64_t size = 1;
    std::vector<std::int64_t> dims, strides;
  };
  // Attributes of the calls, as the factory got them: names without the call's number, and values, in turn.
  using CallAttributes = std::vector<std::vector<RewireFFIAny>>;

  static Status Read(Attributes& attributes, const CallAttributes& of_calls, BranchCalls* calls);

  std::int32_t argument_count() const { return inputs + static_cast<std::int32_t>(outputs.size()); }

  std::int32_t inputs = 0;
  std::vector<std::int64_t> outputs;  // the branch of each written argument
  std::vector<View> views;
  std::vector<std::vector<Call>> branches;  // the calls of each, in order
  std::vector<std::string> node_texts;      // "Relu 'r': ", in front of an error
};

}  // namespace rewire::kernel::cpu
