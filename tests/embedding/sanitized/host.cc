// SPDX-License-Identifier: Apache-2.0
// Calls virtual functions of what the library has made, has the library call those of its own classes, and
// catches what the library throws. A sanitizer that checks types must find nothing.
#include <rewire/vm/vm.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

class Counter : public rewire::Observer {
 public:
  bool wants_kernels() const override { return true; }
  void OnKernel(const KernelCall& call) override { calls_ += call.ok ? 1 : 0; }
  int calls() const { return calls_; }

 private:
  int calls_ = 0;
};

class Nothing : public rewire::KernelSource {
 public:
  Found Find(const std::string& /*name*/) const override { return {}; }
  rewire::Array<std::string> Names() const override { return {}; }
  std::string Description() const override { return "nothing"; }
};

int Failed(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::shared_ptr<rewire::ThreadPool> serial = rewire::ThreadPool::Serial();
  if (serial->thread_count() != 1) return Failed("the serial pool has other threads");
  rewire::LinkOptions options;
  options.threads = rewire::ThreadPool::Make(2);
  if (options.threads->thread_count() < 1) return Failed("the pool has no thread");
  options.kernels.AddFunction("host.nothing", {});
  options.kernels.AddSource(std::make_shared<Nothing>());
  std::size_t names = 0;
  for (const auto& source : options.kernels.sources()) {
    names += source->Names().size() + (source->Description().empty() ? 0 : 1);
  }
  if (names < 3) return Failed("a source has no name");
  try {
    rewire::Program::Open("/no/such/file.rwx");
    return Failed("what is not there was opened");
  } catch (const std::exception& error) {
    const auto* own = dynamic_cast<const rewire::Error*>(&error);
    if (own == nullptr || own->code() != rewire::StatusCode::kNotFound) return Failed(error.what());
  }
  if (argc < 2) return 0;
  const rewire::Program program = rewire::Program::Open(argv[1], options);
  rewire::VirtualMachine vm(program);
  Counter counter;
  vm.SetObserver(&counter);
  const rewire::Function& main = program.executable().module().functions[*program.FindFunction("")];
  for (std::uint32_t i = 0; i < main.inputs.size(); ++i) {
    const rewire::TypeNode& type = main.inputs[i].type.nodes[0];
    std::vector<std::int64_t> shape(type.dims.begin(), type.dims.end());
    for (std::int64_t& dim : shape) dim = dim < 0 ? 1 : dim;
    const rewire::Result<rewire::Tensor> tensor =
        rewire::Tensor::Make(type.dtype, {shape.data(), shape.size()});
    if (!tensor) return Failed(tensor.error().what());
    std::fill_n(static_cast<char*>(tensor->dl().data), tensor->view().bytes(), '\0');
    vm.SetInput(rewire::InputHandle{*program.FindFunction(""), i}, rewire::Value(*tensor));
  }
  vm.Invoke();
  return counter.calls() > 0 ? 0 : Failed("the observer has seen no kernel");
}
