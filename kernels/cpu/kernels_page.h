// SPDX-License-Identifier: Apache-2.0
//
// Prints a library's rows as a page of documentation.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::cpu {

// "x, w, bias?, **out** over x": written arguments are bold, with the arguments whose memory they may use.
inline std::string ArgumentsText(const Kernel& kernel) {
  std::string text;
  const std::span<const RewireKernelArgument> arguments(kernel.arguments.list, kernel.arguments.count);
  for (const RewireKernelArgument& argument : arguments) {
    std::string name(row_text::NameOf(argument));
    if ((argument.flags & REWIRE_ARGUMENT_COUNTED) != 0) {
      name += "[]";
    } else if ((argument.flags & REWIRE_ARGUMENT_LIST) != 0) {
      name += "...";
    }
    if ((argument.flags & REWIRE_ARGUMENT_OPTIONAL) != 0) name += "?";
    if ((argument.flags & REWIRE_ARGUMENT_ON_HOST) != 0) name += " on the host";
    if ((argument.flags & REWIRE_ARGUMENT_WRITTEN) != 0) name = "**" + name + "**";
    std::string_view before = (argument.flags & REWIRE_ARGUMENT_AROUND) != 0   ? " around "
                              : (argument.flags & REWIRE_ARGUMENT_WITHIN) != 0 ? " within "
                                                                               : " over ";
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if ((argument.over >> i & 1) == 0) continue;
      name += before;
      name += row_text::NameOf(arguments[i]);
      before = " or ";
    }
    text += (text.empty() ? "" : ", ") + name;
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

// Prints to standard output. Returns the exit code of the program.
inline int PrintPage(std::string_view introduction, std::span<const Family> families) {
  std::string page(introduction);
  for (const Family& family : families) page += TableText(family);
  const bool written = std::fwrite(page.data(), 1, page.size(), stdout) == page.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace rewire::kernel::cpu
