// SPDX-License-Identifier: Apache-2.0
// One connection of a front end, over which a client sends any bytes: the same ones take the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rewire/serve/core/front_end.h"
#include "rewire/tests/serve/grpc/fake_service.h"

namespace rewire::fuzz {

using MakeFrontEnd =
    std::function<std::unique_ptr<serve::FrontEnd>(serve::Service*, const serve::FrontEndLimits&)>;

// Sends the bytes in pieces, whose size follows from the last byte, reads all answers, and closes the
// connection. Then a client of the same loop asks `question` over a connection of its own, whose answer must
// hold `answer`. Ends the process if it does not, if a connection stays, or if a request is lost. Returns the
// first client's answers.
std::string SendBytes(test::FakeService* service, const MakeFrontEnd& make, std::string_view bytes,
                      std::string_view question, std::string_view answer);

}  // namespace rewire::fuzz
