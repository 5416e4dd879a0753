// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/model_config.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/base/near_names.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::triton {
namespace {

using Json = nlohmann::ordered_json;
using serve::ModelInput;
using serve::ModelOutput;
using serve::ModelSettings;
using serve::ModelVersion;

// After this time without a request, Triton ends a sequence whose configuration says nothing else.
constexpr std::uint64_t kTritonIdleUs = 1000000;
// Triton ends sequences. Memory of those that it has ended is let go of later, and never before.
constexpr std::uint64_t kLater = 2;

Result<Json> Parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) return json;
  return Fail(StatusCode::kInternal, "Triton's configuration is no object of JSON");
}

// Numbers of 64 bits may be texts.
std::int64_t NumberOf(const Json& value, std::int64_t otherwise) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_string()) return otherwise;
  const std::string text = value.get<std::string>();
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? number : otherwise;
}

std::int64_t NumberAt(const Json& object, const char* key) {
  return object.contains(key) ? NumberOf(object[key], 0) : 0;
}

bool IsEmpty(const Json& config, const char* key) { return !config.contains(key) || config[key].empty(); }

std::string PathIn(const std::string& folder, std::string_view path) {
  return path.front() == '/' ? std::string(path) : folder + "/" + std::string(path);
}

// Calls `add` for each part between colons.
void EachPart(std::string_view list, const std::function<void(std::string_view)>& add) {
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(':'));
    if (!part.empty()) add(part);
    list.remove_prefix(std::min(list.size(), part.size() + 1));
  }
}

template <typename Number>
Status SetNumber(const std::string& key, const std::string& text, Number* to) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = number <= static_cast<std::uint64_t>(std::numeric_limits<Number>::max());
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !fits) {
    return Fail(StatusCode::kInvalidArgument, "parameter '{}': a whole number is expected, '{}' is given",
                key, text);
  }
  *to = static_cast<Number>(number);
  return {};
}

// The part of a key behind a prefix that it begins with, or an empty text.
std::string Behind(const std::string& key, const char* prefix) {
  return key.rfind(prefix, 0) == 0 ? key.substr(std::string_view(prefix).size()) : std::string();
}

Status SetParameter(const std::string& key, const std::string& value, const std::string& folder,
                    ModelConfig* config) {
  ModelSettings* const settings = &config->settings;
  if (const std::string output = Behind(key, "state."); !output.empty()) {
    settings->sequence.state[output] = value;
    return {};
  }
  if (const std::string symbol = Behind(key, "size."); !symbol.empty())
    return SetNumber(key, value, &settings->sequence.sizes[symbol]);
  if (const std::string output = Behind(key, "stop."); !output.empty())
    return SetNumber(key, value, &config->stops[output]);
  if (key == "weights") {
    EachPart(value, [&](std::string_view path) { settings->parameters.push_back(PathIn(folder, path)); });
    return {};
  }
  const std::map<std::string, std::function<Status()>> setters = {
      {"threads", [&] { return SetNumber(key, value, &settings->threads); }},
      {"memory_bytes", [&] { return SetNumber(key, value, &settings->memory_bytes); }},
      {"steps", [&] { return SetNumber(key, value, &settings->steps); }},
      {"depth", [&] { return SetNumber(key, value, &settings->depth); }},
      {"most_steps", [&] { return SetNumber(key, value, &config->most_steps); }},
      {"max_sequences", [&] { return SetNumber(key, value, &settings->sequence.max_sequences); }},
      {"max_state_bytes", [&] { return SetNumber(key, value, &settings->sequence.max_bytes); }},
  };
  if (const auto found = setters.find(key); found != setters.end()) return found->second();
  std::vector<std::string> known = {"size.DIMENSION", "state.OUTPUT", "stop.OUTPUT", "weights"};
  for (const auto& [name, set] : setters) known.push_back(name);
  return Fail(StatusCode::kInvalidArgument, "the backend has no parameter '{}'{}", key,
              KnownNames("parameters", key, known));
}

std::string TypeName(const ModelInput& input) {
  return input.texts ? "TYPE_STRING" : "TYPE_" + std::string(serve::WireName(input.dtype));
}
std::string TypeName(const ModelOutput& output) {
  return "TYPE_" + std::string(serve::WireName(output.dtype));
}

// Dimensions as a configuration has them: without that of a batch. Triton has no scalars, so one is a tensor
// of one element for clients.
Json DimsOf(const std::vector<Dim>& dims, bool batches) {
  if (!batches && dims.empty()) return {1};
  Json list = Json::array();
  for (std::size_t i = batches ? 1 : 0; i < dims.size(); ++i) list.push_back(dims[i] < 0 ? -1 : dims[i]);
  return list;
}

