// SPDX-License-Identifier: Apache-2.0
// Measures what running small operators at once gains: a model of four equal branches, compiled with and
// without it, on one thread and on two.
//
//   bench-branches [ROUNDS]     in the folder of the build, with REWIRE_LIBRARY_PATH
//
// A round measures the four cases in turn, each for some milliseconds. Figures are medians over the rounds,
// of times by the wall: a second thread shows in no other.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/tests/bench/statistics.h"
#include "rewire/vm/vm.h"

namespace rewire::bench {
namespace {

constexpr std::int64_t kRows = 8, kColumns = 128;
constexpr int kBranches = 4, kSteps = 12;

void AddNode(onnx::GraphProto* graph, const std::string& type, const std::vector<std::string>& inputs,
             const std::string& output) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(type);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
}

void SetMatrix(onnx::ValueInfoProto* info, const std::string& name) {
  info->set_name(name);
  onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t size : {kRows, kColumns}) type->mutable_shape()->add_dim()->set_dim_value(size);
}

// Each branch: twelve times a product with weights of its own, then tanh. Their sum is the result.
std::string Model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("branches");
  SetMatrix(graph->add_input(), "x");
  SetMatrix(graph->add_output(), "y");
  std::vector<std::string> ends;
  for (int branch = 0; branch < kBranches; ++branch) {
    std::string last = "x";
    for (int step = 0; step < kSteps; ++step) {
      const std::string name = fmt::format("{}_{}", branch, step);
      onnx::TensorProto* weights = graph->add_initializer();
      weights->set_name("w" + name);
      weights->set_data_type(onnx::TensorProto::FLOAT);
      for (int axis = 0; axis < 2; ++axis) weights->add_dims(kColumns);
      for (std::int64_t i = 0; i < kColumns * kColumns; ++i)
        weights->add_float_data(static_cast<float>((i * 31 + branch + step) % 97) / 970 - 0.05f);
      AddNode(graph, "MatMul", {last, "w" + name}, "p" + name);
      AddNode(graph, "Tanh", {"p" + name}, "t" + name);
      last = "t" + name;
    }
    ends.push_back(last);
  }
  AddNode(graph, "Sum", ends, "y");
  return model.SerializeAsString();
}

[[noreturn]] void Stop(const std::string& why) {
  fmt::print(stderr, "bench-branches: {}\n", why);
  std::exit(1);
}

class Case {
 public:
  Case(const std::string& model, Parallel parallel, int threads) {
    CompileOptions options;
    options.parallel = parallel;
    const auto* bytes = reinterpret_cast<const std::byte*>(model.data());
    const Result<Compilation> compiled = CompileBytes({bytes, model.size()}, "", "branches", options);
    if (!compiled) Stop(compiled.error().message());
    LinkOptions link;
    link.threads = ThreadPool::Make(threads);
    const Result<Program> program = Program::Link(compiled->executable, link);
    if (!program) Stop(program.error().message());
    vm_.emplace(*program);
    x_.assign(static_cast<std::size_t>(kRows * kColumns), 0.25f);
    y_.assign(x_.size(), 0);
    vm_->SetInput("x", TensorView(x_.data(), {kRows, kColumns}));
    vm_->SetOutput(OutputHandle{0, 0}, TensorView(y_.data(), {kRows, kColumns}));
    for (int i = 0; i < 100; ++i) vm_->Invoke("main");
  }

  // Microseconds of a run: the fastest of some, since others use the machine.
  double Measure() {
    double least = 1e9;
    for (int i = 0; i < 40; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      vm_->Invoke("main");
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      least = std::min(least, time.count());
    }
    return least;
  }
  const std::vector<float>& result() const { return y_; }

 private:
  std::optional<VirtualMachine> vm_;
  std::vector<float> x_, y_;
};

int Run(int rounds) {
  const std::string model = Model();
  struct Row {
    const char* name;
    Case measured;
    std::vector<double> times;
  };
  std::vector<Row> rows;
  rows.reserve(4);
  rows.push_back({"off, 1 thread", Case(model, Parallel::kOff, 1), {}});
  rows.push_back({"auto, 1 thread", Case(model, Parallel::kAuto, 1), {}});
  rows.push_back({"off, 2 threads", Case(model, Parallel::kOff, 2), {}});
  rows.push_back({"auto, 2 threads", Case(model, Parallel::kAuto, 2), {}});
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.times.push_back(row.measured.Measure());
  }
  const double one = Summarize(rows[1].times).median;
  for (const Row& row : rows) {
    if (row.measured.result() != rows[0].measured.result()) Stop(std::string(row.name) + ": another result");
    const Summary time = Summarize(row.times);
    fmt::print("{:16} {:8.1f} us  ({:.1f} .. {:.1f})  {:.2f} of auto, 1 thread\n", row.name, time.median,
               time.low, time.high, time.median / one);
  }
  return 0;
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) { return rewire::bench::Run(argc > 1 ? std::atoi(argv[1]) : 41); }
