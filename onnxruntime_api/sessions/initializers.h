// SPDX-License-Identifier: Apache-2.0
//
// Initializers that a host gives in place of the model's.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"
#include "rewire/onnxruntime_api/sessions/model_text.h"
#include "rewire/onnxruntime_api/values/value.h"

namespace rewire::onnxruntime_api {

// By the initializer's name. The values share the host's memory.
using InitializerValues = std::map<std::string, std::shared_ptr<ValueBody>>;

struct GivenInitializers {
  InitializerValues values;    // in place of any initializer of the model
  InitializerValues external;  // in place of those whose elements lie in external files
  // External files by their name. Bytes without an owner are the host's, which may free them when the session
  // is made.
  std::map<std::string, SharedBytes> files;

  bool empty() const { return values.empty() && external.empty() && files.empty(); }
  // The same with copies of the host's files.
  GivenInitializers Kept() const;
};

// Gives the compiler those that the model has, but for those that each run gives. Where only kernels read
// one, it becomes a parameter, so that sessions share what is computed of it. Errors: kUnsupported for
// strings.
Status GiveInitializers(const GivenInitializers& given, const ModelText& text,
                        const std::set<std::string>& overridden, CompileOptions* compile);

}  // namespace rewire::onnxruntime_api
