// SPDX-License-Identifier: Apache-2.0
// Memory: an allocator that fails at the k-th call, for every k; no heap allocation in steady state; all
// bytes come back after Trim.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/status.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/memory/memory_account.h"

namespace {
thread_local std::uint64_t heap_allocations = 0;
}  // namespace

// Every allocation of C++ code in this process goes through here, and through the C library's own hooks
// below.
void* operator new(std::size_t size) {
  ++heap_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++heap_allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace rewire::test {
namespace {

// Every opcode: tensors with static and dynamic shapes, views, copies, ADTs, closures, calls, loops, kernels
// that write, return, take objects and use workspace and a slot. What the kernel `aligned` reads lies 64
// bytes behind an aligned address: whether it is copied must not depend on where memory happens to lie.
constexpr char kEverything[] = R"(
  .const c: f32[4] = {1, 2, 3, 4}
  .const big: f32[600] = fill 2
  .const two: i64[2] = {2, 2}
  .kernel add = "host.add"
  .kernel dec = "host.dec"
  .kernel make = "host.make"
  .kernel pair = "host.pair" objects
  .kernel scratch = "host.scratch"
  .kernel aligned = "host.add" align=4096
  .func main(x: f32[4]) -> (f32[2, 2], value, f32[600], f32[4])
    %c = load_const c
    %off = load_consti 64
    %room = load_consti 128
    %s = alloc_storage %room, alignment=4096, f32, cpu
    %sum = alloc_tensor %s, %off, f32[4]
    invoke_packed add(%x, %c, %sum), outputs=1
    %bytes = load_consti 64
    %s2 = alloc_storage %bytes, alignment=4096, f32, cpu
    %shape = shape_of %sum
    %zero = load_consti 0
    %dynamic = alloc_tensor_reg %s2, %zero, %shape, f32
    invoke_packed aligned(%sum, %x, %dynamic), outputs=1
    %two = load_const two
    %view = reshape_tensor %dynamic, %two
    %copy = device_copy %sum, cpu, cpu
    invoke_packed scratch(%copy), outputs=1
    %n = load_consti 5
    %made = move %x
  loop:
    if %n == %zero goto done else more
  more:
    %n = invoke_packed dec(%n), outputs=0
    %made = invoke_packed make(%x), outputs=0
    goto loop
  done:
    %adt = alloc_adt tag=7 (%made, %n, %c)
    %tag = get_tag %adt
    %f = alloc_closure helper(%adt)
    %r = invoke_closure %f(%tag)
    %pair = invoke_packed pair(%r, %adt), outputs=0
    kill %adt
    kill %f
    %bs = alloc_storage _, alignment=64, f32[600], cpu
    %b = alloc_tensor %bs, _, f32[600]
    %bc = load_const big
    invoke_packed add(%bc, %bc, %b), outputs=1
    %out = alloc_adt tag=0 (%view, %pair, %b, %copy)
    ret %out
  .end
  .func helper(adt: value, tag: value) -> value
    %first = get_field %adt, index=0
    %moved = move %first
    %r = invoke leaf(%moved)
    ret %r
  .end
  .func leaf(x: value) -> value
    ret %x
  .end)";

int Add(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor* a = RewireTensorOf(&args[0]);
  const DLTensor* b = RewireTensorOf(&args[1]);
  DLTensor* out = RewireTensorOf(&args[2]);
  for (std::int64_t i = 0; i < a->shape[0]; ++i) {
    static_cast<float*>(out->data)[i] =
        static_cast<const float*>(a->data)[i] + static_cast<const float*>(b->data)[i];
  }
  return 0;
}

int Dec(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
  result->type_index = kRewireFFIInt;
  result->v_int64 = *static_cast<const std::int64_t*>(RewireTensorOf(args)->data) - 1;
  return 0;
}

int Make(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
  const DLTensor* like = RewireTensorOf(args);
  return KernelApi()->new_tensor(like->dtype, like->ndim, like->shape, like->device, result);
}

int Pair(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
  return KernelApi()->new_adt(3, 2, args, result);
}

int Scratch(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
  const RewireKernelApi* api = KernelApi();
  if (api->get_slot() == nullptr) api->set_slot(std::malloc(16), std::free);
  for (int i = 0; i < 3; ++i) {
    if (api->workspace(5000) == nullptr) return -1;
  }
  return 0;
}

LinkOptions Kernels(TestAllocator* memory) {
  LinkOptions options;
  if (memory != nullptr) options.allocator = memory->allocator();
  const auto add = [&options](const char* name, RewirePackedFunction call) {
    PackedFunction function;
    function.call = call;
    options.kernels.AddFunction(name, function);
  };
  add("host.add", Add);
  add("host.dec", Dec);
  add("host.make", Make);
  add("host.pair", Pair);
  add("host.scratch", Scratch);
  return options;
}

void CheckResult(const Value& result) {
  CHECK(FloatsOf(result.field(0).tensor()) == std::vector<float>{3, 4, 5, 6});  // x + c + x
  CHECK(result.field(1).tag() == 3);
  CHECK(result.field(1).field(1).field(1).integer() == 0);
  CHECK(FloatsOf(result.field(1).field(1).field(2).tensor())[3] == 4);
  CHECK(FloatsOf(result.field(2).tensor())[599] == 4);
}

TEST_CASE("from the second call with the same shapes nothing is allocated") {
  TestAllocator memory;
  VirtualMachine vm(ProgramOf(kEverything, Kernels(&memory)));
  alignas(4096) float page[32] = {};
  float* x = page + 16;
  std::fill_n(x, 4, 1.0f);
  const TensorView view(x, {4});
  const InputHandle input = *vm.program().FindInput("x");
  const auto run = [&] {
    const bool set = vm.TrySetInput(input, view).has_value();
    return set && vm.TryInvoke(0u).has_value();
  };
  REQUIRE(run());
  REQUIRE(run());  // the first call's result has been released by now
  const std::int64_t calls = memory.calls();
  const std::uint64_t held = vm.bytes_held();
  const std::uint64_t before = heap_allocations;
  bool ok = true;
  for (int i = 0; i < 100; ++i) ok = run() && ok;
  const std::uint64_t after = heap_allocations;
  CHECK(ok);
  CHECK(after == before);
  CHECK(memory.calls() == calls);
  CHECK(vm.bytes_held() == held);
  CHECK(vm.result().field(1).tag() == 3);
}

TEST_CASE("the hook sees allocations of the library") {
  const std::uint64_t before = heap_allocations;
  const auto tensor = Tensor::CopyOf(TensorView(Floats({1}).data<float>(), {1}));
  DLManagedTensor* managed = tensor->ToDLPack();
  CHECK(heap_allocations > before);
  managed->deleter(managed);
}

TEST_CASE("bytes come back to the baseline after Trim, and to zero with the VM") {
  TestAllocator memory;
  {
    VirtualMachine vm(ProgramOf(kEverything, Kernels(&memory)));
    const Value x = Floats({1, 1, 1, 1});
    REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
    vm.Trim();
    const std::uint64_t baseline = vm.bytes_held();
    for (int i = 0; i < 5; ++i) {
      const Result<Value> result = vm.TryInvoke("main", {&x, 1});
      REQUIRE(MessageOf(result).empty());
      CHECK(vm.bytes_held() > baseline);
    }
    CHECK(static_cast<std::int64_t>(vm.bytes_held()) == memory.bytes());
    CHECK(vm.bytes_peak() >= vm.bytes_held());
    vm.Trim();
    CHECK(vm.bytes_held() == baseline);
  }
  CHECK(memory.bytes() == 0);
  CHECK(memory.blocks() == 0);
}

// Takes as many bytes as it is told.
constexpr char kOfAnySize[] = R"(
    .func main(n: integer) -> value
      %s = alloc_storage %n, alignment=64, u8, cpu
      %t = alloc_tensor_reg %s, _, %n, u8
      %r = shape_of %t
      ret %r
    .end)";

void TakeBytes(VirtualMachine* vm, std::int64_t bytes) {
  const Value n(bytes);
  REQUIRE(MessageOf(vm->TryInvoke("main", {&n, 1})).empty());
}

TEST_CASE("sizes that come in turn are allocated once") {
  TestAllocator memory;
  LinkOptions options;
  options.allocator = memory.allocator();
  VirtualMachine vm(ProgramOf(kOfAnySize, options));
  const std::vector<std::int64_t> sizes = {1 << 10, 3 << 18, 1 << 20, 5, 1 << 19};
  for (const std::int64_t size : sizes) TakeBytes(&vm, size);
  TakeBytes(&vm, 5);  // the last result is of a size of its own
  const std::int64_t calls = memory.calls();
  // More calls than are remembered.
  for (std::size_t i = 0; i < 3 * BlockPool::kRemembered; ++i) TakeBytes(&vm, sizes[i * 3 % sizes.size()]);
  CHECK(memory.calls() == calls);
}

// The third call is over the limit until the pool has freed its blocks and the table of their classes. The
// second call's result is still the VM's, and comes back when there is another table.
TEST_CASE("a result that outlives the table of its class is given back with the VM") {
  TestAllocator memory;
  {
    LinkOptions options;
    options.allocator = memory.allocator();
    Limits limits;
    limits.bytes = 60000;
    VirtualMachine vm(ProgramOf(R"(
        .func main(n: integer) -> value
          %s = alloc_storage %n, alignment=64, u8, cpu
          %t = alloc_tensor_reg %s, _, %n, u8
          ret %t
        .end)",
                                options),
                      limits);
    for (const std::int64_t bytes : {20000, 4096, 40000}) TakeBytes(&vm, bytes);
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("what one call alone has needed is given back when it is long ago") {
  VirtualMachine vm(ProgramOf(kOfAnySize));
  const std::uint32_t earlier = GENERATE(0, 1, 15, 16, 17);
  for (std::uint32_t i = 0; i < earlier; ++i) TakeBytes(&vm, 1 << 10);
  TakeBytes(&vm, 1 << 24);
  for (std::uint32_t i = 1; i < BlockPool::kRemembered; ++i) {
    CHECK(vm.bytes_held() >= 1 << 24);
    TakeBytes(&vm, 1 << 10);
  }
  for (std::uint32_t i = 0; i < BlockPool::kRemembered; ++i) TakeBytes(&vm, 1 << 10);
  CHECK(vm.bytes_held() < 1 << 16);
}

TEST_CASE("sizes without end keep no more than some times the largest") {
  VirtualMachine vm(ProgramOf(kOfAnySize));
  // The smallest of eight classes, which together take more than six times the largest.
  constexpr std::int64_t kFirst = 1 << 20;
  constexpr std::int64_t kLast = kFirst * 2;
  std::uint64_t most = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    TakeBytes(&vm, kFirst + (i * 5 % 13) * kFirst / 12);
    most = std::max(most, vm.bytes_held());
  }
  CHECK(most > 2 * kLast);
  CHECK(most < BlockPool::kMostKept * kLast + (1 << 16));
}

// One refusal may be made good by giving free blocks back first; after the k-th all are refused, nothing
// helps.
// An allocator of an endless machine: says no above a mebibyte, and remembers what was asked for.
struct LargestRequest {
  std::uint64_t bytes = 0;

  Allocator allocator() {
    return {this,
            [](void* context, std::size_t size, std::size_t alignment) -> void* {
              std::uint64_t& largest = static_cast<LargestRequest*>(context)->bytes;
              largest = std::max<std::uint64_t>(largest, size);
              const Allocator usual = DefaultAllocator();
              return size > (1 << 20) ? nullptr : usual.allocate(usual.context, size, alignment);
            },
            [](void*, void* pointer, std::size_t size, std::size_t alignment) {
              const Allocator usual = DefaultAllocator();
              usual.deallocate(usual.context, pointer, size, alignment);
            }};
  }
};

TEST_CASE("a storage as large as a block can be is asked for, a larger one is refused") {
  constexpr std::int64_t kMost = BlockPool::kMaxBlock;
  LargestRequest memory;
  LinkOptions options;
  options.allocator = memory.allocator();
  // The larger classes exist, and have blocks that a damaged table would give out or lose.
  VirtualMachine vm(ProgramOf(R"(
    .func main(n: i64[]) -> y: f32[4]
      %m = load_consti 4096
      %b = alloc_storage %m, alignment=64, f32, cpu
      %y = alloc_tensor %b, _, f32[4]
      %s = alloc_storage %n, alignment=256, f32, cpu
      %z = alloc_tensor %s, _, f32[4]
      ret %y
    .end)",
                              options));
  const auto run = [&](std::int64_t bytes) {
    memory.bytes = 0;
    const Value n(bytes);
    const Result<Value> result = vm.TryInvoke("main", {&n, 1});
    CHECK(result.status().code() == (bytes <= 8192 ? StatusCode::kOk : StatusCode::kOutOfMemory));
    return memory.bytes;
  };
  CHECK(run(8192) < (1 << 20));
  CHECK(run(kMost - 256) ==
        static_cast<std::uint64_t>(kMost));  // with its alignment as large as a block can be
  for (const std::int64_t bytes : {kMost - 255, kMost - 1, kMost, kMost + 1, 2 * kMost}) {
    INFO(bytes);
    CHECK(run(bytes) < (1 << 20));
  }
  CHECK(run(8192) < (1 << 20));
  vm.DropResult();
  vm.Trim();
  CHECK(vm.bytes_held() <= BlockPool::kTableBytes + (1 << 14));
}

