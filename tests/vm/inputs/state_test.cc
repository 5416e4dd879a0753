// SPDX-License-Identifier: Apache-2.0
// State: what is set, as bytes and as a file, and set again.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/state/content_hash.h"
#include "rewire/executable_format/state/state_format.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

// A decoder in small: it keeps the last six inputs, and what it gives depends on all of them.
constexpr char kDecoder[] = R"(
.kernel shift = "shift"
.kernel attend = "attend"
.func main(x: f32[1, 4], cache: f32[6, 4]) -> (y: f32[1, 4], next: f32[6, 4])
  %s = alloc_storage _, alignment=64, f32[6, 4], cpu
  %next = alloc_tensor %s, _, f32[6, 4]
  invoke_packed shift(%cache, %x, %next), outputs=1
  %t = alloc_storage _, alignment=64, f32[1, 4], cpu
  %y = alloc_tensor %t, _, f32[1, 4]
  invoke_packed attend(%x, %next, %y), outputs=1
  %r = alloc_adt tag=0 (%y, %next)
  ret %r
.end
)";

Program DecoderProgram() {
  LinkOptions options;
  options.kernels.AddFunction("shift", MakePackedFunction([](kernel::TensorView cache, kernel::TensorView x,
                                                             kernel::TensorView next) {
                                std::memmove(next.data<float>(), cache.data<float>() + 4, 20 * sizeof(float));
                                std::memcpy(next.data<float>() + 20, x.data<float>(), 4 * sizeof(float));
                              }));
  options.kernels.AddFunction(
      "attend", MakePackedFunction([](kernel::TensorView x, kernel::TensorView next, kernel::TensorView y) {
        for (int i = 0; i < 4; ++i) {
          float sum = 0;
          for (int k = 0; k < 24; ++k) sum += next.data<float>()[k] * x.data<float>()[(k + i) % 4] / 3;
          y.data<float>()[i] = sum;
        }
      }));
  return ProgramOf(kDecoder, std::move(options));
}

constexpr char kKinds[] = R"(
.func main(x: f16[2, 0], n: integer, pair: adt 0 (bool[3], adt 7 (i64[], integer)), open: value, late: f64[N]) -> value
  %r = alloc_adt tag=0 (%x, %n, %pair, %open, %late)
  ret %r
.end
.func other(x: f32[2]) -> f32[2]
  ret %x
.end
)";

std::vector<float> StepInput(int step) {
  std::vector<float> x;
  for (int i = 0; i < 4; ++i) x.push_back(static_cast<float>((step * 7 + i * 3) % 11) / 8 - 0.5F);
  return x;
}

// Steps of the decoder, whose cache is updated in place. Returns what each step gave.
std::vector<std::vector<float>> Steps(VirtualMachine* vm, int first, int last) {
  std::vector<std::vector<float>> given;
  for (int step = first; step < last; ++step) {
    vm->SetInput("x", TensorView(StepInput(step).data(), {1, 4}), InputMode::kCopy);
    vm->Invoke();
    given.push_back(FloatsOf(vm->Output("y")));
  }
  return given;
}

Array<std::byte> StateAfter(VirtualMachine* vm, std::vector<float>* cache, int steps) {
  vm->SetInput("cache", TensorView(cache->data(), {6, 4}));
  vm->Donate("cache", "next");
  Steps(vm, 0, steps);
  return vm->State();
}

void Check(const Result<std::uint32_t>& set, StatusCode code, const std::string& words) {
  REQUIRE(!set);
  CHECK(set.error().code() == code);
  CHECK_THAT(set.error().message(), Catch::Contains(words));
}

// The file with its checksum made right after a change.
Array<std::byte> Changed(Array<std::byte> state, std::size_t at, int value) {
  state[at] = static_cast<std::byte>(value);
  auto* const bytes = reinterpret_cast<unsigned char*>(state.data());
  const std::uint32_t sum = RewireStateChecksum(bytes, state.size() - 4);
  for (int i = 0; i < 4; ++i)
    bytes[state.size() - 4 + static_cast<std::size_t>(i)] = static_cast<unsigned char>(sum >> 8 * i);
  return state;
}

