// SPDX-License-Identifier: Apache-2.0
// Parameters cost no memory until they are read, and one copy however many models and processes read
// them. Proportional set size, as /proc/self/smaps_rollup says: pages that n processes share count 1/n to
// each.
#include <malloc.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <optional>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kRows = 65536;
constexpr std::int64_t kWidth = 1024;
constexpr std::uint64_t kEmbeddingBytes = kRows * kWidth * sizeof(float);  // 256 MiB
constexpr int kInstances = 10;

std::uint64_t SmapsBytes(const std::string& field) {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == field && rollup >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

std::uint64_t Pss() { return SmapsBytes("Pss:"); }

// Row r of the embedding is r, r + 1, ... modulo 251, so that sums are exact.
float Element(std::int64_t row, std::int64_t column) { return static_cast<float>((row + column) % 251); }

void WriteEmbedding(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  std::string header = R"({"embedding":{"dtype":"F32","shape":[65536,1024],"data_offsets":[0,268435456]}})";
  header.resize(120, ' ');
  const std::uint64_t size = header.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file << header;
  std::vector<float> row(kWidth);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kWidth; ++c) row[static_cast<std::size_t>(c)] = Element(r, c);
    file.write(reinterpret_cast<const char*>(row.data()), kWidth * sizeof(float));
  }
}

// The recurrent body takes a token's row of the embedding into its state; the output layer scores every token
// against the state, and so reads all of it.
LinkOptions Kernels() {
  LinkOptions options;
  options.kernels.AddFunction(
      "rnn.step",
      MakePackedFunction([](kernel::TensorView embedding, kernel::TensorView bias, kernel::TensorView token,
                            kernel::TensorView state, kernel::TensorView next) {
        const float* row = embedding.data<float>() + *token.data<std::int64_t>() * kWidth;
        for (std::int64_t i = 0; i < kWidth; ++i) {
          next.data<float>()[i] = state.data<float>()[i] + row[i] + bias.data<float>()[0];
        }
      }));
  options.kernels.AddFunction("rnn.scores",
                              MakePackedFunction([](kernel::TensorView embedding, kernel::TensorView state,
                                                    kernel::TensorView scores) {
                                for (std::int64_t r = 0; r < kRows; ++r) {
                                  const float* row = embedding.data<float>() + r * kWidth;
                                  // One element of each page of the row, times the state's.
                                  scores.data<float>()[r] = row[0] * state.data<float>()[0] + row[kWidth - 1];
                                }
                              }));
  return options;
}

constexpr char kBody[] = R"(
  .param embedding: f32[65536, 1024]
  .param bias: f32[1]
  .kernel step = "rnn.step"
  .func main(token: i64[], state: f32[1024]) -> next: f32[1024]
    %e = load_const embedding
    %b = load_const bias
    %s = alloc_storage _, alignment=64, f32[1024], cpu
    %n = alloc_tensor %s, _, f32[1024]
    invoke_packed step(%e, %b, %token, %state, %n), outputs=1
    ret %n
  .end)";

constexpr char kOutputLayer[] = R"(
  .param embedding: f32[65536, 1024]
  .kernel scores = "rnn.scores"
  .func main(state: f32[1024]) -> scores: f32[65536]
    %e = load_const embedding
    %s = alloc_storage _, alignment=64, f32[65536], cpu
    %y = alloc_tensor %s, _, f32[65536]
    invoke_packed scores(%e, %state, %y), outputs=1
    ret %y
  .end)";

// One body and one output layer, each with its own Program and VM.
class Instance {
 public:
  Instance(const ParameterSet& embedding, float bias)
      : body_(ProgramOf(kBody, Options(embedding, bias))),
        output_(ProgramOf(kOutputLayer, Options(embedding))) {}

