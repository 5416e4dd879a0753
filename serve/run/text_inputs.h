// SPDX-License-Identifier: Apache-2.0
//
// Inputs of texts. A model has three tensors for one (docs/format.md): positions in a list, where each text
// of the list begins and ends, and the texts' bytes. Clients give one BYTES tensor.
#pragma once

#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/signature.h"

namespace rewire::serve {

// Replaces each BYTES tensor among the inputs by the model's three, which are in the request's memory.
// Errors: kInvalidArgument for an input that takes no texts, for another number of texts than the shape says,
// and for damaged elements; kOutOfMemory.
Status ReplaceTexts(const ModelSignature& signature, Request* request);

}  // namespace rewire::serve
