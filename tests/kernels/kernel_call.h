// SPDX-License-Identifier: Apache-2.0
// Calls stock kernels through their table, as the VM's loader does, with an API of the test's own behind
// them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/tests/kernels/host_tensor.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/link/kernel_calls.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {

using AttributeValue =
    std::variant<std::int64_t, int, double, const char*, std::vector<std::int64_t>, std::vector<double>>;
using AttributeList = std::vector<std::pair<std::string, AttributeValue>>;

// A kernel of the table, ready to be called: for one with attributes, what its factory has made of them.
class StockKernel {
 public:
  // error() says why when there is no such kernel or the factory refuses.
  explicit StockKernel(const std::string& name, const AttributeList& attributes = {});
  ~StockKernel();
  StockKernel(StockKernel&&) = delete;

  const std::string& error() const { return error_; }

  // Returns "" on success, else "Kind: message". Three more things count as failures of the kernel. It takes
  // more workspace than it declares for these tensors. It writes a tensor that its row says is only read. It
  // takes a call that its row does not have.
  std::string operator()(std::initializer_list<HostTensor*> tensors) const;
  std::string Call(const std::vector<HostTensor*>& tensors) const;
  // Without building anything: for measuring. -1 on failure.
  int CallRaw(const RewireFFIAny* args, int num_args) const;

 private:
  RewirePackedFunction function_ = nullptr;
  RewireWorkspaceBound workspace_ = nullptr;
  KernelCalls calls_;
  void* handle_ = nullptr;
  std::string error_;
};

// Makes and calls: "" or the error of either.
std::string Run(const std::string& name, const std::vector<HostTensor*>& tensors,
                const AttributeList& attributes = {});

// The blocks of workspace that a kernel with attributes declares for these tensors, the largest first,
// without a call. nullopt if it cannot be made, or cannot say.
std::optional<std::vector<std::uint64_t>> DeclaredWorkspace(const std::string& name,
                                                            const AttributeList& attributes,
                                                            const std::vector<HostTensor*>& tensors);

// The error that was set last on this thread; taken.
std::string TakeError();

// The table behind the kernels: splits every parallel_for in ranges of `grain`, in reverse order, so that a
// kernel that relies on their order or number fails.
const RewireKernelApi* TestApi();
// Drops what kernels have kept, as a new VM would.
void ClearSlot();
// From now on so many questions whether to go on are answered with yes, the others with no; all of them when
// negative.
void StopAfter(std::int64_t questions);
// Since StopAfter was called last.
std::int64_t QuestionsAsked();
// From now on workspace() gives nothing and sets an error, or works again.
void FailWorkspace(bool fail);
// Loops of kernels run on this pool, until it is null again. Without one, they run on the calling thread as
// three threads might run them.
void UseThreads(ThreadPool* pool);

}  // namespace rewire::test