TEST_CASE("an account stays exact, and lives, whatever has passed through it") {
  static char block;
  int ended = 0;
  const Allocator counts_only = {&ended, [](void*, std::size_t, std::size_t) -> void* { return &block; },
                                 [](void*, void*, std::size_t, std::size_t) {}};
  MemoryAccount* account =
      MemoryAccount::Make(counts_only, [](void* context) { ++*static_cast<int*>(context); });
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 54;
  REQUIRE(account->Allocate(64, 64) == &block);
  for (int i = 0; i < 3000; ++i) {
    REQUIRE(account->Allocate(kHuge, 64) == &block);
    REQUIRE(account->used() == kHuge + 64);
    account->Free(&block, kHuge, 64);
    REQUIRE(account->used() == 64);
    REQUIRE(ended == 0);
  }
  CHECK(account->peak() == kHuge + 64);
  CHECK(account->Allocate(kHuge * 4, 64) == nullptr);
  account->Close();
  CHECK(ended == 0);
  account->Free(&block, 64, 64);
  CHECK(ended == 1);
}

TEST_CASE("an allocation that fails, whichever it is, ends the call cleanly or not at all") {
  const bool lasting = GENERATE(false, true);
  CAPTURE(lasting);
  TestAllocator memory;
  std::string messages;
  {
    const Program program = ProgramOf(kEverything, Kernels(&memory));
    const Value x = Floats({1, 1, 1, 1});
    std::int64_t k = 0;
    for (bool failed = true; failed;) {
      ++k;
      CAPTURE(k);
      REQUIRE(k < 1000);
      memory.FailAt(k, lasting);
      VirtualMachine vm(program);
      {
        const Result<Value> result = vm.TryInvoke("main", {&x, 1});
        failed = memory.failed();
        memory.FailAt(0);
        if (lasting) CHECK(result.has_value() == !failed);
        if (result) {
          CheckResult(*result);
        } else {
          CHECK(failed);
          // A kernel that gets no workspace fails in its own words.
          const StatusCode code = result.error().code();
          CHECK((code == StatusCode::kOutOfMemory || code == StatusCode::kKernelFailed));
          messages += result.error().message() + '\n';
        }
      }
      vm.Trim();
      CHECK(memory.bytes() == static_cast<std::int64_t>(vm.bytes_held()));
      const Result<Value> again = vm.TryInvoke("main", {&x, 1});
      REQUIRE(MessageOf(again).empty());
      CheckResult(*again);
    }
    CHECK(k > 10);
  }
  for (const char* what :
       {"the allocator has no memory for the kernels' state",
        "the allocator has no memory for kernel arguments", ": the allocator has no 2400 bytes"}) {
    if (lasting) CHECK_THAT(messages, Catch::Contains(what));
  }
  CHECK(memory.bytes() == 0);
  CHECK(memory.blocks() == 0);
}

