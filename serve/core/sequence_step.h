// SPDX-License-Identifier: Apache-2.0
//
// The extension "sequence" of the Open Inference Protocol: requests that follow each other by an id.
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"

namespace rewire::serve {

// Whether a parameter of a request is one of the extension: sequence_id, sequence_start, sequence_end.
bool IsSequenceParameter(std::string_view name);
// Errors: kInvalidArgument for a value of another kind, and for a text of more than 128 bytes.
Status SetSequenceParameter(const Parameter& parameter, SequenceStep* step);

// Whether the step has an id. Clients send 0, false and an empty text with requests of no sequence.
bool IsOfSequence(const SequenceStep& step);
// 5, or 'five' for a text, so that numbers and texts differ.
std::string SequenceName(const SequenceStep& step);

}  // namespace rewire::serve
