// SPDX-License-Identifier: Apache-2.0
//
// Service: the models of a server and what they are asked. Front ends depend on this interface and nothing
// below.
//
//   front end ─▶ Request ─▶ Service::Submit ─▶ queue of a model ─▶ batch ─▶ Program ─▶ Request::Finish
//
// Thread-safe, but for Lane.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/cache_block.h"
#include "rewire/serve/core/description.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/server_log.h"
#include "rewire/serve/core/shared_regions.h"
#include "rewire/serve/core/traces.h"

namespace rewire::serve {

// A thread of a front end on which short runs may take place, because handing them to another thread would
// take longer than the run. It belongs to one thread.
class Lane {
 public:
  virtual ~Lane() = default;
  // Runs what Submit has left here. The thread calls this when it has submitted all requests that have
  // arrived, so that they form batches, and before it sleeps.
  virtual void Run() = 0;
};

struct Generator;

// HeldModel: a version of a generator, and a sequence of it that belongs to whoever has this object. Requests
// whose `held` it is run there, one at a time, even if the model is loaded again meanwhile. The sequence ends
// with the object, and nothing else takes its place.
class HeldModel {
 public:
  virtual ~HeldModel() = default;
  virtual const Generator& generator() const = 0;
  // Blocks of the longest beginning of a prompt that is kept, without the prompt's last token. Thread-safe.
  virtual CacheBlocks FindPrefix(Span<const std::int64_t> prompt) = 0;
  // Keeps blocks of a prompt, of which the first has this number. Thread-safe.
  virtual void KeepPrefix(Span<const std::int64_t> prompt, std::size_t first, const CacheBlocks& blocks) = 0;
};

class Service {
 public:
  virtual ~Service() = default;

  // Inference. A request that cannot be is finished at once, with its status. Without a lane, it runs on a
  // thread of the Service's. The lane must stay until the request is finished.
  virtual void Submit(Request* request, Lane* lane) = 0;
  // Takes a request that waits out of its queue, or stops its run if it runs alone; it is finished with
  // kCancelled. Does nothing if it is finished. The caller makes sure that the request is still there.
  virtual void Cancel(Request* request) = 0;
  virtual std::unique_ptr<Lane> MakeLane() = 0;

  // The newest version of a model that makes tokens. Errors: kNotFound; kUnsupported if its settings have no
  // generator; kBusy if no further sequence may begin. Then each of the most that it may have is in use, or
  // their state has all the bytes that it may.
  virtual Result<std::shared_ptr<HeldModel>> HoldGenerator(std::string_view model) = 0;

  // The server.
  virtual ServerDescription Describe() const = 0;
  // Whether all models that are to be loaded at the start are, and the server is not draining.
  virtual bool Ready() const = 0;

  // One model. An empty version stands for the newest that is ready. Errors: kNotFound, with similar names;
  // kBusy, with the reason, if it is not ready.
  virtual Status CheckReady(std::string_view model, std::string_view version) const = 0;
  virtual Result<ModelDescription> Describe(std::string_view model, std::string_view version) const = 0;
  // All versions if `version` is empty, all models if `model` is.
  virtual Result<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                          std::string_view version) const = 0;

  // The repository. Load loads a model, or loads it again, and returns when its versions are ready. Requests
  // go to the old ones until then, and those that run there are not disturbed. Errors: kNotFound; what
  // compiling and linking give; kUnsupported if the server does not let clients load.
  virtual std::vector<ModelIndexEntry> Index(bool ready_only) const = 0;
  virtual Status Load(std::string_view model) = 0;
  virtual Status Unload(std::string_view model) = 0;

  virtual SharedRegions& regions() = 0;
  virtual Traces& traces() = 0;
  virtual ServerLog* log() = 0;  // null: the host has given none

  // Appends the statistics in the text format of Prometheus.
  virtual void WriteMetrics(std::string* text) const = 0;

  // New requests are refused with kBusy from now on, and those that have been submitted go on.
  virtual void StartDraining() = 0;
  // How many requests have been submitted and not finished.
  virtual std::size_t in_flight() const = 0;
};

}  // namespace rewire::serve
