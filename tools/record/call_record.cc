// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/call_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/executable_format/tensor_files/safetensors.h"
#include "rewire/tools/record/new_folder.h"
#include "rewire/vm/limits.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

std::string Absolute(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  return failed ? path : absolute.string();
}

Result<std::string> HashOfFile(const std::string& path) {
  const Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  return "xxh3-64:" + HashText(Hash64(bytes->view));
}

// A library that is found by its name has no path to keep.
Result<Json> FilesJson(const std::vector<std::string>& paths) {
  Json files = Json::array();
  for (const std::string& path : paths) {
    const Result<std::string> hash = HashOfFile(path);
    if (!hash && hash.error().code() != StatusCode::kNotFound) return Forward(hash);
    files.push_back({{"file", hash ? Absolute(path) : path}, {"hash", hash ? *hash : ""}});
  }
  return files;
}

std::vector<std::string> PathsIn(const Json& files, RecordedCall* recorded) {
  std::vector<std::string> paths;
  for (const Json& entry : files) {
    paths.push_back(entry.at("file"));
    recorded->files.push_back({paths.back(), entry.at("hash")});
  }
  return paths;
}

// Not recorded: what the host's limits were, if they were none.
Json LimitsJson(const RunOptions& options) {
  const Limits none;
  Json limits = Json::object();
  if (options.limits.bytes != none.bytes) limits["bytes"] = options.limits.bytes;
  if (options.limits.steps != none.steps) limits["steps"] = options.limits.steps;
  if (options.limits.depth != none.depth) limits["depth"] = options.limits.depth;
  if (options.deadline) limits["deadline_ns"] = options.deadline->count();
  return limits;
}

void ApplyLimits(const Json& limits, RunOptions* options) {
  const Limits none;
  if (limits.contains("bytes") && options->limits.bytes == none.bytes)
    options->limits.bytes = limits["bytes"];
  if (limits.contains("steps") && options->limits.steps == none.steps)
    options->limits.steps = limits["steps"];
  if (limits.contains("depth") && options->limits.depth == none.depth)
    options->limits.depth = limits["depth"];
  if (limits.contains("deadline_ns") && !options->deadline)
    options->deadline = std::chrono::nanoseconds(limits["deadline_ns"].get<std::int64_t>());
}

// Throws nlohmann's exceptions if a member is missing, or is something else.
RecordedCall Apply(const Json& call, RunOptions* options) {
  RecordedCall recorded;
  const Json& model = call.at("model");
  // Another model has its own map and its own parameters.
  if (options->file.empty()) {
    options->file = model.at("file");
    recorded.files.push_back({options->file, model.at("hash")});
    if (options->model.empty()) options->model = model.at("of_bundle");
    if (options->map.empty()) options->map = model.at("map");
  }
  if (options->parameters.empty()) options->parameters = PathsIn(call.at("parameters"), &recorded);
  if (options->kernels.empty()) options->kernels = PathsIn(call.at("kernels"), &recorded);
  if (options->threads == 0) options->threads = call.at("threads");
  if (options->function.empty()) options->function = call.at("function");
  ApplyLimits(call.at("limits"), options);
  options->inputs = {};
  options->inputs.inputs = call.at("inputs").get<std::vector<std::string>>();
  options->inputs.folder = options->replay;
  if (call.contains("error")) {
    recorded.error = call["error"].at("message");
  } else {
    options->expects = call.at("outputs").get<std::vector<std::string>>();
  }
  return recorded;
}

}  // namespace

std::vector<std::string> ChangedFiles(const RecordedCall& call) {
  std::vector<std::string> changed;
  for (const RecordedCall::File& file : call.files) {
    const Result<std::string> hash = HashOfFile(file.path);
    if (!file.hash.empty() && (!hash || *hash != file.hash)) changed.push_back(file.path);
  }
  return changed;
}

