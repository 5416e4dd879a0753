// SPDX-License-Identifier: Apache-2.0
//
// While a compiled program runs, a second thread calls every function of the compiler's C interface.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "rewire/compiler/c_api.h"
#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/run/second_thread.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/observer.h"

namespace rewire::test {
namespace {

std::string ReluBytes() {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {3});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {3});
  return model.SerializeAsString();
}

// Stands still in front of each instruction while the gate is closed.
struct GatedObserver : Observer {
  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction&) override { gate.Pass(); }

  Gate gate;
};

TEST_CASE("a second thread calls every function of the compiler's C interface during a run") {
  const TempFolder folder;
  const std::string bytes = ReluBytes(), path = folder.Write("model.onnx", bytes),
                    written = (folder.path() / "model.rwx").string();
  const Result<Compilation> running = Compile(path);
  REQUIRE(running);
  const Result<Program> program = Program::Link(running->executable);
  REQUIRE(program);
  const auto compiles = [](const auto& compile) {
    RewireExecutable* made = nullptr;
    const bool right = compile(&made) == kRewireOk;
    rewire_executable_destroy(made);
    return right;
  };
  RewireExecutable* own = nullptr;
  REQUIRE(rewire_compile(path.c_str(), nullptr, nullptr, &own) == kRewireOk);
  const std::vector<SharedRow> rows = {
      {"rewire_compile",
       [&] {
         return compiles([&](auto** out) { return rewire_compile(path.c_str(), nullptr, nullptr, out); });
       }},
      {"rewire_compile_memory",
       [&] {
         return compiles([&](auto** out) {
           return rewire_compile_memory(bytes.data(), bytes.size(), nullptr, nullptr, nullptr, nullptr, out);
         });
       }},
      {"rewire_compiler_pass", [] { return rewire_compiler_pass(0) != nullptr; }},
      {"rewire_executable_write", [&] { return rewire_executable_write(own, written.c_str()) == kRewireOk; }},
  };
  CHECK(NamesOf(rows) == Declared("compiler/c_api.h", "extern \"C\"", "#endif /*", R"(\b(rewire_\w+)\()"));
  GatedObserver observer;
  VirtualMachine vm(*program);
  float x[3] = {-1, 2, 3};
  float y[3] = {};
  vm.SetInput("x", TensorView(x, {3}));
  vm.SetOutput("y", TensorView(y, {3}));
  vm.SetObserver(&observer);
  const Status ran = DuringRun(&observer.gate, &vm, [&] {
    for (const SharedRow& row : rows) {
      INFO(row.name);
      CHECK(row.right());
    }
  });
  rewire_executable_destroy(own);
  CHECK(ran);
  CHECK(std::vector<float>(y, y + 3) == std::vector<float>{0, 2, 3});
}

}  // namespace
}  // namespace rewire::test
