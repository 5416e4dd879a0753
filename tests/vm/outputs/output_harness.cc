// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/outputs/output_harness.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

using kernel::TensorList;

// The accesses of each kernel beside computing.
class Access {
 public:
  explicit Access(KernelLog* log) : log_(log) {}

  template <typename T>
  T* Write(const kernel::TensorView& out) const {
    if (log_ != nullptr) log_->written.push_back(out.raw_data());
    return out.data<T>();
  }
  float Read(const kernel::TensorView& x, std::int64_t i) const {
    const float value = x.size() == 0 ? 0 : x.data<float>()[i % x.size()];
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (log_ != nullptr && bits == 0x01010101u * kPoisonByte) log_->read_poison = true;
    return value;
  }
  // out[i] = f(i)
  template <typename F>
  void Fill(const kernel::TensorView& out, F f) const {
    auto* data = Write<float>(out);
    for (std::int64_t i = 0; i < out.size(); ++i) data[i] = f(i);
  }

 private:
  KernelLog* log_;
};

}  // namespace

void AddTestKernels(KernelSet* kernels, KernelLog* log) {
  const Access access(log);
  const auto add = [kernels](const std::string& name, auto kernel) {
    kernels->AddFunction(name, MakePackedFunction(kernel));
  };
  for (int n = 0; n < 8; ++n) {
    add("fill_" + std::to_string(n), [=](kernel::TensorView out) {
      access.Fill(out, [=](std::int64_t) { return static_cast<float>(n); });
    });
  }
  add("inc", [=](kernel::TensorView x, kernel::TensorView out) {
    access.Fill(out, [&](std::int64_t i) { return access.Read(x, i) + 1; });
  });
  add("add", [=](kernel::TensorView x, kernel::TensorView y, kernel::TensorView out) {
    access.Fill(out, [&](std::int64_t i) { return access.Read(x, i) + access.Read(y, i); });
  });
  add("mean", [=](kernel::TensorView x, kernel::TensorView y, kernel::TensorView out) {
    access.Fill(out, [&](std::int64_t i) { return (access.Read(x, i) + access.Read(y, i)) / 2; });
  });
  add("copy", [=](kernel::TensorView x, kernel::TensorView out) {
    access.Fill(out, [&](std::int64_t i) { return access.Read(x, i); });
  });
  add("sum", [=](TensorList args) {
    access.Fill(args.back(), [&](std::int64_t i) {
      float sum = 0;
      for (int k = 0; k + 1 < args.size(); ++k) sum += access.Read(args[k], i);
      return sum;
    });
  });
  add("like", [=](kernel::TensorView x, kernel::TensorView out) {
    access.Fill(out, [&](std::int64_t) { return static_cast<float>(x.size()); });
  });
  add("two", [=](kernel::TensorView first, kernel::TensorView second) {
    access.Fill(first, [](std::int64_t) { return 1.0F; });
    access.Fill(second, [](std::int64_t) { return 2.0F; });
  });
  add("fill_all", [=](TensorList outs) {
    for (int k = 0; k < outs.size(); ++k) {
      access.Fill(outs[k], [k](std::int64_t) { return static_cast<float>(3 + k); });
    }
  });
  add("give", [](const RewireFFIAny& x, RewireFFIAny* result) {
    if (IsObjectKind(x.type_index)) ObjectOf(x)->AddStrong();
    *result = x;
  });
  add("first", [=](kernel::TensorView out) { *access.Write<std::int64_t>(out) = 0; });
  add("next", [=](kernel::TensorView i, kernel::TensorView out) {
    *access.Write<std::int64_t>(out) = *i.data<std::int64_t>() + 1;
  });
  add("previous", [=](kernel::TensorView i, kernel::TensorView out) {
    *access.Write<std::int64_t>(out) = *i.data<std::int64_t>() - 1;
  });
}

Program LinkText(const std::string& text, KernelLog* log, LinkOptions options,
                 void (*change)(Module* module)) {
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  if (change != nullptr) change(&*module);
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  AddTestKernels(&options.kernels, log);
  options.storage_fill = StorageFill::kPoison;
  Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) FAIL(program.error().message());
  return *program;
}

}  // namespace rewire::test
