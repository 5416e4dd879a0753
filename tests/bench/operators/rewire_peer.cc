// SPDX-License-Identifier: Apache-2.0
// Rewire as a peer of the benchmark of operators: the model is compiled in the process, with all passes.
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "rewire/compiler/compiler.h"
#include "rewire/tests/bench/peer.h"
#include "rewire/vm/vm.h"

namespace rewire::bench {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TensorView Over(const HostTensor& tensor) {
  auto* data = const_cast<std::byte*>(tensor.bytes.view.data());
  return TensorView(static_cast<void*>(data), tensor.dtype, {tensor.shape.data(), tensor.shape.size()});
}

class RewirePeer : public Peer {
 public:
  explicit RewirePeer(const PeerSettings& settings) {
    const std::string model = ReadFile(settings.model);
    const auto* bytes = reinterpret_cast<const std::byte*>(model.data());
    const Result<Compilation> compiled = CompileBytes({bytes, model.size()}, "", settings.model);
    if (!compiled) throw std::runtime_error(compiled.error().message());
    const Result<Program> program = Program::Link(compiled->executable);
    if (!program) throw std::runtime_error(program.error().message());
    vm_.emplace(*program);
  }
  void Bind(const NamedTensors& inputs, const NamedTensors& outputs) override {
    for (const auto& [name, tensor] : inputs) vm_->SetInput(name, Over(tensor));
    for (const auto& [name, tensor] : outputs) vm_->SetOutput(name, Over(tensor));
  }
  void Run() override { vm_->Invoke(); }

 private:
  std::optional<VirtualMachine> vm_;
};

}  // namespace

std::unique_ptr<Peer> LoadRewire(const PeerSettings& settings) {
  return std::make_unique<RewirePeer>(settings);
}

}  // namespace rewire::bench
