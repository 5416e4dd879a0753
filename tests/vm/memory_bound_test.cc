// SPDX-License-Identifier: Apache-2.0
// A run's memory is known before it: the bound is never passed, is what a straight line takes, and a static
// memory of that size serves without malloc.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "executable_format/text/assembler.h"
#include "tests/support/paths.h"
#include "tests/vm/test_program.h"
#include "vm/kernel_api.h"
#include "vm/virtual_machine.h"

namespace {
thread_local bool heap_is_watched = false;
thread_local std::uint64_t heap_calls = 0;

[[maybe_unused]] void NoteHeapCall() {
  if (heap_is_watched) ++heap_calls;
}
}  // namespace

// All of the process's memory but what the C library takes for itself.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
// A sanitizer has an allocator of its own. (clang says so by a feature, g++ by a macro.)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REWIRE_TEST_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REWIRE_TEST_SANITIZED 1
#endif
#if !defined(REWIRE_TEST_SANITIZED)
#define REWIRE_TEST_WATCHES_MALLOC 1
extern "C" void* malloc(std::size_t size) {
  NoteHeapCall();
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  NoteHeapCall();
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) {
  NoteHeapCall();
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  NoteHeapCall();
  return __libc_memalign(alignment, size);
}
#endif

namespace rewire::test {
namespace {

int Add(void*, const RewireFFIAny* args, std::int32_t count, RewireFFIAny*) {
  const DLTensor* a = RewireTensorOf(&args[0]);
  const DLTensor* b = RewireTensorOf(&args[count - 2]);
  DLTensor* out = RewireTensorOf(&args[count - 1]);
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < out->ndim; ++i) elements *= out->shape[i];
  for (std::int64_t i = 0; i < elements; ++i) {
    static_cast<float*>(out->data)[i] =
        static_cast<const float*>(a->data)[i] + static_cast<const float*>(b->data)[i];
  }
  return 0;
}

LinkOptions Kernels() {
  LinkOptions options;
  PackedFunction add = Packed(Add);
  add.workspace = [](const DLTensor* const*, std::int32_t, std::uint64_t*) { return 0; };
  options.kernels.AddFunction("host.add", add);
  return options;
}

struct Freed {
  void operator()(void* block) const { std::free(block); }
};

MemoryBound BoundOf(const Program& program, bool outputs_bound = false,
                    std::vector<std::pair<std::string, std::int64_t>> dims = {}) {
  Result<MemoryBound> bound = program.TryMemoryBound({}, {outputs_bound, std::move(dims)});
  if (!bound) FAIL(bound.error().message());
  return *std::move(bound);
}

// Programs over one input x: f32[64, 64], each one straight line of static shapes.
struct Line {
  const char* name;
  const char* body;
  std::uint64_t storage;  // bytes held at once
};
const Line kLines[] = {
    {"nothing", "ret %x\n.end", 0},
    {"one", R"(
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     16384},
    {"three, the first let go", R"(
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %a = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %a), outputs=1
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %b = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%a, %x, %b), outputs=1
      kill %a
      %s = alloc_storage _, alignment=64, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%b, %x, %y), outputs=1
      ret %y
    .end)",
     32768},
    {"an arena planned ahead", R"(
      %s = alloc_storage _, alignment=64, u8[32768], cpu
      %zero = load_consti 0
      %half = load_consti 16384
      %a = alloc_tensor %s, %zero, f32[64, 64]
      invoke_packed add(%x, %x, %a), outputs=1
      %b = alloc_tensor %s, %half, f32[64, 64]
      invoke_packed add(%a, %x, %b), outputs=1
      %y = alloc_tensor %s, %zero, f32[64, 64]
      invoke_packed add(%b, %x, %y), outputs=1
      ret %y
    .end)",
     32768},
    {"storages first, an over-aligned one, views and trees", R"(
      %s = alloc_storage _, alignment=4096, f32[64, 64], cpu
      %t = alloc_storage _, alignment=64, f32[16], cpu
      %a = alloc_tensor %s, _, f32[64, 64]
      %small = alloc_tensor %t, _, f32[16]
      invoke_packed add(%small, %small, %small), outputs=1
      kill %s
      invoke_packed add(%x, %x, %a), outputs=1
      %flat = load_const flat
      %v = reshape_tensor %a, %flat
      %pair = alloc_adt tag=0 (%v, %small)
      kill %small
      kill %t
      %u = get_field %pair, index=0
      %shape = shape_of %a
      kill %a
      %w = reshape_tensor %u, %shape
      %y = device_copy %w, cpu, cpu
      ret %y
    .end)",
     16384 * 2 + 64 + 16},
    {"small ones at twice the alignment of a block", R"(
      %s = alloc_storage _, alignment=128, f32[16], cpu
      %a = alloc_tensor %s, _, f32[16]
      %t = alloc_storage _, alignment=128, f32[200], cpu
      %b = alloc_tensor %t, _, f32[200]
      invoke_packed add(%a, %a, %a), outputs=1
      invoke_packed add(%b, %b, %b), outputs=1
      %s = alloc_storage _, alignment=128, f32[64, 64], cpu
      %y = alloc_tensor %s, _, f32[64, 64]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     64 + 800 + 16384},
};

