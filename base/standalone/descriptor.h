// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace rewire {

// Descriptor: a file descriptor that is closed with the object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}  // below 0: none, as system calls say it
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  bool is_open() const { return number_ >= 0; }
  int get() const { return number_; }
  // Gives it away: the caller closes it.
  int Release() { return std::exchange(number_, -1); }
  // False if the system says that what was written is lost. Does nothing if there is none.
  bool Close() { return !is_open() || close(Release()) == 0; }

 private:
  int number_ = -1;
};

}  // namespace rewire
