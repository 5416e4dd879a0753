// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/routes.h"

#include <simdjson.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/http/model_json.h"
#include "rewire/serve/http/openai.h"
#include "rewire/serve/http/settings_json.h"

namespace rewire::serve {
namespace {

using Parts = std::vector<std::string_view>;

Parts Split(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();
  return parts;
}

Route ModelRoute(const Parts& parts) {
  // v2 models M ... or v2 models M versions V ...
  if (parts.size() == 3 && parts[2] == "stats") return {Route::kModelStats, "GET", {}, {}};
  Route route{Route::kUnknown, "GET", parts[2], {}};
  std::size_t at = 3;
  if (parts.size() >= 5 && parts[3] == "versions") {
    route.version = parts[4];
    at = 5;
  }
  if (route.name.empty() || parts.size() > at + 1) {
    if (parts.size() != at + 2 || parts[at] != "trace" || parts[at + 1] != "setting") return route;
    route.kind = Route::kTrace;
    route.method = "";
    return route;
  }
  const std::string_view action = parts.size() == at ? std::string_view() : parts[at];
  struct Row {
    std::string_view action;
    Route::Kind kind;
    const char* method;
  };
  static constexpr std::array kRows = {
      Row{"", Route::kModelMetadata, "GET"},
      Row{"infer", Route::kInfer, "POST"},
      Row{"ready", Route::kModelReady, "GET"},
      Row{"config", Route::kModelConfig, "GET"},
      Row{"stats", Route::kModelStats, "GET"},
      Row{"generate", Route::kGenerate, "POST"},
      Row{"generate_stream", Route::kGenerateStream, "POST"},
  };
  for (const Row& row : kRows) {
    if (row.action == action) {
      route.kind = row.kind;
      route.method = row.method;
    }
  }
  return route;
}

Route RepositoryRoute(const Parts& parts) {
  if (parts.size() == 3 && parts[2] == "index") return {Route::kIndex, "POST", {}, {}};
  if (parts.size() == 5 && parts[2] == "models" && parts[4] == "load")
    return {Route::kLoad, "POST", parts[3], {}};
  if (parts.size() == 5 && parts[2] == "models" && parts[4] == "unload")
    return {Route::kUnload, "POST", parts[3], {}};
  return {};
}

Route RegionRoute(const Parts& parts, bool cuda) {
  const bool named = parts.size() == 5 && parts[2] == "region";
  if (!named && parts.size() != 3) return {};
  const std::string_view action = parts.back();
  const std::string_view name = named ? parts[3] : std::string_view();
  if (action == "status") return {cuda ? Route::kCudaStatus : Route::kRegions, "GET", name, {}};
  if (action == "unregister") return {cuda ? Route::kCudaUnregister : Route::kUnregister, "POST", name, {}};
  if (action == "register" && named) return {cuda ? Route::kUnsupported : Route::kRegister, "POST", name, {}};
  return {};
}

Route OpenAiRoute(const Parts& parts) {
  if (parts.size() == 2 && parts[1] == "completions") return {Route::kOpenAiCompletion, "POST", {}, {}};
  if (parts.size() == 3 && parts[1] == "chat" && parts[2] == "completions") {
    return {Route::kOpenAiChat, "POST", {}, {}};
  }
  if (parts.size() == 2 && parts[1] == "models") return {Route::kOpenAiModels, "GET", {}, {}};
  if (parts.size() == 3 && parts[1] == "models") return {Route::kOpenAiModels, "GET", parts[2], {}};
  return {};
}

Status Index(std::string_view body, const Service& service, std::string* text) {
  bool ready = false;
  if (!body.empty()) {
    simdjson::dom::parser parser;
    simdjson::dom::object root;
    if (parser.parse(body.data(), body.size(), false).get(root) != simdjson::SUCCESS) {
      return Fail(StatusCode::kInvalidArgument, "the body must be a JSON object");
    }
    simdjson::dom::element value;
    if (root["ready"].get(value) == simdjson::SUCCESS && value.get(ready) != simdjson::SUCCESS) {
      return Fail(StatusCode::kInvalidArgument, "'ready' must be true or false");
    }
  }
  JsonText json(text);
  json.Begin('[');
  for (const ModelIndexEntry& entry : service.Index(ready)) {
    json.Begin('{').Key("name").String(entry.name);
    if (!entry.version.empty()) json.Key("version").String(entry.version);
    json.Key("state").String(ModelStateName(entry.state)).Key("reason").String(entry.reason).End('}');
  }
  json.End(']');
  return {};
}

// Load and unload take no parameters, so a client must not believe that its configuration counts.
Status CheckNoParameters(std::string_view body) {
  if (body.empty()) return {};
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (parser.parse(body.data(), body.size(), false).get(root) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "the body must be a JSON object");
  }
  simdjson::dom::object parameters;
  if (root["parameters"].get(parameters) != simdjson::SUCCESS) return {};
  for (const auto& [key, value] : parameters) {
    if (key == "unload_dependents") continue;
    return Fail(StatusCode::kUnsupported,
                "the parameter '{}' is not supported: the server's settings configure models",
                std::string(key));
  }
  return {};
}

Status Register(std::string_view name, std::string_view body, SharedRegions* regions) {
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (parser.parse(body.data(), body.size(), false).get(root) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "the body must be a JSON object");
  }
  std::string_view key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  if (root["key"].get(key) != simdjson::SUCCESS || root["byte_size"].get(bytes) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "a region needs the text 'key' and the number 'byte_size'");
  }
  simdjson::dom::element given;
  if (root["offset"].get(given) == simdjson::SUCCESS && given.get(offset) != simdjson::SUCCESS) {
    return Fail(StatusCode::kInvalidArgument, "'offset' must be a number");
  }
  return regions->Register(name, key, offset, bytes);
}

