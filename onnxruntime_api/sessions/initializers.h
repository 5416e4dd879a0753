// SPDX-License-Identifier: Apache-2.0
//
// Initializers that a host gives in place of those of the model's external files, and initializers that a run
// overrides. The model's bytes are written anew with the one, and without the other.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/onnxruntime_api/values/value.h"

namespace rewire::onnxruntime_api {

struct GivenInitializers {
  // By the initializer's name. Those that lie in the model itself are not replaced.
  std::map<std::string, std::shared_ptr<ValueBody>> values;
  // External files by their name, in memory of the host's, which is read when a session is made.
  std::map<std::string, Span<const std::byte>> files;

  bool empty() const { return values.empty() && files.empty(); }
};

// The model with these initializers as part of it, and without those of `overridden`, which are inputs then.
// Errors: kInvalidArgument for a value of another type or shape, and for a file that ends too early.
Result<std::string> WithInitializers(Span<const std::byte> model, const GivenInitializers& given,
                                     const std::set<std::string>& overridden);

}  // namespace rewire::onnxruntime_api
