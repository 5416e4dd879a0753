// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// Reads the elements of an input from its InferTensorContents, one list for each group of datatypes. They are
// decoded into the request's memory. `input` has its dtype. `where` begins the errors: kInvalidArgument for a
// list of another datatype and a number that is no element, kUnsupported for datatypes without a list.
Status ReadTensorContents(std::string_view contents, const std::string& where, Arena* memory,
                          InputTensor* input);

}  // namespace rewire::serve