TEST_CASE("saved after some steps, a state gives the same steps from there on in another VM") {
  const Program program = DecoderProgram();
  VirtualMachine whole(program);
  std::vector<float> cache(24, 0.25F);
  whole.SetInput("cache", TensorView(cache.data(), {6, 4}));
  whole.Donate("cache", "next");
  const std::vector<std::vector<float>> all = Steps(&whole, 0, 9);

  VirtualMachine first(program);
  std::vector<float> own(24, 0.25F);
  const Array<std::byte> state = StateAfter(&first, &own, 4);
  const TempFolder folder;
  const std::string path = (folder.path() / "decoder.state").string();
  first.SaveState(path);
  CHECK(ReadWholeFile(path) == std::string(reinterpret_cast<const char*>(state.data()), state.size()));

  VirtualMachine second(DecoderProgram());
  CHECK(second.LoadState(path) == 0);
  CHECK(second.State() == state);
  second.Donate("cache", "next");  // bindings are the host's
  const std::vector<std::vector<float>> rest = Steps(&second, 4, 9);
  CHECK(rest == std::vector<std::vector<float>>(all.begin() + 4, all.end()));
  CHECK(second.State() == whole.State());
  // Neither the first VM nor its memory took part.
  CHECK(first.State() == state);
}

TEST_CASE("a state has tensors, integers and tuples of them, and leaves inputs that were not set") {
  const Program program = ProgramOf(kKinds);
  VirtualMachine vm(program);
  const bool flags[] = {true, false, true};
  const std::int64_t seven = 7;
  const double late[] = {0.5, -2};
  const Value inner =
      *Value::Adt(7, {Value(*Tensor::CopyOf(TensorView(&seven, {}))), Value(std::int64_t{-3})});
  REQUIRE(vm.TrySetInput("n", Value(std::int64_t{1} << 40)));
  REQUIRE(vm.TrySetInput("pair", *Value::Adt(0, {Value(*Tensor::CopyOf(TensorView(flags, {3}))), inner})));
  REQUIRE(vm.TrySetInput("late", TensorView(late, {2})));
  const Array<std::byte> some = vm.State();
  REQUIRE(vm.TrySetInput("x", Value(*Tensor::Make(kFloat16, {2, 0}))));
  REQUIRE(vm.TrySetInput("open", Value(Floats({4, 5}))));
  const Array<std::byte> all = vm.State();

  VirtualMachine again(program);
  CHECK(again.State().size() == 52);  // the header, the name "main" and the checksum
  REQUIRE(again.TrySetState(all));
  CHECK(again.State() == all);
  again.Invoke();
  CHECK(again.result().field(1).integer() == std::int64_t{1} << 40);
  CHECK(again.result().field(2).field(1).tag() == 7);
  CHECK(again.result().field(2).field(1).field(1).integer() == -3);
  CHECK(FloatsOf(again.result().field(3).tensor()) == std::vector<float>{4, 5});
  CHECK(again.result().field(4).tensor().data<double>()[1] == -2);

  VirtualMachine part(program);
  REQUIRE(part.TrySetState(some));
  CHECK(part.TryInput("x")->kind() == ValueKind::kNone);
  CHECK(part.State() == some);
  const Status missing = part.TryInvoke();
  CHECK_THAT(missing.error().message(), Catch::Contains("input 0 (x) is not set"));

  // Another function's inputs are a state of their own.
  REQUIRE(part.TrySetInput(InputHandle{1, 0}, Value(Floats({1, 2}))));
  const Array<std::byte> other = part.State("other");
  CHECK(part.TrySetState(other).value() == 1);
  CHECK(part.State() == some);

  REQUIRE(vm.TrySetInput("open", *Value::Adt(0, {Value(Floats({4, 5}))})));
  const Result<Array<std::byte>> tree = vm.TryState();
  REQUIRE(!tree);
  CHECK(tree.error().message() ==
        "function main, input open: a state holds tensors, integers and tuples of them; a value of kind ADT "
        "is set");
  CHECK(vm.TryState("mian").error().code() == StatusCode::kNotFound);

  // Half of a tuple.
  RewireStateWriter writer;
  Array<std::byte> half(256);
  const std::int64_t three = 3;
  RewireStateBegin(&writer, half.data(), half.size(), ContentHash(program.executable().module()), "main");
  RewireStateAdd(&writer, "pair.0", "bool", 1, &three, flags, 3);
  std::uint64_t size = 0;
  REQUIRE(RewireStateEnd(&writer, &size) == kRewireStateOk);
  half.resize(static_cast<std::size_t>(size));
  Check(part.TrySetState(half), StatusCode::kInvalidFile,
        "function main, input pair: the state has no tensor pair.1.0");

  VirtualMachine moved(std::move(part));
  CHECK(moved.State() == some);
  CHECK(part.TryState().error().message() ==
        "this VirtualMachine is empty: it was moved from");  // NOLINT: on purpose
  Check(part.TrySetState(some), StatusCode::kInvalidArgument,
        "this VirtualMachine is empty: it was moved from");
}

