// SPDX-License-Identifier: Apache-2.0
// Asks each operator that has a case in ONNX's backend tests for shapes that nobody chose, legal and illegal
// ones. The compiler infers what it is told while it compiles, and the kernels check what they see in the
// run: a model with these shapes, and the same model with open dimensions, must both take the inputs and give
// outputs of the same shapes, or both refuse them. The same seed gives the same shapes.
//
//   operator_sizes LIST [--data DIR] [--group NAME]... [--only TEXT] [--every N] [--count N] [--seed N]
//
// The list names the cases that are known to differ, with the reason. A case that is listed and agrees fails,
// so that the list only gets shorter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/tests/compiler/case_data.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<std::int64_t>;
using Random = std::mt19937;

struct Options {
  std::string list;
  std::string data = "/usr/share/libonnx-testdata/data";
  std::vector<std::string> groups = {"node"};
  std::string only;
  int every = 1;
  int count = 8;
  std::uint32_t seed = 1;
};

// An Outcome is what became of one model and its inputs.
struct Outcome {
  std::string refusal;  // empty: it ran
  bool compiled = false;
  std::vector<Ints> shapes;
  bool operator==(const Outcome& other) const {
    return refusal.empty() == other.refusal.empty() && shapes == other.shapes;
  }
};

bool AppendShapes(const Value& value, std::vector<Ints>* shapes) {
  if (value.kind() != ValueKind::kTensor) return false;
  const Tensor tensor = value.tensor();
  shapes->emplace_back(tensor.shape().begin(), tensor.shape().end());
  return true;
}

Outcome Try(const onnx::ModelProto& model, const std::vector<Value>& inputs) {
  Outcome outcome;
  const auto bytes = std::make_shared<const std::string>(model.SerializeAsString());
  const SharedBytes shared{{reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes};
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled = compiler::CompileOnnx(shared, "", "model", {}, &unsupported);
  if (!compiled) {
    outcome.refusal =
        "compile: " + (unsupported.empty() ? compiled.error().message() : unsupported[0].reason);
    return outcome;
  }
  outcome.compiled = true;
  const Result<Executable> executable = Executable::FromModule(std::move(compiled->module));
  if (!executable) {
    outcome.refusal = "verify: " + executable.error().message();
    return outcome;
  }
  const Result<Program> program = Program::Link(*executable);
  if (!program) {
    outcome.refusal = "link: " + program.error().message();
    return outcome;
  }
  Limits limits;
  limits.steps = 10'000'000;
  limits.bytes = std::uint64_t{1} << 28;
  VirtualMachine vm(*program, limits);
  const Result<Value> result = vm.TryInvoke("main", inputs);
  if (!result) {
    outcome.refusal = "run: " + result.error().message();
    return outcome;
  }
  const std::size_t count = executable->module().functions[0].output_names.size();
  for (std::uint32_t i = 0; i < count; ++i)
    AppendShapes(count == 1 ? *result : result->field(i), &outcome.shapes);
  return outcome;
}

// The elements of `given`, again and again, under another shape.
Value Resized(const Tensor& given, const Ints& shape) {
  const DLDataType dtype = given.dtype();
  const std::size_t bytes = TensorView(nullptr, dtype, shape).bytes(), from = given.view().bytes();
  std::vector<std::byte> data(std::max<std::size_t>(bytes, 1));
  for (std::size_t at = 0; from > 0 && at < bytes; at += from)
    std::memcpy(data.data() + at, given.view().data(), std::min(from, bytes - at));
  return Value(*Tensor::CopyOf(TensorView(data.data(), dtype, shape)));
}

// Changes one or two sizes, or a rank.
void Change(std::vector<Ints>* shapes, Random* random) {
  const auto below = [&](std::size_t count) { return (*random)() % count; };
  for (std::size_t changes = 1 + below(2); changes > 0; --changes) {
    Ints& shape = (*shapes)[below(shapes->size())];
    const std::size_t kind = below(8), at = below(shape.size() + 1);
    const auto place = shape.begin() + static_cast<std::ptrdiff_t>(at);
    if (kind == 0 || shape.empty()) {
      shape.insert(place, static_cast<std::int64_t>(1 + below(3)));
    } else if (kind == 1 && place != shape.end()) {
      shape.erase(place);
    } else {
      shape[at % shape.size()] = static_cast<std::int64_t>(below(6));
    }
  }
}

// The model whose inputs have these shapes, or with `open` dimensions that are not known.
onnx::ModelProto WithShapes(onnx::ModelProto model, const std::vector<Ints>& shapes, bool open) {
  onnx::GraphProto* graph = model.mutable_graph();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    auto* tensor = graph->mutable_input(static_cast<int>(i))->mutable_type()->mutable_tensor_type();
    tensor->clear_shape();
    for (const std::int64_t size : shapes[i]) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (!open) dim->set_dim_value(size);
    }
    tensor->mutable_shape();
  }
  for (auto& output : *graph->mutable_output()) output.mutable_type()->mutable_tensor_type()->clear_shape();
  graph->clear_value_info();
  return model;
}

