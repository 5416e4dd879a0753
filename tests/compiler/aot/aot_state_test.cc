// SPDX-License-Identifier: Apache-2.0
// State between the VM and C source: each goes on where the other has stopped, to the bit.
#include <catch2/catch.hpp>
#include <cctype>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/compiler/aot/function_table.h"
#include "rewire/compiler/aot/state.h"
#include "rewire/executable_format/state/content_hash.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// Attention over the last six inputs, which `cache` holds.
constexpr char kDecoder[] = R"(
.kernel slice = "rewire.slice" {starts=[1], ends=[6]}
.kernel concat = "rewire.concat" {axis=0}
.kernel turn = "rewire.transpose" {perm=[1, 0]}
.kernel matmul = "rewire.matmul"
.kernel softmax = "rewire.softmax" {axis=1}
.func step(x: f32[1, 4], cache: f32[6, 4]) -> (y: f32[1, 4], next: f32[6, 4])
  %a = alloc_storage _, alignment=64, f32[5, 4], cpu
  %late = alloc_tensor %a, _, f32[5, 4]
  invoke_packed slice(%cache, %late), outputs=1
  %b = alloc_storage _, alignment=64, f32[6, 4], cpu
  %next = alloc_tensor %b, _, f32[6, 4]
  invoke_packed concat(%late, %x, %next), outputs=1
  %c = alloc_storage _, alignment=64, f32[4, 6], cpu
  %keys = alloc_tensor %c, _, f32[4, 6]
  invoke_packed turn(%next, %keys), outputs=1
  %d = alloc_storage _, alignment=64, f32[1, 6], cpu
  %weights = alloc_tensor %d, _, f32[1, 6]
  invoke_packed matmul(%x, %keys, %weights), outputs=1
  invoke_packed softmax(%weights, %weights), outputs=1
  %e = alloc_storage _, alignment=64, f32[1, 4], cpu
  %y = alloc_tensor %e, _, f32[1, 4]
  invoke_packed matmul(%weights, %next, %y), outputs=1
  %r = alloc_adt tag=0 (%y, %next)
  ret %r
.end
)";

// A program in C that goes on from the state in a file, for some steps, and leaves its own state in another
// one. It prints the bits of what each step gives.
constexpr char kMain[] = R"(
#include <stdio.h>
#include <stdlib.h>
#include "rewire/compiler/aot/state.h"

int main(int argc, char **argv) {
  static unsigned char file[4096];
  float x[1][4], cache[2][6][4], y[1][4];
  RewireAotStateInput inputs[2] = {{x, 0, 0}, {cache[0], 0, 0}};
  uint64_t size;
  int step, now = 0;
  FILE *stream = fopen(argv[1], "rb");
  if (argc != 5 || stream == NULL) return 2;
  size = fread(file, 1, sizeof(file), stream);
  fclose(stream);
  if (RewireAotLoadState(&model_functions[0], file, size, inputs) != 0 || !inputs[1].is_loaded) return 3;
  for (step = atoi(argv[3]); step < atoi(argv[4]); ++step) {
    int i;
    for (i = 0; i < 4; ++i) x[0][i] = (float)((step * 7 + i * 3) % 11) / 8 - 0.5f;
    if (model_step(x, cache[now], y, cache[1 - now]) != 0) return 4;
    now = 1 - now;
    for (i = 0; i < 4; ++i) printf("%a\n", (double)y[0][i]);
  }
  inputs[1].data = cache[now];
  if (RewireAotSaveState(&model_functions[0], inputs, file, sizeof(file), &size) != 0) return 5;
  stream = fopen(argv[2], "wb");
  if (stream == NULL || fwrite(file, 1, size, stream) != size || fclose(stream) != 0) return 6;
  return 0;
}
)";

