// SPDX-License-Identifier: Apache-2.0
// Without exceptions a program whose array cannot grow ends (base/array.h). The program's status is 0 if it
// does.
#include <cstdlib>
#include <exception>

#include "rewire/base/array.h"

#if defined(__cpp_exceptions)
#error this program is for builds without exceptions
#endif

int main() {
  std::set_terminate([] { std::_Exit(EXIT_SUCCESS); });
  rewire::Array<char> array;
  array.reserve(std::size_t{1} << 33);  // more than 32 bits count
  return EXIT_FAILURE;
}