struct Case {
  onnx::ModelProto model;
  std::vector<Value> inputs;
  std::vector<Ints> shapes;
};

// Nothing for a case that is more than one node over tensors of numbers.
std::optional<Case> ReadCase(const std::string& folder) {
  Case read;
  std::ifstream file(folder + "/model.onnx", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!read.model.ParseFromString(bytes) || read.model.graph().node_size() != 1) return std::nullopt;
  Result<CaseData> data = ReadCaseData(folder);
  if (!data || data->inputs.empty() || !data->texts.empty()) return std::nullopt;
  if (data->inputs.size() != static_cast<std::size_t>(read.model.graph().input_size())) return std::nullopt;
  for (const auto* list : {&read.model.graph().input(), &read.model.graph().output()}) {
    for (const auto& info : *list) {
      if (!info.type().has_tensor_type()) return std::nullopt;
    }
  }
  for (const Value& input : data->inputs) {
    if (!AppendShapes(input, &read.shapes)) return std::nullopt;
  }
  read.inputs = std::move(data->inputs);
  return read;
}

struct Counts {
  int cases = 0, fit = 0, refused = 0, left_open = 0, differ = 0;
  std::set<std::string> operators;
};

// The first difference between the two models of a case; nothing if they agree.
std::optional<std::string> Ask(const Case& asked, const Options& options, Random* random, Counts* counts) {
  for (int i = 0; i < options.count; ++i) {
    std::vector<Ints> shapes = asked.shapes;
    if (i > 0) Change(&shapes, random);
    std::vector<Value> inputs;
    for (std::size_t k = 0; k < shapes.size(); ++k)
      inputs.push_back(Resized(asked.inputs[k].tensor(), shapes[k]));
    const Outcome known = Try(WithShapes(asked.model, shapes, false), inputs);
    const Outcome open = Try(WithShapes(asked.model, shapes, true), inputs);
    // Some operators need a size that only the run would know. What is wrong with whatever sizes is refused,
    // too.
    if (!open.compiled) {
      ++counts->left_open;
      continue;
    }
    if (known == open) {
      ++(known.refusal.empty() ? counts->fit : counts->refused);
      continue;
    }
    const auto text = [](const Outcome& outcome) {
      return outcome.refusal.empty() ? fmt::format("{}", outcome.shapes) : outcome.refusal;
    };
    return fmt::format("inputs {}: known sizes give {}, open ones {}", shapes, text(known), text(open));
  }
  return std::nullopt;
}

std::set<std::string> ReadList(const std::string& path) {
  std::set<std::string> known;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') known.insert(line.substr(0, line.find(": ")));
  }
  return known;
}

int RunAll(const Options& options) {
  const std::set<std::string> known = ReadList(options.list);
  Counts counts;
  int wrong = 0, seen = 0;
  for (const std::string& group : options.groups) {
    std::vector<std::string> names;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(options.data) / group, error))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.find(options.only) == std::string::npos || seen++ % options.every != 0) continue;
      const std::optional<Case> asked = ReadCase(options.data + "/" + group + "/" + name);
      if (!asked) continue;
      ++counts.cases;
      counts.operators.insert(asked->model.graph().node(0).op_type());
      // Each case has numbers of its own, so that one alone is asked the same.
      std::seed_seq seed(name.begin(), name.end());
      Random random(seed);
      random.discard(options.seed);
      const std::optional<std::string> difference = Ask(*asked, options, &random, &counts);
      counts.differ += difference ? 1 : 0;
      if (difference.has_value() == known.contains(name)) continue;
      ++wrong;
      fmt::print("{}: {}\n", name, difference.value_or("it agrees, but is listed in " + options.list));
    }
  }
  std::set<std::string> all;
  for (const compiler::DomainOperator& row : compiler::AllOperators()) {
    if (std::string_view(row.domain).empty()) all.insert(row.row->type);
  }
  std::erase_if(all, [&](const std::string& type) { return counts.operators.contains(type); });
  fmt::print(
      "{} cases of {} operators: {} shapes fit, {} are refused, {} need sizes that are known, {} differ\n",
      counts.cases, counts.operators.size(), counts.fit, counts.refused, counts.left_open, counts.differ);
  fmt::print("without a case: {}\n", fmt::join(all, " "));
  if (counts.fit == 0 || counts.refused == 0) fmt::print("no shapes were asked for\n");
  return wrong == 0 && counts.fit > 0 && counts.refused > 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) {
  CLI::App app("Holds the shapes that the compiler infers against those that kernels check",
               "operator_sizes");
  rewire::test::Options options;
  app.add_option("list", options.list, "The cases that are known to differ")->required();
  app.add_option("--data", options.data, "The folder with the groups of cases");
  app.add_option("--group", options.groups, "Only these groups of cases")->allow_extra_args(false);
  app.add_option("--only", options.only, "Cases with this in their name");
  app.add_option("--every", options.every, "One case of so many")->check(CLI::PositiveNumber);
  app.add_option("--count", options.count, "Shapes for each case")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Other shapes");
  CLI11_PARSE(app, argc, argv);
  return rewire::test::RunAll(options);
}
