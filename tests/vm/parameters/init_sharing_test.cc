// SPDX-License-Identifier: Apache-2.0
// Programs that take what another Program's `__init` has computed, and those that must compute it themselves.
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kSharedCount = 1000;

constexpr RewireKernelArgument kArguments[] = {
    {"x", REWIRE_DTYPE_F32, 0, 1, 0, 0},
    {"y", REWIRE_DTYPE_F32, 0, 1, REWIRE_ARGUMENT_WRITTEN, 0},
};
constexpr RewireKernelRow kPure = {kArguments, 2, 0, "", nullptr};
constexpr RewireKernelRow kImpure = {kArguments, 2, REWIRE_KERNEL_IMPURE, "", nullptr};

// A kernel that doubles, and how often it has run.
class Doubling {
 public:
  explicit Doubling(const RewireKernelRow* row = &kPure)
      : kernel_(MakePackedFunction([this](kernel::TensorView x, kernel::TensorView y) {
          ++runs_;
          for (std::int64_t i = 0; i < kSharedCount; ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
        })) {
    kernel_.row = row;
  }
  Doubling(const Doubling&) = delete;
  Doubling& operator=(const Doubling&) = delete;

  int runs() const { return runs_; }
  LinkOptions With(const ParameterSet& weights) const {
    LinkOptions options;
    options.parameters = {weights};
    options.init_sharing = ShareInitResults();
    options.kernels.AddFunction("host.double", kernel_);
    return options;
  }
  LinkOptions With(const Tensor& weights) const { return With(SetOf({{"w", weights}})); }

 private:
  std::atomic<int> runs_{0};
  PackedFunction kernel_;
};

// The same `__init` in two executables whose tables differ.
constexpr char kFirst[] = R"(
  .param w: f32[1000]
  .computed twice: f32[1000]
  .kernel double = "host.double"
  .func __init() -> (f32[1000])
    %w = load_const w
    %s = alloc_storage _, alignment=64, f32[1000], cpu
    %y = alloc_tensor %s, _, f32[1000]
    invoke_packed double(%w, %y), outputs=1
    %r = alloc_adt tag=0 (%y)
    ret %r
  .end
  .func main() -> y: f32[1000]
    %p = load_const twice
    ret %p
  .end)";
constexpr char kSecond[] = R"(
  .const other: f32[2] = {1, 2}
  .computed packed: f32[1000]
  .param w: f32[1000]
  .kernel add = "rewire.add"
  .kernel double = "host.double"
  .func main(x: f32[2]) -> (y: f32[1000], z: f32[2])
    %c = load_const other
    %s = alloc_storage _, alignment=64, f32[2], cpu
    %z = alloc_tensor %s, _, f32[2]
    invoke_packed add(%x, %c, %z), outputs=1
    %p = load_const packed
    %r = alloc_adt tag=0 (%p, %z)
    ret %r
  .end
  .func __init() -> (f32[1000])
    %w = load_const w
    %s = alloc_storage _, alignment=64, f32[1000], cpu
    %y = alloc_tensor %s, _, f32[1000]
    invoke_packed double(%w, %y), outputs=1
    %r = alloc_adt tag=0 (%y)
    ret %r
  .end)";

std::vector<float> SharedWeights(float middle = 1) {
  std::vector<float> weights(kSharedCount, 1);
  weights[kSharedCount / 2] = middle;
  return weights;
}

// Asserts nothing, so that any thread may ask. 0 if there is no constant of the name.
float Middle(const Program& program, const std::string& name) {
  const ParameterSet set = ParameterSet::Of(program);
  const std::size_t index = set.Find(name);
  const Result<Tensor> tensor = index == set.size() ? Result<Tensor>(Tensor()) : set.TryGet(index);
  return tensor && *tensor ? tensor->data<float>()[kSharedCount / 2] : 0;
}