TEST_CASE("a state that is damaged, cut off, newer or another executable's is refused, and changes nothing") {
  VirtualMachine vm(DecoderProgram());
  std::vector<float> cache(24, 0.25F);
  const Array<std::byte> state = StateAfter(&vm, &cache, 3);
  const auto part = [&](std::size_t bytes) {
    return vm.TrySetState(Span<const std::byte>(state.data(), bytes));
  };
  for (std::size_t bytes = 0; bytes < state.size(); ++bytes) {
    const Result<std::uint32_t> set = part(bytes);
    REQUIRE(!set);
    CHECK(set.error().code() == StatusCode::kInvalidFile);
  }
  Check(part(0), StatusCode::kInvalidFile, "it does not begin with RWXSTATE as a state file does");
  Check(part(100), StatusCode::kInvalidFile, "the state file is cut off: it has 100 bytes; write it again");
  for (std::size_t at = 0; at < state.size(); ++at) {
    Array<std::byte> flipped = state;
    flipped[at] ^= std::byte{16};
    CHECK(!vm.TrySetState(flipped));
  }
  Check(vm.TrySetState(Changed(state, 8, 2)), StatusCode::kUnsupported,
        "the state file has version 2, and this library reads version 1");
  Check(vm.TrySetState(Changed(state, 16, 1)), StatusCode::kInvalidArgument,
        "the state is of another executable");
  Check(vm.TrySetState(Changed(state, 40, 'n')), StatusCode::kNotFound, "nain");
  // The first record is that of x: its name begins 48 + 32 + 16 bytes into the file.
  Check(vm.TrySetState(Changed(state, 96, 'z')), StatusCode::kInvalidFile,
        "the state has a tensor 'z' that is no input of function main, or is out of their order; the inputs: "
        "x, cache");
  Check(vm.TrySetState(Changed(state, 56, 'g')), StatusCode::kInvalidFile, "there is no dtype 'g32'");
  Check(vm.TrySetState(Changed(state, 56, 'i')), StatusCode::kInvalidArgument,
        "f32[1, 4] expected, i32[1, 4] given");
  Check(vm.TrySetState(Changed(state, 80, 3)), StatusCode::kInvalidFile,
        "its shape does not go with its 16 bytes");
  Check(vm.TrySetState(Changed(state, 52, 3)), StatusCode::kInvalidFile,
        "the state file is damaged: its checksum or a record is wrong; write it again");
  CHECK(vm.State() == state);

  VirtualMachine other(ProgramOf(kKinds));
  Check(other.TrySetState(state), StatusCode::kInvalidArgument, "the state is of another executable");
  CHECK(other.TryLoadState("/none.state").error().code() == StatusCode::kNotFound);
  CHECK(vm.TrySaveState("/none/x.state").error().code() == StatusCode::kIo);
}

