// SPDX-License-Identifier: Apache-2.0
//
// Names of the emitted source.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace rewire::aot {

std::string Upper(std::string_view name);
// A name of C that resembles this one and is not taken; it is taken then. Reserved words are never given.
std::string CName(std::string_view name, std::set<std::string>* taken);
bool IsCName(std::string_view name);
// "..." with escapes.
std::string CString(std::string_view text);

}  // namespace rewire::aot
