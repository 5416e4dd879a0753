// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/array.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using rewire::Array;

namespace {

// Counts those that live; the constructor and the copy of number `fails` throw.
struct Counted {
  static inline int live_ = 0;
  static inline int fails_ = -1;

  explicit Counted(int given = 0) : number(given) { Start(); }
  Counted(const Counted& other) : number(other.number) { Start(); }
  Counted(Counted&& other) noexcept : number(std::exchange(other.number, -2)) { ++live_; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() { --live_; }

  int number;

 private:
  void Start() {
    if (number == fails_) throw std::runtime_error("this one fails");
    ++live_;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("an array grows by what is pushed and keeps the rest", "", std::string, std::uint64_t) {
  Array<TestType> array;
  std::vector<TestType> expected;
  for (int i = 0; i < 1000; ++i) {
    TestType value{};
    if constexpr (std::is_same_v<TestType, std::string>) {
      value = std::string(i % 40, 'x');
    } else {
      value = i * 7;
    }
    array.push_back(value);
    expected.push_back(value);
    REQUIRE(array.back() == value);
  }
  CHECK(array == expected);
  CHECK(array.size() == 1000);
  array.pop_back();
  array.resize(500);
  array.resize(600);
  expected.resize(500);
  expected.resize(600);
  CHECK(array == expected);
  array.resize(603, expected[3]);
  CHECK(array[602] == expected[3]);
  array.clear();
  CHECK(array.empty());
  CHECK(array.capacity() >= 600);
}

TEST_CASE("an element of an array can be pushed into it while it grows") {
  Array<std::string> texts = {"a text that is too long to lie in the object itself"};
  Array<int> numbers = {17};
  while (texts.size() < 100) texts.push_back(texts.front());
  while (numbers.size() < 100) numbers.push_back(numbers.front());
  CHECK(texts == std::vector<std::string>(100, texts.front()));
  CHECK(numbers == std::vector<int>(100, 17));
  numbers.append(numbers.begin(), numbers.end());
  CHECK(numbers == std::vector<int>(200, 17));
}

TEST_CASE("new elements of an array are zero, or what a T is by default") {
  struct Entry {
    int number = 5;
    std::string text;
  };
  Array<std::int64_t> numbers(3);
  CHECK(numbers == std::vector<std::int64_t>{0, 0, 0});
  numbers.assign(3, 9);
  numbers.clear();
  numbers.resize(2);  // in memory that held others
  CHECK(numbers == std::vector<std::int64_t>{0, 0});
  Array<Entry> entries(2);
  entries.resize(3);
  CHECK(entries[2].number == 5);
}

TEST_CASE("elements are put in and taken out in the middle") {
  Array<std::string> array = {"a", "c", "d", "e"};
  CHECK(*array.insert(array.begin() + 1, "b") == "b");
  CHECK(array == Array<std::string>{"a", "b", "c", "d", "e"});
  array.erase(array.begin() + 1, array.begin() + 3);
  CHECK(array == Array<std::string>{"a", "d", "e"});
  array.erase(array.begin(), array.begin());
  array.erase(array.end() - 1);
  CHECK(array == Array<std::string>{"a", "d"});
  const std::vector<std::string> more = {"x", "y"};
  array.append(more.begin(), more.end());
  array.append({"z"});
  CHECK(array == Array<std::string>{"a", "d", "x", "y", "z"});
}

TEST_CASE("arrays are made of other containers, compared and ordered by their elements") {
  const std::vector<int> vector = {1, 2, 3};
  const Array<int> array = vector;
  CHECK(array == vector);
  CHECK(array != Array<int>{1, 2});
  CHECK(Array<int>{1, 2} < array);
  CHECK_FALSE(array < Array<int>{1, 2, 3});
  CHECK(std::accumulate(array.begin(), array.end(), 0) == 6);
  CHECK(Array<int>().data() == nullptr);
}

TEST_CASE("what an array holds is destroyed once, moved from or not") {
  {
    Array<Counted> array;
    for (int i = 0; i < 50; ++i) array.emplace_back(i);
    CHECK(Counted::live_ == 50);
    Array<Counted> copy = array;
    CHECK(Counted::live_ == 100);
    Array<Counted> moved = std::move(array);
    CHECK(Counted::live_ == 100);
    copy = moved;
    CHECK(Counted::live_ == 100);
    copy = std::move(moved);
    CHECK(Counted::live_ == 50);
    CHECK(copy[49].number == 49);
    Array<std::unique_ptr<Counted>> owners;
    for (int i = 0; i < 9; ++i) owners.push_back(std::make_unique<Counted>(i));
    CHECK(owners[8]->number == 8);
  }
  CHECK(Counted::live_ == 0);
}

TEST_CASE("where an element throws nothing is lost and the array stays good") {
  const std::vector<Counted> numbers = [] {
    std::vector<Counted> made;
    made.reserve(10);
    for (int i = 0; i < 10; ++i) made.emplace_back(i);
    return made;
  }();
  Counted::fails_ = 6;
  CHECK_THROWS_AS(Array<Counted>(numbers), std::runtime_error);
  CHECK_THROWS_AS(Array<Counted>(numbers.begin(), numbers.end()), std::runtime_error);
  CHECK_THROWS_AS(Array<Counted>(4, numbers[6]), std::runtime_error);
  Array<Counted> array(3);
  CHECK_THROWS_AS(array.append(numbers.begin(), numbers.end()), std::runtime_error);
  CHECK(array.size() == 9);
  CHECK_THROWS_AS(array.resize(20, numbers[6]), std::runtime_error);
  CHECK(array.size() == 9);
  Counted::fails_ = -1;
  array.clear();
  CHECK(Counted::live_ == 10);
}

TEST_CASE("more elements than 32 bits can count are refused as memory that is not there") {
  Array<std::uint8_t> array = {1, 2, 3};
  CHECK_THROWS_AS(array.reserve(std::size_t{1} << 32), std::bad_alloc);
  CHECK_THROWS_AS(array.resize(std::size_t{1} << 40), std::bad_alloc);
  CHECK_THROWS_AS(Array<std::uint64_t>(std::size_t{1} << 32), std::bad_alloc);
  CHECK(array == std::vector<std::uint8_t>{1, 2, 3});
}

TEST_CASE("threads read, search and copy one array at once") {
  Array<std::string> made;
  for (int i = 0; i < 300; ++i) made.push_back(std::string(static_cast<std::size_t>(i % 40), 'x'));
  const Array<std::string> shared = made;
  std::vector<std::size_t> sums(4);
  std::vector<std::thread> threads;
  threads.reserve(sums.size());
  for (std::size_t& sum : sums) {
    threads.emplace_back([&shared, &made, &sum] {
      for (int i = 0; i < 20; ++i) {
        Array<std::string> copy = shared;
        copy.push_back("y");  // the copy is the thread's own
        for (const std::string& each : shared) sum += each.size();
        sum += shared.back().size() + copy.back().size() + shared[7].size() + (shared == made ? 1 : 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t bytes = made.back().size() + 1 + made[7].size() + 1;
  for (const std::string& each : made) bytes += each.size();
  for (const std::size_t sum : sums) CHECK(sum == 20 * bytes);
  CHECK(shared == made);
}
