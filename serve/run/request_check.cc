// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/request_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {
namespace {

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

std::string DimsText(const ModelSignature& signature, const std::vector<Dim>& dims) {
  std::string text = "[";
  for (const Dim dim : dims) {
    if (text.size() > 1) text += ",";
    text += IsSymbol(dim) ? signature.symbols[SymbolOf(dim)] : dim < 0 ? "?" : std::to_string(dim);
  }
  return text + "]";
}

template <typename Tensors>
std::string KnownTensors(std::string_view what, std::string_view name, const Tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  return KnownNames(what, name, names);
}

Status CheckInput(const ModelSignature& signature, const ModelInput& expected, const InputTensor& given,
                  std::vector<std::int64_t>* sizes) {
  if (given.dtype != expected.dtype) {
    return Fail(StatusCode::kInvalidArgument, "input '{}': datatype {} expected, {} given", expected.name,
                WireName(expected.dtype), WireName(given.dtype));
  }
  bool fits = given.shape.size() == expected.dims.size();
  for (std::size_t i = 0; fits && i < given.shape.size(); ++i) {
    const Dim dim = expected.dims[i];
    const std::int64_t size = given.shape[i];
    fits = size >= 0 && (dim < 0 || size == dim);
    if (IsSymbol(dim)) {
      std::int64_t& known = (*sizes)[SymbolOf(dim)];
      if (known >= 0 && size != known) {
        return Fail(StatusCode::kInvalidArgument,
                    "input '{}': dimension {} is '{}', which is {} in an input before, and {} here",
                    expected.name, i, signature.symbols[SymbolOf(dim)], known, size);
      }
      known = size;
    }
  }
  if (!fits) {
    return Fail(StatusCode::kInvalidArgument, "input '{}': shape {} expected, {} given", expected.name,
                DimsText(signature, expected.dims), ShapeText(given.shape));
  }
  const std::optional<std::uint64_t> bytes = ShapeProduct(given.shape, ElementBytes(given.dtype));
  if (!bytes) {
    return Fail(StatusCode::kInvalidArgument,
                "input '{}': a tensor of shape {} has more bytes than there are", expected.name,
                ShapeText(given.shape));
  }
  if (*bytes != given.data.size()) {
    return Fail(StatusCode::kInvalidArgument, "input '{}': shape {} of {} takes {} bytes, {} given",
                expected.name, ShapeText(given.shape), WireName(given.dtype), *bytes, given.data.size());
  }
  return {};
}

Status CheckOutputs(const ModelSignature& signature, Request* request) {
  for (std::size_t i = 0; i < request->wanted.size(); ++i) {
    const std::string_view name = request->wanted[i].name;
    const auto& outputs = signature.outputs;
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const ModelOutput& output) { return output.name == name; })) {
      return Fail(StatusCode::kInvalidArgument, "the model has no output '{}'{}", name,
                  KnownTensors("outputs", name, outputs));
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (request->wanted[before].name == name) {
        return Fail(StatusCode::kInvalidArgument, "output '{}' is asked for twice", name);
      }
    }
  }
  return {};
}

}  // namespace

Status CheckRequest(const ModelSignature& signature, Request* request, std::vector<std::int64_t>* sizes,
                    bool has_state) {
  sizes->assign(signature.symbols.size(), -1);
  std::vector<InputTensor>& inputs = request->inputs;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i) {
    const ModelInput& expected = signature.inputs[i];
    std::size_t at = i;
    while (at < inputs.size() && inputs[at].name != expected.name) ++at;
    if (at >= inputs.size()) {
      for (const InputTensor& given : inputs) {
        const auto known = [&](const ModelInput& input) { return input.name == given.name; };
        if (std::none_of(signature.inputs.begin(), signature.inputs.end(), known)) {
          return Fail(StatusCode::kInvalidArgument, "the model has no input '{}'{}", given.name,
                      KnownTensors("inputs", given.name, signature.inputs));
        }
      }
      return Fail(StatusCode::kInvalidArgument, "input '{}' is missing", expected.name);
    }
    if (at != i) std::swap(inputs[i], inputs[at]);
    if (inputs[i].is_state && !has_state) continue;
    if (Status good = CheckInput(signature, expected, inputs[i], sizes); !good) return Forward(good);
  }
  if (inputs.size() > signature.inputs.size()) {
    const std::string_view name = inputs[signature.inputs.size()].name;
    for (const ModelInput& input : signature.inputs) {
      if (input.name == name) return Fail(StatusCode::kInvalidArgument, "input '{}' is given twice", name);
    }
    return Fail(StatusCode::kInvalidArgument, "the model has no input '{}'{}", name,
                KnownTensors("inputs", name, signature.inputs));
  }
  request->rows = signature.batch_symbol ? (*sizes)[*signature.batch_symbol] : 0;
  return CheckOutputs(signature, request);
}

bool FitTogether(const Request& a, const Request& b) {
  const bool of_sequence = a.sequence != nullptr;
  if (of_sequence != (b.sequence != nullptr)) return false;
  // Held sequences can begin anew, and others cannot.
  if (of_sequence && (a.held == nullptr) != (b.held == nullptr)) return false;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    const std::vector<std::int64_t>&one = a.inputs[i].shape, &other = b.inputs[i].shape;
    if (one.size() != other.size()) return false;
    if (!one.empty() && !std::equal(one.begin() + 1, one.end(), other.begin() + 1)) return false;
  }
  return true;
}

bool MayShareRun(const ModelVersion& model, const Request& request) {
  if (request.sequence == nullptr || request.sequence->alone || request.rows != 1) return false;
  return std::all_of(model.state.begin(), model.state.end(),
                     [&](const StatePair& pair) { return request.inputs[pair.input].is_state; });
}

}  // namespace rewire::serve
