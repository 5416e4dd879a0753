// SPDX-License-Identifier: Apache-2.0
//
// Prints text in columns. All tables of the tools use this form.
#pragma once

#include <string>
#include <vector>

namespace rewire::tools {

// All rows must have the same number of cells; the first one has the headings. Columns named in `right` are
// aligned to the right. Every line is indented by two spaces and ends with a newline, without trailing
// spaces. If `width` is given, longer lines are broken at spaces, and go on below their last column.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::size_t>& right, std::size_t width = 0);

}  // namespace rewire::tools
