// SPDX-License-Identifier: Apache-2.0
// One copy of a constant in a process: decompressed, uploaded or computed once, found again by content, let
// go with its last user.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <thread>

#include "rewire/base/hash.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

constexpr std::uint32_t kRepeat = kFirstHostCodec + 7;

// A codec of the host's: the stored byte, as often as there is room. Counts how often it was asked.
int RepeatByte(void* counter, const void* stored, std::size_t stored_bytes, void* raw,
               std::size_t raw_bytes) {
  if (stored_bytes != 1) return 1;
  ++*static_cast<std::atomic<int>*>(counter);
  std::memset(raw, *static_cast<const unsigned char*>(stored), raw_bytes);
  return 0;
}

// A program of one function `main` that returns the constant c: u8[1000], which the codec makes of `byte`.
Executable Repeating(int byte, const std::string& output = "y") {
  Result<Module> module = Assemble(".const c: u8[1000] = fill 0\n.func main() -> " + output +
                                   ": u8[1000]\n%c = load_const c\nret %c\n.end");
  if (!module) FAIL(module.error().message());
  static std::byte values[256];  // never released
  values[byte] = static_cast<std::byte>(byte);
  module->constants[0].codec = kRepeat;
  module->constants[0].stored = {{&values[byte], 1}, nullptr};
  module->constants[0].checksum = 0;
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

LinkOptions WithCodec(std::atomic<int>* counter) {
  LinkOptions options;
  options.codecs.push_back({kRepeat, counter, RepeatByte});
  return options;
}

TEST_CASE("a compressed constant is decompressed once for all Programs, and let go with the last") {
  std::atomic<int> decoded{0};
  {
    // Two executables that have nothing in common but the bytes.
    const Result<Program> first = Program::Link(Repeating(7), WithCodec(&decoded));
    const Result<Program> second = Program::Link(Repeating(7, "z"), WithCodec(&decoded));
    REQUIRE(MessageOf(first) == "");
    REQUIRE(MessageOf(second) == "");
    CHECK(decoded == 1);
    CHECK(AddressIn(*first, "c") == AddressIn(*second, "c"));
    VirtualMachine a(*first);
    VirtualMachine b(*second);
    a.Invoke();
    b.Invoke();
    CHECK(a.Output("y").data<std::uint8_t>() == b.Output("z").data<std::uint8_t>());
    CHECK(b.Output("z").data<std::uint8_t>()[999] == 7);
    // Other bytes are another constant.
    const Result<Program> third = Program::Link(Repeating(8), WithCodec(&decoded));
    CHECK(decoded == 2);
    CHECK(AddressIn(*first, "c") != AddressIn(*third, "c"));
  }
  const Result<Program> again = Program::Link(Repeating(7), WithCodec(&decoded));
  CHECK(decoded == 3);
}

TEST_CASE("a result keeps the constant that it is when its Program is gone") {
  std::atomic<int> decoded{0};
  Tensor kept;
  {
    VirtualMachine vm(*Program::Link(Repeating(9), WithCodec(&decoded)));
    vm.Invoke();
    kept = vm.Output("y");
  }
  CHECK(kept.data<std::uint8_t>()[0] == 9);
  const Result<Program> again = Program::Link(Repeating(9), WithCodec(&decoded));
  CHECK(AddressIn(*again, "c") == kept.view().data());
  CHECK(decoded == 1);
}

TEST_CASE("threads that link at once wait for one decompression") {
  std::atomic<int> decoded{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> go{false};
  const Executable executable = Repeating(11);
  std::vector<std::optional<Program>> programs(8);
  std::vector<std::thread> threads;
  threads.reserve(programs.size());
  for (std::optional<Program>& slot : programs) {
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      Result<Program> program = Program::Link(executable, WithCodec(&decoded));
      if (!program) return void(++wrong);
      slot = *std::move(program);
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(decoded == 1);
}

TEST_CASE("the host's codec is called by several threads at once") {
  // Two threads wait in it for each other. If a lock kept the second one away, the test would not end.
  struct Meeting {
    std::atomic<int> here{0};
  } meeting;
  LinkOptions options;
  options.codecs.push_back(
      {kRepeat, &meeting, [](void* context, const void* stored, std::size_t, void* raw, std::size_t bytes) {
         auto& at = *static_cast<Meeting*>(context);
         ++at.here;
         while (at.here < 2) std::this_thread::yield();
         std::memset(raw, *static_cast<const unsigned char*>(stored), bytes);
         return 0;
       }});
  std::optional<Program> other;
  const Executable first = Repeating(21), second = Repeating(22);
  std::thread thread([&] {
    if (Result<Program> program = Program::Link(second, options)) other = *std::move(program);
  });
  const Result<Program> program = Program::Link(first, options);
  thread.join();
  CHECK(MessageOf(program) == "");
  REQUIRE(other);
  CHECK(static_cast<const std::uint8_t*>(AddressIn(*program, "c"))[999] == 21);
  CHECK(static_cast<const std::uint8_t*>(AddressIn(*other, "c"))[999] == 22);
}

TEST_CASE("a codec that fails is an error, and the next host may do better") {
  std::atomic<int> decoded{0};
  CHECK(MessageOf(Program::Link(Repeating(13))) ==
        "constant 'c' is stored with codec 263, which the host has not registered");
  LinkOptions broken;
  broken.codecs.push_back(
      {kRepeat, nullptr, [](void*, const void*, std::size_t, void*, std::size_t) { return 5; }});
  CHECK(MessageOf(Program::Link(Repeating(13), broken)) ==
        "constant 'c' is damaged: codec 263 of the host's says 5");
  CHECK(MessageOf(Program::Link(Repeating(13), WithCodec(&decoded))) == "");
}

#ifndef REWIRE_NO_ZSTD
TEST_CASE("zstd frames of two files become one tensor") {
  const Folder folder;
  const Named weights = {{"c", Floats(std::vector<float>(10000, 0.5F))}};
  const Result<Executable> a = Executable::Open(WriteRwxFile(folder / "a.rwx", weights, true));
  const Result<Executable> b = Executable::Open(WriteRwxFile(folder / "b.rwx", weights, true));
  const Result<Program> first = Program::Link(*a);
  const Result<Program> second = Program::Link(*b);
  REQUIRE(MessageOf(second) == "");
  CHECK(AddressIn(*first, "c") == AddressIn(*second, "c"));
  // The set of a third file holds it as well.
  const ParameterSet set = *ParameterSet::Open(WriteRwxFile(folder / "c.rwx", weights, true));
  CHECK(At(set, "c").view().data() == AddressIn(*first, "c"));
}
#endif

TEST_CASE("constants that are used where they lie are one, too, across files; a copy stays a copy") {
  const Folder folder;
  const Named weights = {{"c", Floats(std::vector<float>(10000, 0.25F))}};
  const Result<Executable> a = Executable::Open(WriteRwxFile(folder / "a.rwx", weights));
  const Result<Executable> b = Executable::Open(WriteRwxFile(folder / "b.rwx", weights));
  OpenOptions options;
  options.copy = true;
  const Result<Executable> copy = Executable::Open(WriteRwxFile(folder / "c.rwx", weights), options);
  const Program first = *Program::Link(*a);
  CHECK(AddressIn(*Program::Link(*b), "c") == AddressIn(first, "c"));
  CHECK(AddressIn(*Program::Link(*copy), "c") != AddressIn(first, "c"));
}

TEST_CASE("a checksum alone gets no file at another's bytes") {
  const Folder folder;
  const std::string honest = WriteRwxFile(folder / "a.rwx", {{"c", Floats(std::vector<float>(1000, 1))}});
  const std::string forged = WriteRwxFile(folder / "b.rwx", {{"c", Floats(std::vector<float>(1000, 1))}});
  // The data of b changes, its record still says a's checksum. Nothing checks that at open.
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(forged));
  std::fstream(forged, std::ios::binary | std::ios::in | std::ios::out).seekp(size - 1).put('\x40');
  const Program bad = *Program::Link(*Executable::Open(forged));
  const Program good = *Program::Link(*Executable::Open(honest));
  CHECK(AddressIn(bad, "c") != AddressIn(good, "c"));
  CHECK(FloatsOf(At(ParameterSet::Of(good), "c"))[999] == 1);
  CHECK(FloatsOf(At(ParameterSet::Of(bad), "c"))[999] != 1);
}

constexpr char kPacking[] = R"(
  .param w: f32[2]
  .computed packed: f32[2]
  .kernel pack = "host.pack"
  .func __init() -> (f32[2])
    %w = load_const w
    %s = alloc_storage _, alignment=64, f32[2], cpu
    %y = alloc_tensor %s, _, f32[2]
    invoke_packed pack(%w, %y), outputs=1
    %r = alloc_adt tag=0 (%y)
    ret %r
  .end
  .func main() -> y: f32[2]
    %p = load_const packed
    ret %p
  .end)";

LinkOptions WithWeights(const std::vector<float>& weights) {
  LinkOptions options;
  options.parameters = {SetOf({{"w", Floats(weights)}})};
  options.kernels.AddFunction("host.pack",
                              MakePackedFunction([](kernel::TensorView from, kernel::TensorView to) {
                                for (int i = 0; i < 2; ++i) to.data<float>()[i] = from.data<float>()[1 - i];
                              }));
  return options;
}

Program Packing(const std::vector<float>& weights) { return ProgramOf(kPacking, WithWeights(weights)); }

TEST_CASE("a constant is shared only with those whose alignment it has") {
  // Each links the same bytes, which lie at a multiple of 4 in the file and no more.
  static const std::vector<std::uint8_t> kContent(1000 + 4096 + 4, 9);
  const auto aligned_up = (reinterpret_cast<std::uintptr_t>(kContent.data()) + 4095) & ~std::uintptr_t{4095};
  const auto* bytes = reinterpret_cast<const std::byte*>(aligned_up + 4);
  const auto link = [bytes](const std::string& alignment) {
    Result<Module> module =
        Assemble(".const c: u8[1000] = fill 9\n.kernel k = \"host.k\" align=" + alignment +
                 "\n.func main() -> y: u8[1000]\n%c = load_const c\n"
                 "invoke_packed k(%c), outputs=0\nret %c\n.end");
    REQUIRE(MessageOf(module) == "");
    module->constants[0].stored = {{bytes, 1000}, nullptr};
    LinkOptions options;
    options.kernels.AddFunction("host.k", MakePackedFunction([](kernel::TensorView) {}));
    Result<Executable> executable = Executable::FromModule(*std::move(module));
    REQUIRE(MessageOf(executable) == "");
    return *Program::Link(*executable, std::move(options));
  };
  const Program loose = link("1");
  const Program strict = link("256");
  CHECK(AddressIn(loose, "c") == bytes);
  CHECK(reinterpret_cast<std::uintptr_t>(AddressIn(strict, "c")) % 256 == 0);
  CHECK(AddressIn(link("128"), "c") == AddressIn(strict, "c"));
}

TEST_CASE("a damaged constant is found when it is copied for alignment, not only when it is decompressed") {
  const std::string text = R"(
.kernel use = "host.use" align=256
.const c: u8[100] = fill 7
.func main() -> value
  %c = load_const c
  %r = invoke_packed use(%c), outputs=0
  ret %r
.end)";
  alignas(256) static std::byte memory[512];
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    Result<Module> module = Assemble(text);
    REQUIRE(MessageOf(module) == "");
    // The kernel cannot use it one byte off.
    Constant& constant = module->constants[0];
    std::memcpy(memory + 1, constant.stored.view.data(), 100);
    constant.checksum = Hash64({memory + 1, 100});
    constant.stored = {{memory + 1, 100}, nullptr};
    Result<Executable> executable = Executable::FromModule(*std::move(module));
    REQUIRE(MessageOf(executable) == "");
    if (damaged) memory[50] ^= std::byte{1};
    LinkOptions options;
    options.stock_kernels = false;
    options.kernels.AddFunction("host.use", MakePackedFunction([](kernel::TensorView) {}));
    const Result<Program> program = Program::Link(*executable, std::move(options));
    CHECK(program.has_value() == !damaged);
    if (damaged)
      CHECK(MessageOf(program).find("constant 'c' is damaged: its bytes have checksum") != std::string::npos);
  }
}

