// SPDX-License-Identifier: Apache-2.0
// The most stack that a program of C source needs: of drawn call graphs, and of kernels that are run.
#include "rewire/compiler/aot/stack_depth.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/compiler/aot/kernel_cases.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

using aot::DeepestStack;
using aot::StackDepth;

std::string NodeOf(const std::string& title, int bytes, const std::string& kind = "static") {
  return "node: { title: \"" + title + "\" label: \"" + title + "\\na.c:1:2\\n" + std::to_string(bytes) +
         " bytes (" + kind + ")\" }\n";
}
std::string EdgeOf(const std::string& from, const std::string& to) {
  return "edge: { sourcename: \"" + from + "\" targetname: \"" + to + "\" label: \"a.c:1:2\" }\n";
}

// Functions that call later ones by name, or something by a pointer. The first is the program's.
struct DrawnGraph {
  std::vector<int> frames;
  std::vector<std::set<std::size_t>> calls;
  std::vector<bool> calls_pointers, is_pointed_at;

  std::string Name(std::size_t i) const {
    return i == 0 ? "model_main"
                  : (i % 2 == 0 ? "kernel.c:f" : "f") + std::to_string(i) + (i % 3 == 0 ? ".isra.0" : "");
  }
  // The deepest chain of calls that calls no function twice.
  int Deepest(std::size_t i, std::set<std::size_t> path) const {
    path.insert(i);
    int below = 0;
    for (std::size_t next = 0; next < frames.size(); ++next) {
      const bool called = calls[i].count(next) != 0 || (calls_pointers[i] && is_pointed_at[next]);
      if (called && path.count(next) == 0) below = std::max(below, Deepest(next, path));
    }
    return frames[i] + below;
  }
};

DrawnGraph Draw(std::mt19937* random, bool pointed_at_call_pointers) {
  DrawnGraph graph;
  const std::size_t count = 2 + (*random)() % 7;
  for (std::size_t i = 0; i < count; ++i) {
    graph.frames.push_back(static_cast<int>(8 * ((*random)() % 20)));
    graph.calls.emplace_back();
    for (std::size_t next = i + 1; next < count; ++next) {
      if ((*random)() % 3 == 0) graph.calls[i].insert(next);
    }
    graph.is_pointed_at.push_back(i != 0 && (*random)() % 3 == 0);
    graph.calls_pointers.push_back((*random)() % 3 == 0);
  }
  if (pointed_at_call_pointers) return graph;
  // No chain of calls has two pointers then: functions behind the first one that is pointed at call none.
  const auto first = std::find(graph.is_pointed_at.begin(), graph.is_pointed_at.end(), true);
  std::fill(graph.calls_pointers.begin() + (first - graph.is_pointed_at.begin()), graph.calls_pointers.end(),
            false);
  return graph;
}

TEST_CASE("the stack of a drawn call graph is that of its deepest chain of calls") {
  int with_pointers = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const bool any = seed % 4 == 3;
    const DrawnGraph graph = Draw(&random, any);
    // Two files, which both declare what they call.
    std::map<std::string, std::string> files;
    std::string source = "int model_main(void) {";
    for (std::size_t i = 0; i < graph.frames.size(); ++i) {
      std::string& text = files[i % 2 == 0 ? "even.ci" : "odd.ci"];
      text += NodeOf(graph.Name(i), graph.frames[i]);
      for (const std::size_t next : graph.calls[i]) text += EdgeOf(graph.Name(i), graph.Name(next));
      if (graph.calls_pointers[i]) text += EdgeOf(graph.Name(i), "__indirect_call");
      source += (graph.is_pointed_at[i] ? " x = {&f" : " f") + std::to_string(i) +
                (graph.is_pointed_at[i] ? "};" : "();");
    }
    const Result<StackDepth> found = DeepestStack(files, "model_", source + "}", 0);
    REQUIRE(found);
    CHECK(found->library.empty());
    const int expected = graph.Deepest(0, {});
    if (any) {
      CHECK(found->bytes >= static_cast<std::uint64_t>(expected));
      with_pointers += 1;
    } else {
      CHECK(found->bytes == static_cast<std::uint64_t>(expected));
    }
  }
  CHECK(with_pointers == 100);
}