Status Regions(std::string_view name, const SharedRegions& regions, std::string* text) {
  const Result<std::vector<RegionDescription>> list = regions.List(name);
  if (!list) return Forward(list);
  JsonText json(text);
  json.Begin('[');
  for (const RegionDescription& region : *list) {
    json.Begin('{').Key("name").String(region.name).Key("key").String(region.key);
    json.Key("offset").Number(region.offset).Key("byte_size").Number(region.bytes).End('}');
  }
  json.End(']');
  return {};
}

void DescribeServer(const Service& service, std::string* text) {
  const ServerDescription server = service.Describe();
  JsonText json(text);
  json.Begin('{')
      .Key("name")
      .String(server.name)
      .Key("version")
      .String(server.version)
      .Key("extensions")
      .Begin('[');
  for (const std::string& extension : server.extensions) json.String(extension);
  json.End(']').End('}');
}

// Fills the answer's body.
Status Respond(const Route& route, std::string_view body, Service* service, HttpAnswer* answer) {
  std::string* const text = &answer->body;
  switch (route.kind) {
    case Route::kUnknown:
    case Route::kInfer:
    case Route::kGenerate:
    case Route::kGenerateStream:
    case Route::kOpenAiCompletion:
    case Route::kOpenAiChat:
      return Fail(StatusCode::kNotFound, "there is nothing at this path");
    case Route::kLive:
      JsonText(text).Begin('{').Key("live").Bool(true).End('}');
      return {};
    case Route::kReady:
      if (!service->Ready()) return Fail(StatusCode::kBusy, "the server is not ready");
      JsonText(text).Begin('{').Key("ready").Bool(true).End('}');
      return {};
    case Route::kServer:
      DescribeServer(*service, text);
      return {};
    case Route::kModelReady:
      if (Status ready = service->CheckReady(route.name, route.version); !ready) return ready;
      JsonText(text).Begin('{').Key("name").String(route.name).Key("ready").Bool(true).End('}');
      return {};
    case Route::kModelMetadata:
    case Route::kModelConfig: {
      const Result<ModelDescription> model = service->Describe(route.name, route.version);
      if (!model) return Forward(model);
      if (route.kind == Route::kModelConfig) {
        WriteModelConfig(*model, text);
      } else {
        WriteModelMetadata(*model, text);
      }
      return {};
    }
    case Route::kModelStats: {
      const auto list = service->Statistics(route.name, route.version);
      if (!list) return Forward(list);
      WriteStatistics(*list, text);
      return {};
    }
    case Route::kIndex:
      return Index(body, *service, text);
    case Route::kLoad:
    case Route::kUnload:
      if (Status good = CheckNoParameters(body); !good) return good;
      return route.kind == Route::kLoad ? service->Load(route.name) : service->Unload(route.name);
    case Route::kRegions:
      return Regions(route.name, service->regions(), text);
    case Route::kRegister:
      return Register(route.name, body, &service->regions());
    case Route::kUnregister:
      if (route.name.empty()) {
        service->regions().UnregisterAll();
      } else {
        service->regions().Unregister(route.name);
      }
      return {};
    case Route::kCudaStatus:
      if (!route.name.empty()) {
        return Fail(StatusCode::kNotFound, "CUDA shared memory region '{}' is not registered", route.name);
      }
      *text = "[]";
      return {};
    case Route::kCudaUnregister:
      return {};
    case Route::kOpenAiModels:
      *answer = AnswerOpenAiModels(route.name, *service);
      return {};
    case Route::kTrace:
      return AnswerTraceSettings(route.name, body, service, text);
    case Route::kLogging:
      return AnswerLogSettings(body, service, text);
    case Route::kMetrics:
      answer->type = "text/plain; version=0.0.4";
      service->WriteMetrics(text);
      return {};
    case Route::kUnsupported:
      return Fail(StatusCode::kUnsupported,
                  "this server does not have the extension of this path (docs/serving.md)");
  }
  return {};
}

}  // namespace

