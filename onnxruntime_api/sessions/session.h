// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/onnxruntime_api/sessions/model.h"
#include "rewire/onnxruntime_api/sessions/profile.h"

struct OrtSession {
  std::shared_ptr<const rewire::onnxruntime_api::Model> model;
  std::unique_ptr<rewire::onnxruntime_api::Profile> profile;  // null unless the options ask for one
};
