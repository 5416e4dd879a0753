// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/device_code_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/text/constant_parser.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/executable_format/text/type_parser.h"

namespace rewire::text {
namespace {

class KernelParser {
 public:
  KernelParser(Cursor& cursor, Tables& tables, DeviceKernelEntry& kernel)
      : cursor_(cursor), tables_(tables), kernel_(kernel) {}

  bool Run() {
    if (!Name("the kernel's name", &kernel_.name) || !Parameters() || !cursor_.Expect("->")) return false;
    const std::size_t read = kernel_.parameters.size();
    if (!Parameters()) return false;
    kernel_.outputs = static_cast<std::uint32_t>(kernel_.parameters.size() - read);
    if (!cursor_.Expect("=") || !Name("the name of device code", &kernel_.code)) return false;
    if (!Name("the kernel's name in the code", &kernel_.symbol)) return false;
    const SizeExpression none = Number(0);
    kernel_.shared_bytes = none;
    if (!Word("groups") || !Sizes(kernel_.groups) || !Word("threads") || !Sizes(kernel_.threads))
      return false;
    if (cursor_.AcceptName("shared") &&
        !(cursor_.Expect("(") && Size(&kernel_.shared_bytes) && cursor_.Expect(")"))) {
      return false;
    }
    return Word("args") && Arguments();
  }

 private:
  static SizeExpression Number(std::int64_t value) {
    SizeExpression size;
    size.words = {static_cast<std::int64_t>(SizeOp::kNumber), value};
    return size;
  }

  bool Word(std::string_view word) {
    return cursor_.AcceptName(word) || cursor_.FailExpected(fmt::format("'{}'", word));
  }

  bool Name(std::string_view what, std::string* name) {
    std::optional<std::string> taken = cursor_.TakeName(what);
    if (taken) *name = std::move(*taken);
    return taken.has_value();
  }

