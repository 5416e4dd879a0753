// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/span.h"

#include <array>
#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

using rewire::Span;

namespace {

int Sum(Span<const int> numbers) {
  int sum = 0;
  for (int number : numbers) sum += number;
  return sum;
}

}  // namespace

TEST_CASE("a span is made from whatever holds elements in a row") {
  std::vector<int> vector = {1, 2, 3};
  const std::array<int, 2> array = {4, 5};
  CHECK(Sum(vector) == 6);
  CHECK(Sum(array) == 9);
  CHECK(Sum({7, 8}) == 15);
  CHECK(Sum(Span<int>(vector)) == 6);
  CHECK(Sum({}) == 0);
  CHECK(Span<const char>(std::string_view("abc")).size() == 3);
}

TEST_CASE("a braced list lives until the end of the call that it is written in") {
  static int alive = 0;
  struct Counted {
    Counted() { ++alive; }
    Counted(const Counted&) { ++alive; }
    ~Counted() { --alive; }
  };
  const auto count = [](Span<const Counted> list) { return list.size() == 3 ? alive : -1; };
  CHECK(count({Counted(), Counted(), Counted()}) >= 3);
  CHECK(alive == 0);
}

TEST_CASE("a mutable span writes through") {
  std::vector<int> vector = {1, 2, 3};
  Span<int> span(vector);
  span[1] = 20;
  CHECK(vector[1] == 20);
  CHECK(span.subspan(1).size() == 2);
  CHECK(span.subspan(1, 1)[0] == 20);
  CHECK(span.subspan(3).empty());
}