std::string Text(const Line& line) {
  return std::string(
             ".const flat: i64[1] = {4096}\n.kernel add = \"host.add\"\n"
             ".func main(x: f32[64, 64]) -> y: f32[64, 64]\n") +
         line.body;
}

TEST_CASE("a straight line of static shapes takes exactly its bound") {
  for (const Line& line : kLines) {
    for (const bool outputs_bound : {false, true}) {
      CAPTURE(line.name, outputs_bound);
      const Program program = ProgramOf(Text(line), Kernels());
      const MemoryBound bound = BoundOf(program, outputs_bound);
      REQUIRE(bound.unbounded.empty());
      CHECK(bound.undeclared_workspace.empty());
      if (!outputs_bound) CHECK(bound.storage == line.storage);
      std::vector<float> x(4096, 1.0F);
      std::vector<float> y(4096);
      VirtualMachine vm(program);
      vm.SetInput("x", TensorView(x.data(), {64, 64}));
      if (outputs_bound) vm.SetOutput("y", TensorView(y.data(), {64, 64}));
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      CHECK(vm.bytes_peak() == bound.bytes);
    }
  }
}

TEST_CASE("a static memory of the bound's size serves without malloc; less says how much is needed") {
  for (const Line& line : kLines) {
    for (const bool outputs_bound : {false, true}) {
      CAPTURE(line.name, outputs_bound);
      const Program program = ProgramOf(Text(line), Kernels());
      const MemoryBound bound = BoundOf(program, outputs_bound);
      const std::unique_ptr<void, Freed> memory(
          std::aligned_alloc(128, (bound.static_bytes + 127) / 128 * 128));
      std::vector<float> x(4096, 1.0F);
      std::vector<float> y(4096);
      const TensorView in(x.data(), {64, 64});
      const TensorView out(y.data(), {64, 64});
      VmOptions options;
      options.memory = {memory.get(), bound.static_bytes};
      heap_calls = 0;
      heap_is_watched = true;
      bool ok = true;
      {
        Result<VirtualMachine> vm = VirtualMachine::TryMake(program, options);
        ok = vm.has_value();
        for (int i = 0; ok && i < 10; ++i) {
          ok = vm->TrySetInput("x", in).has_value() &&
               (!outputs_bound || vm->TrySetOutput("y", out).has_value()) && vm->TryInvoke().has_value();
        }
        if (ok) ok = vm->result().kind() == ValueKind::kTensor && vm->TryOutput("y").has_value();
      }
      heap_is_watched = false;
      CHECK(ok);
      CHECK(heap_calls == 0);

      // A little less: 128 bytes that all but the first need.
      if (line.storage == 0) continue;
      options.memory.size -= 128;
      VirtualMachine vm = VirtualMachine::Make(program, options);
      const Status set = vm.TrySetInput("x", in);
      const Status bound_set = set && outputs_bound ? vm.TrySetOutput("y", out) : set;
      const Status status = bound_set ? vm.TryInvoke() : bound_set;
      REQUIRE_FALSE(status);
      CHECK(status.error().code() == StatusCode::kOutOfMemory);
      if (bound_set) {
        CHECK_THAT(
            status.error().message(),
            Catch::Contains("is too small: Program::TryMemoryBound says how much function main needs"));
      }
    }
  }
}

