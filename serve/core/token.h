// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/status.h"

namespace rewire::serve {

// The words to a client that does not give the token.
inline constexpr std::string_view kNoToken =
    "the server's token is expected in the header 'Authorization: Bearer TOKEN', and another one or none is "
    "given";

// Whether a header Authorization has the token. The time does not depend on how much of it is right. An empty
// token lets everybody in.
bool HasToken(std::string_view authorization, std::string_view token);

// The token that a file has: its first line. Errors: those of reading; kInvalidArgument if it is shorter than
// 16 bytes, or has bytes that a header cannot have.
Result<std::string> ReadTokenFile(const std::string& path);

}  // namespace rewire::serve
