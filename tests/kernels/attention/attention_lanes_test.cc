// SPDX-License-Identifier: Apache-2.0
// The parts of attention on every instruction set, against sums in double precision.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/kernels/cpu/attention/attention_lanes.h"
#include "rewire/kernels/cpu/attention/attention_rows.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

TEST_CASE("attention: lanes of every instruction set") {
  constexpr std::int64_t kRows = 21, kWidth = 32, kStep = 35, kKeys = 5;
  const std::int64_t size = GENERATE(1, 6, 16, 67);
  const auto queries = HostTensor::Random({kRows, size}, 1).values<float>();
  const auto values = HostTensor::Random({kKeys, size}, 2).values<float>();
  const auto given = HostTensor::Random({kKeys, kWidth}, 3).values<float>();
  const auto place = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<const float*> rows;
  for (std::int64_t r = 0; r < kRows; ++r) rows.push_back(queries.data() + r * size);
  ForEachTarget([&] {
    const kernel::cpu::AttentionLanes lanes = kernel::cpu::ChooseAttentionLanes();
    std::vector<float> turned(place(size * kWidth));
    lanes.turn(rows.data(), kRows, size, 2, turned.data(), kWidth);
    for (std::int64_t j = 0; j < size; ++j) {
      for (std::int64_t i = 0; i < kWidth; ++i)
        CHECK(turned[place(j * kWidth + i)] == 2 * queries[place((i < kRows ? i : 0) * size + j)]);
    }
    std::vector<float> memory(place(kKeys * kStep), 9);
    for (std::int64_t j = 0; j < kKeys; ++j)
      std::copy_n(given.data() + j * kWidth, kWidth, memory.data() + j * kStep);
    const kernel::cpu::LaneScores scores{memory.data(), kKeys, kWidth, kStep};
    lanes.add(given.data(), kWidth, 1, scores);
    lanes.add(given.data(), 1, 0, scores);
    std::vector<std::int32_t> first(kWidth, 0), last(kWidth, kKeys);
    first[1] = 2;
    last[1] = 3;
    last[2] = 0;
    lanes.hide(first.data(), last.data(), scores);
    kernel::cpu::LaneSums sums;
    std::fill_n(sums.largest, kWidth, -std::numeric_limits<float>::infinity());
    std::fill_n(sums.sum, kWidth, 0.0F);
    lanes.weigh(scores, &sums);
    std::vector<float> out(place(kRows * size), 7), factors(kRows, 3);
    std::vector<float*> to;
    for (std::int64_t r = 0; r < kRows; ++r) to.push_back(out.data() + r * size);
    kernel::cpu::WeightedValues call{scores, kRows,   values.data(),  size,
                                     size,   nullptr, factors.data(), to.data()};
    lanes.add_values(call);
    call.keep = factors.data();
    call.factor = nullptr;
    lanes.add_values(call);
    for (std::int64_t j = 0; j < kKeys; ++j) {
      for (std::int64_t i = kWidth; i < kStep; ++i) CHECK(memory[place(j * kStep + i)] == 9);
    }
    for (std::int64_t i = 0; i < kRows; ++i) {
      double total = 0, largest = -std::numeric_limits<double>::infinity();
      std::vector<double> terms, added(place(size));
      for (std::int64_t j = 0; j < kKeys; ++j) {
        const bool seen = j >= first[place(i)] && j < last[place(i)];
        terms.push_back(seen ? 2.0 * static_cast<double>(given[place(j * kWidth + i)]) +
                                   static_cast<double>(given[place(j)])
                             : -std::numeric_limits<double>::infinity());
        largest = std::max(largest, terms.back());
      }
      for (std::int64_t j = 0; j < kKeys; ++j) {
        const double weight = std::isinf(largest) ? 0 : std::exp(terms[place(j)] - largest);
        total += weight;
        for (std::int64_t d = 0; d < size; ++d)
          added[place(d)] += weight * static_cast<double>(values[place(j * size + d)]);
      }
      CHECK(static_cast<double>(sums.sum[i]) == Approx(total).margin(1e-5));
      for (std::int64_t d = 0; d < size; ++d)
        CHECK(static_cast<double>(out[place(i * size + d)]) == Approx(10 * added[place(d)]).margin(1e-4));
    }
  });
}

