// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/load/local_clients.h"

#include <utility>

#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {
namespace {

class LocalClient final : public LoadClient {
 public:
  LocalClient(const Program& program, const LocalCall& call)
      : vm_(program, call.limits), function_(call.function), deadline_(call.deadline) {}

  Status SetInputs(const std::vector<Value>& inputs) {
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      if (Status set = vm_.TrySetInput(InputHandle{function_, i}, inputs[i]); !set) return set;
    }
    return {};
  }

  Status Call() override {
    if (deadline_) {
      if (Status set = vm_.TrySetDeadline(std::chrono::steady_clock::now() + *deadline_); !set) return set;
    }
    return vm_.TryInvoke(function_);
  }

 private:
  VirtualMachine vm_;
  std::uint32_t function_;
  std::optional<std::chrono::nanoseconds> deadline_;
};

}  // namespace

Result<std::vector<std::unique_ptr<LoadClient>>> MakeLocalClients(const Program& program,
                                                                  const LocalCall& call, std::size_t count) {
  std::vector<std::unique_ptr<LoadClient>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    auto client = std::make_unique<LocalClient>(program, call);
    if (Status set = client->SetInputs(call.inputs); !set) return Forward(set);
    clients.push_back(std::move(client));
  }
  return clients;
}

}  // namespace rewire::tools
