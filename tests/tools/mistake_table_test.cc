// SPDX-License-Identifier: Apache-2.0
// The tables of mistakes/: what people get wrong on a command line, and the one line that they are told.
//
//   @file NAME          the lines up to @end are the file
//   @onnx NAME OP [DOMAIN]   an ONNX model of one node (small_onnx.h)
//   @bytes NAME 47 47   these bytes
//   @works COMMAND      must succeed: it makes a file
//   ! COMMAND           a mistake. The next line has the exit code and what stands behind "TOOL: error: ".
//                       More lines of the message begin with "| ", and lines before it with "> ". "<any>"
//                       stands for what differs by machine.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/tools/small_onnx.h"

namespace rewire::tools {
namespace {

namespace fs = std::filesystem;
using test::Finished;

// Fewer would be a table that has lost rows.
constexpr std::size_t kLeastMistakes = 82;

struct Mistake {
  std::string command;
  std::string before;  // lines that lead to the message
  int exit_code = 0;
  std::string message;
};

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The text matches the pattern, in which "<any>" stands for any text.
bool Matches(const std::string& text, const std::string& pattern) {
  static const std::string kAny = "<any>";
  const std::size_t any = pattern.find(kAny);
  if (any == std::string::npos) return text == pattern;
  if (text.compare(0, any, pattern, 0, any) != 0) return false;
  const std::string rest = pattern.substr(any + kAny.size());
  for (std::size_t at = any; at <= text.size(); ++at) {
    if (Matches(text.substr(at), rest)) return true;
  }
  return false;
}

// Each message offers one of these to somebody who does not know how to go on.
constexpr const char* kWaysOut[] = {
    R"(did you mean ')",                                   // the name that was meant
    R"([;?] [Tt]he [a-z ]+: \S)",                          // the names that there are
    R"(it has \d+, counted from 0|its registers are \S)",  // or the numbers
    R"(\bexpected\b|such as \S)",                          // what belongs there
    R"(; (add|call|choose|compile|copy|download|export|give|leave|link|load|name|raise|run|see|use|write) \S)",
    R"(; (vm-[a-z]+|python -m|numpy|safetensors|docs/)\S* )",  // what does it
    R"(cannot (open|write) '.+': [A-Z])",  // a name of the command, and what the system says of it
    R"(was not found; tried /\S)",         // where it was looked for
};

bool HasWayOut(const std::string& message) {
  return std::any_of(std::begin(kWaysOut), std::end(kWaysOut),
                     [&](const char* way) { return std::regex_search(message, std::regex(way)); });
}

class Table {
 public:
  explicit Table(const fs::path& path) : in_(path) {
    INFO(path.string());
    REQUIRE(in_.good());
    for (std::string line; std::getline(in_, line);) Read(line);
  }
  const std::vector<Mistake>& mistakes() const { return mistakes_; }
  Finished Run(const std::string& command) const {
    std::vector<std::string> words = WordsOf(command);
    const std::string tool = words.front();
    words.erase(words.begin());
    test::Streams streams;
    streams.in = "/dev/null";
    return test::RunProgram(tool, words, folder_.path(), streams);
  }

 private:
  void Read(const std::string& line) {
    if (line.empty() || line.front() == '#') return;
    const std::vector<std::string> words = WordsOf(line);
    INFO(line);
    if (words[0] == "@file") {
      std::string content;
      for (std::string more; std::getline(in_, more) && more != "@end";) content += more + "\n";
      folder_.Write(words[1], content);
    } else if (words[0] == "@onnx") {
      folder_.Write(words[1], test::SmallOnnx(words[2], words.size() > 3 ? words[3] : ""));
    } else if (words[0] == "@bytes") {
      std::string bytes;
      for (std::size_t i = 2; i < words.size(); ++i)
        bytes += static_cast<char>(std::stoi(words[i], nullptr, 16));
      folder_.Write(words[1], bytes);
    } else if (words[0] == "@works") {
      const Finished finished = Run(line.substr(line.find(' ') + 1));
      INFO(finished.err);
      REQUIRE(finished.exit_code == 0);
    } else if (words[0] == "!") {
      mistakes_.push_back({line.substr(2), "", 0, ""});
    } else if (words[0] == ">") {
      mistakes_.back().before += line.substr(2) + "\n";
    } else if (words[0] == "|") {
      mistakes_.back().message += "\n" + line.substr(2);
    } else {
      REQUIRE(mistakes_.back().exit_code == 0);
      mistakes_.back().exit_code = std::stoi(words[0]);
      mistakes_.back().message = line.substr(words[0].size() + 1);
    }
  }

  std::ifstream in_;
  test::TempFolder folder_;
  std::vector<Mistake> mistakes_;
};

TEST_CASE("a message that only says what is wrong has no way out") {
  for (const char* message : {
           "notes.onnx: not an ONNX model, or a truncated one",
           "same.asm: this is not a Rewire executable: it does not start with the bytes 89 'RWX' of one",
           "only (Nonsense, opset 13): the operator is not known",
           "two models are called 'a'",
           "model.rwx: --model chooses one model of a bundle, and this is none",
       }) {
    INFO(message);
    CHECK_FALSE(HasWayOut(message));
  }
  CHECK(HasWayOut("two models are called 'a'; give each a name of its own"));
}

bool IsBuilt(const std::string& tool) { return fs::exists(fs::path(test::BuildDir()) / "bin" / tool); }

TEST_CASE("each mistake of the tables is told in one message with a way out") {
  std::size_t count = 0;
  std::map<std::string, std::size_t> by_tool;
  std::set<std::string> commands;
  for (const auto& entry : fs::directory_iterator(test::SourceDir() + std::string("/tests/tools/mistakes"))) {
    // A table is named after the tool without which it cannot be tried.
    if (!IsBuilt(entry.path().stem().string())) continue;
    const Table table(entry.path());
    for (const Mistake& mistake : table.mistakes()) {
      const std::string tool = mistake.command.substr(0, mistake.command.find(' '));
      INFO(entry.path().filename().string() << ": " << mistake.command);
      CHECK(commands.insert(mistake.command).second);
      ++count;
      ++by_tool[tool];
      const Finished finished = table.Run(mistake.command);
      const std::string expected = mistake.before + tool + ": error: " + mistake.message + "\n";
      INFO("told:     " << finished.err << "expected: " << expected);
      CHECK(Matches(finished.err, expected));
      CHECK(finished.exit_code == mistake.exit_code);
      CHECK(HasWayOut(finished.err.substr(tool.size())));
      // Names of C++ are no names of options.
      CHECK(finished.err.find("::") == std::string::npos);
    }
  }
  for (const char* tool : {"vm-as", "vm-bench", "vm-bundle", "vm-convert", "vm-debug", "vm-dis", "vm-inspect",
                           "vm-params", "vm-run", "vm-strip"}) {
    INFO(tool);
    CHECK(by_tool[tool] >= 2);
  }
  if (IsBuilt("vm-compile") && IsBuilt("vm-serve") && IsBuilt("vm-aot")) CHECK(count >= kLeastMistakes);
}

}  // namespace
}  // namespace rewire::tools