#if defined(REWIRE_TEST_WATCHES_MALLOC)
TEST_CASE("the watch sees malloc") {
  heap_calls = 0;
  heap_is_watched = true;
  const Result<Tensor> tensor = Tensor::Make(kFloat32, {4});
  heap_is_watched = false;
  CHECK(tensor.has_value());
  CHECK(heap_calls > 0);
}
#endif

// Runs where paths meet, loops turn and functions are called: the bound holds, for each way through.
struct Winding {
  const char* name;
  const char* text;
  std::uint64_t storage;
};
const Winding kWinding[] = {
    {"the larger arm counts", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %zero = load_consti 0
      if %n == %zero goto small else large
    small:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
      goto done
    large:
      %s = alloc_storage _, alignment=64, f32[8192], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
    done:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %z = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %y, %z), outputs=1
      ret %z
    .end)",
     32768 + 4096},
    {"a loop holds two turns", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %y = move %x
      %zero = load_consti 0
      %i = load_consti 0
    loop:
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %next = alloc_tensor %s, _, f32[1024]
      kill %s
      invoke_packed add(%x, %y, %next), outputs=1
      %y = move %next
      kill %next
      if %i == %n goto done else again
    again:
      %i = move %n
      goto loop
    done:
      ret %y
    .end)",
     8192},
    {"calls, twice and one in the other", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %a = invoke twice(%x)
      %b = invoke twice(%a)
      %f = alloc_closure twice(%b)
      kill %a
      %c = invoke_closure %f()
      ret %c
    .end
    .func twice(x: f32[1024]) -> value
      %a = invoke double(%x)
      %b = invoke double(%a)
      ret %b
    .end
    .func double(x: f32[1024]) -> value
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)",
     3 * 4096},
    {"boxed integers and flattened trees", R"(
    .kernel add = "host.add"
    .func main(x: f32[1024], n: integer) -> value
      %three = load_consti 3
      %t = alloc_adt tag=0 (%x, %n, %three)
      %s = alloc_storage _, alignment=64, f32[1024], cpu
      %y = alloc_tensor %s, _, f32[1024]
      invoke_packed add(%t, %n, %three, %x, %y), outputs=1
      ret %y
    .end)",
     4096 + 4 * 8},
};

TEST_CASE("the bound holds on every path") {
  for (const Winding& winding : kWinding) {
    CAPTURE(winding.name);
    const Program program = ProgramOf(winding.text, Kernels());
    const MemoryBound bound = BoundOf(program);
    REQUIRE(bound.unbounded == "");  // NOLINT: shows it
    CHECK(bound.storage == winding.storage);
    const std::unique_ptr<void, Freed> memory(
        std::aligned_alloc(128, (bound.static_bytes + 127) / 128 * 128));
    std::vector<float> x(1024, 1.0F);
    for (const std::int64_t n : {0, 1, 5}) {
      VmOptions options;
      options.memory = {memory.get(), bound.static_bytes};
      VirtualMachine fixed = VirtualMachine::Make(program, options);
      VirtualMachine vm(program);
      for (VirtualMachine* each : {&fixed, &vm}) {
        each->SetInput("x", TensorView(x.data(), {1024}));
        each->SetInput("n", Value(n));
        REQUIRE(MessageOf(each->TryInvoke()).empty());
        CHECK(each->bytes_peak() <= bound.bytes);
      }
      CHECK(FloatsOf(fixed.Output(0)) == FloatsOf(vm.Output(0)));
    }
  }
}

