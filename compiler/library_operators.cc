// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/library_operators.h"

#include <filesystem>
#include <iterator>
#include <system_error>

namespace rewire {

std::string OperatorsBeside(const std::string& library) {
  return std::filesystem::path(library).replace_extension(".json").string();
}

Result<std::vector<OperatorSchema>> ReadLibraryOperators(const std::vector<std::string>& libraries) {
  std::vector<OperatorSchema> all;
  for (const std::string& library : libraries) {
    const std::string file = OperatorsBeside(library);
    if (std::error_code failed; !std::filesystem::is_regular_file(file, failed)) continue;
    Result<std::vector<OperatorSchema>> read = ReadOperatorSchemas(file);
    if (!read) return Forward(read);
    all.insert(all.end(), std::make_move_iterator(read->begin()), std::make_move_iterator(read->end()));
  }
  return all;
}

}  // namespace rewire