bool IsOpenAiPath(std::string_view path) { return path.substr(0, 4) == "/v1/"; }

Route FindRoute(std::string_view path) {
  const Parts parts = Split(path);
  if (parts.empty()) return {};
  if (parts.size() == 1 && parts[0] == "metrics") return {Route::kMetrics, "GET", {}, {}};
  if (parts[0] == "v1") return OpenAiRoute(parts);
  if (parts[0] != "v2") return {};
  if (parts.size() == 1) return {Route::kServer, "GET", {}, {}};
  if (parts.size() == 3 && parts[1] == "health" && parts[2] == "live") return {Route::kLive, "GET", {}, {}};
  if (parts.size() == 3 && parts[1] == "health" && parts[2] == "ready") return {Route::kReady, "GET", {}, {}};
  if (parts.size() >= 3 && parts[1] == "models") return ModelRoute(parts);
  if (parts.size() >= 3 && parts[1] == "repository") return RepositoryRoute(parts);
  if (parts.size() >= 3 && parts[1] == "systemsharedmemory") return RegionRoute(parts, false);
  if (parts.size() >= 3 && parts[1] == "cudasharedmemory") return RegionRoute(parts, true);
  if (parts.size() == 3 && parts[1] == "trace" && parts[2] == "setting") return {Route::kTrace, "", {}, {}};
  if (parts.size() == 2 && parts[1] == "logging") return {Route::kLogging, "", {}, {}};
  return {};
}

HttpAnswer ErrorAnswer(const Status& status) {
  return {WireCodeOf(status.code()).http, ErrorJson(status.error().message()), "application/json"};
}

HttpAnswer Answer(const Route& route, std::string_view body, Service* service) {
  HttpAnswer answer;
  if (Status done = Respond(route, body, service, &answer); !done) return ErrorAnswer(done);
  return answer;
}

}  // namespace rewire::serve