  // Whether two tokens give the scores that they must.
  bool Right(std::int64_t token, float bias) {
    Tensor state = *Tensor::CopyOf(TensorView(zeros_.data(), {kWidth}));
    const std::int64_t tokens[2] = {token, token + 1};
    for (const std::int64_t& each : tokens) {
      body_vm_.SetInput("token", TensorView(&each, {}));
      body_vm_.SetInput("state", Value(state));
      body_vm_.Invoke();
      state = body_vm_.Output("next");
    }
    output_vm_.SetInput("state", Value(state));
    output_vm_.Invoke();
    const Tensor scores = output_vm_.Output("scores");
    const float first = Element(token, 0) + Element(token + 1, 0) + 2 * bias;
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{777}, kRows - 1}) {
      if (scores.data<float>()[row] != Element(row, 0) * first + Element(row, kWidth - 1)) return false;
    }
    output_vm_.DropResult();
    output_vm_.Trim();
    return true;
  }

  const Program& body() const { return body_; }

 private:
  static LinkOptions Options(const ParameterSet& embedding, std::optional<float> bias = {}) {
    LinkOptions options = Kernels();
    options.parameters = {embedding};
    if (bias) options.parameters.push_back(SetOf({{"bias", Floats({*bias})}}));
    return options;
  }

  Program body_;
  Program output_;
  VirtualMachine body_vm_{body_};
  VirtualMachine output_vm_{output_};
  std::array<float, kWidth> zeros_{};
};

// Ten instances of which the first opens the file and is gone before the others run. Returns how far the
// proportional set size has grown from one copy to ten, or nothing where a result is wrong.
std::optional<std::int64_t> GrowthFromOneToTen(const std::string& path) {
  std::optional<Instance> donor;
  donor.emplace(*ParameterSet::Open(path), 0.0F);
  if (!donor->Right(5, 0)) return std::nullopt;
  const std::uint64_t one = Pss();
  std::vector<std::unique_ptr<Instance>> instances;
  instances.reserve(kInstances);
  for (int i = 0; i < kInstances; ++i) {
    instances.push_back(std::make_unique<Instance>(ParameterSet::Of(donor->body()), static_cast<float>(i)));
  }
  donor.reset();
  for (int i = 0; i < kInstances; ++i) {
    if (!instances[static_cast<std::size_t>(i)]->Right(100 + i, static_cast<float>(i))) return std::nullopt;
  }
  return static_cast<std::int64_t>(Pss()) - static_cast<std::int64_t>(one);
}

TEST_CASE("ten bodies and ten output layers hold one embedding, and need no donor") {
  const Folder folder;
  WriteEmbedding(folder / "e.safetensors");
  const std::optional<std::int64_t> growth = GrowthFromOneToTen(folder / "e.safetensors");
  REQUIRE(growth.has_value());
  WARN("from one instance to ten the proportional set size grew by " << *growth / 1024 << " KiB of "
                                                                     << kEmbeddingBytes / 1024);
  CHECK(*growth < static_cast<std::int64_t>(kEmbeddingBytes / 20));
}

TEST_CASE("two processes with ten instances each hold one embedding together") {
  const Folder folder;
  WriteEmbedding(folder / "e.safetensors");
  // Both children run, tell that they have, wait for the other, and then measure at once.
  // Each has a connection of its own: from a common one it could take what is meant for the other.
  const auto child = [&](int parent) -> int {
    const std::uint64_t before = Pss();
    std::vector<std::unique_ptr<Instance>> instances;
    const ParameterSet set = *ParameterSet::Open(folder / "e.safetensors");
    for (int i = 0; i < kInstances; ++i) {
      instances.push_back(std::make_unique<Instance>(set, static_cast<float>(i)));
      if (!instances.back()->Right(i, static_cast<float>(i))) return 1;
    }
    std::int64_t message = 1;
    if (write(parent, &message, sizeof(message)) != sizeof(message)) return 2;
    if (read(parent, &message, sizeof(message)) != sizeof(message)) return 3;
    message = static_cast<std::int64_t>(Pss()) - static_cast<std::int64_t>(before);
    if (write(parent, &message, sizeof(message)) != sizeof(message)) return 4;
    // Stays until the other has measured, too.
    return read(parent, &message, sizeof(message)) == sizeof(message) ? 0 : 5;
  };
  std::array<pid_t, 2> children{};
  std::array<int, 2> connections{};
  for (std::size_t i = 0; i < 2; ++i) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    children[i] = fork();
    if (children[i] == 0) {
      close(ends[0]);  // so that the end of one process is seen by the other
      _exit(child(ends[1]));
    }
    REQUIRE(children[i] > 0);
    close(ends[1]);
    connections[i] = ends[0];
  }
  std::int64_t total = 0;
  for (int round = 0; round < 2; ++round) {
    std::int64_t message = 0;
    total = 0;
    for (const int connection : connections) {
      REQUIRE(read(connection, &message, sizeof(message)) == sizeof(message));
      total += message;
    }
    for (const int connection : connections)
      REQUIRE(write(connection, &message, sizeof(message)) == sizeof(message));
  }
  for (const int connection : connections) close(connection);
  for (const pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  WARN("two processes together: " << total / 1024 << " KiB for an embedding of " << kEmbeddingBytes / 1024);
  CHECK(total < static_cast<std::int64_t>(kEmbeddingBytes + kEmbeddingBytes / 20));
  CHECK(total > static_cast<std::int64_t>(kEmbeddingBytes / 2));  // they did read it
}