Result<CallRecord> CallRecord::Make(const RunOptions& options) {
  const Result<std::string> hash = HashOfFile(options.file);
  if (!hash) return Forward(hash);
  Result<Json> parameters = FilesJson(options.parameters);
  if (!parameters) return Forward(parameters);
  Result<Json> kernels = FilesJson(options.kernels);
  if (!kernels) return Forward(kernels);
  if (Status made = MakeNewFolder(options.record, "--record"); !made) return Forward(made);
  CallRecord record(options.record);
  const auto cores = static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  record.call_ = {{"rewire_call", kVersion},
                  {"model",
                   {{"file", Absolute(options.file)},
                    {"hash", *hash},
                    {"of_bundle", options.model},
                    {"map", options.map.empty() ? "" : Absolute(options.map)}}},
                  {"parameters", *std::move(parameters)},
                  {"kernels", *std::move(kernels)},
                  {"threads", options.threads == 0 ? cores : options.threads},
                  {"limits", LimitsJson(options)},
                  {"given",
                   {{"inputs", options.inputs.inputs},
                    {"dims", options.inputs.dims},
                    {"random", options.inputs.random},
                    {"seed", options.inputs.seed},
                    {"ranges", options.inputs.random_ranges}}}};
  return record;
}

Result<std::string> CallRecord::Keep(const Value& value, const std::string& name) {
  // The nodes of a tree in pre-order. An entry without a value ends a tree.
  struct Part {
    std::optional<Value> value;
    std::string path;
    bool first = true;
  };
  std::vector<Part> open;
  open.push_back({value, name});
  std::string text;
  while (!open.empty()) {
    const Part part = std::move(open.back());
    open.pop_back();
    if (!part.value) {
      text += ")";
      continue;
    }
    if (!part.first) text += ",";
    if (part.value->kind() == ValueKind::kInteger) {
      text += std::to_string(part.value->integer());
      continue;
    }
    if (part.value->kind() == ValueKind::kAdt) {
      text += fmt::format("{}(", part.value->tag());
      open.push_back({std::nullopt, ""});
      for (std::uint32_t i = part.value->field_count(); i-- > 0;)
        open.push_back({part.value->field(i), fmt::format("{}.{}", part.path, i), i == 0});
      continue;
    }
    const Result<std::optional<HostTensor>> tensor = HostTensorOf(*part.value);
    if (!tensor) return Forward(tensor, part.path);
    if (!*tensor) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("--record cannot keep {}: it is no tensor, integer or tree but {}", part.path,
                              ValueKindName(part.value->kind())));
    }
    const Result<std::vector<std::byte>> bytes = SerializeNpy(**tensor);
    const std::string file = part.path + (bytes ? ".npy" : ".safetensors");
    // numpy has no bfloat16.
    Status written = bytes ? WriteFileAtomically(folder_ + "/" + file, {bytes->data(), bytes->size()})
                           : WriteSafetensors(folder_ + "/" + file, {{"value", **tensor}});
    if (!written) return Forward(written);
    text += "@" + file + (bytes ? "" : ":value");
  }
  return text;
}

Status CallRecord::AddInputs(const Function& function, Span<const Value> inputs) {
  call_["function"] = function.name;
  call_["inputs"] = Json::array();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Result<std::string> kept = Keep(inputs[i], fmt::format("input-{}", i));
    if (!kept) return Forward(kept);
    call_["inputs"].push_back(fmt::format("{}={}", i, *kept));
  }
  return {};
}

Status CallRecord::AddOutputs(const std::vector<Output>& outputs) {
  call_["outputs"] = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Result<std::string> kept = Keep(outputs[i].value, fmt::format("output-{}", i));
    if (!kept) return Forward(kept);
    call_["outputs"].push_back(fmt::format("{}={}", i, *kept));
  }
  return {};
}

Status CallRecord::Finish(const Status& outcome) {
  if (!outcome) {
    const Error& error = outcome.error();
    call_["error"] = {{"name", StatusCodeName(error.code())}, {"message", error.message()}};
  }
  const std::string text = call_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return WriteFileAtomically(folder_ + "/call.json",
                             {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

Result<RecordedCall> ReadCall(const std::string& folder, RunOptions* options) {
  const std::string path = folder + "/call.json";
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes, "--replay");
  const auto* text = reinterpret_cast<const char*>(bytes->view.data());
  const Json call = Json::parse(text, text + bytes->view.size(), nullptr, false);
  if (!call.is_object() || !call.contains("rewire_call") || call["rewire_call"] != kVersion) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("--replay: {} is no call that vm-run --record wrote", path));
  }
  try {
    return Apply(call, options);
  } catch (const Json::exception& wrong) {
    return Fail(StatusCode::kInvalidFile, fmt::format("--replay: {} is damaged: {}", path, wrong.what()));
  }
}

}  // namespace rewire::tools