TEST_CASE("an allocation that fails while an input's tree is compared with outputs ends the call") {
  constexpr char kTree[] = R"(
    .kernel add = "host.add"
    .func main(x: (f32[4], f32[4])) -> y: f32[4]
      %a = get_field %x, index=0
      %s = alloc_storage _, alignment=64, f32[4], cpu
      %y = alloc_tensor %s, _, f32[4]
      invoke_packed add(%a, %a, %y), outputs=1
      ret %y
    .end)";
  TestAllocator memory;
  std::string messages;
  {
    const Program program = ProgramOf(kTree, Kernels(&memory));
    const Value parts[] = {Floats({1, 2, 3, 4}), Floats({1, 2, 3, 4})};
    const Value x = *Value::Adt(0, {parts, 2});
    float y[4];
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      CAPTURE(k);
      REQUIRE(k < 100);
      VirtualMachine vm(program);
      vm.SetOutput("y", TensorView(y, {4}));
      memory.FailAt(k, true);
      messages += MessageOf(vm.TryInvoke("main", {&x, 1})) + '\n';
      failed = memory.failed();
      memory.FailAt(0);
      REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
      CHECK(y[3] == 8);
    }
  }
  CHECK_THAT(messages, Catch::Contains("the allocator has no memory for looking through the inputs"));
  CHECK(memory.blocks() == 0);
}