TEST_CASE("what __init computes is computed once for Programs of equal weights, whatever their executables") {
  const Doubling kernel;
  const Executable executable = ExecutableOf(kFirst);
  std::optional<Program> first = *Program::Link(executable, kernel.With(Floats(SharedWeights())));
  CHECK(kernel.runs() == 1);
  // The same executable, with weights that lie somewhere else.
  const Program again = *Program::Link(executable, kernel.With(Floats(SharedWeights())));
  CHECK(kernel.runs() == 1);
  CHECK(AddressIn(again, "twice") == AddressIn(*first, "twice"));
  const std::optional<Program> other =
      *Program::Link(ExecutableOf(kSecond), kernel.With(Floats(SharedWeights())));
  CHECK(kernel.runs() == 1);
  CHECK(AddressIn(*other, "packed") == AddressIn(*first, "twice"));
  CHECK(Middle(*other, "packed") == 2);
  // Bound again, to the same, by a set of its own.
  const Program rebound = *other->Rebind({SetOf({{"w", Floats(SharedWeights())}})});
  CHECK(kernel.runs() == 1);
  CHECK(AddressIn(rebound, "packed") == AddressIn(again, "twice"));
  first.reset();
  const Program last = *Program::Link(executable, kernel.With(Floats(SharedWeights())));
  CHECK(kernel.runs() == 1);
  CHECK(Middle(last, "twice") == 2);
}

TEST_CASE("without the option, __init runs for each Program") {
  const Doubling kernel;
  LinkOptions options = kernel.With(Floats(SharedWeights()));
  options.init_sharing = nullptr;
  const Program first = ProgramOf(kFirst, options);
  const Program second = ProgramOf(kFirst, options);
  CHECK(kernel.runs() == 2);
  CHECK(Middle(second, "twice") == 2);
}

TEST_CASE("weights that differ in one element are other weights") {
  const Doubling kernel;
  const Program first = ProgramOf(kFirst, kernel.With(Floats(SharedWeights())));
  const Program second = ProgramOf(kFirst, kernel.With(Floats(SharedWeights(5))));
  CHECK(kernel.runs() == 2);
  CHECK(Middle(second, "twice") == 10);
  CHECK(Middle(first, "twice") == 2);
  // A parameter of a Program that takes another's results.
  const Program rebound = *first.Rebind({SetOf({{"w", Floats(SharedWeights(5))}})});
  CHECK(kernel.runs() == 2);
  CHECK(AddressIn(rebound, "twice") == AddressIn(second, "twice"));
}

TEST_CASE("weights that the host has changed since are other weights") {
  const Doubling kernel;
  std::vector<float> memory = SharedWeights();
  const Tensor weights = *Tensor::Wrap(TensorView(memory.data(), {kSharedCount}), nullptr);
  const Program before = ProgramOf(kFirst, kernel.With(weights));
  memory[kSharedCount / 2] = 7;
  const Program after = ProgramOf(kFirst, kernel.With(weights));
  CHECK(kernel.runs() == 2);
  CHECK(Middle(after, "twice") == 14);
  // Equal to what lies in the first Program's memory now, and not to what it was computed from.
  const Program equal = ProgramOf(kFirst, kernel.With(Floats(SharedWeights(7))));
  CHECK(kernel.runs() == 2);
  CHECK(AddressIn(equal, "twice") == AddressIn(after, "twice"));
}

TEST_CASE("a file of weights that is written again in place gives its new weights") {
  const Doubling kernel;
  const Folder folder;
  const std::string path = WriteSafetensorsFile(folder / "w", {{"w", Floats(SharedWeights())}});
  const Program first = ProgramOf(kFirst, kernel.With(*ParameterSet::Open(path)));
  const Program again = ProgramOf(kFirst, kernel.With(*ParameterSet::Open(path)));
  CHECK(kernel.runs() == 1);
  const std::string other = WriteSafetensorsFile(folder / "other", {{"w", Floats(SharedWeights(9))}});
  // The file keeps its inode and its size, so that it is mapped where it was.
  std::filesystem::copy_file(other, path, std::filesystem::copy_options::overwrite_existing);
  const Program changed = ProgramOf(kFirst, kernel.With(*ParameterSet::Open(path)));
  CHECK(AddressIn(changed, "w") == AddressIn(first, "w"));
  CHECK(kernel.runs() == 2);
  CHECK(Middle(changed, "twice") == 18);
}