Executable Decoder() {
  Result<Module> module = Assemble(kDecoder);
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

CSource SourceOf(const Executable& executable, const std::string& prefix) {
  EmitCOptions options;
  options.prefix = prefix;
  Result<CSource> source = EmitC(executable, options, prefix + ".h");
  if (!source) FAIL(source.error().message());
  return *std::move(source);
}

std::string EmbeddedSources() {
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  return "'" + folder + "'/*.c '" + folder + "'/*/*.c";
}

// Steps of the VM, as kMain makes and prints them.
std::string Steps(VirtualMachine* vm, int first, int last) {
  std::string printed;
  for (int step = first; step < last; ++step) {
    float x[4];
    for (int i = 0; i < 4; ++i) x[i] = static_cast<float>((step * 7 + i * 3) % 11) / 8 - 0.5F;
    vm->SetInput("x", TensorView(x, {1, 4}), InputMode::kCopy);
    vm->Invoke();
    for (int i = 0; i < 4; ++i) {
      char line[64];
      std::snprintf(line, sizeof(line), "%a\n", static_cast<double>(vm->Output("y").data<float>()[i]));
      printed += line;
    }
  }
  return printed;
}

TEST_CASE("the VM and a C program go on from each other's state, to the bit, and save the same bytes") {
  const Executable executable = Decoder();
  const Result<Program> program = Program::Link(executable);
  REQUIRE(program);
  std::vector<float> cache(24, 0.25F);
  VirtualMachine vm(*program);
  vm.SetInput("cache", TensorView(cache.data(), {6, 4}));
  vm.Donate("cache", "next");
  const TempFolder folder;
  const auto file = [&](const char* name) { return (folder.path() / name).string(); };
  std::string of_vm;
  for (const auto& [name, last] : {std::pair("3", 3), {"6", 6}, {"10", 10}}) {
    of_vm += Steps(&vm, name == std::string("3") ? 0 : name == std::string("6") ? 3 : 6, last);
    vm.SaveState(file(name));
  }

  const CSource source = SourceOf(executable, "model");
  folder.Write("model.h", source.header);
  folder.Write("model.c", source.source);
  folder.Write("main.c", kMain);
  RunShell(folder, REWIRE_TEST_CC " -std=c99 -O1 -Wall -Wextra -Wconversion -Werror -include model.h -I '" +
                       std::string(SourceDir()) + "/include' main.c model.c " + EmbeddedSources() +
                       " -o steps -lm");
  // From the VM to C, to the VM, to C: each program goes on from the one before.
  const std::string in_c = RunShell(folder, "./steps 3 6c 3 6");
  CHECK(ReadWholeFile(file("6c")) == ReadWholeFile(file("6")));
  VirtualMachine next(*program);
  next.LoadState(file("6c"));
  next.Donate("cache", "next");
  const std::string in_vm = Steps(&next, 6, 8);
  next.SaveState(file("8"));
  const std::string rest = RunShell(folder, "./steps 8 10c 8 10");
  CHECK(ReadWholeFile(file("10c")) == ReadWholeFile(file("10")));
  VirtualMachine start(*program);
  start.LoadState(file("3"));
  start.Donate("cache", "next");
  CHECK(in_c == Steps(&start, 3, 6));
  CHECK(of_vm.substr(of_vm.size() - in_vm.size() - rest.size() - in_c.size()) == in_c + in_vm + rest);
}

TEST_CASE(
    "C code refuses a state that is damaged, another program's or of another form, and changes nothing") {
  CLibrary library;
  const Executable executable = Decoder();
  library.Add("model", SourceOf(executable, "model"));
  library.Compile({}, EmbeddedSources());
  const auto* const function = library.Find<RewireAotFunctionInfo>("model_functions");
  CHECK(function->executable == ContentHash(executable.module()));
  float x[4] = {1, 2, 3, 4};
  std::vector<float> cache(24, 0.5F);
  RewireAotStateInput inputs[2] = {{x, nullptr, 0}, {cache.data(), nullptr, 0}};
  std::uint64_t size = 0;
  CHECK(RewireAotSaveState(function, inputs, nullptr, 0, &size) == kRewireStateNoRoom);
  std::vector<unsigned char> state(size);
  CHECK(RewireAotSaveState(function, inputs, state.data(), size - 1, &size) == kRewireStateNoRoom);
  REQUIRE(RewireAotSaveState(function, inputs, state.data(), size, &size) == kRewireStateOk);

  float other_x[4] = {};
  std::vector<float> other_cache(24);
  RewireAotStateInput into[2] = {{other_x, nullptr, 0}, {other_cache.data(), nullptr, 0}};
  const auto load = [&](const std::vector<unsigned char>& bytes) {
    return RewireAotLoadState(function, bytes.data(), bytes.size(), into);
  };
  const auto changed = [&](std::size_t at, int value) {
    std::vector<unsigned char> bytes = state;
    bytes[at] = static_cast<unsigned char>(value);
    const std::uint32_t sum = RewireStateChecksum(bytes.data(), bytes.size() - 4);
    for (std::size_t i = 0; i < 4; ++i)
      bytes[bytes.size() - 4 + i] = static_cast<unsigned char>(sum >> 8 * i);
    return bytes;
  };
  for (std::uint64_t bytes = 0; bytes < size; ++bytes) {
    const std::vector<unsigned char> part(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(bytes));
    REQUIRE(load(part) == (bytes < 12 ? kRewireStateForeign : kRewireStateTruncated));
  }
  for (std::size_t at = 0; at < size; ++at) {
    std::vector<unsigned char> flipped = state;
    flipped[at] ^= 16;
    REQUIRE(load(flipped) != kRewireStateOk);
  }
  CHECK(load(changed(0, 'r')) == kRewireStateForeign);
  CHECK(load(changed(8, 2)) == kRewireStateNewer);
  CHECK(load(changed(16, state[16] + 1)) == kRewireStateOtherProgram);
  CHECK(load(changed(40, 'z')) == kRewireStateOtherFunction);
  CHECK(load(changed(96, 'z')) == kRewireStateUnknownInput);
  CHECK(load(changed(56, 'i')) == kRewireStateOtherForm);
  CHECK(load(changed(80, 2)) == kRewireStateOtherForm);
  CHECK(load(changed(52, 3)) == kRewireStateDamaged);
  CHECK(load(changed(104, 1)) == kRewireStateOk);  // an element
  for (float& value : other_x) value = 0;
  CHECK(other_cache == cache);

  // Only what has memory is loaded.
  into[1].data = nullptr;
  REQUIRE(load(state) == kRewireStateOk);
  CHECK((into[0].is_loaded == 1 && into[1].is_loaded == 0));
  CHECK(std::memcmp(other_x, x, sizeof(x)) == 0);
  inputs[0].data = nullptr;
  REQUIRE(RewireAotSaveState(function, inputs, state.data(), state.size(), &size) == kRewireStateOk);
  state.resize(size);
  REQUIRE(load(state) == kRewireStateOk);
  CHECK((into[0].is_loaded == 0 && into[1].is_loaded == 0));
}

TEST_CASE("inputs whose sizes vary are saved and loaded with their dimensions") {
  const std::int64_t largest[] = {4, 3};
  const RewireAotTensorInfo info = {"x", "f32", 2, largest, 48};
  RewireAotFunctionInfo function{};
  function.name = "main";
  function.executable = 7;
  function.inputs = &info;
  function.input_count = 1;
  float data[12] = {1, 2, 3, 4, 5, 6};
  std::int64_t dims[] = {2, 3};
  RewireAotStateInput input = {data, dims, 0};
  unsigned char state[256];
  std::uint64_t size = 0;
  REQUIRE(RewireAotSaveState(&function, &input, state, sizeof(state), &size) == kRewireStateOk);
  float loaded[12] = {};
  std::int64_t seen[] = {0, 0};
  RewireAotStateInput into = {loaded, seen, 0};
  REQUIRE(RewireAotLoadState(&function, state, size, &into) == kRewireStateOk);
  CHECK((seen[0] == 2 && seen[1] == 3));
  CHECK(std::memcmp(loaded, data, 24) == 0);
  into.dims = nullptr;  // the largest ones are expected then
  CHECK(RewireAotLoadState(&function, state, size, &into) == kRewireStateOtherForm);
  dims[0] = 5;
  CHECK(RewireAotSaveState(&function, &input, state, sizeof(state), &size) == kRewireStateOtherForm);
}

// The text from the guard of the table on, without comments and white space.
std::string TableTokens(const std::string& text) {
  std::string tokens;
  const std::size_t begin = text.find("#ifndef REWIRE_AOT_TABLE");
  REQUIRE(begin != std::string::npos);
  for (std::size_t i = begin; i < text.size() && text.compare(i, 6, "#endif") != 0; ++i) {
    if (std::isspace(static_cast<unsigned char>(text[i])) == 0) tokens += text[i];
  }
  return tokens;
}

TEST_CASE("the header of a source declares the table as function_info.h does") {
  const std::string header = ReadWholeFile(std::string(SourceDir()) + "/compiler/aot/function_info.h");
  CHECK(TableTokens(header) == TableTokens(aot::kTableTypes));
}

}  // namespace
}  // namespace rewire::test
