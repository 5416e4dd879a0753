// SPDX-License-Identifier: Apache-2.0
// Sixteen threads on one Program at once, each with a VM of its own or by the Program's pool: 100,000 calls
// each, every answer right.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/parameter_set.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kCalls = 100000;
constexpr int kThreads = 16;

// y = x + 1 for c = 1, else x + 2; z = the constant that all threads share; x itself.
constexpr char kProgram[] = R"(
.const shared: f32[2] = {5, 6}
.kernel inc = "inc"
.func main(x: f32[2], c: i64[]) -> (y: f32[2], (z: f32[2], same: f32[2]))
  %one = load_consti 1
  %a = invoke step(%x)
  if %c == %one goto done else more
more:
  %a = invoke step(%a)
done:
  %z = load_const shared
  %inner = alloc_adt tag=1 (%z, %x)
  %r = alloc_adt tag=0 (%a, %inner)
  ret %r
.end
.func step(x: f32[2]) -> f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %a = alloc_tensor %s, _, f32[2]
  invoke_packed inc(%x, %a), outputs=1
  ret %a
.end)";

LinkOptions WithInc(LinkOptions options = {}) {
  options.kernels.AddFunction("inc", MakePackedFunction([](kernel::TensorView x, kernel::TensorView out) {
                                for (std::int64_t i = 0; i < out.size(); ++i)
                                  out.data<float>()[i] = x.data<float>()[i] + 1;
                              }));
  return options;
}

Program SharedProgram(LinkOptions options = {}) { return ProgramOf(kProgram, WithInc(std::move(options))); }

// Runs call(thread, i) kCalls times on each thread; how many were not true.
template <typename Call>
int WrongCalls(Call call) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&wrong, &call, t] {
      auto run = call(t);
      int here = 0;
      for (int i = 0; i < kCalls; ++i) here += run(i) ? 0 : 1;
      wrong += here;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

// The numbers that a thread puts in, and those that must come out.
struct Numbers {
  alignas(64) std::array<float, 2> x{};
  std::int64_t c = 0;
  void Set(int thread, int i) {
    x = {static_cast<float>(thread), static_cast<float>(i % 4096)};
    c = i % 2;
  }
  bool Matches(const float* y) const {
    const float step = c == 1 ? 1 : 2;
    return y[0] == x[0] + step && y[1] == x[1] + step;
  }
};

TEST_CASE("sixteen threads with a VM each are right") {
  const Program program = SharedProgram();
  const auto thread = [&program](int t) {
    return [t, vm = VirtualMachine(program), numbers = Numbers()](int i) mutable {
      alignas(64) float y[2] = {};
      numbers.Set(t, i);
      vm.SetInput("x", TensorView(numbers.x.data(), {2}));
      vm.SetInput("c", TensorView(&numbers.c, {}));
      const bool bound = i % 3 == 0;
      if (bound) vm.SetOutput("y", TensorView(y, {2}));
      if (!vm.TryInvoke()) return false;
      const Tensor made = vm.Output("y");
      const bool right = numbers.Matches(bound ? y : made.data<float>()) &&
                         vm.Output("z").data<float>()[1] == 6 &&
                         vm.Output("same").data<float>() == numbers.x.data();
      if (bound) vm.ClearOutputs();
      return right;
    };
  };
  CHECK(WrongCalls(thread) == 0);
}

TEST_CASE("sixteen VMs read one input's memory at once") {
  const Program program = SharedProgram();
  const float x[2] = {7, 8};
  const std::int64_t one = 1;
  const auto thread = [&](int) {
    return [&, vm = VirtualMachine(program)](int) mutable {
      vm.SetInput("x", TensorView(x, {2}));
      vm.SetInput("c", TensorView(&one, {}));
      if (!vm.TryInvoke()) return false;
      const float* y = vm.Output("y").data<float>();
      return y[0] == 8 && y[1] == 9 && vm.Output("same").data<float>() == x;
    };
  };
  CHECK(WrongCalls(thread) == 0);
}

TEST_CASE("threads read one set of parameters, one executable and one program at once") {
  const Program program = SharedProgram();
  const Executable executable = program.executable();
  ParameterSet set = ParameterSet::Of(program);
  set.Set("w", Floats({1, 2}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const Result<Tensor> weights = set.TryGet(set.Find("w"));
        if (!weights || weights->data<float>()[1] != 2) ++wrong;
        if (executable.FindFunction("step") != std::optional<std::uint32_t>(1)) ++wrong;
        const Program again = i % 100 == 0 ? *Program::Link(executable, WithInc()) : program;
        VirtualMachine vm(again);
        const Value given = Floats({3, 4});
        const Result<Value> y = vm.TryInvoke("step", {&given, 1});
        if (!y || y->tensor().data<float>()[1] != 5) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("sixteen threads on a Program's pooled VMs are right") {
  const Program program = SharedProgram();
  const auto thread = [&program](int t) {
    return [&program, t, numbers = Numbers()](int i) mutable {
      alignas(64) float y[2] = {};
      numbers.Set(t, i);
      const std::array<Value, 2> inputs = {*Tensor::CopyOf(TensorView(numbers.x.data(), {2})),
                                           *Tensor::CopyOf(TensorView(&numbers.c, {}))};
      if (i % 2 == 0) {
        const OutputBinding output{"y", TensorView(y, {2})};
        return program.TryRun("main", inputs, {&output, 1}).has_value() && numbers.Matches(y);
      }
      const Result<Value> result = program.TryRun("main", inputs);
      return result && numbers.Matches(result->field(0).tensor().data<float>()) &&
             result->field(1).field(0).tensor().data<float>()[0] == 5;
    };
  };
  CHECK(WrongCalls(thread) == 0);
}

TEST_CASE("threads that come one after another take the same pooled VM") {
  TestAllocator allocator;
  LinkOptions options;
  options.allocator = allocator.allocator();
  const Program program = SharedProgram(std::move(options));
  const std::array<Value, 2> inputs = {Floats({1, 2}), *Tensor::CopyOf(TensorView(&kCalls, {}))};
  std::int64_t after_first = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] { CHECK(program.TryRun("main", inputs).has_value()); }).join();
    if (i == 0) after_first = allocator.blocks();
  }
  CHECK(after_first > 0);
  CHECK(allocator.blocks() == after_first);
}

TEST_CASE("of threads that come to one VM at once, one runs and the others are told so") {
  std::atomic<int> inside{0}, together{0}, ran{0};
  LinkOptions options;
  options.kernels.AddFunction("host.count", MakePackedFunction([&] {
                                if (++inside > 1) ++together;
                                ++ran;
                                --inside;
                              }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel count = "host.count"
    .func main() -> integer
      invoke_packed count(), outputs=0
      %one = load_consti 1
      ret %one
    .end)",
                              std::move(options)));
  const auto thread = [&](int) {
    return [&](int) {
      const Status status = vm.TryInvoke();
      return status || status.code() == StatusCode::kBusy;
    };
  };
  CHECK(WrongCalls(thread) == 0);
  CHECK(together == 0);
  CHECK(ran > 0);
}

