// SPDX-License-Identifier: Apache-2.0
// Generates tokens as examples/generate does, several prompts in turn, and prints them, a line for each
// prompt.
//
//   generated_tokens MODEL CAPACITY MOST THREADS NUMBERS PROMPT...      a prompt is "1,2,3"
//
// NUMBERS is a file of float32 for models that draw tokens, or "". Exits with 1 if a step from the second
// token on allocates anything, by the program's allocator or by malloc, if it appends to a cache that is not
// the caller's memory, or if an output is copied.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/support/malloc_watch.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

std::vector<std::int64_t> ReadTokens(const std::string& text) {
  std::vector<std::int64_t> tokens;
  std::istringstream stream(text);
  for (std::string token; std::getline(stream, token, ',');) tokens.push_back(std::atoll(token.c_str()));
  return tokens;
}

// The steps between the first token and the last.
struct Steps {
  Steps(const TestAllocator& of, std::int64_t all) : allocator(of), most(all) {
    times.reserve(static_cast<std::size_t>(most));
  }
  const TestAllocator& allocator;
  std::int64_t most, made = 0, allocations = 0;
  std::uint64_t mallocs = 0;
  std::vector<double> times;  // when tokens were made, in milliseconds

  // The prompt makes the first token, and turns of the loop make all others.
  void OnToken() {
    ++made;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    times.push_back(std::chrono::duration<double, std::milli>(now).count());
    if (made == most) {
      mallocs = StopMallocWatch();
      allocations = allocator.calls() - allocations;
    }
    if (made == 1 && most > 1) {
      allocations = allocator.calls();
      StartMallocWatch();
    }
  }
};

// Looks at where caches are appended to.
class CacheWatch : public Observer {
 public:
  bool wants_kernels() const override { return true; }
  void OnKernel(const KernelCall& call) override {
    const std::string& name = call.module.kernels[call.kernel].name;
    if (name != "rewire.cache.append") return;
    const DLTensor* out = RewireTensorOf(&call.args[call.args.size() - 1]);
    const DLTensor* cache = RewireTensorOf(&call.args[0]);
    ++appended;
    if (!memory.contains(out->data) || out->data != cache->data) ++elsewhere;
  }
  std::set<const void*> memory;
  std::int64_t appended = 0, elsewhere = 0;
};

struct Cache {
  std::string past, present;
  std::vector<std::int64_t> shape;
  std::vector<float> memory;
};

std::vector<Cache> MakeCaches(const Program& program, std::int64_t capacity) {
  std::vector<Cache> caches;
  for (const NamedType& input :
       program.executable().module().functions[*program.FindFunction("main")].inputs) {
    if (input.name.rfind("past_", 0) != 0) continue;
    Cache cache{input.name, "present_" + input.name.substr(5), {}, {}};
    std::size_t size = 1;
    for (const rewire::Dim dim : input.type.nodes[0].dims) {
      cache.shape.push_back(dim >= 0 ? dim : capacity);
      size *= static_cast<std::size_t>(cache.shape.back());
    }
    cache.memory.resize(size);
    caches.push_back(std::move(cache));
  }
  return caches;
}

int Main(char** argv, int prompts) {
  const std::int64_t capacity = std::atoll(argv[2]), most = std::atoll(argv[3]), stop = -1;
  std::vector<float> numbers(static_cast<std::size_t>(most));
  if (*argv[5] != 0) {
    std::ifstream file(argv[5], std::ios::binary);
    file.read(reinterpret_cast<char*>(numbers.data()), most * 4);
    if (!file) return fmt::print(stderr, "{} has fewer than {} numbers\n", argv[5], most), 2;
  }
  TestAllocator allocator;
  Steps steps(allocator, most);
  CacheWatch watch;
  const bool is_timed = std::getenv("GENERATED_TOKENS_TIMES") != nullptr;
  LinkOptions options;
  options.allocator = allocator.allocator();
  options.threads = ThreadPool::Make(std::atoi(argv[4]));
  options.kernels.AddFunction("host.token",
                              MakePackedFunction([&](kernel::TensorView x, kernel::TensorView out) {
                                std::memcpy(out.raw_data(), x.raw_data(), sizeof(std::int64_t));
                                steps.OnToken();
                              }));
  const Program program = Program::Open(argv[1], std::move(options));
  VirtualMachine vm(program);
  vm.RequireZeroCopy(true);
  if (!is_timed) vm.SetObserver(&watch);
  std::vector<Cache> caches = MakeCaches(program, capacity);
  for (Cache& cache : caches) {
    vm.SetInput(cache.past,
                TensorView(cache.memory.data(), kFloat32, {cache.shape.data(), cache.shape.size()}));
    vm.Donate(cache.past, cache.present);
    watch.memory.insert(cache.memory.data());
  }
  vm.SetInput("most", TensorView(&most, {}));
  vm.SetInput("stop", TensorView(&stop, {1}));
  if (program.FindInput("numbers")) vm.SetInput("numbers", TensorView(numbers.data(), {most}));
  int faults = 0;
  for (int i = 0; i < prompts; ++i) {
    const std::vector<std::int64_t> prompt = ReadTokens(argv[6 + i]);
    vm.SetInput("prompt", TensorView(prompt.data(), {1, static_cast<std::int64_t>(prompt.size())}));
    steps.made = 0;
    steps.times.clear();
    vm.Invoke();
    const Tensor tokens = vm.Output("tokens");
    std::string line;
    for (std::int64_t k = 0; k < most; ++k) line += fmt::format("{} ", tokens.data<std::int64_t>()[k]);
    fmt::print("{}\n", line);
    if (is_timed) {
      line.clear();
      for (std::size_t k = 1; k < steps.times.size(); ++k)
        line += fmt::format("{:.4f} ", steps.times[k] - steps.times[k - 1]);
      fmt::print("{}\n", line);
    }
    const bool right =
        steps.made == most && watch.elsewhere == 0 &&
        (is_timed || watch.appended == static_cast<std::int64_t>(caches.size()) * most * (i + 1));
    if (right && steps.allocations == 0 && steps.mallocs == 0) continue;
    fmt::print(stderr,
               "prompt {}: {} tokens, {} appended to caches, {} of them elsewhere; the steps took {} "
               "allocations of the "
               "program and {} of malloc\n",
               i, steps.made, watch.appended, watch.elsewhere, steps.allocations, steps.mallocs);
    ++faults;
  }
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) try {
  if (argc < 7) {
    fmt::print(stderr, "usage: generated_tokens MODEL CAPACITY MOST THREADS NUMBERS PROMPT...\n");
    return 2;
  }
  return rewire::test::Main(argv, argc - 6);
} catch (const rewire::Error& error) {
  fmt::print(stderr, "generated_tokens: {}\n", error.what());
  return 2;
}