TEST_CASE("a tensor larger than any memory is refused") {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  CHECK(Tensor::Make(DLDataType{kDLUInt, 8, 1}, {&kMost, 1}).error().message() == "tensor: no memory");
}

TEST_CASE("an allocation that fails while inputs are set leaves the VM usable") {
  TestAllocator memory;
  {
    const Program program = ProgramOf(kEverything, Kernels(&memory));
    float x[4] = {1, 1, 1, 1};
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      CAPTURE(k);
      REQUIRE(k < 100);
      VirtualMachine vm(program);
      memory.FailAt(k, true);
      const Status set = vm.TrySetInput("x", TensorView(x, {4}), InputMode::kCopy);
      failed = memory.failed();
      memory.FailAt(0);
      CHECK(set.has_value() == !failed);
      if (!set) CHECK(set.error().code() == StatusCode::kOutOfMemory);
      REQUIRE(MessageOf(vm.TrySetInput("x", TensorView(x, {4}), InputMode::kCopy)).empty());
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      CheckResult(vm.result());
    }
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("memory is filled as the Program says before it is first written") {
  constexpr char kFresh[] = R"(
    .func main() -> u8[100]
      %s = alloc_storage _, alignment=64, u8[100], cpu
      %t = alloc_tensor %s, _, u8[100]
      ret %t
    .end)";
  const struct {
    StorageFill fill;
    std::uint8_t expected;
  } cases[] = {{StorageFill::kZero, 0}, {StorageFill::kPoison, 0xCB}};
  for (const auto& entry : cases) {
    LinkOptions options;
    options.storage_fill = entry.fill;
    VirtualMachine vm(ProgramOf(kFresh, std::move(options)));
    for (int i = 0; i < 3; ++i) {
      REQUIRE(MessageOf(vm.TryInvoke()).empty());
      auto* data = vm.result().tensor().data<std::uint8_t>();
      CHECK(data[0] == entry.expected);
      CHECK(data[99] == entry.expected);
      for (int j = 0; j < 100; ++j) data[j] = 1;  // what the next call must not see
    }
  }
}

// Part of a message that counts how often it is asked for its text.
struct CountedText {
  int* times;
  operator std::string_view() const {
    ++*times;
    return "a text that is too long to lie within a std::string";
  }
};

kernel::Status Checked(bool holds, const CountedText& text) {
  if (!holds) return kernel::ValueError("x is ", text);
  return kernel::Status();
}

TEST_CASE(
    "a kernel's success is one null pointer: nothing is allocated or formatted before something fails") {
  static_assert(sizeof(kernel::Status) == sizeof(void*));
  int times = 0;
  const std::uint64_t before = heap_allocations;
  bool succeeded = true;
  for (int i = 0; i < 100; ++i) {
    kernel::Status status = Checked(true, {&times});
    kernel::Status moved = std::move(status).WithContext("a layer");
    succeeded = succeeded && moved.ok();
  }
  const std::uint64_t allocated = heap_allocations - before;
  CHECK(succeeded);
  CHECK(allocated == 0);
  CHECK(times == 0);
  // The counters see a failure.
  CHECK_FALSE(Checked(false, {&times}).ok());
  CHECK(times == 1);
  CHECK(heap_allocations - before > allocated);
}

}  // namespace
}  // namespace rewire::test