// Two threads that come here wait for each other. If a lock kept the second one away, the test would not end.
class Meeting {
 public:
  void Join() {
    ++here_;
    while (here_ < 2) std::this_thread::yield();
  }

 private:
  std::atomic<int> here_{0};
};

template <typename Body>
void OnTwoThreads(const Body& body) {
  std::thread other([&] { body(1); });
  body(0);
  other.join();
}

TEST_CASE("the host's allocator is called by several threads at once") {
  struct Host {
    std::atomic<bool> begun{false};
    Meeting allocating, freeing;
  } meeting;
  LinkOptions options;
  options.allocator = {&meeting,
                       [](void* context, std::size_t size, std::size_t alignment) -> void* {
                         auto& at = *static_cast<Host*>(context);
                         if (at.begun) at.allocating.Join();
                         const Allocator usual = DefaultAllocator();
                         return usual.allocate(usual.context, size, alignment);
                       },
                       [](void* context, void* pointer, std::size_t size, std::size_t alignment) {
                         auto& at = *static_cast<Host*>(context);
                         if (at.begun) at.freeing.Join();
                         const Allocator usual = DefaultAllocator();
                         usual.deallocate(usual.context, pointer, size, alignment);
                       }};
  const Program program = SharedProgram(std::move(options));
  meeting.begun = true;
  std::atomic<int> wrong{0};
  OnTwoThreads([&](int thread) {
    VirtualMachine vm(program);
    Numbers numbers;
    numbers.Set(thread, 1);
    const std::array<Value, 2> inputs = {*Tensor::CopyOf(TensorView(numbers.x.data(), {2})),
                                         *Tensor::CopyOf(TensorView(&numbers.c, {}))};
    const Value result = *vm.TryInvoke("main", inputs);
    if (!numbers.Matches(result.field(0).tensor().data<float>())) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE("the host's thread pool is called by several threads at once, with all of the range") {
  class HostPool : public ThreadPool {
   public:
    std::int32_t thread_count() const override { return 3; }
    void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body,
                     void* data) override {
      meeting_.Join();
      // Ranges of the grain, the last one first.
      const std::int64_t step = std::max<std::int64_t>(grain, 1);
      for (std::int64_t last = end; last > begin;) {
        const std::int64_t first = last - begin < 2 * step ? begin : last - step;
        body(data, first, last);
        last = first;
      }
    }

   private:
    Meeting meeting_;
  };
  LinkOptions options;
  options.threads = std::make_shared<HostPool>();
  options.kernels.AddFunction("fill", MakePackedFunction([](kernel::TensorView out) {
                                KernelApi()->parallel_for(
                                    0, out.size(), 7,
                                    [](void* data, std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t i = begin; i < end; ++i)
                                        static_cast<float*>(data)[i] = static_cast<float>(i);
                                    },
                                    out.data<float>());
                              }));
  const Program program = ProgramOf(R"(
    .kernel fill
    .func main() -> f32[100]
      %s = alloc_storage _, alignment=64, f32[100], cpu
      %a = alloc_tensor %s, _, f32[100]
      invoke_packed fill(%a), outputs=1
      ret %a
    .end)",
                                    std::move(options));
  std::atomic<int> wrong{0};
  OnTwoThreads([&](int) {
    VirtualMachine vm(program);
    vm.Invoke();
    const Tensor result = vm.result().tensor();
    for (int i = 0; i < 100; ++i) wrong += result.data<float>()[i] == static_cast<float>(i) ? 0 : 1;
  });
  CHECK(wrong == 0);
}

TEST_CASE("results cross threads while their VM runs on") {
  const Program program = SharedProgram();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&program, &wrong, t] {
      VirtualMachine vm(program);
      Numbers numbers;
      for (int i = 0; i < 50; ++i) {
        numbers.Set(t, i);
        const std::array<Value, 2> inputs = {*Tensor::CopyOf(TensorView(numbers.x.data(), {2})),
                                             *Tensor::CopyOf(TensorView(&numbers.c, {}))};
        Value result = *vm.TryInvoke("main", inputs);
        std::thread([&wrong, numbers, result = std::move(result)] {
          if (!numbers.Matches(result.field(0).tensor().data<float>())) ++wrong;
        }).join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace rewire::test
