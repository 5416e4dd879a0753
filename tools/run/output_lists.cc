// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/output_lists.h"

#include <fmt/format.h>

#include <algorithm>

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

bool IsKey(const Json& key) { return key.is_string() || key.is_number_integer(); }

// Anyone may have written the file: what is no such list counts as none.
Json ListFor(const Module& module, const std::string& key, bool (*is_element)(const Json&)) {
  for (const auto& [name, value] : module.metadata) {
    if (name != key) continue;
    Json list = Json::parse(value, nullptr, false);
    if (list.is_array() && std::all_of(list.begin(), list.end(), is_element)) return list;
  }
  return nullptr;
}

}  // namespace

const std::string* OutputLists::StringAt(std::int64_t position) const {
  if (!strings.is_array() || position < 0 || static_cast<std::uint64_t>(position) >= strings.size())
    return nullptr;
  return strings[static_cast<std::size_t>(position)].get_ptr<const std::string*>();
}

OutputLists ListsOf(const Module& module, const std::string& function, std::uint32_t output) {
  const auto is_string = [](const Json& element) { return element.is_string(); };
  return {ListFor(module, fmt::format("strings {}.{}", function, output), is_string),
          ListFor(module, fmt::format("keys {}.{}", function, output), IsKey)};
}

}  // namespace rewire::tools
