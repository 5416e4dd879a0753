// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewire/serve/client/remote_program.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value.h"

namespace rewire::serve::test {

inline RemoteProgram Connected(const std::string& url) {
  Result<RemoteProgram> remote = RemoteProgram::TryConnect(url);
  if (!remote) FAIL(remote.error().message());
  return *std::move(remote);
}

// The leaves of a result, each as dtype, shape and bytes.
inline void AddLeaves(const Value& value, std::vector<std::string>* leaves) {
  if (value.kind() == ValueKind::kAdt) {
    for (std::uint32_t i = 0; i < value.field_count(); ++i) AddLeaves(value.field(i), leaves);
    return;
  }
  REQUIRE(value.kind() == ValueKind::kTensor);
  const Tensor copy = *Tensor::CopyOf(value.tensor().view());
  std::string text = DTypeName(copy.dtype()) + "[";
  for (const std::int64_t size : copy.shape()) text += std::to_string(size) + ",";
  text += "]";
  if (copy.view().bytes() > 0)
    text.append(static_cast<const char*>(copy.view().data()), static_cast<std::size_t>(copy.view().bytes()));
  leaves->push_back(std::move(text));
}

inline std::vector<std::string> Leaves(const Value& value) {
  std::vector<std::string> leaves;
  AddLeaves(value, &leaves);
  return leaves;
}

}  // namespace rewire::serve::test
