// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rewire::tools {

// The page as HTML: page.html with its style, its scripts and `data`. It loads nothing.
std::string ReportPage(const std::string& title, const nlohmann::ordered_json& data);

}  // namespace rewire::tools
