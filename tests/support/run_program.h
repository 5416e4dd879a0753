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

// The ends of a program's standard streams.
struct Streams {
  std::string in = {};   // a file; empty: that of the test
  std::string out = {};  // a file, such as /dev/full; empty: into Finished::out
  bool in_closed = false;
  bool out_closed = false;
  bool out_unread = false;  // a pipe whose reader has gone
  bool in_waits = false;    // a pipe into which nobody writes
  // As a user without rights to others' files, if the test runs as root.
  bool unprivileged = false;
  // Sends this signal when the program catches it; 0: none. If `signal_after` is a name, not before the
  // program's folder has something of this name.
  int signal = 0;
  std::string signal_after = {};
};

// bin/<program> of the build tree, with `folder` as its working directory. One that runs longer than two
// minutes is ended by SIGALRM.
Finished RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const Streams& streams = {});

std::string ReadWholeFile(const std::filesystem::path& path);

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rewire::test
