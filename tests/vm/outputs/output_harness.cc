// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/outputs/output_harness.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "executable_format/text/assembler.h"
#include "vm/host_function.h"

namespace rewire::test {
namespace {

using kernel::TensorView;

std::int64_t Count(const TensorView& tensor) { return tensor.size(); }

}  // namespace

void AddTestKernels(KernelSet* kernels, KernelLog* log) {
  const auto note = [log](const TensorView& out) {
    if (log != nullptr) log->written.push_back(out.data<float>());
  };
  for (int n = 0; n < 8; ++n) {
    kernels->AddFunction("fill_" + std::to_string(n),
                         MakePackedFunction([=](TensorView out) -> kernel::Status {
                           note(out);
                           for (std::int64_t i = 0; i < Count(out); ++i)
                             out.data<float>()[i] = static_cast<float>(n);
                           return {};
                         }));
  }
  kernels->AddFunction("inc", MakePackedFunction([=](TensorView x, TensorView out) -> kernel::Status {
                         note(out);
                         for (std::int64_t i = 0; i < Count(out); ++i)
                           out.data<float>()[i] = x.data<float>()[i] + 1;
                         return {};
                       }));
  kernels->AddFunction("add",
                       MakePackedFunction([=](TensorView x, TensorView y, TensorView out) -> kernel::Status {
                         note(out);
                         for (std::int64_t i = 0; i < Count(out); ++i) {
                           out.data<float>()[i] = x.data<float>()[i] + y.data<float>()[i];
                         }
                         return {};
                       }));
  kernels->AddFunction("copy", MakePackedFunction([=](TensorView x, TensorView out) -> kernel::Status {
                         note(out);
                         std::memmove(out.data<float>(), x.data<float>(),
                                      static_cast<std::size_t>(Count(out)) * 4);
                         return {};
                       }));
  kernels->AddFunction("bump", MakePackedFunction([=](TensorView step, TensorView out) -> kernel::Status {
                         note(out);
                         const float value = step.data<float>()[0];
                         out.data<float>()[static_cast<std::int64_t>(value)] = value;
                         return {};
                       }));
  kernels->AddFunction("two", MakePackedFunction([=](TensorView first, TensorView second) -> kernel::Status {
                         note(first);
                         note(second);
                         for (std::int64_t i = 0; i < Count(first); ++i) first.data<float>()[i] = 1;
                         for (std::int64_t i = 0; i < Count(second); ++i) second.data<float>()[i] = 2;
                         return {};
                       }));
}

Program LinkText(const std::string& text, KernelLog* log, LinkOptions options) {
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  AddTestKernels(&options.kernels, log);
  options.storage_fill = StorageFill::kPoison;
  Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) FAIL(program.error().message());
  return *program;
}

}  // namespace rewire::test
