// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/traces.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>

#include "rewire/serve/core/json_text.h"

namespace rewire::serve {
namespace {

// -2, which no setting has, for a text that is none.
std::int64_t WholeNumber(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : -2;
}

std::int64_t NanosecondsOf(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Status OneValue(const TraceSetting& change, const char* value) {
  if (change.values.size() == 1 && change.values[0] == value) return {};
  return Fail(StatusCode::kUnsupported, "the trace setting '{}' has one value here, '{}'", change.name,
              value);
}

}  // namespace

Traces::~Traces() {
  if (file_ == nullptr) return;
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

std::vector<TraceSetting> Traces::Settings(std::string_view model) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(model);
  const Values own = found == models_.end() ? Values() : found->second;
  return {{"trace_file", {file_path_}},
          {"trace_level", {Chosen(own.timestamps, all_.timestamps) != 0 ? "TIMESTAMPS" : "OFF"}},
          {"trace_rate", {std::to_string(Chosen(own.rate, all_.rate))}},
          {"trace_count", {std::to_string(Chosen(own.count, all_.count))}},
          {"log_frequency", {"0"}},
          {"trace_mode", {"triton"}}};
}

Status Traces::ChangeOne(const TraceSetting& change, bool of_model, Values* values) const {
  const std::vector<std::string>& given = change.values;
  // A model's setting that is cleared is that of all models, and that of all models is as at the start.
  const bool clear = given.empty();
  if (change.name == "trace_level") {
    values->timestamps = of_model ? kUnset : 0;
    for (const std::string& level : given) {
      if (level == "TENSORS") {
        return Fail(StatusCode::kUnsupported,
                    "the trace level 'TENSORS' is not supported; there are TIMESTAMPS and OFF");
      }
      if (level != "TIMESTAMPS" && level != "OFF") {
        return Fail(StatusCode::kInvalidArgument,
                    "there is no trace level '{}'; there are TIMESTAMPS and OFF", level);
      }
      values->timestamps = level == "TIMESTAMPS" ? 1 : 0;
    }
    if (values->timestamps == 1 && file_path_.empty()) {
      return Fail(StatusCode::kUnsupported,
                  "requests are traced into a file: start the server with --trace-file");
    }
    return {};
  }
  if (change.name == "trace_rate" || change.name == "trace_count") {
    const bool is_rate = change.name == "trace_rate";
    std::int64_t* const value = is_rate ? &values->rate : &values->count;
    *value = of_model ? kUnset : is_rate ? 1000 : -1;
    if (clear) return {};
    *value = given.size() == 1 ? WholeNumber(given[0]) : kUnset;
    if (*value < (is_rate ? 1 : -1)) {
      return Fail(StatusCode::kInvalidArgument, "the trace setting '{}' must be a whole number from {}",
                  change.name, is_rate ? 1 : -1);
    }
    return {};
  }
  if (change.name == "trace_file") {
    if (clear || (given.size() == 1 && given[0] == file_path_)) return {};
    return Fail(StatusCode::kUnsupported,
                "the trace setting 'trace_file' cannot be changed by clients: start the server with "
                "--trace-file");
  }
  if (change.name == "log_frequency") return clear ? Status() : OneValue(change, "0");
  if (change.name == "trace_mode") return clear ? Status() : OneValue(change, "triton");
  return Fail(StatusCode::kInvalidArgument,
              "there is no trace setting '{}'; there are trace_level, trace_rate, trace_count", change.name);
}

Status Traces::Open() {
  if (file_ != nullptr) return {};
  file_ = std::fopen(file_path_.c_str(), "w");
  if (file_ != nullptr) return {};
  return Fail(StatusCode::kIo,
              "requests cannot be traced: '{}', which the server was given, cannot be opened: {}", file_path_,
              std::generic_category().message(errno));
}

Status Traces::Change(std::string_view model, Span<const TraceSetting> changes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(model);
  Values values = model.empty() ? all_ : found == models_.end() ? Values() : found->second;
  for (const TraceSetting& change : changes) {
    if (Status done = ChangeOne(change, !model.empty(), &values); !done) return done;
  }
  if (values.timestamps == 1) {
    if (Status opened = Open(); !opened) return opened;
  }
  values.seen = 0;
  (model.empty() ? all_ : models_[std::string(model)]) = values;
  bool active = all_.timestamps == 1;
  for (const auto& [name, own] : models_) active |= own.timestamps == 1;
  active_ = active;
  return {};
}

void Traces::Record(std::string_view model, std::string_view version, std::string_view id,
                    const RequestTimes& times) {
  if (!active_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(model);
  Values* const own = found == models_.end() ? &all_ : &found->second;
  if (Chosen(own->timestamps, all_.timestamps) == 0) return;
  if (own->seen++ % Chosen(own->rate, all_.rate) != 0) return;
  std::int64_t& left = own->count == kUnset ? all_.count : own->count;
  if (left == 0) return;
  if (left > 0) --left;
  Write(model, version, id, times);
}

void Traces::Write(std::string_view model, std::string_view version, std::string_view id,
                   const RequestTimes& times) {
  std::string text = written_ == 0 ? "[\n" : ",\n";
  std::string entry;
  JsonText json(&entry);
  json.Begin('{').Key("id").Number(++written_).Key("model_name").String(model);
  json.Key("model_version").String(version);
  if (!id.empty()) json.Key("request_id").String(id);
  json.Key("timestamps").Begin('[');
  for (const auto& [name, time] :
       {std::pair("REQUEST_START", times.start), std::pair("QUEUE_START", times.start),
        std::pair("COMPUTE_START", times.compute_start), std::pair("COMPUTE_INPUT_END", times.infer_start),
        std::pair("COMPUTE_OUTPUT_START", times.infer_end), std::pair("COMPUTE_END", times.compute_end),
        std::pair("REQUEST_END", Clock::now())}) {
    json.Begin('{').Key("name").String(name).Key("ns").Number(NanosecondsOf(time)).End('}');
  }
  json.End(']').End('}');
  text += entry;
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) Stop();
}

// After an error of writing.
void Traces::Stop() {
  const std::string reason = std::generic_category().message(errno);
  WriteLog(log_, ServerLogLevel::kError, [&] {
    return "requests are no longer traced: '" + file_path_ + "' cannot be written: " + reason;
  });
  active_ = false;
  all_.timestamps = 0;
  for (auto& [name, own] : models_) own.timestamps = kUnset;
  std::fclose(file_);
  file_ = nullptr;
  written_ = 0;
}

}  // namespace rewire::serve
