// SPDX-License-Identifier: Apache-2.0
// Compiles a model from a program, runs it, and shows why another one cannot be compiled.
#include <rewire/compiler/compiler.h>
#include <rewire/vm/vm.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

// Fields of protobuf, in which ONNX models are written: a number, and a varint or bytes.
std::string Number(int field, int value) { return {static_cast<char>(field << 3), static_cast<char>(value)}; }
std::string Bytes(int field, const std::string& bytes) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// A float vector of 4 elements.
std::string Vector(const std::string& name) {
  const std::string shape = Bytes(1, Number(1, 4));
  return Bytes(1, name) + Bytes(2, Bytes(1, Number(1, 1) + Bytes(2, shape)));
}

// y = op(x)
std::string Model(const std::string& op) {
  const std::string node = Bytes(1, "x") + Bytes(2, "y") + Bytes(4, op);
  const std::string graph = Bytes(1, node) + Bytes(2, "g") + Bytes(11, Vector("x")) + Bytes(12, Vector("y"));
  return Number(1, 7) + Bytes(7, graph) + Bytes(8, Bytes(1, "") + Number(2, 13));
}

void Write(const char* path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace

int main() {
  Write("relu.onnx", Model("Relu"));
  Write("relo.onnx", Model("Relo"));
  const rewire::Result<rewire::Compilation> compiled = rewire::Compile("relu.onnx");
  if (!compiled) {
    std::puts(compiled.error().what());
    return 1;
  }
  std::printf("%zu node, %zu kernel calls\n", compiled->report.model_nodes, compiled->report.kernel_calls);
  if (const rewire::Status written = rewire::WriteExecutable(compiled->executable, "relu.rwx"); !written) {
    std::puts(written.error().what());
    return 1;
  }
  const rewire::Result<rewire::Program> program = rewire::Program::TryOpen("relu.rwx");
  if (!program) {
    std::puts(program.error().what());
    return 1;
  }
  rewire::VirtualMachine vm(*program);
  const std::vector<float> x = {-1, 2, -3, 4};
  std::vector<float> y(4);
  rewire::Status ok = vm.TrySetInput("x", rewire::TensorView(x.data(), {4}));
  if (ok) ok = vm.TrySetOutput("y", rewire::TensorView(y.data(), {4}));
  if (ok) ok = vm.TryInvoke();
  if (!ok) {
    std::puts(ok.error().what());
    return 1;
  }
  std::printf("relu: %g %g %g %g\n", y[0], y[1], y[2], y[3]);

  std::vector<rewire::UnsupportedNode> unsupported;
  const std::string wrong = Model("Relo");
  const rewire::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(wrong.data()), wrong.size());
  if (rewire::CompileBytes(bytes, "", "wrong", {}, &unsupported) || unsupported.size() != 1) return 1;
  std::printf("%s of '%s' is not supported: %s\n", unsupported[0].op_type.c_str(),
              unsupported[0].domain.c_str(), unsupported[0].reason.c_str());
}
