// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/batch_rule.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve {
namespace {

using test::TestRequest;

// Requests with so many rows each.
class Waiting {
 public:
  explicit Waiting(const std::vector<std::int64_t>& rows) {
    for (const std::int64_t count : rows) {
      requests_.push_back(std::make_unique<TestRequest>(count, 1.0F));
      list.push_back(requests_.back().get());
    }
  }
  std::vector<Request*> list;

 private:
  std::vector<std::unique_ptr<TestRequest>> requests_;
};

using Members = std::vector<std::size_t>;

TEST_CASE("a batch has the requests that fit, in their order") {
  BatchSettings settings;
  settings.max_batch_size = 8;
  const Batch batch = ChooseBatch(settings, 8, Waiting({3, 4, 2, 1, 5}).list);
  CHECK(batch.members == Members{0, 1, 3});
  CHECK(batch.rows == 8);
  CHECK(batch.padded == 8);
  CHECK(batch.wait_until == Clock::time_point::min());
  CHECK(ChooseBatch(BatchSettings(), 0, Waiting({3, 4}).list).members == Members{0});
  CHECK(ChooseBatch(settings, 8, Waiting({9, 1}).list).members == Members{0});
}

TEST_CASE("requests of another shape are passed over") {
  BatchSettings settings;
  settings.max_batch_size = 8;
  Waiting waiting({1, 1, 1});
  waiting.list[1]->inputs[0].shape[1] = 5;
  CHECK(ChooseBatch(settings, 8, waiting.list).members == Members{0, 2});
}

TEST_CASE("with a delay, only a full batch or a preferred size is run at once") {
  BatchSettings settings;
  settings.max_batch_size = 8;
  settings.max_queue_delay_us = 1000;
  settings.preferred_sizes = {2, 4};
  const Batch one = ChooseBatch(settings, 8, Waiting({1}).list);
  CHECK(one.wait_until == Clock::time_point() + std::chrono::microseconds(1000));
  CHECK(ChooseBatch(settings, 8, Waiting({1, 1, 1}).list).members == Members{0, 1});
  CHECK(ChooseBatch(settings, 8, Waiting({1, 1, 1, 1, 1}).list).rows == 4);
  CHECK(ChooseBatch(settings, 8, Waiting({1, 1, 1}).list).wait_until == Clock::time_point::min());
  const Batch full = ChooseBatch(settings, 8, Waiting({4, 4}).list);
  CHECK(full.rows == 8);
  CHECK(full.wait_until == Clock::time_point::min());
}

TEST_CASE("a batch is filled up to the next size that is allowed") {
  BatchSettings settings;
  settings.max_batch_size = 8;
  settings.allowed_sizes = {8, 2, 4};
  const std::vector<std::int64_t> expected = {2, 2, 4, 4, 8, 8, 8, 8};
  for (std::int64_t rows = 1; rows <= 8; ++rows) {
    CHECK(ChooseBatch(settings, 8, Waiting({rows}).list).padded ==
          expected[static_cast<std::size_t>(rows - 1)]);
  }
}

}  // namespace
}  // namespace rewire::serve
