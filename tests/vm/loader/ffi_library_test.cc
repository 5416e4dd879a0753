// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/ffi_library.h"

#include <catch2/catch.hpp>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/thread_pool.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

using test::Load;
using test::MessageOf;
using test::RunKernel;

// The kernel's error as the VM reports it, without the place in the program.
std::string KernelMessage(const KernelSet& kernels, const std::string& name,
                          const std::vector<std::int64_t>& args,
                          std::shared_ptr<ThreadPool> threads = nullptr) {
  const std::string message = MessageOf(RunKernel(kernels, name, args, std::move(threads)));
  const std::size_t kernel = message.find(name);
  return kernel == std::string::npos ? message : message.substr(kernel);
}

TEST_CASE("kernels in C: of the table first, then of the symbols") {
  const KernelSet kernels = Load("plain");
  CHECK(kernels.sources()[0]->Names() ==
        std::vector<std::string>{"plain.of_table", "plain_add", "plain_shift", "plain_silent"});
  CHECK(RunKernel(kernels, "plain_add", {40, 2}) == 1042);
  CHECK(RunKernel(kernels, "plain.of_table", {1, 2}) == 1003);
  CHECK_THAT(KernelMessage(kernels, "plain_add", {1}),
             Catch::EndsWith("TypeError: plain_add takes two integers"));
  CHECK_THAT(KernelMessage(kernels, "plain_silent", {}),
             Catch::EndsWith("the kernel failed and set no error message"));
}

// As Relax programs call kernels of dynamic shapes: tensors, then sizes.
TEST_CASE("an import with the option objects gives integers as scalars, beside tensors") {
  const auto run = [](const std::string& option) -> Result<float> {
    const Result<Module> module = Assemble(
        ".kernel shift = \"plain_shift\"" + option +
        "\n.func main(x: f32[2], n: integer) -> y: f32[2]\n%s = alloc_storage _, alignment=64, f32[2], cpu\n"
        "%y = alloc_tensor %s, _, f32[2]\ninvoke_packed shift(%x, %n, %y), outputs=1\nret %y\n.end\n");
    if (!module) return Forward(module);
    const Result<Executable> executable = Executable::FromModule(*module);
    if (!executable) return Forward(executable);
    LinkOptions options;
    options.kernels = Load("plain");
    const Result<Program> program = Program::Link(*executable, options);
    if (!program) return Forward(program);
    VirtualMachine vm(*program);
    const float x[2] = {1, 2};
    vm.SetInput("x", TensorView(x, {2}));
    vm.SetInput("n", Value(std::int64_t{40}));
    if (Status done = vm.TryInvoke(); !done) return Forward(done);
    return vm.Output("y").data<float>()[1];
  };
  const Result<float> shifted = run(" objects");
  INFO(MessageOf(shifted));
  REQUIRE(shifted);
  CHECK(*shifted == 42);
  // Otherwise an integer is a tensor i64[], as kernels of Relay programs take it.
  CHECK_THAT(MessageOf(run("")),
             Catch::EndsWith("TypeError: Mismatched type on argument #1 when calling plain_shift"));
}

TEST_CASE("a missing symbol is reported with near names") {
  const KernelSet kernels = Load("plain");
  KernelImport import;
  import.name = "plain_ad";
  CHECK(MessageOf(kernels.Resolve(import)) ==
        "kernel 'plain_ad' is not in: plain.so (tvm-ffi ABI); did you mean 'plain_add'?");
}

TEST_CASE("errors raised through undefined symbols of the tvm-ffi runtime arrive") {
  for (const char* library : {"undefined", "linked"}) {
    const KernelSet kernels = Load(library);
    CHECK_THAT(KernelMessage(kernels, "parts", {}),
               Catch::EndsWith("TypeError: argument 0 of `parts()`: wrong"));
  }
}

TEST_CASE("context variables are filled in and work") {
  const KernelSet kernels = Load("contexts");
  CHECK_THAT(KernelMessage(kernels, "ctx_fail", {}),
             Catch::EndsWith("ValueError: raised through a context variable"));
  CHECK(RunKernel(kernels, "ctx_call", {}, nullptr, {}, 3) == 42);
  CHECK_THAT(
      KernelMessage(kernels, "ctx_call_missing", {}),
      Catch::EndsWith("RuntimeError: the library calls the function 'no_such_function', which is neither in "
                      "it nor in the function registry"));
}

TEST_CASE("tasks of a parallel launch meet at barriers, whatever the pool has free") {
  const KernelSet kernels = Load("contexts");
  for (std::int32_t threads : {1, 2, 4}) {
    const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
    CHECK(RunKernel(kernels, "ctx_barrier", {0}, pool) == threads);
    // n tasks each see the sum 1 + ... + n.
    for (std::int64_t tasks : {1, 2, 3, 7}) {
      CHECK(RunKernel(kernels, "ctx_barrier", {tasks}, pool, {}, 5) == tasks * tasks * (tasks + 1) / 2);
    }
  }
}

TEST_CASE("a failing task fails the launch with its own message, also when others wait for it") {
  const KernelSet kernels = Load("contexts");
  for (std::int32_t threads : {1, 3}) {
    const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
    CHECK_THAT(KernelMessage(kernels, "ctx_failing_task", {}, pool),
               Catch::EndsWith("RuntimeError: task 1 has failed"));
    CHECK_THAT(
        KernelMessage(kernels, "ctx_deserting_task", {}, pool),
        Catch::EndsWith("RuntimeError: some tasks of a parallel launch ended without reaching the barrier of "
                        "the others"));
  }
}

TEST_CASE("workspaces are the VM's memory on every thread, counted and given back") {
  const KernelSet kernels = Load("contexts");
  CHECK(RunKernel(kernels, "ctx_workspace", {}, ThreadPool::Make(4), {}, 3) == 16);
  CHECK(RunKernel(kernels, "ctx_workspace", {}) == 16);

  Limits limits;
  limits.bytes = 1 << 20;
  CHECK(RunKernel(kernels, "ctx_workspace", {}, ThreadPool::Make(2), limits) == 16);
  CHECK(RunKernel(kernels, "ctx_keep_workspace", {600000}, nullptr, limits, 10) ==
        0);  // given back by the VM
  CHECK_THAT(MessageOf(RunKernel(kernels, "ctx_keep_workspace", {1 << 21}, nullptr, limits)),
             Catch::EndsWith("MemoryError: no 2097152 bytes of workspace"));
  CHECK_THAT(KernelMessage(kernels, "ctx_device_workspace", {}),
             Catch::EndsWith("ValueError: new_tensor: the executable does not name this device"));
}

TEST_CASE("exceptions of C++ kernels and factories arrive as errors") {
  const KernelSet kernels = Load("throwing");
  CHECK_THAT(KernelMessage(kernels, "cpp.throws", {0}),
             Catch::EndsWith("RuntimeError: cpp.throws: index 7 of 5"));
  CHECK_THAT(KernelMessage(kernels, "cpp.throws", {1}), Catch::EndsWith("MemoryError: out of memory"));
  CHECK_THAT(KernelMessage(kernels, "cpp.throws", {2}),
             Catch::EndsWith("RuntimeError: cpp.throws: an exception that is no std::exception"));

  KernelImport import;
  import.name = "cpp.made";
  import.attributes = {{ "factor", std::int64_t { -1 } }};
  CHECK(MessageOf(kernels.Resolve(import)) ==
        "factory of kernel 'cpp.made' (throwing.so (tvm-ffi ABI)): RuntimeError: cpp.made: negative factor");
}

}  // namespace
}  // namespace rewire
