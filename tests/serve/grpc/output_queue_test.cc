// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/output_queue.h"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>

namespace rewire::serve {
namespace {

Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST_CASE("what goes into the output comes out in order, whatever is taken at a time") {
  std::mt19937 random(4);
  OutputQueue queue;
  std::string expected, sent;
  for (int i = 0; i < 500; ++i) {
    auto text = std::make_shared<std::string>(random() % (i % 7 == 0 ? 90'000 : 3'000),
                                              static_cast<char>('a' + i % 26));
    if (i % 2 == 0) {
      queue.Add(BytesOf(*text));
    } else {
      queue.AddView(BytesOf(*text), text);
    }
    expected += *text;
    std::array<iovec, 4> parts;
    std::size_t left = random() % 5'000;
    const std::size_t count = queue.Next(parts.data(), parts.size());
    std::size_t taken = 0;
    for (std::size_t p = 0; p < count && left > 0; ++p) {
      const std::size_t size = std::min(left, parts[p].iov_len);
      sent.append(static_cast<const char*>(parts[p].iov_base), size);
      left -= size;
      taken += size;
    }
    queue.Drop(taken);
  }
  while (!queue.empty()) {
    iovec part;
    REQUIRE(queue.Next(&part, 1) == 1);
    sent.append(static_cast<const char*>(part.iov_base), part.iov_len);
    queue.Drop(part.iov_len);
  }
  CHECK(sent == expected);
  CHECK(queue.bytes() == 0);
}

TEST_CASE("large bytes are sent from where they lie, and kept until they are") {
  OutputQueue queue;
  auto large = std::make_shared<std::string>(100'000, 'x');
  const std::weak_ptr<std::string> kept = large;
  queue.AddView(BytesOf(*large), large);
  const void* const place = large->data();
  large = nullptr;
  iovec part;
  REQUIRE(queue.Next(&part, 1) == 1);
  CHECK(part.iov_base == place);
  queue.Drop(99'999);
  CHECK_FALSE(kept.expired());
  queue.Drop(1);
  CHECK(kept.expired());
}

}  // namespace
}  // namespace rewire::serve
