// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/check/check_graph.h"

#include <fmt/format.h>

#include "rewire/compiler/ir/text.h"
#include "rewire/compiler/passes/check/checks.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kMostNodeText = 120;  // bytes; attributes may be long

}  // namespace

Status Broken(const Node* node, const Value* value, const std::string& expected, const std::string& given) {
  std::string where = "the graph";
  if (node != nullptr) {
    where = OperationText(*node);
    if (where.size() > kMostNodeText) where = where.substr(0, kMostNodeText) + "...";
    if (!node->source.empty()) where += " of " + node->source;
  }
  if (value != nullptr) where += fmt::format(": value '{}' ({})", value->name, TypeText(value->type));
  return Fail(StatusCode::kInternal, fmt::format("{}: expected {}, given {}", where, expected, given));
}

Status GraphCheck::Check(const Graph& graph) {
  if (Status ok = CheckReads(graph); !ok) return ok;
  if (Status ok = CheckTypes(graph); !ok) return ok;
  if (Status ok = CheckCalls(graph, graph.init); !ok) return ok;
  if (Status ok = CheckCalls(graph, graph.main); !ok) return ok;
  Status shapes = CheckShapes(graph, reshapes_fit_);
  if (first_ && !shapes) {
    reshapes_fit_ = false;
    shapes = CheckShapes(graph, false);
  }
  first_ = false;
  if (!shapes) return shapes;
  if (Status ok = CheckSides(graph); !ok) return ok;
  return CheckMemory(graph);
}

}  // namespace rewire::compiler
