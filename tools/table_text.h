// SPDX-License-Identifier: Apache-2.0
// Columns of text, the one form in which the tools print tables.
#pragma once

#include <string>
#include <vector>

namespace rewire::tools {

// Rows of cells of one length, the first one being the headings. Columns named in `right` are aligned to the
// right. Every line is indented by two spaces and ends with a newline, without trailing spaces.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::size_t>& right);

}  // namespace rewire::tools
