// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/table_text.h"

#include <algorithm>

namespace rewire::tools {
namespace {

// Breaks at the last space that fits, or else at the next one.
std::string Broken(std::string line, std::size_t indent, std::size_t width) {
  std::string text;
  while (line.size() > width) {
    std::size_t space = line.rfind(' ', width);
    if (space == std::string::npos || space <= indent) space = line.find(' ', width);
    if (space == std::string::npos) break;
    text += line.substr(0, line.find_last_not_of(' ', space) + 1) + "\n";
    line = std::string(indent, ' ') + line.substr(line.find_first_not_of(' ', space));
  }
  return text + line + "\n";
}

}  // namespace

std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::size_t>& right, std::size_t width) {
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
    // Behind long names the rest still has room.
    const std::size_t last = line.size() - std::min(line.size(), row.empty() ? 0 : row.back().size());
    text += width == 0 ? line + "\n" : Broken(line, std::min(last, width / 2), width);
  }
  return text;
}

}  // namespace rewire::tools
