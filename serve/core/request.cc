// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/request.h"

namespace rewire::serve {

void Request::Reset() {
  model = version = id = {};
  step = {};
  held = nullptr;
  cache = {};
  parameters.clear();
  inputs.clear();
  wanted.clear();
  deadline = Clock::time_point::max();
  status = {};
  results.clear();
  used_model = used_version = {};
  program = nullptr;
  batch = nullptr;
  state_lost = false;
  rows = 0;
  memory.Reset();
  submitted = {};
  sequence = nullptr;
  cancelled = false;
}

}  // namespace rewire::serve
