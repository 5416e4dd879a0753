// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/kernel_names.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace rewire::simulated_cuda {
namespace {

// The source with comments and what stands in quotes blanked, character by character: `extern "C"` keeps its
// C.
std::string WithoutComments(const std::string& source) {
  std::string code = source;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code.compare(i, 2, "//") == 0) {
      while (i < code.size() && code[i] != '\n') code[i++] = ' ';
    } else if (code.compare(i, 2, "/*") == 0) {
      const std::size_t end = std::min(code.find("*/", i + 2), code.size() - 2) + 2;
      for (; i < end; ++i)
        if (code[i] != '\n') code[i] = ' ';
      --i;
    } else if (code[i] == '"' || code[i] == '\'') {
      const char quote = code[i];
      const std::size_t begin = i++;
      while (i < code.size() && code[i] != quote) i += code[i] == '\\' ? 2 : 1;
      if (i - begin == 2 && code[begin + 1] == 'C') continue;
      for (std::size_t at = begin + 1; at < std::min(i, code.size()); ++at) code[at] = ' ';
    }
  }
  return code;
}

struct Scope {
  std::string space;  // of a namespace that has a name
  bool is_extern_c = false;
};

}  // namespace

std::vector<KernelName> FindKernels(const std::string& source) {
  const std::string code = WithoutComments(source);
  static const std::regex kSpace(R"(namespace\s+([\w:]+)\s*$)");
  static const std::regex kKernel(R"(__global__[\s\S]*?\bvoid\b[\s\S]*?(\w+)\s*\()");
  static const std::regex kBounds(R"(__launch_bounds__\s*\([^()]*(\([^()]*\)[^()]*)*\))");
  std::vector<KernelName> kernels;
  std::vector<Scope> scopes;
  std::size_t statement = 0;  // where the text since the last ; { or } begins
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c != ';' && c != '{' && c != '}') continue;
    // The text of a preprocessor line is no part of a statement.
    std::string text =
        std::regex_replace(code.substr(statement, i - statement), std::regex(R"(^\s*#.*$)"), "");
    statement = i + 1;
    if (c == '}') {
      if (!scopes.empty()) scopes.pop_back();
      continue;
    }
    const bool is_extern_c = text.find("extern \"C\"") != std::string::npos;
    text = std::regex_replace(text, kBounds, "");
    std::smatch match;
    if (text.find("template") == std::string::npos && std::regex_search(text, match, kKernel)) {
      KernelName kernel = {match[1], is_extern_c};
      std::string spaces;
      for (const Scope& scope : scopes) {
        if (!scope.space.empty()) spaces += scope.space + "::";
        kernel.is_extern_c = kernel.is_extern_c || scope.is_extern_c;
      }
      kernel.qualified = spaces + kernel.qualified;
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    }
    if (c == '{') {
      Scope scope;
      if (std::regex_search(text, match, kSpace)) scope.space = match[1];
      scope.is_extern_c = is_extern_c && text.find("__global__") == std::string::npos;
      scopes.push_back(scope);
    }
  }
  return kernels;
}

std::string ReplaceDynamicShared(const std::string& source) {
  static const std::regex kShared(
      R"(extern\s+__shared__\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)?([\w:\s]+?)\s+(\w+)\s*\[\s*\]\s*;)");
  return std::regex_replace(source, kShared, "REWIRE_DYNAMIC_SHARED($1, $2);");
}

}  // namespace rewire::simulated_cuda