template <typename Tensor>
Json Describe(const Tensor& tensor, bool batches) {
  Json one;
  one["name"] = tensor.name;
  one["data_type"] = TypeName(tensor);
  one["dims"] = DimsOf(tensor.dims, batches);
  // A configuration has no empty list of dimensions, so a scalar of each row is one element that gets another
  // shape.
  if (one["dims"].empty()) {
    one["dims"] = {1};
    one["reshape"]["shape"] = Json::array();
  }
  return one;
}

// Inputs that clients do not give: lists of texts, which a BYTES tensor stands for.
std::set<std::size_t> PartsOfTexts(const ModelVersion& model) {
  std::set<std::size_t> parts;
  for (const ModelInput& input : model.signature.inputs) {
    if (input.texts) parts.insert({input.texts->offsets, input.texts->bytes});
  }
  return parts;
}

Json DescribeInputs(const ModelVersion& model, bool batches) {
  const std::set<std::size_t> parts = PartsOfTexts(model);
  Json list = Json::array();
  for (std::size_t i = 0; i < model.signature.inputs.size(); ++i) {
    if (parts.count(i) != 0) continue;
    list.push_back(Describe(model.signature.inputs[i], batches));
    const bool is_state = std::any_of(model.state.begin(), model.state.end(),
                                      [&](const serve::StatePair& pair) { return pair.input == i; });
    if (is_state) list.back()["optional"] = true;
  }
  return list;
}

Json DescribeOutputs(const ModelVersion& model, bool batches) {
  Json list = Json::array();
  for (std::size_t i = 0; i < model.signature.outputs.size(); ++i) {
    const bool is_state = std::any_of(model.state.begin(), model.state.end(),
                                      [&](const serve::StatePair& pair) { return pair.output == i; });
    if (!is_state || model.signature.outputs.size() == model.state.size())
      list.push_back(Describe(model.signature.outputs[i], batches));
  }
  return list;
}

bool DimsFit(const Json& given, const std::vector<Dim>& dims, bool batches) {
  const Json expected = DimsOf(dims, batches);
  if (!given.is_array() || given.size() != expected.size()) return false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t size = NumberOf(given[i], 0);
    if (expected[i] != -1 && size != expected[i].get<std::int64_t>()) return false;
  }
  return true;
}

template <typename Tensors>
Status CheckTensors(std::string_view what, const Json& config, const char* key, const Tensors& tensors,
                    bool batches) {
  if (!config.contains(key)) return {};
  for (const Json& given : config[key]) {
    const std::string name = given.value("name", "");
    std::vector<std::string> names;
    for (const auto& tensor : tensors) names.push_back(tensor.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return Fail(StatusCode::kInvalidArgument, "config.pbtxt: the model has no {} '{}'{}", what, name,
                  KnownNames(std::string(what) + "s", name, names));
    }
    const auto& tensor = tensors[static_cast<std::size_t>(found - names.begin())];
    const std::string type = given.value("data_type", "");
    // The three tensors of a text may also be given as they are.
    if (type != TypeName(tensor) && type != "TYPE_" + std::string(serve::WireName(tensor.dtype))) {
      return Fail(StatusCode::kInvalidArgument, "config.pbtxt: {} '{}': data_type {} expected, {} given",
                  what, name, TypeName(tensor), type);
    }
    const bool reshaped = given.contains("reshape");
    const Json& dims = reshaped ? given["reshape"]["shape"] : given["dims"];
    if (!DimsFit(dims, tensor.dims, batches)) {
      return Fail(StatusCode::kInvalidArgument, "config.pbtxt: {} '{}': {} {} expected, {} given", what, name,
                  reshaped ? "reshape" : "dims", DimsOf(tensor.dims, batches).dump(), dims.dump());
    }
  }
  return {};
}

}  // namespace

Result<BackendSettings> ReadBackendSettings(std::string_view json) {
  const Result<Json> config = Parse(json);
  if (!config) return Forward(config);
  BackendSettings settings;
  if (!config->contains("cmdline")) return settings;
  // Triton's own keys, which every backend gets.
  const std::set<std::string> of_triton = {"auto-complete-config", "backend-directory",
                                           "min-compute-capability"};
  for (const auto& [key, value] : (*config)["cmdline"].items()) {
    if (key == "default-max-batch-size") {
      settings.default_max_batch_size = NumberOf(value, 0);
    } else if (key == "kernels" && value.is_string()) {
      EachPart(value.get<std::string>(), [&](std::string_view path) { settings.kernels.emplace_back(path); });
    } else if (of_triton.count(key) == 0) {
      settings.unknown.push_back(key);
    }
  }
  return settings;
}

