// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/status.h"

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using rewire::Error;
using rewire::Fail;
using rewire::Forward;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;

TEST_CASE("every status code has a name of its own") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    names.insert(rewire::StatusCodeName(static_cast<StatusCode>(code)));
  }
  CHECK(names.size() == static_cast<std::size_t>(StatusCode::kInternal) + 1);
  CHECK(names.count("unknown status code") == 0);
}

TEST_CASE("a code from outside the enum still has a printable name") {
  CHECK(std::string(rewire::StatusCodeName(static_cast<StatusCode>(1000))) == "unknown status code");
}

TEST_CASE("context is put in front, outermost first, and the code stays") {
  Error error(StatusCode::kInvalidFile, "operand 2 names register 9");
  error.AddContext("decode@12").AddContext("main");
  CHECK(error.message() == "main: decode@12: operand 2 names register 9");
  CHECK(std::string(error.what()) == error.message());
  CHECK(error.code() == StatusCode::kInvalidFile);
}

TEST_CASE("adding context to a copy leaves the original alone") {
  const Error original(StatusCode::kIo, "short read");
  Error copy = original;
  copy.AddContext("weights");
  CHECK(original.message() == "short read");
  CHECK(copy.message() == "weights: short read");
}

TEST_CASE("a failure passes through results of other types") {
  const Result<int> number = Fail(StatusCode::kNotFound, "no function 'f'");
  const Status status = Forward(number);
  const Result<std::string> text = Forward(status, "link");
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().code() == StatusCode::kNotFound);
  CHECK(text.error().message() == "link: no function 'f'");
  CHECK(status.error().message() == "no function 'f'");
}

TEST_CASE("a result holds its value or why there is none, through copies, moves and assignments") {
  const Result<std::string> value = "a value that is allocated";
  Result<std::string> copy = value;
  CHECK(*copy == *value);
  Result<std::string> moved = std::move(copy);
  CHECK(*moved == *value);
  moved = Fail(StatusCode::kIo, "{} of {} bytes", 3, 8);
  const Result<std::string> failure = moved;
  moved = failure;
  REQUIRE_FALSE(moved);
  CHECK(moved.error().message() == "3 of 8 bytes");
  CHECK(moved.value_or("other") == "other");
  moved = value;
  REQUIRE(moved);
  CHECK(moved->size() == value->size());
  const std::string taken = *std::move(moved);
  CHECK(taken == *value);
}

TEST_CASE("threads may read, copy and extend one error at once") {
  const Error shared(StatusCode::kKernelFailed, "kernel 'dense' failed");
  std::vector<std::string> messages(4);
  std::vector<std::thread> threads;
  threads.reserve(messages.size());
  for (std::string& message : messages) {
    threads.emplace_back([&shared, &message] {
      for (int i = 0; i < 100; ++i) {
        Error copy = shared;
        message = copy.AddContext("main@3").message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : messages) CHECK(message == "main@3: kernel 'dense' failed");
  CHECK(shared.message() == "kernel 'dense' failed");
}

TEST_CASE("a failure keeps its message however many failures follow it, and so do its copies") {
  const Status first = Fail(StatusCode::kNotFound, "no function 'f'");
  Status copy = first;
  const Result<int> result = copy;
  for (int i = 0; i < 2000; ++i) static_cast<void>(Fail(StatusCode::kIo, "number {}", i));
  copy = Fail(StatusCode::kIo, "another");
  CHECK(first.error().message() == "no function 'f'");
  CHECK(first.code() == StatusCode::kNotFound);
  CHECK(result.error().message() == "no function 'f'");
  CHECK(copy.error().message() == "another");
}

TEST_CASE("what was moved from still says whether it failed, and why") {
  Status status = Fail(StatusCode::kBusy, "another thread runs it");
  const Status moved = std::move(status);                      // NOLINT(performance-move-const-arg)
  CHECK(status.error().message() == moved.error().message());  // NOLINT(bugprone-use-after-move)
  Result<std::string> text = std::string("a value that is allocated");
  const Result<std::string> taken = std::move(text);
  CHECK(taken->size() == 25);
  CHECK(text.has_value());  // NOLINT(bugprone-use-after-move, clang-analyzer-cplusplus.Move)
}

TEST_CASE("a success may hold nothing") {
  const Result<std::optional<int>> nothing = std::nullopt;
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
}

TEST_CASE("a message outlives the thread that failed") {
  Status status;
  std::thread([&status] { status = Fail(StatusCode::kBusy, "another thread runs it"); }).join();
  CHECK(status.error().message() == "another thread runs it");
}

TEST_CASE("the error of a success is an internal error, not a fault") {
  CHECK(Status().code() == StatusCode::kOk);
  CHECK(Status().error().code() == StatusCode::kInternal);
  CHECK(Result<int>(3).status().has_value());
  CHECK(Result<int>(3).error().code() == StatusCode::kInternal);
}

TEST_CASE("value() gives the value of a success and throws the error of a failure") {
  Result<int> result = 3;
  CHECK(result.value() == 3);
  result = Fail(StatusCode::kIo, "short read");
  CHECK_THROWS_WITH(result.value(), "short read");
}

TEST_CASE("threads that fail at once each get their own words") {
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 1000; ++i) {
        const Status status = Forward(Fail(StatusCode::kKernelFailed, "step {}", i), {"thread {}", t});
        const std::string message = status.error().message();
        if (message != "thread " + std::to_string(t) + ": step " + std::to_string(i)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}
