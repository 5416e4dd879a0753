// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), as far as servers of
// models use them.
#pragma once

#include <string>

namespace rewire::serve {

inline constexpr const char* kEventStream = "text/event-stream; charset=utf-8";

// One event with its data, which has no line ends: JSON of this server has none.
inline std::string ServerSentEvent(const std::string& data) { return "data: " + data + "\n\n"; }

}  // namespace rewire::serve