Result<ModelConfig> ReadModelConfig(std::string_view json, const std::string& folder) {
  const Result<Json> parsed = Parse(json);
  if (!parsed) return Forward(parsed);
  const Json& config = *parsed;
  ModelConfig read;
  read.file = config.value("default_model_filename", "");
  if (config.contains("model_transaction_policy"))
    read.decoupled = config["model_transaction_policy"].value("decoupled", false);
  read.settings.batching.max_batch_size = NumberAt(config, "max_batch_size");
  if (config.contains("parameters")) {
    for (const auto& [key, value] : config["parameters"].items()) {
      const std::string text = value.is_object() ? value.value("string_value", "") : std::string();
      if (Status set = SetParameter(key, text, folder, &read); !set) return Forward(set, "config.pbtxt");
    }
  }
  read.sequences = config.contains("sequence_batching");
  if (read.sequences) {
    const Json& sequences = config["sequence_batching"];
    if (!IsEmpty(sequences, "state")) {
      return Fail(StatusCode::kUnsupported,
                  "config.pbtxt: sequence_batching.state is not supported: name the state by parameters, "
                  "state.OUTPUT with the INPUT of the next step as its string_value");
    }
    const auto idle = static_cast<std::uint64_t>(NumberAt(sequences, "max_sequence_idle_microseconds"));
    read.settings.sequence.idle_us = idle != 0 ? idle : kTritonIdleUs;
  }
  read.settings.sequence.idle_us *= kLater;
  return read;
}

Result<std::string> CompleteConfig(std::string_view json, const ModelVersion& model,
                                   std::int64_t default_max_batch_size) {
  Result<Json> parsed = Parse(json);
  if (!parsed) return Forward(parsed);
  Json& config = *parsed;
  const bool says_nothing = IsEmpty(config, "input") && IsEmpty(config, "output");
  const serve::ModelSignature& signature = model.signature;
  if (says_nothing && NumberAt(config, "max_batch_size") == 0 && signature.batch_symbol &&
      model.state.empty()) {
    std::int64_t most = default_max_batch_size;
    if (signature.most_rows != kNoLimit) most = std::min(most, signature.most_rows);
    config["max_batch_size"] = most;
    if (most > 1 && !config.contains("sequence_batching") && !config.contains("dynamic_batching"))
      config["dynamic_batching"] = Json::object();
  }
  const bool decoupled = config.contains("model_transaction_policy") &&
                         config["model_transaction_policy"].value("decoupled", false);
  if (!model.state.empty() && !decoupled && !config.contains("sequence_batching")) {
    const serve::SequenceSettings& settings = model.settings.sequence;
    config["sequence_batching"]["oldest"]["max_candidate_sequences"] = settings.max_sequences;
    config["sequence_batching"]["max_sequence_idle_microseconds"] = settings.idle_us / kLater;
  }
  const bool batches = NumberAt(config, "max_batch_size") > 0;
  if (IsEmpty(config, "input")) config["input"] = DescribeInputs(model, batches);
  if (IsEmpty(config, "output")) config["output"] = DescribeOutputs(model, batches);
  return config.dump();
}

Status CheckConfig(std::string_view json, const ModelConfig& read, const ModelVersion& model) {
  const Result<Json> parsed = Parse(json);
  if (!parsed) return Forward(parsed);
  const Json& config = *parsed;
  const bool batches = NumberAt(config, "max_batch_size") > 0;
  const bool decoupled = config.contains("model_transaction_policy") &&
                         config["model_transaction_policy"].value("decoupled", false);
  if (!model.state.empty() && !decoupled && !config.contains("sequence_batching")) {
    return Fail(
        StatusCode::kInvalidArgument,
        "config.pbtxt: a model with state needs sequence_batching, so that steps of one sequence come "
        "in order");
  }
  for (const auto& stop : read.stops) {
    const std::string& name = stop.first;
    const bool fits = std::any_of(model.state.begin(), model.state.end(), [&](const serve::StatePair& pair) {
      const ModelOutput& output = model.signature.outputs[pair.output];
      return output.name == name && output.dtype == kInt64;
    });
    if (fits) continue;
    return Fail(StatusCode::kInvalidArgument,
                "config.pbtxt: parameter 'stop.{}': an output of INT64 is expected that is state, by "
                "'state.{}'",
                name, name);
  }
  if (Status good = CheckTensors("input", config, "input", model.signature.inputs, batches); !good)
    return good;
  return CheckTensors("output", config, "output", model.signature.outputs, batches);
}

}  // namespace rewire::triton
