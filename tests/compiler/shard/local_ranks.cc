// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/shard/local_ranks.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "rewire/kernels/contract/collective.h"
#include "rewire/vm/kernel/define.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using kernel::Attributes;
using kernel::RuntimeError;
using KernelStatus = kernel::Status;

// The state that the ranks of a run share.
class World {
 public:
  explicit World(std::size_t ranks) : ranks_(ranks), shown_(ranks) {}

  std::size_t ranks() const { return ranks_; }
  Exchanged exchanged() const { return exchanged_; }

  // Shows `x` to all ranks, calls `read` with the tensors of all, and returns when all have read. False if a
  // rank has ended.
  template <typename Read>
  bool Meet(std::size_t rank, const kernel::TensorView& x, std::size_t Exchanged::*count, const Read& read) {
    shown_[rank] = x;
    if (!Wait()) return false;
    read(shown_);
    if (rank == 0) ++(exchanged_.*count);
    return Wait();
  }

  void Send(std::size_t from, std::size_t to, std::int64_t tag, const kernel::TensorView& x) {
    const std::lock_guard lock(mutex_);
    const auto* bytes = static_cast<const char*>(x.raw_data());
    messages_[{from, to, tag}].emplace_back(bytes, bytes + x.size() * x.element_bytes());
    ++exchanged_.messages;
    changed_.notify_all();
  }
  // Nothing if the sender has ended.
  std::optional<std::vector<char>> Receive(std::size_t from, std::size_t to, std::int64_t tag) {
    std::unique_lock lock(mutex_);
    auto& queue = messages_[{from, to, tag}];
    changed_.wait(lock, [&] { return !queue.empty() || ended_ > 0; });
    if (queue.empty()) return std::nullopt;
    std::vector<char> message = std::move(queue.front());
    queue.erase(queue.begin());
    return message;
  }

  // The rank makes no more calls.
  void Fail() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

 private:
  bool Wait() {
    std::unique_lock lock(mutex_);
    const std::size_t round = round_;
    if (++waiting_ == ranks_) {
      waiting_ = 0;
      ++round_;
      changed_.notify_all();
      return true;
    }
    changed_.wait(lock, [&] { return round_ != round || ended_ > 0; });
    return round_ != round;
  }

  const std::size_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<kernel::TensorView> shown_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, std::vector<std::vector<char>>> messages_;
  std::size_t waiting_ = 0, round_ = 0, ended_ = 0;
  Exchanged exchanged_;
};

// Kernels run on the thread of their rank.
thread_local World* world = nullptr;
thread_local std::size_t own_rank = 0;

KernelStatus Ended() { return RuntimeError("another rank has ended"); }

template <typename T>
void AddAll(const std::vector<kernel::TensorView>& from, T* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    T sum = 0;
    for (const kernel::TensorView& x : from) sum += x.data<T>()[i];
    to[i] = sum;
  }
}

struct AllReduce {
  static constexpr const char* kName = names::kAllReduce;
  contract::AllReduceAttributes attributes;
  static KernelStatus Make(Attributes& given, AllReduce* reduce) {
    reduce->attributes.Read(given);
    return KernelStatus();
  }
  KernelStatus operator()(kernel::TensorView x, kernel::TensorView out) const {
    const std::vector<char> copy(static_cast<const char*>(x.raw_data()),
                                 static_cast<const char*>(x.raw_data()) + x.size() * x.element_bytes());
    DLTensor own = *x.dl_tensor();  // out may be x
    own.data = const_cast<char*>(copy.data());
    own.byte_offset = 0;
    bool known = attributes.op == contract::CollectiveOp::kSum;
    const bool met = world->Meet(own_rank, kernel::TensorView(&own), &Exchanged::all_reduces,
                                 [&](const std::vector<kernel::TensorView>& all) {
                                   for (const kernel::TensorView& other : all)
                                     known = known && other.size() == x.size();
                                   if (!known) return;
                                   if (x.Is<float>()) {
                                     AddAll(all, out.data<float>(), x.size());
                                   } else if (x.Is<double>()) {
                                     AddAll(all, out.data<double>(), x.size());
                                   } else if (x.Is<std::int32_t>()) {
                                     AddAll(all, out.data<std::int32_t>(), x.size());
                                   } else {
                                     known = false;
                                   }
                                 });
    if (!known) return RuntimeError("all_reduce of tensors or an operation that the test does not know");
    return met ? KernelStatus() : Ended();
  }
};