  bool Parameters() {
    if (!cursor_.Expect("(")) return false;
    bool first = true;
    while (!cursor_.Accept(")")) {
      if (!first && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ')'");
      first = false;
      DeviceParameter parameter;
      if (!Name("a parameter's name", &parameter.name) || !cursor_.Expect(":")) return false;
      const Position position = cursor_.Peek().position;
      Type type;
      if (!TakeType(cursor_, tables_, &type)) return false;
      if (type.nodes.front().kind != TypeKind::kTensor) {
        return cursor_.Fail(position, "a device kernel's parameter is a tensor");
      }
      parameter.type = std::move(type.nodes.front());
      kernel_.parameters.push_back(std::move(parameter));
    }
    return true;
  }

  bool Sizes(SizeExpression (&sizes)[3]) {
    for (SizeExpression& size : sizes) size = Number(1);
    if (!cursor_.Expect("(")) return false;
    for (SizeExpression& size : sizes) {
      if (!Size(&size)) return false;
      if (cursor_.Accept(")")) return true;
      if (!cursor_.Peek().Is(",")) return cursor_.FailExpected("',' or ')'");
      if (&size != &sizes[2]) cursor_.Take();
    }
    return cursor_.FailExpected("')', for there are three dimensions");
  }

  bool Size(SizeExpression* size) {
    size->words.clear();
    return Term(size, 0);
  }

  // As deep as brackets nest, which is limited: a text may have a million of them.
  bool Term(SizeExpression* size, std::uint32_t depth) {
    const Token token = cursor_.Peek();
    if (depth > kMostSizeDepth) {
      return cursor_.Fail(token.position, fmt::format("a size is nested more than {} deep", kMostSizeDepth));
    }
    if (token.kind == TokenKind::kName && cursor_.Peek(1).Is("(")) {
      if (token.text == "words") return Words(size);
      return Operation(size, depth);
    }
    if (token.Is("#") || token.kind == TokenKind::kName || token.kind == TokenKind::kString) {
      std::optional<std::uint32_t> symbol;
      if (token.Is("#")) {
        symbol = cursor_.TakeIndex();
      } else if (const std::optional<std::string> name = cursor_.TakeName("a symbol")) {
        symbol = tables_.Symbol(*name);
      }
      if (!symbol) return false;
      size->words.push_back(static_cast<std::int64_t>(SizeOp::kSymbol));
      size->words.push_back(*symbol);
      return true;
    }
    const std::optional<std::int64_t> number =
        cursor_.TakeInt64("a size: a number, a dimension's name, or an operation such as ceildiv(n, 64)");
    if (!number) return false;
    size->words.push_back(static_cast<std::int64_t>(SizeOp::kNumber));
    size->words.push_back(*number);
    return true;
  }

  bool Operation(SizeExpression* size, std::uint32_t depth) {
    const Token token = cursor_.Take();
    const auto* found = std::find(std::begin(kSizeOpNames), std::end(kSizeOpNames), token.text);
    if (found == std::end(kSizeOpNames)) {
      Array<std::string> known;
      for (const std::string_view name : kSizeOpNames) known.emplace_back(name);
      return cursor_.Fail(token.position, fmt::format("sizes have no operation '{}'{}", token.text,
                                                      DidYouMean(token.text, known)));
    }
    cursor_.Take();
    if (!Term(size, depth + 1) || !cursor_.Expect(",") || !Term(size, depth + 1) || !cursor_.Expect(")")) {
      return false;
    }
    size->words.push_back(found - std::begin(kSizeOpNames));
    return true;
  }

  // Any expression, also one that the verifier refuses.
  bool Words(SizeExpression* size) {
    cursor_.Take();
    cursor_.Take();
    while (!cursor_.Accept(")")) {
      if (!size->words.empty() && !cursor_.Expect(",")) return false;
      const std::optional<std::int64_t> word = cursor_.TakeInt64("a word");
      if (!word) return false;
      size->words.push_back(*word);
    }
    return true;
  }

  bool Arguments() {
    if (!cursor_.Expect("(")) return false;
    while (!cursor_.Accept(")")) {
      if (!kernel_.arguments.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ')'");
      DeviceArgument argument;
      if (!Argument(&argument)) return false;
      kernel_.arguments.push_back(std::move(argument));
    }
    return true;
  }

  bool Argument(DeviceArgument* argument) {
    const Token token = cursor_.Peek();
    if (cursor_.AcceptName("local")) {
      argument->kind = DeviceArgumentKind::kLocalMemory;
      return Size(&argument->value);
    }
    const std::optional<DLDataType> dtype =
        token.kind == TokenKind::kName ? ParseDType(token.text) : std::nullopt;
    if (!dtype) return Tensor(argument);
    cursor_.Take();
    argument->dtype = *dtype;
    if (dtype->code == kDLFloat) {
      argument->kind = DeviceArgumentKind::kReal;
      const Position position = cursor_.Peek().position;
      const std::optional<std::string> text = TakeElementText(cursor_);
      if (!text) return false;
      const Status parsed = ParseElement(kFloat64, *text, reinterpret_cast<std::byte*>(&argument->real));
      return parsed || cursor_.Fail(position, parsed.error().message());
    }
    argument->kind = DeviceArgumentKind::kInteger;
    return Size(&argument->value);
  }

  bool Tensor(DeviceArgument* argument) {
    const Token token = cursor_.Peek();
    argument->kind = DeviceArgumentKind::kTensor;
    if (token.Is("#")) {
      const std::optional<std::uint32_t> index = cursor_.TakeIndex();
      argument->parameter = index.value_or(0);
      return index.has_value();
    }
    const std::optional<std::string> name =
        cursor_.TakeName("an argument: a parameter, a dtype and a value, or local and a size");
    if (!name) return false;
    Array<std::string> known;
    for (std::uint32_t i = 0; i < kernel_.parameters.size(); ++i) {
      argument->parameter = i;
      if (kernel_.parameters[i].name == *name) return true;
      known.push_back(kernel_.parameters[i].name);
    }
    return cursor_.Fail(token.position,
                        fmt::format("the kernel has no parameter '{}'{}", *name, DidYouMean(*name, known)));
  }

  Cursor& cursor_;
  Tables& tables_;
  DeviceKernelEntry& kernel_;
};

}  // namespace

bool TakeDeviceCode(Cursor& cursor, Tables& tables) {
  DeviceCodeEntry entry;
  std::optional<std::string> name = cursor.TakeName("a name for the code");
  if (!name) return false;
  entry.name = std::move(*name);
  const Token token = cursor.Peek();
  for (std::uint32_t form = 1; form <= kMostDeviceCodeForm; ++form) {
    if (token.IsName(DeviceCodeFormName(form))) entry.form = form;
  }
  if (entry.form != 0) {
    cursor.Take();
  } else if (cursor.AcceptName("form")) {
    if (!cursor.Expect("=")) return false;
    const std::optional<std::uint32_t> number = cursor.TakeUInt32("the number of a form");
    if (!number) return false;
    entry.form = *number;
  } else {
    return cursor.FailExpected("a form: opencl_c, spirv, cuda_cpp, ptx, cubin or fatbin");
  }
  if (cursor.Peek().kind == TokenKind::kString) entry.architecture = *cursor.TakeString("an architecture");
  if (!cursor.Expect("=")) return false;
  const std::optional<std::uint32_t> constant = tables.constants.TakeReference(cursor);
  if (!constant) return false;
  entry.constant = *constant;
  tables.module.device_code.push_back(std::move(entry));
  return true;
}

bool TakeDeviceKernel(Cursor& cursor, Tables& tables) {
  DeviceKernelEntry kernel;
  if (!KernelParser(cursor, tables, kernel).Run()) return false;
  tables.module.device_kernels.push_back(std::move(kernel));
  return true;
}

bool IsArgumentWord(std::string_view name) { return name == "local" || ParseDType(name).has_value(); }

}  // namespace rewire::text