TEST_CASE("the stack is not told where it has no limit or a graph lacks something") {
  const auto fails = [](const std::string& text, const std::string& source = {}) {
    const Result<StackDepth> found = DeepestStack({{"a.ci", text}}, "model_", source, 0);
    REQUIRE_FALSE(found);
    return found.error().message();
  };
  const std::string own = NodeOf("model_main", 8);
  CHECK_THAT(
      fails("graph: { title: \"a.c\"\n}\n"),
      Catch::Equals("a.ci: it names no function with the bytes of its frame; give the .ci files that GCC "
                    "writes beside the object files with -fcallgraph-info=su"));
  CHECK_THAT(fails(NodeOf("other_main", 8)),
             Catch::Equals(
                 "no function of the call graphs begins with model_; give the .ci file of the source, too"));
  CHECK_THAT(fails(own + NodeOf("f", 8, "dynamic")),
             Catch::Equals("a.ci: the size of f's frame is known only when the program runs"));
  CHECK_THAT(fails(own + NodeOf("a.c:f", 8) + EdgeOf("model_main", "a.c:f") + EdgeOf("a.c:f", "model_main")),
             Catch::Equals("model_main calls itself, by way of f: its stack has no limit"));
  CHECK_THAT(
      fails(own + EdgeOf("model_main", "rewire_embedded_gemm_f32")),
      Catch::Equals("the program calls rewire_embedded_gemm_f32, and no call graph has it; give the .ci "
                    "files of all kernels"));
}

TEST_CASE("the stack counts so many bytes for each function that no graph has") {
  const std::string text =
      NodeOf("model_main", 8) + EdgeOf("model_main", "memcpy") + EdgeOf("model_main", "expf");
  const Result<StackDepth> found = DeepestStack({{"a.ci", text}}, "model_", "", 100);
  REQUIRE(found);
  CHECK(found->bytes == 108);
  CHECK(found->library == std::set<std::string>{"expf", "memcpy"});
}

constexpr std::size_t kPainted = 1 << 16;
constexpr unsigned char kPaint = 0xA5;

constexpr std::ptrdiff_t kOwn = 1024;  // more than the frame of Deepest

struct Call {
  const RewireAotFunctionInfo& function;
  void* arena;
  const void* const* inputs;
  void* const* outputs;
};

// Calls the function at least kOwn bytes below the caller's frame.
__attribute__((noinline, no_sanitize("address", "undefined"))) void RunBelow(const Call& call) {
  volatile unsigned char own[2 * kOwn];
  own[0] = 0;
  call.function.run(nullptr, call.arena, nullptr, nullptr, call.inputs, call.outputs);
  own[1] = own[0];
}

// The deepest address that a call has written.
__attribute__((noinline, no_sanitize("address", "undefined"))) const volatile unsigned char* Deepest(
    const Call& call) {
  volatile unsigned char* const here = static_cast<unsigned char*>(__builtin_frame_address(0)) - kOwn;
  for (std::size_t i = 0; i < kPainted; ++i) here[-static_cast<std::ptrdiff_t>(i)] = kPaint;
  RunBelow(call);
  std::size_t deepest = kPainted;
  while (deepest > 0 && here[-static_cast<std::ptrdiff_t>(deepest - 1)] == kPaint) --deepest;
  return here - static_cast<std::ptrdiff_t>(deepest) + 1;
}

// The end of the stack when it was called: the place behind the address to which it returns.
const unsigned char* top = nullptr;
__attribute__((noinline, no_sanitize("address", "undefined"))) int FindTop(void*, void*, const void*,
                                                                           const std::int64_t*,
                                                                           const void* const*, void* const*) {
  top = static_cast<const unsigned char*>(__builtin_frame_address(0)) + 2 * sizeof(void*);
  return 0;
}

