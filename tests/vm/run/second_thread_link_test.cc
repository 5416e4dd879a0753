// SPDX-License-Identifier: Apache-2.0
//
// While a VM runs, a second thread uses what its Program was linked with and what it reads and writes: the
// kernels, their sources, the options, the thread pool, and tensors. All of them give their documented
// answer.
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/vm/run/second_thread.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

constexpr char kKernelSet[] = "vm/kernel_set.h";

KernelImport Import(const char* name) {
  KernelImport import;
  import.name = name;
  return import;
}

// Links the program of the run again, with one option changed.
template <typename Change>
std::function<bool()> Links(const Program& program, const LinkOptions& options, const Change& change) {
  return [&program, &options, change] {
    LinkOptions own = options;
    change(&own);
    return Program::Link(program.executable(), std::move(own)).has_value();
  };
}

TEST_CASE("a second thread uses the kernels, options, pool and tensors of a run") {
  static const RewireKernelTable kNone = {sizeof(RewireKernelTable), 0, nullptr, nullptr};
  Gate gate;
  LinkOptions options;
  options.threads = ThreadPool::Make(2);
  options.kernels.AddFunction("test.gate", MakePackedFunction([&gate] { gate.Pass(); }));
  const Program program = GatedProgram(&gate, options);
  VirtualMachine vm(program);
  float memory[3] = {4, 5, 6};
  float output[3] = {};
  const TensorView view(memory, {3});
  vm.SetInput("x", view);
  const Value given(Floats({1, 2, 3}));
  vm.SetOutput(0, TensorView(output, {3}));
  const auto same = [&](const Tensor& tensor) { return FloatsOf(tensor) == std::vector<float>{1, 2, 3}; };
  Tensor own = given.tensor();  // a handle of the second thread's own

  const auto links = [&](const auto& change) { return Links(program, options, change); };
  const std::vector<SharedRow> of_options = {
      {"kernels", links([](auto* o) { o->kernels.AddFunction("own", MakePackedFunction([] {})); })},
      {"stock_kernels", links([](auto* o) { o->stock_kernels = false; })},
      {"parameters", links([](auto* o) { o->parameters.push_back(ParameterSet()); })},
      {"ignore_extra_parameters", links([](auto* o) { o->ignore_extra_parameters = true; })},
      {"threads", links([](auto* o) { o->threads = ThreadPool::Make(3); })},
      {"allocator", links([](auto* o) { o->allocator = DefaultAllocator(); })},
      {"log", links([](auto* o) { o->log.write = [](void*, const char*, std::size_t) {}; })},
      {"codecs", links([](auto* o) { o->codecs = {}; })},
      {"limits", links([](auto* o) { o->limits.bytes /= 2; })},
      {"init_limits", links([](auto* o) { o->init_limits.steps = 5; })},
      {"init_sharing", links([](auto* o) { o->init_sharing = ShareInitResults(); })},
      {"storage_fill", links([](auto* o) { o->storage_fill = StorageFill::kPoison; })},
      {"devices", links([](auto* o) { o->devices = {}; })},
      {"stock_devices", links([](auto* o) { o->stock_devices = false; })},
      {"trust_device_code", links([](auto* o) { o->trust_device_code = true; })},
  };
  KernelSet set = options.kernels;  // a copy, which shares the sources
  const std::vector<SharedRow> of_kernels = {
      {"AddFunction",
       [&] {
         set.AddFunction("own", MakePackedFunction([] {}));
         return set.Resolve(Import("own")).has_value() && !options.kernels.Resolve(Import("own"));
       }},
      {"AddTable",
       [&] {
         set.AddTable(kNone, "a table of nothing");
         return set.sources().back()->Names().empty();
       }},
      {"AddLibrary", [&] { return set.AddLibrary("/none.so").code() == StatusCode::kNotFound; }},
      {"AddSource",
       [&] {
         const std::size_t before = set.sources().size();
         set.AddSource(set.sources().front());
         return set.sources().size() == before + 1;
       }},
      {"sources", [&] { return !options.kernels.sources().empty(); }},
      {"Resolve", [&] { return options.kernels.Resolve(Import("test.gate")).has_value(); }},
  };
  const KernelSource& source = *options.kernels.sources().front();
  const std::vector<SharedRow> of_source = {
      {"Find", [&] { return source.Find("test.gate").function.call != nullptr; }},
      {"Names", [&] { return source.Names() == Array<std::string>{"test.gate"}; }},
      {"Description", [&] { return !source.Description().empty(); }},
      {"Describe", [&] { return source.Describe("test.gate").documentation.empty(); }},
  };
  const std::vector<SharedRow> of_pool = {
      {"thread_count", [&] { return options.threads->thread_count() >= 1; }},
      {"ParallelFor",
       [&] {
         std::vector<std::int64_t> seen(1000);
         options.threads->ParallelFor(
             0, 1000, 1,
             [](void* data, std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i)
                 (*static_cast<std::vector<std::int64_t>*>(data))[i] = i;
             },
             &seen);
         return std::accumulate(seen.begin(), seen.end(), std::int64_t{0}) == 499500;
       }},
      {"Serial", [] { return ThreadPool::Serial()->thread_count() == 1; }},
      {"Make", [] { return ThreadPool::Make(2)->thread_count() <= 2; }},
  };
  const std::vector<SharedRow> of_tensors = {
      {"Make", [&] { return Tensor::Make(kFloat32, own.shape()).has_value(); }},
      {"CopyOf", [&] { return same(*Tensor::CopyOf(own.view())); }},
      {"FromDLPack",
       [&] {
         return same(*Tensor::FromDLPack(own.ToDLPack())) &&
                same(*Tensor::FromDLPack(own.ToDLPackVersioned()));
       }},
      {"Wrap", [&] { return Tensor::Wrap(view, nullptr)->dl().data == memory; }},
      {"dl", [&] { return own.dl().ndim == 1; }},
      {"view", [&] { return own.view().size() == 3; }},
      {"TryData", [&] { return (*own.TryData<float>())[2] == 3; }},
      {"data", [&] { return own.data<float>() == given.tensor().data<float>(); }},
      {"shape", [&] { return own.shape()[0] == 3; }},
      {"dtype", [&] { return own.dtype() == kFloat32; }},
      {"ToDLPack", [] { return true; }},           // above
      {"ToDLPackVersioned", [] { return true; }},  // above
  };
  const std::vector<SharedRow> of_views = {
      {"dl", [&] { return view.dl().data == memory; }},
      {"MoveTo",
       [&] {
         TensorView copy = view;
         copy.MoveTo(output);
         return copy.data() == output && view.data() == memory;
       }},
      {"data", [&] { return view.data() == memory; }},
      {"dtype", [&] { return view.dtype() == kFloat32; }},
      {"shape", [&] { return view.shape()[0] == 3; }},
      {"device", [&] { return IsHostDevice(view.device()); }},
      {"read_only", [&] { return !view.read_only(); }},
      {"IsContiguous", [&] { return view.IsContiguous(); }},
      {"size", [&] { return view.size() == 3; }},
      {"bytes", [&] { return view.bytes() == 12; }},
  };
  CHECK(NamesOf(of_options) == Declared("vm/program.h", "struct LinkOptions {", "};", kVariable));
  CHECK(NamesOf(of_kernels) == Members(kKernelSet, "KernelSet"));
  CHECK(NamesOf(of_source) == Members(kKernelSet, "KernelSource", "class REWIRE_API KernelSet"));
  CHECK(NamesOf(of_pool) == Members("vm/thread_pool.h", "ThreadPool", "\n};"));
  CHECK(NamesOf(of_tensors) == Members("vm/tensor.h", "Tensor"));
  CHECK(NamesOf(of_views) == Members("vm/tensor.h", "TensorView"));
  const Status ran = DuringRun(&gate, &vm, [&] {
    for (const auto* rows : {&of_options, &of_kernels, &of_source, &of_pool, &of_tensors, &of_views}) {
      for (const SharedRow& row : *rows) {
        INFO(row.name);
        CHECK(row.right());
      }
    }
  });
  CHECK(MessageOf(ran) == "");
  CHECK(std::vector<float>(output, output + 3) == std::vector<float>{4, 5, 6});
}

}  // namespace
}  // namespace rewire::test