TEST_CASE("a gigabyte of parameters takes no memory before it is read") {
  constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
  constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
  const Folder folder;
  const std::string path = folder / "g.safetensors";
  {
    std::ofstream file(path, std::ios::binary);
    std::string header = R"({"big":{"dtype":"U8","shape":[1073741824],"data_offsets":[0,1073741824]}})";
    header.resize(120, ' ');
    const std::uint64_t size = header.size();
    file.write(reinterpret_cast<const char*>(&size), sizeof(size));
    file << header;
  }
  std::filesystem::resize_file(path, 128 + kGigabyte);
  const Executable executable = ExecutableOf(R"(
    .param big: u8[1073741824]
    .kernel first = "host.first"
    .func main() -> y: u8[1]
      %b = load_const big
      %s = alloc_storage _, alignment=64, u8[1], cpu
      %y = alloc_tensor %s, _, u8[1]
      invoke_packed first(%b, %y), outputs=1
      ret %y
    .end)");
  LinkOptions options;
  options.kernels.AddFunction("host.first",
                              MakePackedFunction([](kernel::TensorView big, kernel::TensorView y) {
                                y.data<std::uint8_t>()[0] = big.data<std::uint8_t>()[0];
                              }));
  const std::uint64_t before = SmapsBytes("Rss:");
  CHECK(MessageOf(Program::Link(executable, options)) ==
        "parameters do not match:\n  big: no parameter of this name given, u8[1073741824] expected");
  CHECK(SmapsBytes("Rss:") < before + kMegabyte);
  const Result<ParameterSet> set = ParameterSet::Open(path);
  REQUIRE(MessageOf(set) == "");
  CHECK(SmapsBytes("Rss:") < before + kMegabyte);
  // Bound and run, it costs the pages that are read.
  options.parameters = {*set};
  VirtualMachine vm(*Program::Link(executable, options));
  vm.Invoke();
  CHECK(SmapsBytes("Rss:") < before + kMegabyte);
}

// A graph to tune: a table of 16 MiB that the file compresses to nothing, weights of 8 MiB, and what `__init`
// makes of them.
constexpr std::uint64_t kTableBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kTunedBytes = std::uint64_t{8} << 20;
constexpr std::uint32_t kEmptyCodec = kFirstHostCodec + 9;
constexpr char kTunable[] = R"(
  .const table: u8[1] = {0}
  .param w: f32[2097152]
  .computed twice: f32[2097152]
  .kernel double = "host.double"
  .func __init() -> (f32[2097152])
    %w = load_const w
    %s = alloc_storage _, alignment=64, f32[2097152], cpu
    %y = alloc_tensor %s, _, f32[2097152]
    invoke_packed double(%w, %y), outputs=1
    %r = alloc_adt tag=0 (%y)
    ret %r
  .end
  .func main() -> (t: u8[16777216], y: f32[2097152])
    %t = load_const table
    %y = load_const twice
    %r = alloc_adt tag=0 (%t, %y)
    ret %r
  .end)";

