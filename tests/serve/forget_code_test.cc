// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/forget_code.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace rewire::serve {
namespace {

// The largest mapping of the test's own code.
struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  long resident = 0;  // kilobytes
};

Code LargestOwn() {
  Code largest, now;
  bool own = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    char rights[5] = {};
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3) {
      own = std::string(rights) == "r-xp" && line.find("serve_test") != std::string::npos;
      now = {begin, end, 0};
    }
    if (!own || std::sscanf(line.c_str(), "Rss: %ld kB", &now.resident) != 1) continue;
    if (now.end - now.begin > largest.end - largest.begin) largest = now;
  }
  return largest;
}

// Reads a byte of each page. The address sanitizer takes what lies between variables for no memory.
__attribute__((no_sanitize("address"))) unsigned SumOfPages(const Code& code) {
  unsigned sum = 0;
  for (std::uintptr_t page = code.begin; page < code.end; page += 4096)
    sum += *reinterpret_cast<const volatile unsigned char*>(page);
  return sum;
}

TEST_CASE("pages of code that nobody needs go, and come back") {
  const Code code = LargestOwn();
  REQUIRE(code.begin != 0);
  const unsigned before = SumOfPages(code);
  const long all = LargestOwn().resident;
  CHECK(all >= static_cast<long>((code.end - code.begin) / 1024));
  ForgetCode();
  CHECK(LargestOwn().resident < all * 3 / 4);
  CHECK(SumOfPages(code) == before);
}

}  // namespace
}  // namespace rewire::serve