struct AllGather {
  static constexpr const char* kName = names::kAllGather;
  contract::AllGatherAttributes attributes;
  static KernelStatus Make(Attributes& given, AllGather* gather) {
    gather->attributes.Read(given);
    return KernelStatus();
  }
  KernelStatus operator()(kernel::TensorView x, kernel::TensorView out) const {
    const auto axis = static_cast<int>(attributes.axis);
    std::int64_t rows = 1;
    for (int i = 0; i < axis; ++i) rows *= x.dim(i);
    const auto ranks = static_cast<std::int64_t>(world->ranks());
    if (out.size() != x.size() * ranks) return RuntimeError("all_gather gives a tensor of another size");
    bool same = true;
    const bool met =
        world->Meet(own_rank, x, &Exchanged::all_gathers, [&](const std::vector<kernel::TensorView>& all) {
          for (const kernel::TensorView& other : all) same = same && other.size() == x.size();
          if (!same || x.size() == 0) return;
          const auto bytes = static_cast<std::size_t>(x.size() * x.element_bytes() / rows);
          char* to = static_cast<char*>(out.raw_data());
          for (std::int64_t row = 0; row < rows; ++row) {
            for (const kernel::TensorView& from : all) {
              std::memcpy(to,
                          static_cast<const char*>(from.raw_data()) + static_cast<std::size_t>(row) * bytes,
                          bytes);
              to += bytes;
            }
          }
        });
    if (!same) return RuntimeError("all_gather of tensors of several sizes");
    return met ? KernelStatus() : Ended();
  }
};

struct Send {
  static constexpr const char* kName = names::kSend;
  contract::PeerAttributes attributes;
  static KernelStatus Make(Attributes& given, Send* send) {
    send->attributes.Read(given);
    return KernelStatus();
  }
  KernelStatus operator()(kernel::TensorView x, kernel::TensorView sent) const {
    world->Send(own_rank, static_cast<std::size_t>(attributes.peer), attributes.tag, x);
    *sent.data<std::int64_t>() = x.size();
    return KernelStatus();
  }
};

struct Receive {
  static constexpr const char* kName = names::kReceive;
  contract::PeerAttributes attributes;
  static KernelStatus Make(Attributes& given, Receive* receive) {
    receive->attributes.Read(given);
    return KernelStatus();
  }
  KernelStatus operator()(kernel::TensorView out) const {
    const auto message = world->Receive(static_cast<std::size_t>(attributes.peer), own_rank, attributes.tag);
    if (!message) return Ended();
    if (static_cast<std::int64_t>(message->size()) != out.size() * out.element_bytes())
      return RuntimeError("a message of another size");
    if (!message->empty()) std::memcpy(out.raw_data(), message->data(), message->size());
    return KernelStatus();
  }
};

constexpr RewireKernelEntry kEntries[] = {kernel::Entry<AllGather>(), kernel::Entry<AllReduce>(),
                                          kernel::Entry<Receive>(), kernel::Entry<Send>()};
constexpr RewireKernelTable kTable = kernel::Table(kEntries);

void Run(const Executable& executable, const NamedTensors& inputs, RankResult* result) {
  LinkOptions options;
  options.kernels.AddTable(kTable, "ranks of one process");
  const Result<Program> program = Program::Link(executable, std::move(options));
  if (!program) {
    result->error = program.error().message();
    return;
  }
  VirtualMachine vm(*program);
  Status done;
  for (const auto& [name, tensor] : inputs) {
    if (done) done = vm.TrySetInput(name, tensor.view());
  }
  if (done) done = vm.TryInvoke();
  if (!done) {
    result->error = done.error().message();
    return;
  }
  const Module& module = executable.module();
  for (const std::string& name : module.functions[*executable.FindFunction("main")].output_names)
    result->outputs.emplace(name, *Tensor::CopyOf(vm.Output(name).view()));
}

}  // namespace

std::vector<RankResult> RunRanks(const std::vector<Executable>& executables,
                                 const std::vector<NamedTensors>& inputs, Exchanged* exchanged) {
  World shared(executables.size());
  std::vector<RankResult> results(executables.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < executables.size(); ++rank) {
    threads.emplace_back([&, rank] {
      world = &shared;
      own_rank = rank;
      Run(executables[rank], inputs[rank], &results[rank]);
      if (!results[rank].error.empty()) shared.Fail();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (exchanged != nullptr) *exchanged = shared.exchanged();
  return results;
}

}  // namespace rewire::test
