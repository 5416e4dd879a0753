// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/utf8.h"

#include <catch2/catch.hpp>
#include <string_view>

namespace rewire {
namespace {

TEST_CASE("well-formed UTF-8 is accepted up to the last code point") {
  for (std::string_view text :
       {"", "abc", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF", "gr\xC3\xBC\xC3\x9F"}) {
    CAPTURE(text);
    CHECK(IsUtf8(text));
  }
  CHECK(IsUtf8(std::string_view("\0", 1)));
}

TEST_CASE("malformed UTF-8 is refused") {
  for (std::string_view text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF",
                                "\xE2\x82", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "ok\xFE"}) {
    CAPTURE(text);
    CHECK_FALSE(IsUtf8(text));
  }
}

TEST_CASE("names that can be printed") {
  CHECK(IsPrintable("conv1/weights \xC3\xA9"));
  CHECK_FALSE(IsPrintable("two\nlines"));
  CHECK_FALSE(IsPrintable("\xFF"));
  CHECK(Printable("conv1 \xC3\xA9", 100) == "conv1 \xC3\xA9");
  CHECK(Printable("two\nlines", 100) == "two?lines");
  CHECK(Printable("a\xFFz", 100) == "a?z");
  // A character that is cut in two is none.
  CHECK(Printable("\xC3\xA9\xC3\xA9", 3) == "???");
}

}  // namespace
}  // namespace rewire
