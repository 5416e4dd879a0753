// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/table_text.h"

#include <algorithm>

namespace rewire::tools {

std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      const bool to_the_right = std::find(right.begin(), right.end(), c) != right.end();
      line += "  " + (to_the_right ? padding + row[c] : row[c] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace rewire::tools
