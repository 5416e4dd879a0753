// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/declarations.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/text/constant_parser.h"
#include "rewire/executable_format/text/device_code_parser.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/executable_format/text/type_parser.h"

namespace rewire::text {
namespace {

class DeclarationParser {
 public:
  DeclarationParser(Cursor& cursor, Tables& tables, DataFiles& files)
      : cursor_(cursor), tables_(tables), module_(tables.module), files_(files) {}

  Array<BodyStart> Run() {
    while (cursor_.Peek().kind != TokenKind::kEnd && !cursor_.diagnostics().full()) {
      if (!Declaration()) cursor_.SkipStatement();
    }
    return std::move(bodies_);
  }

 private:
  bool Declaration() {
    const Token directive = cursor_.Peek();
    if (directive.kind != TokenKind::kDirective) {
      return cursor_.FailExpected("a directive such as .func; instructions stand between .func and .end");
    }
    if (directive.text == ".func") {
      Func();
      return true;
    }
    struct Row {
      std::string_view name;
      bool (DeclarationParser::*take)();
    };
    static constexpr Row kRows[] = {
        {".compressed", &DeclarationParser::Compressed},
        {".metadata", &DeclarationParser::Metadata},
        {".device", &DeclarationParser::Device},
        {".symbol", &DeclarationParser::Symbol},
        {".string", &DeclarationParser::String},
        {".const", &DeclarationParser::DataConstant},
        {".param", &DeclarationParser::Parameter},
        {".computed", &DeclarationParser::Computed},
        {".kernel", &DeclarationParser::Kernel},
        {".code", &DeclarationParser::CodeConstant},
        {".device_code", &DeclarationParser::DeviceCode},
        {".device_kernel", &DeclarationParser::DeviceKernel},
    };
    Array<std::string> known = {".func"};
    for (const Row& row : kRows) {
      if (row.name == directive.text) {
        cursor_.Take();
        return (this->*row.take)() && cursor_.ExpectEndOfStatement();
      }
      known.emplace_back(row.name);
    }
    if (directive.text == ".end") return cursor_.Fail(directive.position, "'.end' without '.func'");
    return cursor_.Fail(directive.position, fmt::format("unknown directive '{}'{}", directive.text,
                                                        DidYouMean(directive.text, known)));
  }

  bool Compressed() {
    module_.compressed = true;
    return true;
  }

  bool Metadata() {
    std::optional<std::string> key = cursor_.TakeName("a key");
    std::optional<std::string> value = key ? cursor_.TakeString("a value in quotes") : std::nullopt;
    if (value) module_.metadata.emplace_back(std::move(*key), std::move(*value));
    return value.has_value();
  }

  bool Device() {
    if (!cursor_.Peek(1).Is("=")) {
      const std::optional<DeviceEntry> device = TakeDeviceEntry(cursor_);
      if (device) module_.devices.push_back(*device);
      return device.has_value();
    }
    const Position position = cursor_.Peek().position;
    const std::optional<std::string> alias = cursor_.TakeName("a name for the device");
    if (!alias || !cursor_.Expect("=")) return false;
    const std::optional<DeviceEntry> device = TakeDeviceEntry(cursor_);
    if (!device) return false;
    return tables_.device_aliases.Add(*alias, tables_.Device(*device)) ||
           cursor_.Fail(position, fmt::format("device '{}' is declared twice", *alias));
  }

  bool Symbol() {
    const std::optional<std::string> name = cursor_.TakeName("a symbol");
    if (!name) return false;
    tables_.AddSymbol(*name);
    if (!cursor_.AcceptName("max")) return true;
    const std::optional<std::int64_t> limit = cursor_.TakeInt64("the largest size of the dimension");
    if (limit) tables_.LimitLastSymbol(*limit);
    return limit.has_value();
  }

  bool String() {
    const std::optional<std::string> text = cursor_.TakeString("a text in quotes");
    if (text) tables_.AddString(*text);
    return text.has_value();
  }

  bool DeviceCode() { return TakeDeviceCode(cursor_, tables_); }
  bool DeviceKernel() { return TakeDeviceKernel(cursor_, tables_); }

  bool ConstantName(Constant* constant) {
    std::optional<std::string> name =
        tables_.constants.TakeDeclared(cursor_, static_cast<std::uint32_t>(module_.constants.size()));
    if (name) constant->name = std::move(*name);
    return name.has_value();
  }

  // The part that all kinds of constant begin with, except those for code.
  bool ConstantHead(ConstantKind kind, Constant* constant) {
    if (!ConstantName(constant) || !cursor_.Expect(":")) return false;
    const Position position = cursor_.Peek().position;
    Type type;
    if (!TakeType(cursor_, tables_, &type)) return false;
    if (type.nodes.front().kind != TypeKind::kTensor) return cursor_.Fail(position, "a constant is a tensor");
    constant->kind = kind;
    constant->type = std::move(type.nodes.front());
    return true;
  }