TEST_CASE("results are kept by the Programs that have them alone") {
  const Doubling kernel;
  { const Program first = ProgramOf(kFirst, kernel.With(Floats(SharedWeights()))); }
  const Program second = ProgramOf(kFirst, kernel.With(Floats(SharedWeights())));
  CHECK(kernel.runs() == 2);
  CHECK(Middle(second, "twice") == 2);
}

TEST_CASE("kernels that may give other results each time run for each Program") {
  for (const RewireKernelRow* row : {&kImpure, static_cast<const RewireKernelRow*>(nullptr)}) {
    const Doubling kernel(row);
    const Program first = ProgramOf(kFirst, kernel.With(Floats(SharedWeights())));
    const Program second = ProgramOf(kFirst, kernel.With(Floats(SharedWeights())));
    CHECK(kernel.runs() == 2);
  }
}

TEST_CASE("another kernel of the name is another kernel") {
  const Doubling one, other;
  const Program first = ProgramOf(kFirst, one.With(Floats(SharedWeights())));
  const Program second = ProgramOf(kFirst, other.With(Floats(SharedWeights())));
  CHECK(one.runs() == 1);
  CHECK(other.runs() == 1);
}

TEST_CASE("results in an allocator's memory are shared by the Programs of this allocator alone") {
  for (const bool shared : {false, true}) {
    const Doubling kernel;
    LinkOptions options = kernel.With(Floats(SharedWeights()));
    if (!shared) options.init_sharing = nullptr;
    TestAllocator allocator;
    LinkOptions own = options;
    own.allocator = allocator.allocator();
    std::optional<Program> first = ProgramOf(kFirst, own);
    const Program other = ProgramOf(kFirst, options);
    std::optional<Program> second = ProgramOf(kFirst, own);
    CHECK(kernel.runs() == (shared ? 2 : 3));
    CHECK(AddressIn(*second, "twice") == AddressIn(*first, "twice"));
    CHECK(AddressIn(other, "twice") != AddressIn(*first, "twice"));
    first.reset();
    second.reset();
    // The host may end the allocator now.
    CHECK(allocator.blocks() == 0);
    CHECK(Middle(other, "twice") == 2);
  }
}

// Adds a constant to the weights and transposes the sum, with the stock kernels.
Executable TurningExecutable(const std::string& perm, const std::string& constant) {
  return ExecutableOf(".kernel turn = \"rewire.transpose\" {perm=[" + perm + "]}\n.const c: f32[4] = {" +
                      constant + R"(}
  .param w: f32[4]
  .const dims: i64[2] = {2, 2}
  .computed p: f32[2, 2]
  .kernel add = "rewire.add"
  .func __init() -> (f32[2, 2])
    %w = load_const w
    %c = load_const c
    %s = alloc_storage _, alignment=64, f32[4], cpu
    %sum = alloc_tensor %s, _, f32[4]
    invoke_packed add(%w, %c, %sum), outputs=1
    %d = load_const dims
    %m = reshape_tensor %sum, %d
    %t = alloc_storage _, alignment=64, f32[4], cpu
    %p = alloc_tensor %t, _, f32[2, 2]
    invoke_packed turn(%m, %p), outputs=1
    %r = alloc_adt tag=0 (%p)
    ret %r
  .end
  .func main() -> y: f32[2, 2]
    %p = load_const p
    ret %p
  .end)");
}

Program Turning(const std::string& perm, const std::string& constant) {
  LinkOptions options;
  options.parameters = {SetOf({{"w", Floats({1, 2, 3, 4})}})};
  options.init_sharing = ShareInitResults();
  return *Program::Link(TurningExecutable(perm, constant), options);
}