TEST_CASE("attention: the largest score of a query has weight 1, however large it is") {
  constexpr std::int64_t kWidth = 32, kKeys = 3;
  const float scale = GENERATE(1.0F, 1e5F, 1e10F, 1e38F);
  const auto given = HostTensor::Random({kKeys, kWidth}, 5).values<float>();
  ForEachTarget([&] {
    const kernel::cpu::AttentionLanes lanes = kernel::cpu::ChooseAttentionLanes();
    kernel::cpu::LaneSums sums;
    std::fill_n(sums.largest, kWidth, -std::numeric_limits<float>::infinity());
    std::fill_n(sums.sum, kWidth, 0.0F);
    std::vector<float> total(kWidth, 0.0F);
    // The second block of keys scales what the first one has left.
    for (const float block : {-scale, scale}) {
      std::vector<float> memory(given);
      for (float& each : memory) each *= block;
      const std::vector<float> scores = memory;
      lanes.weigh({memory.data(), kKeys, kWidth, kWidth}, &sums);
      for (std::size_t i = 0; i < kWidth; ++i) {
        total[i] *= sums.keep[i];
        for (std::size_t j = 0; j < kKeys; ++j) {
          CHECK(memory[j * kWidth + i] <= 1.0001F);
          if (scores[j * kWidth + i] == sums.largest[i]) CHECK(memory[j * kWidth + i] == Approx(1));
          total[i] += memory[j * kWidth + i];
        }
      }
    }
    for (std::size_t i = 0; i < kWidth; ++i) {
      CHECK(sums.sum[i] >= 0.9999F);
      CHECK(sums.sum[i] == Approx(total[i]));
    }
  });
}

TEST_CASE("attention: masks of every instruction set") {
  constexpr std::int64_t kWidth = 32, kStep = 35, kKeys = 3;
  const auto given = HostTensor::Random({kKeys * kStep}, 1).values<float>();
  ForEachTarget([&] {
    const kernel::cpu::AttentionLanes lanes = kernel::cpu::ChooseAttentionLanes();
    std::vector<std::uint8_t> bytes(kKeys * kWidth);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 255;
    // Not a multiple of any vector.
    std::vector<float> seen(bytes.size() + 1, 7), scores = given;
    lanes.widen(bytes.data(), std::ssize(bytes) - 1, seen.data());
    CHECK(std::vector<float>(seen.end() - 2, seen.end()) == std::vector<float>{7, 7});
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i) CHECK(seen[i] == static_cast<float>(bytes[i]));
    seen[kKeys * kWidth - 1] = static_cast<float>(bytes.back());
    lanes.choose(seen.data(), kWidth, 1, -5, {scores.data(), kKeys, kWidth, kStep});
    for (std::size_t j = 0; j < kKeys; ++j) {
      for (std::size_t i = 0; i < kStep; ++i) {
        const bool hidden = i < kWidth && bytes[j * kWidth + i] == 0;
        CHECK(scores[j * kStep + i] == (hidden ? -5 : given[j * kStep + i]));
      }
    }
    scores = given;
    lanes.choose(seen.data(), 1, 0, -5, {scores.data(), kKeys, kWidth, kStep});
    for (std::size_t i = 0; i < scores.size(); ++i) CHECK(scores[i] == (i < kWidth ? -5 : given[i]));
  });
}

TEST_CASE("attention: every instruction set") {
  const std::int64_t size = GENERATE(1, 16, 67, 128);
  constexpr std::int64_t kCount = 7;
  const auto query = HostTensor::Random({size}, 1).values<float>();
  const auto keys = HostTensor::Random({kCount, size}, 2).values<float>();
  const auto weights = HostTensor::Random({kCount}, 3).values<float>();
  ForEachTarget([&] {
    const kernel::cpu::AttentionRows rows = kernel::cpu::ChooseAttentionRows();
    std::vector<float> scores(kCount), of_four(kCount * 5), to(static_cast<std::size_t>(size), 2);
    rows.scores(query.data(), keys.data(), kCount, size, size, 3, scores.data());
    const std::vector<float> other(static_cast<std::size_t>(size), 1.0F);
    const float* const four[] = {query.data(), other.data(), query.data(), other.data()};
    rows.four(four, keys.data(), kCount, size, size, 3, of_four.data(), 5);
    rows.add_values(weights.data(), keys.data(), kCount, size, size, 0.5F, to.data());
    for (std::size_t j = 0; j < kCount; ++j) {
      double sum = 0, plain = 0;
      for (std::size_t d = 0; d < query.size(); ++d) {
        plain += static_cast<double>(keys[j * query.size() + d]);
        sum += static_cast<double>(query[d]) * static_cast<double>(keys[j * query.size() + d]);
      }
      CHECK(static_cast<double>(scores[j]) == Approx(3 * sum).margin(1e-4));
      for (const std::size_t i : {0, 1, 2, 3})
        CHECK(static_cast<double>(of_four[j * 5 + i]) == Approx(3 * (i % 2 == 0 ? sum : plain)).margin(1e-4));
    }
    for (std::size_t d = 0; d < query.size(); ++d) {
      double sum = 1;
      for (std::size_t j = 0; j < kCount; ++j)
        sum += static_cast<double>(weights[j]) * static_cast<double>(keys[j * query.size() + d]);
      CHECK(static_cast<double>(to[d]) == Approx(sum).margin(1e-4));
    }
  });
}

}  // namespace
}  // namespace rewire::test