  bool DataConstant() {
    // Kept also when its data is wrong, so that code that uses it is not reported as well.
    Constant constant;
    if (!ConstantHead(ConstantKind::kData, &constant)) return false;
    const bool ok =
        CodecOption(&constant) && cursor_.Expect("=") && TakeConstantData(cursor_, files_, &constant);
    module_.constants.push_back(std::move(constant));
    return ok;
  }

  // A constant u8[n] for device code; n is the size of what follows.
  bool CodeConstant() {
    Constant constant;
    if (!ConstantName(&constant)) return false;
    const bool ok = CodecOption(&constant) && cursor_.Expect("=") && TakeCodeData(cursor_, files_, &constant);
    module_.constants.push_back(std::move(constant));
    return ok;
  }

  bool CodecOption(Constant* constant) {
    if (!cursor_.AcceptName("codec")) return true;
    if (!cursor_.Expect("=")) return false;
    if (cursor_.AcceptName("none")) return true;
    if (cursor_.AcceptName("zstd")) {
      constant->codec = kCodecZstd;
      return true;
    }
    const std::optional<std::uint32_t> codec = cursor_.TakeUInt32("zstd, none or a codec's number");
    if (codec) constant->codec = *codec;
    return codec.has_value();
  }

  bool Parameter() { return Slot(ConstantKind::kParameter); }
  bool Computed() { return Slot(ConstantKind::kComputed); }
  bool Slot(ConstantKind kind) {
    Constant constant;
    if (!ConstantHead(kind, &constant)) return false;
    if (kind == ConstantKind::kComputed) {
      constant.raw_bytes = TensorBytes(constant.type.dtype, constant.type.dims).value_or(0);
    }
    module_.constants.push_back(std::move(constant));
    return true;
  }

  bool Kernel() {
    KernelImport kernel;
    std::optional<std::string> name =
        tables_.kernels.TakeDeclared(cursor_, static_cast<std::uint32_t>(module_.kernels.size()));
    if (!name) return false;
    kernel.name = std::move(*name);
    bool ok = true;
    if (cursor_.Accept("=")) {
      std::optional<std::string> imported = cursor_.TakeName("the imported kernel's name");
      ok = imported.has_value();
      kernel.debug_name = std::exchange(kernel.name, imported.value_or(std::string()));
    }
    ok = ok && Attributes(&kernel) && KernelOptions(&kernel);
    module_.kernels.push_back(std::move(kernel));
    return ok;
  }

