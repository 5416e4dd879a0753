// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/acceptor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "rewire/serve/net/listen.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a server without descriptors for its clients sleeps until it has some") {
  const auto loop = EventLoop::Make();
  REQUIRE(loop);
  const Result<int> listener = Listen("127.0.0.1:0");
  REQUIRE(listener);
  int taken = 0;
  Acceptor acceptor(loop->get(), *listener, [&](int client) {
    ++taken;
    close(client);
    (*loop)->Stop();
  });
  REQUIRE(acceptor.Start());
  const TestClient client(PortOf(*listener));

  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  // Each pause ends with a turn or two; a loop that does not sleep makes many thousands.
  int turns = 0, turns_without = 0, taken_without = 0;
  (*loop)->OnTurn([&] {
    ++turns;
    return false;
  });
  (*loop)->At(std::chrono::steady_clock::now() + milliseconds(300), [&] {
    turns_without = turns;
    taken_without = taken;
    setrlimit(RLIMIT_NOFILE, &before);
  });
  (*loop)->Run();
  CHECK(taken_without == 0);
  CHECK(turns_without < 100);
  CHECK(taken == 1);
}

}  // namespace
}  // namespace rewire::serve::test
