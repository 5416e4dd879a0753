// SPDX-License-Identifier: Apache-2.0
// rewire.branches in a program: on threads of its own for each branch, with errors, cancellation and
// deadlines there.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Runs each index on a thread that is not the caller's.
class ApartPool : public ThreadPool {
 public:
  std::int32_t thread_count() const override { return 4; }
  void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body, void* data) override {
    std::vector<std::thread> threads;
    for (std::int64_t i = begin; i < end; i += grain)
      threads.emplace_back([=] { body(data, i, std::min(i + grain, end)); });
    for (std::thread& thread : threads) thread.join();
  }
};

std::vector<std::shared_ptr<ThreadPool>> Pools() {
  return {ThreadPool::Serial(), ThreadPool::Make(2), ThreadPool::Make(4), std::make_shared<ApartPool>()};
}

Program Linked(const std::string& text, const std::shared_ptr<ThreadPool>& pool) {
  LinkOptions options;
  options.threads = pool;
  const Result<Program> program = Program::Link(ExecutableOf(text), options);
  if (!program) FAIL(program.error().message());
  return *program;
}

std::string Allocated(const std::string& name, const std::string& type) {
  return "%s" + name + " = alloc_storage _, alignment=64, " + type + ", cpu\n%" + name +
         " = alloc_tensor %s" + name + ", _, " + type + "\n";
}

// Four branches: a product of x and w with workspace, then a relu over it.
std::string Products(bool at_once) {
  std::string text, calls, kernels, outputs, nodes, body, separate;
  for (int i = 0; i < 4; ++i) {
    const std::string out = std::to_string(2 + i), branch = std::to_string(i), name = "y" + branch;
    if (i > 0) calls += ", ", kernels += " ", outputs += ", ", nodes += "\\n";
    calls += branch + ", 3, 0, 1, " + out + ", " + branch + ", 2, " + out + ", " + out;
    kernels += "rewire.matmul rewire.relu";
    outputs += branch;
    nodes += R"(MatMul 'm)" + branch + R"('\nRelu 'r)" + branch + "'";
    body += Allocated(name, "f32[40, 60]");
    separate += "invoke_packed matmul(%x, %w, %" + name + "), outputs=1\ninvoke_packed relu(%" + name +
                ", %" + name + "), outputs=1\n";
  }
  text += ".kernel matmul = \"rewire.matmul\"\n.kernel relu = \"rewire.relu\"\n";
  text += ".kernel branches = \"rewire.branches\" {inputs=2, outputs=[" + outputs + "], kernels=\"" +
          kernels + "\", calls=[" + calls + R"(], "debug.nodes"=")" + nodes + "\"}\n";
  text +=
      ".func main(x: f32[?, ?], w: f32[?, 60]) -> (f32[40, 60], f32[40, 60], f32[40, 60], f32[40, 60])\n" +
      body;
  text += at_once ? "invoke_packed branches(%x, %w, %y0, %y1, %y2, %y3), outputs=4\n" : separate;
  return text + "%r = alloc_adt tag=0 (%y0, %y1, %y2, %y3)\nret %r\n.end\n";
}

struct Matrices {
  std::vector<float> x = std::vector<float>(40 * 50), w = std::vector<float>(50 * 60);
  Matrices() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8.25f;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 23) / 7 - 1;
  }
};

TEST_CASE("branches give on any threads what their calls give one by one") {
  Matrices given;
  std::vector<std::vector<float>> expected;
  {
    VirtualMachine vm(Linked(Products(false), ThreadPool::Serial()));
    vm.SetInput("x", TensorView(given.x.data(), {40, 50}));
    vm.SetInput("w", TensorView(given.w.data(), {50, 60}));
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    for (std::uint32_t i = 0; i < 4; ++i) expected.push_back(FloatsOf(vm.Output(i)));
  }
  for (const std::shared_ptr<ThreadPool>& pool : Pools()) {
    VirtualMachine vm(Linked(Products(true), pool));
    vm.SetInput("x", TensorView(given.x.data(), {40, 50}));
    vm.SetInput("w", TensorView(given.w.data(), {50, 60}));
    for (int run = 0; run < 20; ++run) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      for (std::uint32_t i = 0; i < 4; ++i) CHECK(FloatsOf(vm.Output(i)) == expected[i]);
    }
  }
}

