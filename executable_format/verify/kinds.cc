// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/verify/kinds.h"

#include <string_view>
#include <utility>

namespace rewire::verify {
namespace {

bool AcceptsInteger(const TypeNode& tensor) {
  const bool dtype = tensor.dtype == kUnknownDType || tensor.dtype == kInt64 || tensor.dtype == kInt32;
  const bool shape = tensor.rank <= 0 || (tensor.rank == 1 && (tensor.dims[0] == 1 || tensor.dims[0] < 0));
  return dtype && shape;
}

}  // namespace

Kinds KindsOf(const Type& type) {
  const TypeNode& root = type.nodes[0];
  switch (root.kind) {
    case TypeKind::kTensor:
      return AcceptsInteger(root) ? kMayTensor | kMayInteger : kMayTensor;
    case TypeKind::kAdt:
      return kMayAdt;
    case TypeKind::kClosure:
      return kMayClosure;
    case TypeKind::kStorage:
      return kMayStorage;
    case TypeKind::kInteger:
      return kMayInteger;
    case TypeKind::kValue:
      return kAnyKind;
  }
  return kAnyKind;
}

std::string KindsText(Kinds kinds) {
  static constexpr std::pair<Kinds, std::string_view> kNames[] = {{kMayInteger, "an integer"},
                                                                  {kMayTensor, "a tensor"},
                                                                  {kMayAdt, "an ADT"},
                                                                  {kMayClosure, "a closure"},
                                                                  {kMayStorage, "a storage"}};
  std::string text;
  for (const auto& [kind, name] : kNames) {
    if ((kinds & kind) == 0) continue;
    if (!text.empty()) text += " or ";
    text += name;
  }
  return text;
}

}  // namespace rewire::verify
