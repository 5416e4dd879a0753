// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/message.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using rewire::Format;
using rewire::Message;

TEST_CASE("places take texts and integers of every kind") {
  const std::string text = "text";
  const char* chars = "chars";
  CHECK(Format("{}, {}, {}, {}", text, chars, std::string_view("view and more", 4), "literal") ==
        "text, chars, view, literal");
  CHECK(Format("{} {}", std::numeric_limits<std::int64_t>::min(),
               std::numeric_limits<std::uint64_t>::max()) == "-9223372036854775808 18446744073709551615");
  CHECK(Format("{}{}", std::int8_t{-1}, std::uint32_t{7}) == "-17");
  CHECK(Format("no place") == "no place");
  CHECK(Format("{}{}{}{}{}{}{}{}{}", 1, 2, 3, 4, 5, 6, 7, 8, 9) == "123456789");
}

TEST_CASE("what stands in a place is shown as it is") {
  const std::string places = "{} and {}";
  CHECK(Format("[{}] {}", places, 1) == "[{} and {}] 1");
  CHECK(Message(places).Text() == places);
  CHECK(Message("{}").Text() == "{}");  // a text alone has no places
  const std::string zero("a\0b", 3);
  CHECK(Format("{}", zero) == zero);
}

TEST_CASE("a message is formatted when its text is asked for, and not before") {
  std::string name = "before";
  const Message message("kernel {}", name);
  name = "the kernel that failed";
  CHECK(message.Text() == "kernel the kernel that failed");
}
