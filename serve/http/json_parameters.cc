// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/json_parameters.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "rewire/serve/core/sequence_step.h"
#include "rewire/serve/http/json_elements.h"

namespace rewire::serve {

Status ReadParameter(std::string_view name, simdjson::dom::element value, Request* request) {
  Parameter parameter;
  std::string_view text;
  std::int64_t integer = 0;
  double number = 0;
  bool flag = false;
  if (value.get(flag) == simdjson::SUCCESS) {
    parameter.value = flag;
  } else if (value.get(integer) == simdjson::SUCCESS) {
    parameter.value = integer;
  } else if (value.get(text) == simdjson::SUCCESS) {
    parameter.value = KeptText(text, request);
  } else if (value.get(number) == simdjson::SUCCESS) {
    parameter.value = number;
  } else {
    return Fail(StatusCode::kInvalidArgument,
                "the parameter '" + std::string(name) + "' must be a text, a number, true or false");
  }
  parameter.name = KeptText(name, request);
  if (IsSequenceParameter(parameter.name)) return SetSequenceParameter(parameter, &request->step);
  if (name == "timeout") {
    if (integer < 0 || !std::holds_alternative<std::int64_t>(parameter.value)) {
      return Fail(StatusCode::kInvalidArgument, "the parameter 'timeout' must be a number of microseconds");
    }
    if (integer > 0)
      request->deadline =
          Clock::now() + std::chrono::microseconds(std::min<std::int64_t>(integer, std::int64_t{1} << 50));
  }
  request->parameters.push_back(parameter);
  return {};
}

}  // namespace rewire::serve
