// SPDX-License-Identifier: Apache-2.0
// How a library's rows become a page of documentation.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

// Written arguments stand last, from the one that `written` begins with.
inline std::string ArgumentsText(const Kernel& kernel) {
  std::string text;
  std::string_view rest = kernel.arguments;
  bool written = false;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(", ");
    const std::string_view argument = rest.substr(0, comma);
    written = written || argument.substr(0, 3) == "out";
    text += (text.empty() ? "" : ", ");
    text += written ? "**" + std::string(argument) + "**" : std::string(argument);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
  }
  return text;
}

inline std::string TableText(const Family& family) {
  std::string text = "\n## " + std::string(family.title) + "\n\n";
  text += "| kernel | arguments | dtypes | attributes | meaning |\n|---|---|---|---|---|\n";
  for (const Kernel& kernel : family.kernels) {
    text += "| `" + std::string(kernel.entry.name) + "` | " + ArgumentsText(kernel) + " | " + kernel.dtypes +
            " | " + kernel.attributes + " | " + kernel.meaning + " |\n";
  }
  return text;
}

// To standard output. The exit code of a program that does nothing else.
inline int PrintPage(std::string_view introduction, std::span<const Family> families) {
  std::string page(introduction);
  for (const Family& family : families) page += TableText(family);
  const bool written = std::fwrite(page.data(), 1, page.size(), stdout) == page.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace rewire::kernel::cpu
