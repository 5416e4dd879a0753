// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/net/acceptor.h"

#include <sys/resource.h>

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
  Result<Descriptor> listener = Listen("127.0.0.1:0");
  REQUIRE(listener);
  const int port = PortOf(listener->get());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  // Each pause ends with a turn or two; a loop that does not sleep makes many thousands.
  int turns = 0, turns_without = 0;
  (*loop)->OnTurn([&] {
    ++turns;
    return false;
  });
  // The descriptors end once the first client is taken: until then the sanitizer of undefined behavior has
  // looked at the acceptor's type, for which it needs a descriptor of its own.
  int taken = 0, taken_without = 0;
  int limited = -1;
  Acceptor acceptor(loop->get(), *std::move(listener), [&](Descriptor client) {
    client.Close();
    if (++taken == 2) (*loop)->Stop();
    if (taken != 1) return;
    limited = setrlimit(RLIMIT_NOFILE, &none);
    turns = 0;
    (*loop)->At(std::chrono::steady_clock::now() + milliseconds(300), [&] {
      turns_without = turns;
      taken_without = taken;
      setrlimit(RLIMIT_NOFILE, &before);
    });
  });
  REQUIRE(acceptor.Start());
  const TestClient first(port), second(port);
  (*loop)->Run();
  REQUIRE(limited == 0);
  CHECK(taken_without == 1);
  CHECK(turns_without < 100);
  CHECK(taken == 2);
}

}  // namespace
}  // namespace rewire::serve::test
