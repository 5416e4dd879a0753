// SPDX-License-Identifier: Apache-2.0
//
// Failures of streams' work that others have noticed, until a wait for the stream tells them
// (RewireStreamWorkApi).
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace rewire::cuda {

// Any thread may call any function.
class StreamFailures {
 public:
  // Keeps the words of a stream's first failure.
  void Note(const void* stream, std::string words);
  // Gives the words away; none if there was no failure. It costs one load while no stream has failed.
  std::string Take(const void* stream);

 private:
  std::mutex mutex_;
  std::map<const void*, std::string> words_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace rewire::cuda
