// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/assert.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/tests/support/in_child.h"

using rewire::test::InChild;
using rewire::test::Outcome;

TEST_CASE("an assertion that holds does nothing") {
  const int index = 2;
  REWIRE_ASSERT(index < 3, "index {} of 3", index);
}

#if !defined(NDEBUG) || defined(REWIRE_ASSERTIONS)
TEST_CASE("a failed assertion says condition, values and place, and aborts") {
  const Outcome outcome = InChild([] {
    const int index = 3;
    REWIRE_ASSERT(index < 3, "index {} of {} elements", index, 3);
  });
  CHECK(WIFSIGNALED(outcome.status));
  CHECK(WTERMSIG(outcome.status) == SIGABRT);
  CHECK_THAT(outcome.written, Catch::Contains("assert_test.cc:"));
  CHECK_THAT(outcome.written, Catch::Contains("assertion failed: index < 3: index 3 of 3 elements"));
}

TEST_CASE("the value of a failed Result is an assertion that says why it failed") {
  const Outcome outcome = InChild([] {
    const rewire::Result<int> result = rewire::Fail(rewire::StatusCode::kIo, "short read");
    static_cast<void>(*result);
  });
  CHECK(WIFSIGNALED(outcome.status));
  CHECK_THAT(outcome.written, Catch::Contains("a failed Result has no value: short read"));
}

TEST_CASE("an element that a span or an array does not have is an assertion that says which") {
  rewire::Array<int> array = {1, 2, 3};
  const rewire::Span<const int> span(array);
  const auto says = [](const std::string& text, auto body) {
    const Outcome outcome = InChild(body);
    CHECK(WIFSIGNALED(outcome.status));
    CHECK_THAT(outcome.written, Catch::Contains(text));
  };
  says("index 3 of a span of 3 elements", [&] { static_cast<void>(span[3]); });
  says("2 elements from 2 on of a span of 3", [&] { static_cast<void>(span.subspan(2, 2)); });
  says("what follows 4 elements of a span of 3", [&] { static_cast<void>(span.subspan(4)); });
  says("index 3 of an array of 3 elements", [&] { array[3] = 0; });
  says("1 elements from 3 on of an array of 3", [&] { array.erase(array.end()); });
  says("an insertion at 4 of an array of 3 elements", [&] { array.insert(array.end() + 1, 0); });
  array.clear();
  says("of an array of 0 elements", [&] { static_cast<void>(array.front()); });
  says("of an array of 0 elements", [&] { static_cast<void>(array.back()); });
  says("of an array of 0 elements", [&] { array.pop_back(); });
}
#else
TEST_CASE("without assertions their arguments are not computed") {
  int computed = 0;
  REWIRE_ASSERT(++computed == 0, "computed {} times", ++computed);
  CHECK(computed == 0);
}
#endif
