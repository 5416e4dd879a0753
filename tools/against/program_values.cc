// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/against/program_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/tools/io/interrupt.h"
#include "rewire/tools/record/value_watcher.h"

namespace rewire::tools {
namespace {

// Runs the function and passes on the values that have names.
Status Run(VirtualMachine* vm, std::uint32_t function, const std::function<void(const MadeValue&)>& sink) {
  ValueWatcher watcher(vm->program().executable().module(), [&](const MadeValue& made) {
    if (!made.name.empty()) sink(made);
  });
  if (Status observed = vm->TrySetObserver(&watcher); !observed) return observed;
  Status invoked = vm->TryInvoke(function);
  if (Status removed = vm->TrySetObserver(nullptr); invoked && !removed) return removed;
  return invoked;
}

}  // namespace

Status ProgramValues::Learn() {
  std::set<std::string> seen, repeated;
  Status ran = Run(&vm_, function_, [&](const MadeValue& made) {
    if (!seen.insert(made.name).second) repeated.insert(made.name);
    if (made.value.kind() != ValueKind::kTensor) return;
    const Tensor tensor = made.value.tensor();
    std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (made.channels_last && shape.size() > 2) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
    places_[made.name] = {DTypeName(tensor.dtype()), std::move(shape),
                          static_cast<std::uint64_t>(tensor.view().bytes()), made.function, made.pc};
  });
  if (!ran) return ran;
  for (const std::string& name : repeated) places_.erase(name);
  const Function& function = vm_.program().executable().module().functions[function_];
  Result<std::vector<Output>> outputs = CollectOutputs(vm_, function);
  if (!outputs) return Forward(outputs);
  outputs_ = *std::move(outputs);
  return {};
}

Result<std::map<std::string, HostTensor>> ProgramValues::Values(const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::map<std::string, HostTensor> values;
  Status failed;
  Status ran = Run(&vm_, function_, [&](const MadeValue& made) {
    if (!failed || !wanted.contains(made.name)) return;
    const Result<std::optional<HostTensor>> held = HostTensorOf(made.value);
    if (!held) {
      failed = Forward(held, made.name);
    } else if (*held && made.channels_last) {
      values[made.name] = ChannelsFirst(**held);
    } else if (*held) {
      HostTensor copy = **held;
      copy.bytes = CopyBytes(copy.bytes.view);  // its memory is used again
      values[made.name] = std::move(copy);
    }
  });
  if (!failed) return Forward(failed);
  if (!ran) return Forward(ran);
  return values;
}

}  // namespace rewire::tools
