// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/tools/small_onnx.h"

namespace rewire::test {
namespace {

// A field with a length, which is below 128. `number_and_kind` is its number times 8, plus 2.
std::string Field(char number_and_kind, const std::string& content) {
  return number_and_kind + std::string(1, static_cast<char>(content.size())) + content;
}

std::string ValueInfo(const char* name) {
  const std::string shape = Field('\x0a', Field('\x12', "N")) + Field('\x0a', "\x08\x02");
  const std::string type = Field('\x0a', "\x08\x01" + Field('\x12', shape));
  return Field('\x0a', name) + Field('\x12', type);
}

// An operator set of version 13.
std::string OperatorSet(const std::string& domain) {
  return Field('\x42', (domain.empty() ? "" : Field('\x0a', domain)) + "\x10\x0d");
}

}  // namespace

std::string SmallOnnx(const std::string& op, const std::string& domain) {
  std::string node = Field('\x0a', "x") + Field('\x12', "y") + Field('\x1a', "only") + Field('\x22', op);
  if (!domain.empty()) node += Field('\x3a', domain);
  const std::string graph = Field('\x0a', node) + Field('\x12', "g") + Field('\x5a', ValueInfo("x")) +
                            Field('\x62', ValueInfo("y"));
  std::string model = "\x08\x08" + Field('\x3a', graph) + OperatorSet("");
  if (!domain.empty()) model += OperatorSet(domain);
  return model;
}

}  // namespace rewire::test
