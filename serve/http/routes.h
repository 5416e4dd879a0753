// SPDX-License-Identifier: Apache-2.0
//
// Routes: the meaning of each path of the Open Inference Protocol over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "rewire/serve/core/service.h"

namespace rewire::serve {

struct Route {
  enum Kind {
    kUnknown,
    kInfer,     // POST v2/models/M[/versions/V]/infer
    kGenerate,  // POST v2/models/M[/versions/V]/generate
    kGenerateStream,
    kLive,           // GET v2/health/live
    kReady,          // GET v2/health/ready
    kServer,         // GET v2
    kModelReady,     // GET v2/models/M[/versions/V]/ready
    kModelMetadata,  // GET v2/models/M[/versions/V]
    kModelConfig,    // GET .../config
    kModelStats,     // GET .../stats, v2/models/stats
    kIndex,          // POST v2/repository/index
    kLoad,           // POST v2/repository/models/M/load
    kUnload,         // POST v2/repository/models/M/unload
    kRegions,        // GET v2/systemsharedmemory[/region/R]/status
    kRegister,       // POST v2/systemsharedmemory/region/R/register
    kUnregister,     // POST v2/systemsharedmemory[/region/R]/unregister
    kCudaStatus,     // GET v2/cudasharedmemory/status: there are none
    kCudaUnregister,
    kOpenAiModels,      // GET v1/models[/M]
    kOpenAiCompletion,  // POST v1/completions
    kOpenAiChat,        // POST v1/chat/completions
    kTrace,             // GET, POST v2[/models/M]/trace/setting
    kLogging,           // GET, POST v2/logging
    kMetrics,           // GET metrics
    kUnsupported,       // a path of an extension that this server does not have
  };
  Kind kind = kUnknown;
  const char* method = "GET";  // empty: GET, and POST to change it
  std::string_view name;       // of a model or region
  std::string_view version;
};

// Whether a path belongs to OpenAI's interface, whose errors have a form of their own.
bool IsOpenAiPath(std::string_view path);

// Views of the route lie in `path`, which is decoded and begins with '/'.
Route FindRoute(std::string_view path);

struct HttpAnswer {
  int status = 200;
  std::string body;
  const char* type = "application/json";
};

// Answers everything but kInfer and exchanges (http/exchange.h). Load and Unload take long: call them where
// nobody waits. `body` is followed by kJsonPadding readable bytes.
HttpAnswer Answer(const Route& route, std::string_view body, Service* service);

HttpAnswer ErrorAnswer(const Status& status);

}  // namespace rewire::serve
