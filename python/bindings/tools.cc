// SPDX-License-Identifier: Apache-2.0
//
// _rewire._run_tool: the command line tools as commands of `python -m rewire`.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/program.h"
#include "rewire/tools/mains.h"

namespace rewire::python {
namespace {

struct Tool {
  const char* name;
  int (*main)(int argc, char** argv);
};

constexpr Tool kTools[] = {
    {"vm-compile", &tools::VmCompileMain},
    {"vm-debug", &tools::VmDebugMain},
    {"vm-inspect", &tools::VmInspectMain},
    {"vm-run", &tools::VmRunMain},
};

int RunTool(const Arguments& given) {
  std::vector<std::string> words = {ToText(given[0], "name")};
  const auto* const tool = std::find_if(std::begin(kTools), std::end(kTools),
                                        [&](const Tool& each) { return each.name == words[0]; });
  if (tool == std::end(kTools)) RefuseValue(given[0], "name", "the name of a tool");
  for (const nb::handle word : given[1]) words.push_back(ToPath(word, "arguments"));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const nb::gil_scoped_release released;
  return tool->main(static_cast<int>(words.size()), argv.data());
}

}  // namespace

void AddTools(nb::module_& module) {
  FunctionOf(module, "def _run_tool(name: str, arguments: collections.abc.Iterable[str]) -> int", &RunTool,
             "Runs a command line tool and returns its exit code. The process is the tool's from then on: it "
             "handles\n"
             "signals as the tool does.");
}

}  // namespace rewire::python