TEST_CASE("what __init computes is shared where it is equal") {
  std::optional<Program> first = Packing({1, 2});
  const Program second = Packing({1, 2});
  const Program third = Packing({1, 3});
  CHECK(AddressIn(*first, "packed") == AddressIn(second, "packed"));
  CHECK(AddressIn(third, "packed") != AddressIn(second, "packed"));
  first.reset();
  VirtualMachine vm(second);
  vm.Invoke();
  CHECK(FloatsOf(vm.Output("y")) == std::vector<float>{2, 1});
}

TEST_CASE("what __init computes is found again among many results of one size") {
  std::vector<Program> held;
  for (int i = 0; i < 10; ++i) held.push_back(Packing({static_cast<float>(i), 2}));
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(AddressIn(Packing({static_cast<float>(i), 2}), "packed") == AddressIn(held[i], "packed"));
  }
}

// The constants are decompressed, mapped and computed. Each thread lets go of a Program while others ask for
// its constants, and of a result after its Program.
TEST_CASE("threads link, run and close Programs of the same constants at once") {
  const Folder folder;
  const Named weights = {{"c", Floats(std::vector<float>(10000, 0.75F))}};
  const std::string file = WriteRwxFile(folder / "a.rwx", weights);
  std::atomic<int> decoded{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> go{false};
  const Executable executables[] = {Repeating(17), Repeating(17, "z"), Repeating(19), ExecutableOf(kPacking)};
  const LinkOptions options[] = {WithCodec(&decoded), WithCodec(&decoded), WithCodec(&decoded),
                                 WithWeights({3, 4})};
  const auto turn = [&](std::size_t which) {
    Result<Program> program = Program::Link(executables[which], options[which]);
    if (!program) return false;
    Value kept;
    {
      VirtualMachine vm(*program);
      if (!vm.TryInvoke()) return false;
      kept = vm.result();
    }
    const Result<Value> pooled = program->TryRun("main", {});
    if (!pooled || pooled->tensor().view().data() != kept.tensor().view().data()) return false;
    program = Fail(StatusCode::kNotFound, "closed");
    if (which == 3) return FloatsOf(kept.tensor()) == std::vector<float>{4, 3};
    return kept.tensor().data<std::uint8_t>()[999] == (which == 2 ? 19 : 17);
  };
  const auto map = [&] {
    const Result<Executable> executable = Executable::Open(file);
    if (!executable) return false;
    const Result<Program> program = Program::Link(*executable);
    return program && FloatsOf(At(ParameterSet::Of(*program), "c"))[9999] == 0.75F;
  };
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      while (!go) std::this_thread::yield();
      for (std::size_t i = 0; i < 100; ++i) {
        if (!turn((t + i) % 4) || !map()) ++wrong;
      }
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  // All are gone, and the constants with them.
  const int before = decoded;
  CHECK(before > 0);
  CHECK(Program::Link(executables[0], options[0]).has_value());
  CHECK(decoded == before + 1);
}

}  // namespace
}  // namespace rewire::test
