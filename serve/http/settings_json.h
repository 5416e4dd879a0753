// SPDX-License-Identifier: Apache-2.0
//
// The settings of traces and of the log as JSON.
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"

namespace rewire::serve {

// Both change what `body` names, if it is not empty, and append all settings to a text. Errors: those of
// Traces::Change and ChangeLog; kInvalidArgument for a body that is no such object; kNotFound for the model.
Status AnswerTraceSettings(std::string_view model, std::string_view body, Service* service,
                           std::string* text);
Status AnswerLogSettings(std::string_view body, Service* service, std::string* text);

}  // namespace rewire::serve