TEST_CASE("what has no bound says why and where") {
  struct Case {
    const char* text;
    const char* why;
  };
  const Case cases[] = {
      {R"(
    .func main(n: integer) -> value
      %s = alloc_storage %n, alignment=64, u8, cpu
      ret %s
    .end)",
       "main@0 (%1 = alloc_storage %n, alignment=64, u8, cpu): the size of the storage is not known before "
       "the run"},
      {R"(
    .func main(n: integer) -> value
      %r = invoke main(%n)
      ret %r
    .end)",
       "main@0 (%1 = invoke main(%n)): function main calls itself, as deep as its values say"},
      {R"(
    .func main(f: closure) -> value
      %r = invoke_closure %f()
      ret %r
    .end)",
       "main@0 (%1 = invoke_closure %f()): which function the closure calls is not known before the run"},
      {R"(
    .kernel make = "host.add"
    .func main(x: f32[4]) -> value
      %r = invoke_packed make(%x), outputs=0
      ret %r
    .end)",
       "main@0 (%1 = invoke_packed make(%x), outputs=0): what memory the value takes that the kernel returns "
       "is not known"},
      {R"(
    .func main(n: integer) -> value
      %list = alloc_adt tag=0 ()
      %zero = load_consti 0
    loop:
      %list = alloc_adt tag=1 (%n, %list)
      if %n == %zero goto done else loop
    done:
      ret %list
    .end)",
       "grows with every turn of the loop"},
      {R"(
    .func main(x: f32[N]) -> value
      %y = device_copy %x, cpu, cpu
      ret %y
    .end)",
       "the size of the tensor that is copied is not known before the run"},
  };
  for (const Case& one : cases) {
    const MemoryBound bound = BoundOf(ProgramOf(one.text, Kernels()));
    CHECK_FALSE(bound.bounded());
    CHECK_THAT(bound.unbounded, Catch::Contains(one.why));
    CHECK(bound.bytes == 0);
  }
}

TEST_CASE("symbolic dimensions are bounded by the maxima given") {
  const Program program = ProgramOf(R"(
    .func main(x: f32[N, 4]) -> value
      %y = device_copy %x, cpu, cpu
      %shape = shape_of %y
      %r = alloc_adt tag=0 (%y, %shape)
      ret %r
    .end)",
                                    Kernels());
  const MemoryBound bound = BoundOf(program, false, {{"N", 64}});
  REQUIRE(bound.unbounded.empty());
  CHECK(bound.storage == 64 * 4 * 4 + 16);
  for (const std::int64_t n : {64, 63, 17, 1, 0}) {
    std::vector<float> x(256, 1.0F);
    VirtualMachine vm(program);
    vm.SetInput("x", TensorView(x.data(), {n, 4}));
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() <= bound.bytes);
    if (n == 64) CHECK(vm.bytes_peak() == bound.bytes);
  }
  CHECK(program.TryMemoryBound({}, {false, {{"M", 4}}}).error().message() ==
        "no signature has a dimension \"M\"");
  CHECK(program.TryMemoryBound({}, {false, {{"N", -4}}}).error().message() ==
        "dimension \"N\" is at most -4, which is negative");
  CHECK(program.TryMemoryBound("none").error().code() == StatusCode::kNotFound);
}

TEST_CASE("declared workspace counts, undeclared is named") {
  LinkOptions options;
  PackedFunction scratch = Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
    const RewireKernelApi* api = KernelApi();
    const auto bytes = static_cast<std::uint64_t>(RewireTensorOf(args)->shape[0]);
    return api->workspace(bytes) != nullptr && api->workspace(2 * bytes) != nullptr ? 0 : -1;
  });
  const char* text = R"(
    .kernel scratch = "host.scratch"
    .func main(x: f32[5000]) -> value
      invoke_packed scratch(%x), outputs=0
      ret %x
    .end)";
  options.kernels.AddFunction("host.scratch", scratch);
  CHECK(BoundOf(ProgramOf(text, options)).undeclared_workspace == std::vector<std::string>{"host.scratch"});
  scratch.workspace = [](const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
    if (count == 0) return -1;
    blocks[0] = static_cast<std::uint64_t>(tensors[0]->shape[0]);
    blocks[1] = 2 * blocks[0];
    return 2;
  };
  options.kernels.AddFunction("host.scratch", scratch);
  const Program program = ProgramOf(text, options);
  const MemoryBound bound = BoundOf(program);
  CHECK(bound.undeclared_workspace.empty());
  CHECK(bound.workspace == 15000);
  std::vector<float> x(5000);
  VirtualMachine vm(program);
  vm.SetInput("x", TensorView(x.data(), {5000}));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  CHECK(vm.bytes_peak() == bound.bytes);
}

