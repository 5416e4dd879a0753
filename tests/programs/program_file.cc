// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/programs/program_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// "steps=2 depth=10"
bool ParseLimits(const std::string& text, Limits* limits) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return false;
    const std::uint64_t value = std::stoull(word.substr(equals + 1));
    const std::string name = word.substr(0, equals);
    if (name == "steps") {
      limits->steps = value;
    } else if (name == "depth") {
      limits->depth = static_cast<std::uint32_t>(value);
    } else if (name == "bytes") {
      limits->bytes = value;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<ProgramFile> ReadProgramFile(const std::string& path, const std::string& name) {
  Result<Module> module = AssembleFile(path);
  if (!module) return Forward(module);
  ProgramFile file{name, std::move(*module), {}};
  ProgramCase next;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    if (TakePrefix(&rest, "; limits: ")) {
      if (!ParseLimits(std::string(rest), &next.limits)) {
        return Fail(StatusCode::kInvalidArgument, path + ": '" + line + "' is not understood");
      }
    } else if (TakePrefix(&rest, "; fails: ")) {
      next.message = rest;
    } else if (TakePrefix(&rest, ".func ")) {
      next.function = rest.substr(0, rest.find('('));
      const bool tests = next.function.rfind("test_", 0) == 0;
      next.fails = next.function.rfind("fail_", 0) == 0;
      if (next.fails == next.message.empty()) {
        return Fail(StatusCode::kInvalidArgument,
                    path + ": functions fail_*, and only they, state their message: " + line);
      }
      if (tests || next.fails) file.cases.push_back(next);
      next = {};
    }
  }
  if (file.cases.empty()) {
    return Fail(StatusCode::kInvalidArgument, path + " has no function test_* or fail_*");
  }
  return file;
}

Result<std::vector<ProgramFile>> ReadProgramFiles() {
  const std::filesystem::path root = std::string(SourceDir()) + "/tests/programs";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".asm") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ProgramFile> files;
  for (const std::filesystem::path& path : paths) {
    Result<ProgramFile> file =
        ReadProgramFile(path.string(), path.lexically_relative(root).replace_extension().string());
    if (!file) return Forward(file);
    files.push_back(std::move(*file));
  }
  return files;
}

}  // namespace rewire::test