Executable TunableExecutable() {
  static const std::byte kStored{0};
  Module module = *Assemble(kTunable);
  Constant& table = module.constants[0];
  table.type.dims = {static_cast<std::int64_t>(kTableBytes)};
  table.raw_bytes = kTableBytes;
  table.codec = kEmptyCodec;
  table.stored = {{&kStored, 1}, nullptr};
  table.checksum = 0;
  return *Executable::FromModule(std::move(module));
}

int MakeTable(void*, const void*, std::size_t, void* raw, std::size_t raw_bytes) {
  std::memset(raw, 7, raw_bytes);
  return 0;
}

constexpr RewireKernelArgument kDoubleArguments[] = {
    {"x", REWIRE_DTYPE_F32, 0, 1, 0, 0},
    {"y", REWIRE_DTYPE_F32, 0, 1, REWIRE_ARGUMENT_WRITTEN, 0},
};
constexpr RewireKernelRow kDoubleRow = {kDoubleArguments, 2, 0, "", nullptr};

// Returns the bytes that the process has written and that are no file's. Freed memory goes back to the system
// first.
std::int64_t WrittenBytes() {
  malloc_trim(0);
  return static_cast<std::int64_t>(SmapsBytes("Anonymous:"));
}

TEST_CASE("two fine-tunes of one graph share everything but their weights") {
  constexpr std::int64_t kSmall = std::int64_t{1} << 18;
  constexpr auto kOne = static_cast<std::int64_t>(kTunedBytes);
  const Folder folder;
  std::vector<float> values(kTunedBytes / sizeof(float), 1);
  WriteSafetensorsFile(folder / "base.safetensors",
                       {{"w", *Tensor::CopyOf(TensorView(values.data(), {2097152}))}});
  for (float& value : values) value = 3;
  WriteSafetensorsFile(folder / "tuned.safetensors",
                       {{"w", *Tensor::CopyOf(TensorView(values.data(), {2097152}))}});
  PackedFunction kernel = MakePackedFunction([](kernel::TensorView x, kernel::TensorView y) {
    for (std::int64_t i = 0; i < 2097152; ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
  });
  kernel.row = &kDoubleRow;
  const auto link = [&](const std::string& weights) {
    LinkOptions options;
    options.codecs.push_back({kEmptyCodec, nullptr, MakeTable});
    options.kernels.AddFunction("host.double", kernel);
    options.init_sharing = ShareInitResults();
    options.parameters = {*ParameterSet::Open(folder / weights)};
    Result<Program> program = Program::Link(TunableExecutable(), std::move(options));
    if (!program) FAIL(program.error().message());
    return *std::move(program);
  };
  const std::int64_t before = WrittenBytes();
  const Program base = link("base.safetensors");
  const std::int64_t with_base = WrittenBytes();
  const Program same = link("base.safetensors");
  const std::int64_t with_same = WrittenBytes();
  const Program tuned = link("tuned.safetensors");
  const std::int64_t with_tuned = WrittenBytes();
  WARN("the graph and its weights: " << (with_base - before) / 1024
                                     << " KiB, a second program: " << (with_same - with_base) / 1024
                                     << " KiB, other weights: " << (with_tuned - with_same) / 1024
                                     << " KiB of " << kOne / 1024);
  CHECK(with_base - before >= static_cast<std::int64_t>(kTableBytes) + kOne);
  CHECK(with_same - with_base < kSmall);
  CHECK(with_tuned - with_same >= kOne);
  CHECK(with_tuned - with_same < kOne + kSmall);
  CHECK(AddressIn(tuned, "table") == AddressIn(base, "table"));
  CHECK(AddressIn(same, "twice") == AddressIn(base, "twice"));
  CHECK(At(ParameterSet::Of(base), "twice").data<float>()[2097151] == 2);
  CHECK(At(ParameterSet::Of(tuned), "twice").data<float>()[2097151] == 6);
}

}  // namespace
}  // namespace rewire::test
