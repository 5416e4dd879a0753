// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/assembler.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/text/declarations.h"
#include "rewire/executable_format/text/diagnostics.h"
#include "rewire/executable_format/text/function_parser.h"
#include "rewire/executable_format/text/lexer.h"

namespace rewire {

Result<Module> Assemble(std::string_view text, const AssembleOptions& options) {
  using namespace rewire::text;  // NOLINT: the language's own parts
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Fail(StatusCode::kInvalidArgument,
                options.file_name + ": a text has at most 4 GiB; put data in files");
  }
  Diagnostics diagnostics(options.file_name, options.max_errors);
  const Array<Token> tokens = Tokenize(text, diagnostics);
  Tables tables;
  DataFiles files(options.directory);
  Cursor cursor(tokens, diagnostics);
  for (const BodyStart& body : TakeDeclarations(cursor, tables, files)) {
    if (diagnostics.full()) break;
    Cursor body_cursor(tokens, diagnostics, body.token);
    TakeFunctionBody(body_cursor, tables, &tables.module.functions[body.function]);
  }
  if (!diagnostics.ok()) return Fail(diagnostics.ToError());
  return std::move(tables.module);
}

Result<Module> AssembleFile(const std::string& path) {
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  AssembleOptions options;
  options.file_name = path;
  options.directory = std::filesystem::path(path).parent_path().string();
  return Assemble({reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size()}, options);
}

}  // namespace rewire
