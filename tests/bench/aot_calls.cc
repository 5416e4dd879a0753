// SPDX-License-Identifier: Apache-2.0
//
// bench-aot MODEL.rwx MODEL.so KERNELS.so|- OTHER.so|- ROUNDS: calls of one program, by the VM and as C
// source.
//
// MODEL.so is what vm-aot made of the executable, with the prefix `model`; with --kernels packed,
// packed_host.c is in it, too, and KERNELS.so has the stock kernels. OTHER.so has `void other_run(const void*
// const* inputs, void* const* outputs)`, which computes the same. Slices of all forms take turns, so that all
// meet the same load. A figure is the median over the rounds of the thread's CPU time for each call.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/function_info.h"
#include "rewire/compiler/aot/packed_host.h"
#include "rewire/tests/bench/statistics.h"
#include "rewire/vm/vm.h"

namespace rewire::bench {
namespace {

constexpr double kSliceSeconds = 0.004;

using OtherRun = void (*)(const void* const* inputs, void* const* outputs);

[[noreturn]] void Fail(const std::string& text) {
  std::fprintf(stderr, "bench-aot: %s\n", text.c_str());
  std::exit(1);
}
void Require(bool holds, const std::string& text) {
  if (!holds) Fail(text);
}

void* Open(const char* path) {
  void* const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  Require(library != nullptr, std::string("cannot open ") + path);
  return library;
}
template <typename T>
T* Find(void* library, const char* symbol) {
  void* const found = dlsym(library, symbol);
  Require(found != nullptr, std::string(symbol) + " is not there");
  return reinterpret_cast<T*>(found);
}

int EmptyKernel(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return 0; }

// The kernels of a source that calls packed functions, from the library of stock kernels. One called "empty"
// does nothing.
std::vector<RewireAotKernel> LinkKernels(void* model, const char* path) {
  const auto* const imports = Find<const RewireAotImport>(model, "model_imports");
  const int count = *Find<const int>(model, "model_kernel_count");
  std::vector<RewireAotKernel> kernels(static_cast<std::size_t>(count));
  void* const stock = Open(path);
  *Find<const RewireKernelApi*>(stock, "__rewire_kernel_api") =
      Find<const RewireKernelApi*()>(model, "RewireAotKernelApi")();
  const auto* const table = Find<const RewireKernelTable>(stock, "__rewire_kernel_table");
  auto* const link = Find<decltype(RewireAotLink)>(model, "RewireAotLink");
  for (int i = 0; i < count; ++i) {
    RewireAotKernel& kernel = kernels[static_cast<std::size_t>(i)];
    std::int32_t failed = 0;
    if (std::strcmp(imports[i].name, "empty") == 0) {
      kernel.call = EmptyKernel;
    } else {
      Require(link(imports + i, 1, table, &kernel, &failed) == 0,
              Find<const char*()>(model, "RewireAotError")());
    }
  }
  return kernels;
}

class Buffers {
 public:
  Buffers(const RewireAotTensorInfo* infos, std::int32_t count) {
    for (std::int32_t i = 0; i < count; ++i) {
      const RewireAotTensorInfo& info = infos[i];
      Require(std::strcmp(info.dtype, "f32") == 0, std::string(info.name) + " is no tensor of floats");
      floats_.emplace_back(info.bytes / sizeof(float));
      dims_.emplace_back(info.dims, info.dims + info.rank);
    }
    for (std::vector<float>& floats : floats_) pointers_.push_back(floats.data());
  }
  void Draw() {
    std::mt19937 random(1);
    for (std::vector<float>& floats : floats_) {
      for (float& value : floats) value = static_cast<float>(random() % 1000) / 1000;
    }
  }
  TensorView View(std::size_t i) { return TensorView(floats_[i].data(), kFloat32, dims_[i]); }
  std::size_t size() const { return floats_.size(); }
  void* const* pointers() const { return pointers_.data(); }
  double DistanceTo(const Buffers& other) const {
    double most = 0;
    for (std::size_t i = 0; i < floats_.size(); ++i) {
      for (std::size_t k = 0; k < floats_[i].size(); ++k)
        most = std::max(most, std::fabs(static_cast<double>(floats_[i][k]) - other.floats_[i][k]));
    }
    return most;
  }

 private:
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<std::int64_t>> dims_;
  std::vector<void*> pointers_;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Form {
  const char* name;
  std::function<void()> call;
  long calls = 1;
  std::vector<double> nanoseconds{};

  double Slice() {
    const double begin = CpuSeconds();
    for (long i = 0; i < calls; ++i) call();
    return CpuSeconds() - begin;
  }
  void Calibrate() {
    while (Slice() < kSliceSeconds / 2) calls *= 2;
  }
};

int Main(int argc, char** argv) {
  Require(argc == 6, "usage: bench-aot MODEL.rwx MODEL.so KERNELS.so|- OTHER.so|- ROUNDS");
  const auto is_given = [&](int i) { return std::strcmp(argv[i], "-") != 0; };
  LinkOptions options;
  PackedFunction empty;
  empty.call = EmptyKernel;
  options.kernels.AddFunction("empty", empty);
  VirtualMachine vm(Program::Open(argv[1], std::move(options)));

  void* const model = Open(argv[2]);
  const RewireAotFunctionInfo& function = *Find<const RewireAotFunctionInfo>(model, "model_functions");
  std::vector<RewireAotKernel> kernels;
  if (is_given(3)) kernels = LinkKernels(model, argv[3]);
  Buffers inputs(function.inputs, function.input_count);
  Buffers of_vm(function.outputs, function.output_count), of_c(function.outputs, function.output_count),
      of_other(function.outputs, function.output_count);
  inputs.Draw();
  std::vector<std::byte> arena(function.arena_bytes + 64);
  void* memory = arena.data();
  std::size_t room = arena.size();
  std::align(64, function.arena_bytes, memory, room);

  for (std::size_t i = 0; i < inputs.size(); ++i) vm.SetInput(static_cast<std::uint32_t>(i), inputs.View(i));
  for (std::size_t i = 0; i < of_vm.size(); ++i) vm.SetOutput(static_cast<std::uint32_t>(i), of_vm.View(i));
  std::vector<Form> forms;
  forms.push_back({"vm", [&] { vm.Invoke(std::string_view()); }});
  forms.push_back({"c", [&] {
                     const int code = function.run(kernels.data(), memory, nullptr, nullptr,
                                                   inputs.pointers(), of_c.pointers());
                     if (code != 0) Fail("the C function returned " + std::to_string(code));
                   }});
  if (is_given(4)) {
    auto* const other = Find<std::remove_pointer_t<OtherRun>>(Open(argv[4]), "other_run");
    forms.push_back({"other", [&, other] { other(inputs.pointers(), of_other.pointers()); }});
  }
  for (Form& form : forms) form.Calibrate();
  for (int round = std::atoi(argv[5]); round > 0; --round) {
    for (Form& form : forms) form.nanoseconds.push_back(1e9 * form.Slice() / static_cast<double>(form.calls));
  }
  nlohmann::json figures;
  for (const Form& form : forms) figures[form.name] = Summarize(form.nanoseconds).median;
  figures["difference"] = of_c.DistanceTo(of_vm);
  if (is_given(4)) figures["difference of other"] = of_other.DistanceTo(of_vm);
  std::printf("%s\n", figures.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) { return rewire::bench::Main(argc, argv); }
