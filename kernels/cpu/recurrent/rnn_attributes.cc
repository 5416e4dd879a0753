// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/recurrent/rnn_attributes.h"

#include <string>
#include <string_view>

namespace rewire::kernel::cpu {
namespace {

struct FunctionRow {
  std::string_view name;
  bool has_alpha;
  double alpha;
  bool has_beta;
  double beta;
};

// In the order of GateFunction::Kind.
constexpr FunctionRow kFunctions[] = {
    {"Sigmoid", false, 0, false, 0},     {"Tanh", false, 0, false, 0},
    {"Relu", false, 0, false, 0},        {"Affine", true, 1, true, 0},
    {"LeakyRelu", true, 0.01, false, 0}, {"ThresholdedRelu", true, 1, false, 0},
    {"ScaledTanh", true, 1, true, 1},    {"HardSigmoid", true, 0.2, true, 0.5},
    {"Elu", true, 1, false, 0},          {"Softsign", false, 0, false, 0},
    {"Softplus", false, 0, false, 0},
};

// Functions with a parameter take the next of the list, as far as it goes.
struct Parameters {
  std::vector<double> values;
  std::size_t next = 0;

  double Take(bool has, double fallback) {
    if (!has) return 0;
    return next < values.size() ? values[next++] : fallback;
  }
};

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

Status RnnAttributes::Read(Attributes& attributes, std::initializer_list<GateFunction::Kind> defaults) {
  hidden = attributes.Int("hidden_size", 0, 0);
  const int direction = attributes.Choice("direction", {"forward", "reverse", "bidirectional"}, 0);
  directions = direction == 2 ? 2 : 1;
  reversed = direction == 1;
  batch_first = attributes.Bool("layout", false);
  packed = attributes.Bool("packed", false);
  clip = attributes.Float("clip", 0);
  const std::string names = attributes.String("activations", "");
  Parameters alphas{attributes.Floats("activation_alpha", {})};
  Parameters betas{attributes.Floats("activation_beta", {})};
  const auto add = [&](const FunctionRow& row) {
    functions.push_back({static_cast<GateFunction::Kind>(&row - kFunctions),
                         alphas.Take(row.has_alpha, row.alpha), betas.Take(row.has_beta, row.beta)});
  };
  const std::size_t count = directions == 2 ? 2 * defaults.size() : defaults.size();
  if (names.empty()) {
    for (int d = 0; d < directions; ++d) {
      for (GateFunction::Kind kind : defaults) add(kFunctions[kind]);
    }
    return Status();
  }
  std::string_view rest = names;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    const FunctionRow* found = nullptr;
    for (const FunctionRow& row : kFunctions) found = SameName(row.name, name) ? &row : found;
    if (found == nullptr)
      return ValueError("attribute 'activations' names '", name, "', which is no function");
    add(*found);
    more = comma != std::string_view::npos;
    if (more) rest = rest.substr(comma + 1);
  }
  if (functions.size() == count) return Status();
  return ValueError("attribute 'activations' names ", functions.size(), " functions, expected ", count);
}

}  // namespace rewire::kernel::cpu
