// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as an ONNX model. What compiles is a valid executable. Inputs are changed as bytes and
// as models (onnx_mutator.h).
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_onnx
//   tests/fuzz/run.sh build/asan-ubsan 60
//
// ONNX's own operator cases, where Debian's libonnx-testdata has put them, are its corpus; inputs that once
// failed are kept in corpus/onnx.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/executable_format/executable.h"
#include "rewire/tests/fuzz/onnx_mutator.h"
#include "rewire/vm/vm.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  // It says on stderr what it could not parse.
  google::protobuf::SetLogHandler(nullptr);
  // libFuzzer reads the counters of a library after it was closed.
  static auto* kept = new rewire::KernelSet;
  (void)kept->AddLibrary("librewire_kernels_cpu.so");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  rewire::test::MutateModel(&model, seed);
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rewire;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto owner = std::make_shared<const std::vector<std::byte>>(bytes, bytes + size);
  const SharedBytes file{{owner->data(), owner->size()}, owner};
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled = compiler::CompileOnnx(file, "", "model", {}, &unsupported);
  if (!compiled) {
    if (compiled.error().message().empty()) std::abort();
    return 0;
  }
  const Result<Executable> opened = Executable::FromModule(std::move(compiled->module));
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    std::abort();
  }
  return 0;
}