TEST_CASE("attributes and constants decide what __init computes") {
  const auto result = [](const Program& program) { return FloatsOf(At(ParameterSet::Of(program), "p")); };
  const Program first = Turning("1, 0", "10, 10, 10, 10");
  CHECK(result(first) == std::vector<float>{11, 13, 12, 14});
  const Program same = Turning("1, 0", "10, 10, 10, 10");
  CHECK(AddressIn(same, "p") == AddressIn(first, "p"));
  CHECK(result(Turning("0, 1", "10, 10, 10, 10")) == std::vector<float>{11, 12, 13, 14});
  CHECK(result(Turning("1, 0", "20, 20, 20, 20")) == std::vector<float>{21, 23, 22, 24});
  CHECK(result(first) == std::vector<float>{11, 13, 12, 14});
}

std::atomic<int> c_runs{0};

std::int32_t DoubleInC(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const auto* from = static_cast<const float*>(RewireTensorOf(&args[0])->data);
  auto* to = static_cast<float*>(RewireTensorOf(&args[1])->data);
  for (std::int64_t i = 0; i < kSharedCount; ++i) to[i] = 2 * from[i];
  ++c_runs;
  return 0;
}

TEST_CASE("programs of a C host share what __init computes if the host asks for it") {
  const RewireKernelEntry entry = {"host.double", DoubleInC, 0};
  const RewireKernelTable table = {sizeof(RewireKernelTable), 1, &entry, &kPure};
  const RewireExecutable executable{ExecutableOf(kFirst)};
  std::vector<float> weights = SharedWeights();
  const TensorView view(weights.data(), {kSharedCount});
  const DLTensor tensor = view.dl();
  for (const bool shared : {false, true}) {
    c_runs = 0;
    RewireLinkOptions* options = nullptr;
    REQUIRE(rewire_link_options_make(&options) == kRewireOk);
    REQUIRE(rewire_link_options_add_table(options, &table, nullptr) == kRewireOk);
    REQUIRE(rewire_link_options_borrow_parameter(options, "w", &tensor) == kRewireOk);
    REQUIRE(rewire_link_options_share_init_results(options, shared ? 1 : 0) == kRewireOk);
    RewireProgram *first = nullptr, *second = nullptr;
    REQUIRE(rewire_program_link(&executable, options, &first) == kRewireOk);
    REQUIRE(rewire_program_link(&executable, options, &second) == kRewireOk);
    CHECK(c_runs == (shared ? 1 : 2));
    CHECK(Middle(second->program, "twice") == 2);
    rewire_program_destroy(first);
    rewire_program_destroy(second);
    rewire_link_options_destroy(options);
  }
}

TEST_CASE("results that are shared count as if they had been computed") {
  const Doubling kernel;
  const Executable executable = ExecutableOf(kFirst);
  const Program first = *Program::Link(executable, kernel.With(Floats(SharedWeights())));
  const std::uint64_t bytes = first.rep().link_bytes;
  REQUIRE(bytes >= kSharedCount * sizeof(float));
  LinkOptions options = kernel.With(Floats(SharedWeights()));
  options.limits.bytes = bytes;
  const Result<Program> within = Program::Link(executable, options);
  REQUIRE(MessageOf(within) == "");
  CHECK(within->rep().link_bytes == bytes);
  CHECK(kernel.runs() == 1);
  options.limits.bytes = bytes - 1;
  const Result<Program> beyond = Program::Link(executable, options);
  CHECK(beyond.error().code() == StatusCode::kMemoryLimit);
  options.init_sharing = nullptr;
  CHECK(MessageOf(Program::Link(executable, options)) == MessageOf(beyond));
}

TEST_CASE("threads link and close Programs of equal weights at once") {
  const Doubling kernel;
  const Executable executables[] = {ExecutableOf(kFirst), ExecutableOf(kSecond)};
  const Tensor weights[] = {Floats(SharedWeights(1)), Floats(SharedWeights(3))};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t which = (t + i / 2) % 2;
        Result<Program> program = Program::Link(executables[i % 2], kernel.With(weights[which]));
        const bool right =
            program && Middle(*program, i % 2 == 0 ? "twice" : "packed") == (which == 0 ? 2 : 6);
        if (!right) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace rewire::test
