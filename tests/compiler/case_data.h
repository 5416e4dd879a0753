// SPDX-License-Identifier: Apache-2.0
// A case of ONNX's backend tests: a model, inputs, and the outputs that they must give.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/value.h"

namespace rewire::test {

struct CaseData {
  std::vector<Value>
      inputs;  // those that are strings with their lists behind all others, as `main` takes them
  std::vector<Value> outputs;
  std::map<std::size_t, std::vector<std::string>> texts;  // of those outputs that are strings
};

// Reads `folder`/test_data_set_0 for the model beside it. kUnsupported for values that no model of this
// compiler takes.
Result<CaseData> ReadCaseData(const std::string& folder);

// Empty when `given` is `expected` at the tolerances of ONNX's own tests (1e-3 relative, 1e-7 absolute; the
// dtype and shape exactly); otherwise what differs.
std::string Difference(const Value& given, const Value& expected);

// The same for output `i` of main, which is strings. `results` are all outputs.
std::string TextDifference(const Module& module, const std::vector<Value>& results, std::size_t i,
                           const CaseData& data);

}  // namespace rewire::test