TEST_CASE("a state of which one tensor does not match leaves all inputs as they were") {
  const Program program = ProgramOf(R"(
.func main(a: f32[2], b: f32[N], c: f32[N]) -> f32[2]
  ret %a
.end)");
  VirtualMachine vm(program);
  std::vector<float> a = {1, 2};
  vm.SetInput("a", TensorView(a.data(), {2}));
  vm.SetInput("b", Value(Floats({3})));
  const Array<std::byte> before = vm.State();

  // By hand: a fits, c does not.
  RewireStateWriter writer;
  Array<std::byte> made(512);
  const std::int64_t dims[] = {2, 1};
  const float data[] = {8, 9};
  RewireStateBegin(&writer, made.data(), made.size(), ContentHash(program.executable().module()), "main");
  RewireStateAdd(&writer, "a", "f32", 1, dims, data, 8);
  RewireStateAdd(&writer, "c", "f32", 2, dims, data, 8);
  std::uint64_t size = 0;
  REQUIRE(RewireStateEnd(&writer, &size) == kRewireStateOk);
  made.resize(static_cast<std::size_t>(size));
  Check(vm.TrySetState(made), StatusCode::kInvalidArgument, "input 2 (c)");
  CHECK(vm.State() == before);
  VirtualMachine bare(program);
  const Array<std::byte> none = bare.State();
  Check(bare.TrySetState(made), StatusCode::kInvalidArgument, "input 2 (c)");
  CHECK(bare.State() == none);
  // The memory that is borrowed is still read when the program runs.
  a[0] = 5;
  REQUIRE(vm.TrySetInput("c", Value(Floats({3}))));
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{5, 2});
}

TEST_CASE("an input can be looked at, as the next run reads it") {
  VirtualMachine vm(ProgramOf(kKinds));
  CHECK(vm.TryInput(InputHandle{1, 0})->kind() == ValueKind::kNone);
  std::vector<float> x = {1, 2};
  REQUIRE(vm.TrySetInput(InputHandle{1, 0}, TensorView(x.data(), {2})));
  for (int round = 0; round < 2; ++round) {
    const Value seen = *vm.TryInput(InputHandle{1, 0});
    CHECK(seen.tensor().view().data() == x.data());
    vm.Invoke("other");
    CHECK(vm.Output().view().data() == x.data());
  }
  // Memory of the same form is set without a new object, also after somebody has looked.
  std::vector<float> y = {3, 4};
  REQUIRE(vm.TrySetInput(InputHandle{1, 0}, TensorView(y.data(), {2})));
  vm.Invoke("other");
  CHECK(vm.Output().view().data() == y.data());
  CHECK(vm.TryInput("none").error().code() == StatusCode::kNotFound);
}

TEST_CASE("the checksum of a state file is XXH32") {
  const auto sum = [](const std::string& text) {
    return RewireStateChecksum(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  };
  // From xxHash's own tables and manual pages.
  CHECK(sum("") == 0x02CC5D05U);
  CHECK(sum("a") == 0x550D7456U);
  CHECK(sum("abc") == 0x32D153FFU);
  CHECK(sum("Nobody inspects the spammish repetition") == 0xE2293B2FU);
}

TEST_CASE("executables that differ in what they do have another content hash, and notes do not count") {
  const auto hash = [](const std::string& text) { return ContentHash(ExecutableOf(text).module()); };
  const std::string program =
      ".const c: f32[2] = {1, 2}\n.kernel k = \"k\" {a=1}\n.func f(x: f32[2]) -> y: f32[2]\n  ret %x\n.end\n";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = program;
    return hash(text.replace(text.find(from), from.size(), to));
  };
  CHECK(hash(program) == hash(program));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"{1, 2}", "{1, 3}"},
                                                        {"const c", "const d"},
                                                        {"\"k\"", "\"l\""},
                                                        {"a=1", "a=2"},
                                                        {"a=1", "b=1"},
                                                        {"a=1", "a=1.0"},
                                                        {".func f", ".func g"},
                                                        {"(x: f32[2])", "(x: f32[3])"},
                                                        {"-> y: f32[2]", "-> y: f32[N]"},
                                                        {"  ret %x", "  %y = move %x\n  ret %y"}}) {
    INFO(to);
    CHECK(with(from, to) != hash(program));
  }
  Module module = ExecutableOf(program).module();
  module.metadata.push_back({"producer", "somebody"});
  module.functions[0].notes.push_back({0, "a note"});
  CHECK(ContentHash(module) == hash(program));
}

}  // namespace
}  // namespace rewire::test
