// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rewire/onnxruntime_api/sessions/model.h"

struct OrtSession {
  std::shared_ptr<const rewire::onnxruntime_api::Model> model;
};
