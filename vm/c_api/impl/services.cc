// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/impl/services.h"

#include "rewire/vm/c_api/impl/boundary.h"

namespace rewire::c_api {
namespace {

class HostPool final : public ThreadPool {
 public:
  explicit HostPool(const RewireThreadPool& pool) : pool_(pool) {}
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() override {
    if (pool_.destroy != nullptr) pool_.destroy(pool_.context);
  }

  std::int32_t thread_count() const override { return pool_.thread_count; }
  void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body, void* data) override {
    pool_.parallel_for(pool_.context, begin, end, grain, body, data);
  }

 private:
  RewireThreadPool pool_;
};

class HostObserver final : public Observer {
 public:
  explicit HostObserver(const RewireObserver& observer) : observer_(observer) {}

  bool wants_instructions() const override { return observer_.on_instruction != nullptr; }
  bool wants_kernels() const override { return observer_.on_kernel != nullptr; }

  void OnInstruction(const Instruction& instruction) override {
    RewireInstructionEvent event{};
    event.struct_size = sizeof(event);
    event.function = instruction.function;
    event.pc = instruction.pc;
    event.depth = instruction.depth;
    observer_.on_instruction(observer_.context, &event);
  }
  void OnKernel(const KernelCall& call) override {
    RewireKernelEvent event{};
    event.struct_size = sizeof(event);
    event.function = call.function;
    event.pc = call.pc;
    event.kernel = call.kernel;
    event.args = call.args.data();
    event.arg_count = static_cast<std::uint32_t>(call.args.size());
    event.ok = call.ok ? 1 : 0;
    event.start_ns = call.start_ns;
    event.end_ns = call.end_ns;
    observer_.on_kernel(observer_.context, &event);
  }

 private:
  RewireObserver observer_;
};

}  // namespace

Result<std::shared_ptr<ThreadPool>> MakeHostPool(const RewireThreadPool& pool) {
  RewireThreadPool read;
  if (Status ok = ReadStruct("RewireThreadPool", &pool, &read); !ok) return Forward(ok);
  if (read.parallel_for == nullptr || read.thread_count < 1) {
    return Fail(StatusCode::kInvalidArgument,
                "RewireThreadPool: parallel_for and a thread_count of at least 1 are needed");
  }
  return std::make_shared<HostPool>(read);
}

Result<std::unique_ptr<Observer>> MakeHostObserver(const RewireObserver* observer) {
  if (observer == nullptr) return nullptr;
  RewireObserver read;
  if (Status ok = ReadStruct("RewireObserver", observer, &read); !ok) return Forward(ok);
  return std::make_unique<HostObserver>(read);
}

}  // namespace rewire::c_api
