// SPDX-License-Identifier: Apache-2.0
// A case of ONNX's backend tests: a model, inputs, and the outputs that they must give.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/vm/value.h"

namespace rewire::test {

struct CaseData {
  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

// Reads `folder`/test_data_set_0 for the model beside it. kUnsupported for strings and for values that no
// model of this compiler takes.
Result<CaseData> ReadCaseData(const std::string& folder);

// Empty when `given` is `expected` at the tolerances of ONNX's own tests (1e-3 relative, 1e-7 absolute; the
// dtype and shape exactly); otherwise what differs.
std::string Difference(const Value& given, const Value& expected);

}  // namespace rewire::test
