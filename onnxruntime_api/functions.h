// SPDX-License-Identifier: Apache-2.0
//
// The functions of the table that this library serves, as rewire::onnxruntime_api::CreateEnv and so on. Each
// group of them is in a file of its own.
#pragma once

#include "rewire/onnxruntime_api/api.h"

namespace rewire::onnxruntime_api {

#define SERVED(result, name, parameters) result name parameters noexcept;
#define REFUSED(name)
#define ABSENT(name)
#define EMPTY(name)
#include "rewire/onnxruntime_api/slots.def"
#undef SERVED
#undef REFUSED
#undef ABSENT
#undef EMPTY

}  // namespace rewire::onnxruntime_api
