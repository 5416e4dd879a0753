// SPDX-License-Identifier: Apache-2.0
//
// Generates tokens with a compiled language model (model.py) and prints each one as it is made.
//
// The loop over tokens is part of the program: one Invoke makes the whole text. The caches of keys and values
// lie in memory of this process. The program fills them in place, because they are donated.
#include <rewire/vm/host_function.h>
#include <rewire/vm/vm.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

namespace kernel = rewire::kernel;

struct Options {
  std::string model;
  std::vector<std::int64_t> prompt;
  std::int64_t most = 64, stop = -1, capacity = 512;
  std::uint32_t seed = 1;
  int threads = 1;
  bool quiet = false;
};

// The program calls this with each token as it is made, `host.token`. It gives the token back, and the
// program goes on with what it gets.
class TokenPrinter {
 public:
  explicit TokenPrinter(bool quiet) : quiet_(quiet) {}

  kernel::Status operator()(kernel::TensorView token, kernel::TensorView out) const {
    if (!token.Is<std::int64_t>() || token.size() != 1 || !out.Is<std::int64_t>() || out.size() != 1)
      return kernel::ValueError("token has shape ", token.dims(), ", expected one i64");
    *out.data<std::int64_t>() = *token.data<std::int64_t>();
    if (quiet_) return {};
    std::printf("%lld ", static_cast<long long>(*token.data<std::int64_t>()));
    std::fflush(stdout);
    return {};
  }

 private:
  bool quiet_;
};

// A cache for an input such as past_key.0, f32 [1, heads, capacity, size]. The program returns it as
// present_key.0.
struct Cache {
  std::string past, present;
  std::int64_t shape[4];
  std::vector<float> memory;
};

std::vector<Cache> MakeCaches(const rewire::Program& program, std::int64_t capacity) {
  std::vector<Cache> caches;
  const rewire::Module& module = program.executable().module();
  const rewire::Function& function = module.functions[*program.FindFunction("main")];
  for (const rewire::NamedType& input : function.inputs) {
    const std::string& name = input.name;
    if (name.rfind("past_", 0) != 0) continue;
    const rewire::TypeNode& type = input.type.nodes[0];
    Cache cache{name, "present_" + name.substr(5), {}, {}};
    std::int64_t size = 1;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int64_t dim = type.dims[i];
      cache.shape[i] = dim >= 0 ? dim : capacity;
      size *= cache.shape[i];
    }
    cache.memory.resize(static_cast<std::size_t>(size));
    caches.push_back(std::move(cache));
  }
  return caches;
}

void Generate(const Options& options) {
  rewire::LinkOptions link;
  link.threads = rewire::ThreadPool::Make(options.threads);
  link.kernels.AddFunction("host.token", rewire::MakePackedFunction(TokenPrinter(options.quiet)));
  const rewire::Program program = rewire::Program::Open(options.model, std::move(link));
  rewire::VirtualMachine vm(program);

  std::vector<Cache> caches = MakeCaches(program, options.capacity);
  for (Cache& cache : caches) {
    vm.SetInput(cache.past,
                rewire::TensorView(cache.memory.data(), rewire::DTypeOf<float>(), {cache.shape, 4}));
    vm.Donate(cache.past, cache.present);
  }
  const auto length = static_cast<std::int64_t>(options.prompt.size());
  vm.SetInput("prompt", rewire::TensorView(options.prompt.data(), {1, length}));
  vm.SetInput("most", rewire::TensorView(&options.most, {}));
  vm.SetInput("stop", rewire::TensorView(&options.stop, {1}));
  std::vector<float> numbers(static_cast<std::size_t>(options.most));
  if (program.FindInput("numbers")) {  // the model draws from the likeliest tokens by numbers from 0 to 1
    std::mt19937 random(options.seed);
    for (float& number : numbers) number = static_cast<float>(random() >> 8) * 0x1p-24F;
    vm.SetInput("numbers", rewire::TensorView(numbers.data(), {options.most}));
  }

  const auto start = std::chrono::steady_clock::now();
  vm.Invoke();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const rewire::Tensor tokens = vm.Output("tokens");  // with -1 behind the last one
  std::int64_t made = 0;
  while (made < options.most && tokens.data<std::int64_t>()[made] >= 0) ++made;
  std::printf("\n%lld tokens, %.3f ms a token, with a prompt of %lld\n", static_cast<long long>(made),
              time.count() / static_cast<double>(made), static_cast<long long>(length));
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Generates tokens with a language model and prints each one as it is made.");
  Options options;
  app.add_option("MODEL", options.model, "the model that vm-compile made of model.py's generate.onnx")
      ->required();
  app.add_option("--prompt", options.prompt, "tokens to begin with")->required();
  app.add_option("--most", options.most, "how many tokens to make at most")->check(CLI::Range(1, 1 << 20));
  app.add_option("--stop", options.stop, "the token that ends a text; -1: none");
  app.add_option("--capacity", options.capacity, "positions of the caches; prompt and tokens must fit");
  app.add_option("--seed", options.seed, "for models that draw tokens");
  app.add_option("--threads", options.threads, "threads that kernels use")->check(CLI::Range(1, 1024));
  app.add_flag("--quiet", options.quiet, "print the time alone");
  CLI11_PARSE(app, argc, argv);
  Generate(options);
} catch (const rewire::Error& error) {
  std::fprintf(stderr, "generate: %s\n", error.what());
  return 1;
}
