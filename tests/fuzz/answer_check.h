// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rewire::fuzz {

// Says what is wrong with an answer over HTTP/1.1 that must be one whole response, whose body is JSON or, as
// server-sent events, a piece of JSON in each event. Empty: nothing is.
std::string_view WhatIsWrong(std::string_view answer);

}  // namespace rewire::fuzz