TEST_CASE("several VMs run branches on one pool") {
  Matrices given;
  const Program program = Linked(Products(true), ThreadPool::Make(3));
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      VirtualMachine vm(program);
      vm.SetInput("x", TensorView(given.x.data(), {40, 50}));
      vm.SetInput("w", TensorView(given.w.data(), {50, 60}));
      for (int run = 0; run < 50; ++run) failed += vm.TryInvoke() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE("an error inside a branch names kernel and node, on every thread") {
  Matrices given;
  for (const std::shared_ptr<ThreadPool>& pool : Pools()) {
    VirtualMachine vm(Linked(Products(true), pool));
    vm.SetInput("x", TensorView(given.x.data(), {40, 49}));
    vm.SetInput("w", TensorView(given.w.data(), {50, 60}));
    const std::string message = MessageOf(vm.TryInvoke());
    INFO(message);
    CHECK(message.find("ValueError: MatMul 'm") != std::string::npos);
    CHECK(message.find("': rewire.matmul: ") != std::string::npos);
    vm.SetInput("x", TensorView(given.x.data(), {40, 50}));
    CHECK(MessageOf(vm.TryInvoke()).empty());
  }
}

// Two branches of hundreds of calls on many elements: minutes, if nothing ends them.
std::string LongBranches() {
  std::string calls, kernels;
  for (int i = 0; i < 200; ++i) {
    const std::string branch = std::to_string(i % 2), out = std::to_string(1 + i % 2),
                      from = i < 2 ? "0" : out;
    if (i > 0) calls += ", ", kernels += " ";
    calls += branch + ", 2, " + from + ", " + out;
    kernels += "rewire.tanh";
  }
  const std::string type = "f32[4000000]";
  return R"(.kernel branches = "rewire.branches" {inputs=1, outputs=[0, 1], kernels=")" + kernels +
         R"(", calls=[)" + calls + "]}\n.func main(x: " + type + ") -> (" + type + ", " + type + ")\n" +
         Allocated("a", type) + Allocated("b", type) +
         "invoke_packed branches(%x, %a, %b), outputs=2\n%r = alloc_adt tag=0 (%a, %b)\nret %r\n.end\n";
}

TEST_CASE("a deadline and a cancellation end branches on every thread") {
  std::vector<float> x(4000000, 0.5f);
  for (const std::shared_ptr<ThreadPool>& pool : Pools()) {
    VirtualMachine vm(Linked(LongBranches(), pool));
    vm.SetInput("x", TensorView(x.data(), {4000000}));
    vm.SetDeadline(steady_clock::now() + milliseconds(20));
    Status status = vm.TryInvoke();
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kDeadlineExceeded);
    vm.SetDeadline(steady_clock::time_point::max());
    std::thread canceller([&] {
      std::this_thread::sleep_for(milliseconds(20));
      vm.Cancel();
    });
    status = vm.TryInvoke();
    canceller.join();
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kCancelled);
  }
}

TEST_CASE("branches write what the caller's memory is for, and no constant") {
  Matrices given;
  VirtualMachine vm(Linked(Products(true), ThreadPool::Make(2)));
  vm.SetInput("x", TensorView(given.x.data(), {40, 50}));
  vm.SetInput("w", TensorView(given.w.data(), {50, 60}));
  std::vector<float> bound(40 * 60);
  vm.SetOutput(OutputHandle{0, 2}, TensorView(bound.data(), {40, 60}));
  vm.RequireZeroCopy(true);
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(bound == FloatsOf(vm.Output(3)));
  // Declared as fewer outputs than are written.
  const std::string fewer = MessageOf(Program::Link(
      ExecutableOf(
          ".kernel b = \"rewire.branches\" {inputs=1, outputs=[0, 1], kernels=\"rewire.relu rewire.relu\", "
          "calls=[0, 2, 0, 1, 1, 2, 0, 2]}\n.func main(x: f32[4]) -> f32[4]\n" +
          Allocated("y", "f32[4]") + "invoke_packed b(%x, %x, %y), outputs=1\nret %y\n.end\n"),
      {}));
  CHECK(fewer.find(
            "1 outputs are declared, expected 2; kernel 'rewire.branches' takes (inputs... -> outputs[])") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
