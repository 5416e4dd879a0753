// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/settings_json.h"

#include <simdjson.h>

#include <utility>
#include <vector>

#include "rewire/serve/core/json_text.h"

namespace rewire::serve {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// A text, or a number, which clients write either way.
bool ReadSettingText(element value, std::string* text) {
  std::string_view view;
  std::int64_t number = 0;
  if (value.get(view) == simdjson::SUCCESS) {
    text->assign(view);
  } else if (value.get(number) == simdjson::SUCCESS) {
    *text = std::to_string(number);
  } else {
    return false;
  }
  return true;
}

bool ReadSettingTexts(element value, std::vector<std::string>* texts) {
  array list;
  if (value.is_null()) return true;
  if (value.get(list) != simdjson::SUCCESS) return ReadSettingText(value, &texts->emplace_back());
  for (const element one : list) {
    if (!ReadSettingText(one, &texts->emplace_back())) return false;
  }
  return true;
}

Status ReadSettingObject(std::string_view body, simdjson::dom::parser* parser, object* root) {
  if (parser->parse(body.data(), body.size(), false).get(*root) == simdjson::SUCCESS) return {};
  return Fail(StatusCode::kInvalidArgument, "the body must be a JSON object of settings");
}

Status ChangeTraceSettings(std::string_view model, std::string_view body, Traces* traces) {
  simdjson::dom::parser parser;
  object root;
  if (Status read = ReadSettingObject(body, &parser, &root); !read) return read;
  std::vector<TraceSetting> changes;
  for (const auto& [key, value] : root) {
    TraceSetting& change = changes.emplace_back();
    change.name = key;
    if (!ReadSettingTexts(value, &change.values)) {
      return Fail(StatusCode::kInvalidArgument,
                  "the trace setting '{}' must be a text, a list of texts or null", change.name);
    }
  }
  return traces->Change(model, changes);
}

Status ChangeLogSettings(std::string_view body, ServerLog* log) {
  simdjson::dom::parser parser;
  object root;
  if (Status read = ReadSettingObject(body, &parser, &root); !read) return read;
  std::vector<Parameter> changes;
  for (const auto& [key, value] : root) {
    Parameter& change = changes.emplace_back();
    change.name = key;
    bool flag = false;
    std::int64_t number = 0;
    std::string_view text;
    if (value.get(flag) == simdjson::SUCCESS) {
      change.value = flag;
    } else if (value.get(number) == simdjson::SUCCESS) {
      change.value = number;
    } else if (value.get(text) == simdjson::SUCCESS) {
      change.value = text;
    } else {
      change.value = 0.5;  // of no setting
    }
  }
  return ChangeLog(changes, log);
}

}  // namespace

Status AnswerTraceSettings(std::string_view model, std::string_view body, Service* service,
                           std::string* text) {
  if (!model.empty()) {
    Status ready = service->CheckReady(model, {});
    if (!ready && ready.code() == StatusCode::kNotFound) return ready;
  }
  if (!body.empty()) {
    if (Status changed = ChangeTraceSettings(model, body, &service->traces()); !changed) return changed;
  }
  JsonText json(text);
  json.Begin('{');
  for (const TraceSetting& setting : service->traces().Settings(model)) {
    json.Key(setting.name);
    if (setting.name == "trace_level") {
      json.Begin('[').String(setting.values[0]).End(']');
    } else {
      json.String(setting.values[0]);
    }
  }
  json.End('}');
  return {};
}

Status AnswerLogSettings(std::string_view body, Service* service, std::string* text) {
  ServerLog* const log = service->log();
  // Without a log, an empty list of changes says so.
  if (body.empty()) {
    if (Status there = ChangeLog({}, log); !there) return there;
  } else if (Status changed = ChangeLogSettings(body, log); !changed) {
    return changed;
  }
  const LogSettings settings = SettingsOfLog(*log);
  JsonText json(text);
  json.Begin('{').Key("log_file").String("").Key("log_info").Bool(settings.info);
  json.Key("log_warning").Bool(settings.warning).Key("log_error").Bool(settings.error);
  json.Key("log_verbose_level").Number(std::uint64_t{settings.verbose}).Key("log_format").String("default");
  json.End('}');
  return {};
}

}  // namespace rewire::serve