TEST_CASE("a call of each kernel needs no more stack than the header states") {
  if (std::string(REWIRE_TEST_GCC) == "") {
    WARN("skipped: this compiler does not write call graphs");
    return;
  }
  const Makers makers = AllMakers();
  struct Drawn {
    Case call;
    Executable executable;
  };
  std::vector<Drawn> all;
  CLibrary library;
  std::uint32_t seed = 1000;
  for (const std::string& kernel : aot::EmbeddedKernelNames()) {
    INFO(kernel);
    Random random(++seed);
    Case call = makers.at(kernel)(random);
    Executable executable = Assembled(ProgramText(kernel, call, 0));
    EmitCOptions options;
    options.prefix = "k" + std::to_string(all.size());
    const Result<CSource> source = EmitC(executable, options, options.prefix + ".h");
    REQUIRE(source);
    CHECK_FALSE(source->stack_bytes);
    library.Add(options.prefix, *source);
    all.push_back({call, std::move(executable)});
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
#ifdef __x86_64__
  // GCC does not count what lies below the end of the stack.
  const std::string flags = "-fcallgraph-info=su -mno-red-zone";
#else
  const std::string flags = "-fcallgraph-info=su";
#endif
  library.Compile("-O1", "'" + folder + "'/*.c '" + folder + "'/*/*.c", flags);

  std::uint64_t stated = 0, needed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EmitCOptions options;
    options.prefix = "k" + std::to_string(i);
    options.call_graphs = library.CallGraphs();
    options.library_stack = 4096;  // what sanitizers put into the C library's functions, too
    const Result<CSource> source = EmitC(all[i].executable, options, options.prefix + ".h");
    if (!source) FAIL(source.error().message());
    REQUIRE(source->stack_bytes);
    CHECK_THAT(source->header, Catch::Contains("#define K" + std::to_string(i) + "_STACK_BYTES " +
                                               std::to_string(*source->stack_bytes) + "\n"));
    const bool calls_library = source->header.find("Of these, 4096 stand for each of: ") != std::string::npos;
    const auto& function = *library.Find<RewireAotFunctionInfo>(options.prefix + "_functions");
    std::vector<const void*> inputs;
    for (const Tensor& input : all[i].call.inputs) inputs.push_back(input.view().data());
    std::vector<std::vector<std::max_align_t>> memory;
    std::vector<void*> outputs;
    for (std::int32_t output = 0; output < function.output_count; ++output) {
      memory.emplace_back(function.outputs[output].bytes / sizeof(std::max_align_t) + 1);
      outputs.push_back(memory.back().data());
    }
    std::vector<std::max_align_t> arena(function.arena_bytes / sizeof(std::max_align_t) + 1);
    RewireAotFunctionInfo nothing = function;
    nothing.run = FindTop;
    Deepest({nothing, arena.data(), inputs.data(), outputs.data()});
    // The first call of a function of a library may look it up, which takes stack.
    const Call call{function, arena.data(), inputs.data(), outputs.data()};
    Deepest(call);
    const std::ptrdiff_t used = top - Deepest(call);
    REQUIRE(used > 0);
    INFO(ProgramText("kernel", all[i].call, 0));
    CHECK(static_cast<std::uint64_t>(used) <= *source->stack_bytes);
    if (calls_library) continue;
    stated += *source->stack_bytes;
    needed += static_cast<std::uint64_t>(used);
  }
  CHECK(needed * 4 > stated);
}

TEST_CASE("packed functions stand in no call graph") {
  Random random(1);
  EmitCOptions options;
  options.kernels = CKernels::kPacked;
  options.call_graphs["a.ci"] = NodeOf("model_main", 8);
  const Case call{{}, {random.Floats({2})}, {"f32[2]"}};
  const Result<CSource> source = EmitC(Assembled(ProgramText("rewire.neg", call, 0)), options, "model.h");
  REQUIRE_FALSE(source);
  CHECK(source.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(source.error().message(), Catch::Equals("packed functions stand in no call graph; leave out "
                                                     "--stack-usage, or use --kernels embedded"));
}

}  // namespace
}  // namespace rewire::test
