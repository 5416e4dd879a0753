// SPDX-License-Identifier: Apache-2.0
// Runs programs of the build tree and catches what they print.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rewire::test {

// A folder that is removed, with what is in it, at the end of its scope.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file into it and gives its path.
  std::string Write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

struct Finished {
  int exit_code = 0;  // 128 + the signal's number when one ended the program
  std::string out, err;
};

// bin/<program> of the build tree, with `folder` as its working directory. Standard output goes to
// `stdout_path`, such as /dev/full, if that is given.
Finished RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const std::string& stdout_path = {});

std::string ReadWholeFile(const std::filesystem::path& path);

}  // namespace rewire::test
