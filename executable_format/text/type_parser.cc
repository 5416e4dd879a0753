// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/type_parser.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"

namespace rewire::text {
namespace {

constexpr std::array<std::pair<std::string_view, TypeKind>, 4> kSimpleKinds = {{
    {"value", TypeKind::kValue},
    {"integer", TypeKind::kInteger},
    {"closure", TypeKind::kClosure},
    {"storage", TypeKind::kStorage},
}};

class TypeParser {
 public:
  TypeParser(Cursor& cursor, Tables& tables, Type& type, Array<std::string>* names)
      : cursor_(cursor), tables_(tables), type_(type), names_(names) {}

  // A stack of open ADTs in place of recursion: the text may nest as deep as it likes.
  bool Run() {
    type_.nodes.clear();
    Array<std::size_t> open;  // nodes whose ")" is still to come
    while (true) {
      std::string name;
      const Position name_position = cursor_.Peek().position;
      const bool named = names_ != nullptr && cursor_.Peek(1).Is(":");
      if (named) {
        std::optional<std::string> taken = cursor_.TakeName("an output's name");
        if (!taken || !cursor_.Expect(":")) return false;
        name = std::move(*taken);
      }
      if (cursor_.Peek().Is("(") || cursor_.Peek().IsName("adt")) {
        if (named) return cursor_.Fail(name_position, "only the leaves of a result have names, not a tuple");
        if (!OpenAdt()) return false;
        open.push_back(type_.nodes.size() - 1);
        if (!cursor_.Peek().Is(")")) continue;
      } else {
        if (!Leaf()) return false;
        if (names_ != nullptr) names_->push_back(std::move(name));
        if (!open.empty()) ++type_.nodes[open.back()].field_count;
      }
      while (!open.empty() && cursor_.Accept(")")) {
        open.pop_back();
        if (!open.empty()) ++type_.nodes[open.back()].field_count;
      }
      if (open.empty()) return true;
      if (!cursor_.Accept(",")) return cursor_.FailExpected("',' or ')'");
    }
  }

 private:
  bool OpenAdt() {
    TypeNode node;
    node.kind = TypeKind::kAdt;
    if (cursor_.AcceptName("adt")) {
      const std::optional<std::uint32_t> tag = cursor_.TakeUInt32("the ADT's tag, a number");
      if (!tag) return false;
      node.tag = *tag;
    }
    if (!cursor_.Expect("(")) return false;
    type_.nodes.push_back(std::move(node));
    return true;
  }

  bool Leaf() {
    TypeNode node;
    for (const auto& [name, kind] : kSimpleKinds) {
      if (!cursor_.AcceptName(name)) continue;
      node.kind = kind;
      if (kind == TypeKind::kValue && cursor_.AcceptName("on") && !Device(&node)) return false;
      type_.nodes.push_back(std::move(node));
      return true;
    }
    node.kind = TypeKind::kTensor;
    if (!cursor_.Accept("?")) {
      const Token& token = cursor_.Peek();
      const std::optional<DLDataType> dtype =
          token.kind == TokenKind::kName ? ParseDType(token.text) : std::nullopt;
      if (!dtype) return FailNoType(token);
      node.dtype = *dtype;
      cursor_.Take();
    }
    if (!cursor_.Peek().Is("[")) {
      return cursor_.FailExpected("'[' (a shape; [] for a scalar, [*] for any rank)");
    }
    if (!Shape(&node)) return false;
    if (cursor_.AcceptName("on")) {
      if (cursor_.Accept("*")) {
        node.device = kAnyDevice;
      } else if (!Device(&node)) {
        return false;
      }
    }
    type_.nodes.push_back(std::move(node));
    return true;
  }

  bool Device(TypeNode* node) {
    const std::optional<std::uint32_t> device = TakeDevice(cursor_, tables_);
    if (device) node->device = *device;
    return device.has_value();
  }

  bool FailNoType(const Token& token) {
    std::string hint;
    if (token.kind == TokenKind::kName) {
      const Array<std::string> known = {"value", "integer", "closure", "storage", "adt",
                                        "f32",   "i64",     "i32",     "bool",    "f64"};
      hint = DidYouMean(token.text, known);
    }
    return cursor_.Fail(token.position,
                        fmt::format("expected a type such as f32[N, 4], value or (f32[2], i64[]), got {}{}",
                                    TokenText(token), hint));
  }

  bool Shape(TypeNode* node) {
    cursor_.Take();
    if (cursor_.Accept("*")) return cursor_.Expect("]");
    node->rank = 0;
    while (!cursor_.Peek().Is("]")) {
      if (node->rank != 0 && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ']'");
      const std::optional<Dim> dim = TakeDim();
      if (!dim) return false;
      node->dims.push_back(*dim);
      ++node->rank;
    }
    cursor_.Take();
    return true;
  }

  std::optional<Dim> TakeDim() {
    const Token& token = cursor_.Peek();
    if (cursor_.Accept("?")) return kUnknownDim;
    if (token.Is("#")) {
      const std::optional<std::uint32_t> symbol = cursor_.TakeIndex();
      return symbol ? std::optional<Dim>(SymbolDim(*symbol)) : std::nullopt;
    }
    if (token.kind == TokenKind::kName || token.kind == TokenKind::kString) {
      return SymbolDim(tables_.Symbol(*cursor_.TakeName("a symbol")));
    }
    const Position position = token.position;
    const std::optional<std::int64_t> dim = cursor_.TakeInt64("a dimension: a number, a name or ?");
    if (dim && *dim < 0) {
      cursor_.Fail(position, "a dimension cannot be negative");
      return std::nullopt;
    }
    return dim;
  }

  Cursor& cursor_;
  Tables& tables_;
  Type& type_;
  Array<std::string>* names_;
};

}  // namespace

bool TakeType(Cursor& cursor, Tables& tables, Type* type) {
  return TypeParser(cursor, tables, *type, nullptr).Run();
}

bool TakeResultType(Cursor& cursor, Tables& tables, Type* type, Array<std::string>* names) {
  names->clear();
  return TypeParser(cursor, tables, *type, names).Run();
}

}  // namespace rewire::text