  bool Attributes(KernelImport* kernel) {
    if (!cursor_.Accept("{")) return true;
    std::unordered_set<std::string> names;
    while (!cursor_.Accept("}")) {
      if (!kernel->attributes.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or '}'");
      const Position position = cursor_.Peek().position;
      std::optional<std::string> name = cursor_.TakeName("an attribute's name");
      if (!name || !cursor_.Expect("=")) return false;
      if (!names.insert(*name).second) {
        return cursor_.Fail(position, fmt::format("attribute '{}' is given twice", *name));
      }
      std::optional<AttributeValue> value = TakeAttributeValue();
      if (!value) return false;
      kernel->attributes.push_back({std::move(*name), std::move(*value)});
    }
    return true;
  }

  std::optional<AttributeValue> TakeAttributeValue() {
    if (cursor_.Peek().kind == TokenKind::kString) return UnquoteText(cursor_.Take().text);
    const bool floats = cursor_.AcceptName("floats");
    if (!floats && !cursor_.Peek().Is("[")) return TakeAttributeNumber();
    const Position position = cursor_.Peek().position;
    if (!cursor_.Expect("[")) return std::nullopt;
    Array<std::int64_t> integers;
    Array<double> reals;
    while (!cursor_.Accept("]")) {
      if (integers.size() + reals.size() != 0 && !cursor_.Expect(",")) return std::nullopt;
      const std::optional<AttributeValue> number = TakeAttributeNumber();
      if (!number) return std::nullopt;
      if (const auto* integer = std::get_if<std::int64_t>(&*number)) integers.push_back(*integer);
      if (const auto* real = std::get_if<double>(&*number)) reals.push_back(*real);
    }
    if (!integers.empty() && (floats || !reals.empty())) {
      cursor_.Fail(position, "a list holds integers or floats, not both; write 1.0 for 1");
      return std::nullopt;
    }
    if (floats || !reals.empty()) return reals;
    return integers;
  }

  // true and false are 1 and 0. A float has a point, an exponent, or is inf or nan.
  std::optional<AttributeValue> TakeAttributeNumber() {
    const Position position = cursor_.Peek().position;
    const std::optional<std::string> text = TakeElementText(cursor_);
    if (!text) return std::nullopt;
    if (*text == "true" || *text == "false") return std::int64_t{*text == "true"};
    if (const std::optional<std::int64_t> integer = ParseInt64(*text)) return *integer;
    double value = 0;
    const bool is_float = text->find_first_of(".eEn") != std::string::npos;
    if (is_float && ParseElement(kFloat64, *text, reinterpret_cast<std::byte*>(&value))) return value;
    cursor_.Fail(position,
                 fmt::format("'{}' is no attribute value: expected a 64-bit integer, a float such as "
                             "1.0, a text in quotes or a list of numbers",
                             *text));
    return std::nullopt;
  }

  bool KernelOptions(KernelImport* kernel) {
    while (!cursor_.Peek().EndsStatement()) {
      std::optional<std::uint32_t> number;
      if (cursor_.AcceptName("objects")) {
        kernel->flags |= kKernelObjects;
      } else if (cursor_.AcceptName("in_place")) {
        kernel->flags |= kKernelInPlace;
      } else if (cursor_.AcceptName("align")) {
        if (!cursor_.Expect("=") || !(number = cursor_.TakeUInt32("an alignment in bytes"))) return false;
        kernel->alignment = *number;
      } else if (cursor_.AcceptName("flags")) {
        if (!cursor_.Expect("=") || !(number = cursor_.TakeUInt32("flag bits"))) return false;
        kernel->flags = *number;
      } else if (cursor_.AcceptName("writes")) {
        if (!Writes(kernel)) return false;
      } else {
        return cursor_.FailExpected("objects, in_place, align=, flags=, writes(...) or the end of the line");
      }
    }
    return true;
  }

  bool Writes(KernelImport* kernel) {
    if (!cursor_.Expect("(")) return false;
    do {
      const std::optional<std::uint32_t> position = cursor_.TakeUInt32("an argument's position");
      if (!position) return false;
      kernel->also_written.push_back(*position);
    } while (cursor_.Accept(","));
    return cursor_.Expect(")");
  }

  // The signature; the body is noted and passed over.
  void Func() {
    cursor_.Take();
    const auto index = static_cast<std::uint32_t>(module_.functions.size());
    std::optional<std::string> name = tables_.functions.TakeDeclared(cursor_, index);
    Function function;
    bool ok = name.has_value();
    if (ok) function.name = std::move(*name);
    ok = ok && Signature(&function);
    if (ok && !cursor_.Peek().EndsStatement()) ok = cursor_.FailExpected("the end of the line");
    cursor_.SkipStatement();
    // The body of a broken signature is not read: its registers would be unknown.
    if (ok) bodies_.push_back({index, cursor_.index()});
    module_.functions.push_back(std::move(function));
    SkipBody();
  }

  // To the end of the .end line, or to the next .func where it is missing.
  void SkipBody() {
    while (cursor_.Peek().kind != TokenKind::kEnd) {
      const Token& token = cursor_.Peek();
      if (token.kind == TokenKind::kDirective && (token.text == ".end" || token.text == ".func")) break;
      cursor_.Take();
    }
    if (cursor_.Peek().text == ".end") cursor_.SkipStatement();
  }

  bool Signature(Function* function) {
    if (!cursor_.Expect("(")) return false;
    std::unordered_set<std::string> names;
    while (!cursor_.Accept(")")) {
      if (!function->inputs.empty() && !cursor_.Accept(",")) return cursor_.FailExpected("',' or ')'");
      const Position position = cursor_.Peek().position;
      std::optional<std::string> name = cursor_.TakeName("an input's name");
      if (!name || !cursor_.Expect(":")) return false;
      if (IsIdentifier(*name) && !names.insert(*name).second) {
        return cursor_.Fail(position, fmt::format("two inputs are named '{}'", *name));
      }
      NamedType input;
      input.name = std::move(*name);
      if (!TakeType(cursor_, tables_, &input.type)) return false;
      function->inputs.push_back(std::move(input));
    }
    if (!cursor_.Expect("->")) return false;
    if (!TakeResultType(cursor_, tables_, &function->result, &function->output_names)) return false;
    for (std::size_t i = 0; i < function->output_names.size(); ++i) {
      if (function->output_names[i].empty()) function->output_names[i] = fmt::format("output{}", i);
    }
    return true;
  }

  Cursor& cursor_;
  Tables& tables_;
  Module& module_;
  DataFiles& files_;
  Array<BodyStart> bodies_;
};

}  // namespace

Array<BodyStart> TakeDeclarations(Cursor& cursor, Tables& tables, DataFiles& files) {
  return DeclarationParser(cursor, tables, files).Run();
}

}  // namespace rewire::text
