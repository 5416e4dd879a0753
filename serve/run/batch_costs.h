// SPDX-License-Identifier: Apache-2.0
//
// BatchCosts: what rows of one model cost alone and in batches, as measured, and how many requests are
// therefore run together. Batches are not always worth it: a row may cost more in a batch where the batch
// leaves the caches that one row fits into.
//
// Costs that are not known are found out from below: requests run alone first, then two together, and twice
// as many as long as a row costs less.
//
// It reads no clock and is not thread-safe. Its owner says what each run has taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "rewire/base/span.h"
#include "rewire/serve/core/description.h"

namespace rewire::serve {

class BatchCosts {
 public:
  // Requests with as many bytes in each row, within a quarter: those of another size have costs of their own.
  using Kind = std::uint32_t;
  static Kind KindOf(std::uint64_t row_bytes);

  // How many requests are to be run together: 1, or more. They wait, the oldest first, and fit together.
  // rows_up_to[i] is the number of rows of those up to i. A choice that has not been measured for long is
  // made now and then, in less than a fiftieth of the time.
  std::size_t Choose(Kind kind, Span<const std::int64_t> rows_up_to);
  // Whether the last choice holds for the next request of this kind: it was made for several, and they run
  // one by one. So a queue is not looked through again for each of them.
  bool RunsAlone(Kind kind);
  // The number of rows, at most `most`, for which a request of `rows` should wait. It is `rows` if no batch
  // will be chosen.
  std::int64_t RowsToWaitFor(Kind kind, std::int64_t rows, std::int64_t most) const;

  // Whether the time of such a run is wanted. It always is while little is known.
  bool Wants(Kind kind, std::int64_t rows, bool together) const;
  // A run of one request or of several `together` has taken so long.
  void Add(Kind kind, std::int64_t rows, bool together, std::uint64_t ns);
  // A run whose time was not taken.
  void Pass(Kind kind, std::int64_t rows, bool together);

  BatchingStatistics statistics() const { return statistics_; }

 private:
  // Runs of up to 1, 2, 4, 8 rows and so on.
  static constexpr std::size_t kSizes = 22;
  static std::size_t SizeOf(std::int64_t rows);

  // Times of one form of run. A median is not moved by a run that another process has held up.
  struct Form {
    static constexpr std::uint32_t kKept = 8;
    std::array<float, kKept> recent{};  // ns of a row
    std::uint32_t count = 0;            // of all that were added
    float row_ns = 0;                   // their median; 0: not known yet
    std::uint64_t last = 0;             // the run behind which it was measured
    std::uint64_t passed = 0;           // runs since then
    void Add(float ns, bool is_long);
  };
  struct Costs {
    std::array<Form, kSizes> alone;
    std::array<Form, kSizes> together;
    std::uint64_t runs = 0;
    double ns = 0;             // of all runs, those whose time was not taken by their median
    double explore_from = 0;   // when `ns` is so large, another choice is tried
    std::uint32_t trials = 0;  // are still to be made
    std::size_t tried = 0;     // their size; 0: alone
    std::size_t chosen = 0;    // requests that are still to run alone by the last choice
    std::uint64_t used = 0;    // by the order of all choices
  };
  struct Plan {
    std::size_t count = 1;
    double ns = 0;  // for all that wait; 0: not known
  };

  Costs& Of(Kind kind);
  static double Alone(const Costs& costs, Span<const std::int64_t> rows_up_to);
  static std::size_t UpTo(Span<const std::int64_t> rows_up_to, std::size_t size);
  static Plan Best(const Costs& costs, Span<const std::int64_t> rows_up_to);
  static void BeginTrials(Costs* costs, const Plan& best, Span<const std::int64_t> rows_up_to);
  void Took(Costs* costs, std::int64_t rows, bool together, double ns);

  std::map<Kind, Costs> kinds_;
  std::uint64_t choices_ = 0;
  BatchingStatistics statistics_;
};

}  // namespace rewire::serve
