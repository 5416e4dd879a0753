// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rewire::kernel::cpu {

// Places that the threads of a loop have for themselves, such as pieces of the workspace. A body takes one
// and gives it back when it ends.
class OwnPlaces {
 public:
  static constexpr std::int64_t kMost = 4;

  // At most kMost, and at least as many as bodies can run at once.
  explicit OwnPlaces(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

  class Place {
   public:
    // One is free, unless a host's pool runs more bodies at once than it has threads. Then it waits.
    explicit Place(OwnPlaces* places) : places_(places) {
      while (places_->taken_[number_].exchange(true, std::memory_order_acquire))
        number_ = (number_ + 1) % places_->count_;
    }
    ~Place() { places_->taken_[number_].store(false, std::memory_order_release); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    std::int64_t number() const { return static_cast<std::int64_t>(number_); }

   private:
    OwnPlaces* places_;
    std::size_t number_ = 0;
  };

 private:
  std::array<std::atomic<bool>, kMost> taken_ = {};
  std::size_t count_;
};

}  // namespace rewire::kernel::cpu
