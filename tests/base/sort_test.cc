// SPDX-License-Identifier: Apache-2.0
#include "base/sort.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>
#include <vector>

using rewire::Sort;

TEST_CASE("sorts what std::sort sorts") {
  std::mt19937 random(7);
  for (std::size_t count = 0; count < 200; ++count) {
    std::vector<int> numbers(count);
    for (int& number : numbers) number = static_cast<int>(random() % (count / 2 + 1));
    std::vector<int> expected = numbers;
    std::sort(expected.begin(), expected.end());
    Sort<int>(numbers, std::less<>());
    CHECK(numbers == expected);
    std::reverse(expected.begin(), expected.end());
    Sort<int>(numbers, [](int a, int b) { return a > b; });
    CHECK(numbers == expected);
  }
}

TEST_CASE("sorts what is moved") {
  std::vector<std::string> names = {"one name that is allocated", "b", "", "a", "another that is allocated"};
  Sort<std::string>(names, std::less<>());
  CHECK(names ==
        std::vector<std::string>{"", "a", "another that is allocated", "b", "one name that is allocated"});
}