TEST_CASE("an arena of the largest bound serves all batch sizes, and one byte less not the largest") {
  std::vector<Program> programs;
  std::uint64_t largest = 0;
  for (const int batch : {1, 4, 16}) {
    const std::string type = "f32[" + std::to_string(batch) + ", 1000]";
    programs.push_back(ProgramOf(".kernel add = \"host.add\"\n.func main(x: " + type + ") -> y: " + type +
                                     "\n%s = alloc_storage _, alignment=64, " + type +
                                     ", cpu\n%t = alloc_tensor %s, _, " + type +
                                     "\ninvoke_packed add(%x, %x, %t), outputs=1\n"
                                     "%u = alloc_storage _, alignment=64, " +
                                     type + ", cpu\n%y = alloc_tensor %u, _, " + type +
                                     "\ninvoke_packed add(%t, %x, %y), outputs=1\nret %y\n.end\n",
                                 Kernels()));
    largest = std::max(largest, BoundOf(programs.back()).arena_bytes);
  }
  std::vector<float> x(16000, 1.0F);
  for (const bool enough : {true, false}) {
    VmOptions options;
    options.arena = *SharedArena::TryMake(enough ? largest : largest - 128);
    std::vector<VirtualMachine> vms;
    for (const Program& program : programs) {
      vms.push_back(VirtualMachine::Make(program, options));
      vms.back().SetInput("x", TensorView(x.data(), {vms.size() == 1 ? 1 : vms.size() == 2 ? 4 : 16, 1000}));
    }
    for (const std::size_t i : {2u, 0u, 1u, 2u, 1u, 2u, 0u}) {
      const Status status = vms[i].TryInvoke();
      CAPTURE(i, MessageOf(status));
      CHECK(status.has_value() == (enough || i < 2));
      if (status) CHECK(FloatsOf(vms[i].Output(0))[999] == 3);
    }
  }
}

// Every shape of the digits model is computed from the number of images.
TEST_CASE("the digits model keeps to the bound for every number of images up to the one given") {
  Result<Module> module = AssembleFile(std::string(SourceDir()) + "/examples/digits/digits.asm");
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  LinkOptions options;
  REQUIRE(
      MessageOf(options.kernels.AddLibrary(std::string(BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so"))
          .empty());
  Result<Program> program = Program::Link(*executable, options);
  if (!program) FAIL(program.error().message());
  const MemoryBound bound = BoundOf(*program, false, {{"N", 32}});
  REQUIRE(bound.unbounded == "");  // NOLINT: shows it
  CHECK(bound.undeclared_workspace.empty());
  const std::unique_ptr<void, Freed> memory(std::aligned_alloc(128, (bound.static_bytes + 127) / 128 * 128));
  const std::vector<float> images(32 * 64, 0.5F);
  VmOptions fixed;
  fixed.memory = {memory.get(), bound.static_bytes};
  VirtualMachine in_block = VirtualMachine::Make(*program, fixed);
  for (const std::int64_t n : {32, 31, 20, 7, 1}) {
    const TensorView view(images.data(), {n, 1, 8, 8});
    VirtualMachine vm(*program);
    vm.SetInput("image", view);
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() <= bound.bytes);
    in_block.SetInput("image", view);
    REQUIRE(MessageOf(in_block.TryInvoke()).empty());
    CHECK(FloatsOf(in_block.Output(0)) == FloatsOf(vm.Output(0)));
  }
}

}  // namespace
}  // namespace rewire::test
