// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rewire::serve {

// One thread for what would keep a loop from its connections, such as loading a model. It is started by the
// first task.
class Background {
 public:
  // Ends after the task that goes on; those behind it are not run.
  ~Background();
  void Run(std::function<void()> task);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace rewire::serve
