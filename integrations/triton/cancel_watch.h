// SPDX-License-Identifier: Apache-2.0
//
// CancelWatch: ends runs whose client has cancelled the request. Triton does not tell a backend, so one
// thread asks, as long as something runs.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "rewire/integrations/triton/triton_request.h"
#include "rewire/serve/run/instance.h"

namespace rewire::triton {

// Thread-safe.
class CancelWatch {
 public:
  CancelWatch();
  ~CancelWatch();
  CancelWatch(const CancelWatch&) = delete;
  CancelWatch& operator=(const CancelWatch&) = delete;

  // One run, watched as long as this lives. Its VM must be there (Instance::Prepare).
  class Run {
   public:
    Run(CancelWatch* watch, serve::Instance* instance, TritonRequest* request);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    friend class CancelWatch;
    CancelWatch* const watch_;
    serve::Instance* const instance_;
    TritonRequest* const request_;
    const serve::Clock::time_point start_;
  };

 private:
  void Watch();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Run*> runs_;
  bool sleeping_ = false;  // until something runs
  bool ending_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace rewire::triton
