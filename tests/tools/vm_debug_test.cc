// SPDX-License-Identifier: Apache-2.0
// vm-debug as a user meets it: scripts, pipes, and a session at a terminal.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/support/terminal.h"

namespace rewire::tools {
namespace {

using Catch::Contains;
using test::Finished;

// Doubles its input, then takes logarithms in a function of its own.
constexpr const char kSteps[] = R"(
.kernel add = "rewire.add"
.kernel log = "rewire.log"
.func main(x: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %sum = alloc_tensor %s, _, f32[4] @ "Add 'double'"
  invoke_packed add(%x, %x, %sum), outputs=1 @ "Add 'double'"
  %y = invoke logs(%sum)
  ret %y
.end
.func logs(v: f32[4]) -> y: f32[4]
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %s, _, f32[4] @ "Log 'logarithm'"
  invoke_packed log(%v, %y), outputs=1 @ "Log 'logarithm'"
  ret %y
.end
)";

// Never returns.
constexpr const char kLoop[] = R"(
.func main() -> y: integer
  %zero = load_consti 0
again:
  %one = load_consti 1
  if %zero == %one goto out else again
out:
  ret %zero
.end
)";

constexpr const char kMany[] = R"(
.func main(x: f32[N], tree: adt 0 (f32[2], adt 5 (integer, i64[]))) -> y: f32[N]
  ret %x
.end
.func other(z: f32[2]) -> y: f32[2]
  ret %z
.end
)";

// Its kernel refuses the shapes.
constexpr const char kFails[] = R"(
.kernel add = "rewire.add"
.func main(x: f32[?], y: f32[?]) -> z: f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %z = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %y, %z), outputs=1
  ret %z
.end
)";

class DebugSession {
 public:
  DebugSession() {
    folder_.Write("steps.asm", kSteps);
    folder_.Write("fails.asm", kFails);
    folder_.Write("loop.asm", kLoop);
    folder_.Write("many.asm", kMany);
  }
  // Runs a script of these lines.
  Finished Script(const std::string& file, const std::string& lines,
                  std::vector<std::string> arguments = {}) const {
    folder_.Write("script", lines);
    arguments.insert(arguments.begin(), {file, "-x", "script"});
    test::Streams streams;
    streams.in = "/dev/null";
    return test::RunProgram("vm-debug", arguments, folder_.path(), streams);
  }
  // The text that the script prints; it must succeed.
  std::string Out(const std::string& file, const std::string& lines,
                  const std::vector<std::string>& arguments = {}) const {
    const Finished finished = Script(file, lines, arguments);
    CHECK(finished.err == "");
    CHECK(finished.exit_code == 0);
    return finished.out;
  }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

TEST_CASE("a script stops, steps, watches and shows") {
  const DebugSession session;
  CHECK(session.Out("steps.asm", R"(# comments and empty lines are passed

break double
break logs
run
registers
watch %2
step
step
continue
where
up
registers x
)",
                    {"-i", "x=4xf32=1,2,-3,4"}) == R"((vm-debug) # comments and empty lines are passed
(vm-debug) break double
breakpoint 1: main@9         %2 = alloc_tensor %1, _, f32[4]  ; Add 'double'
(vm-debug) break logs
breakpoint 2: logs@0         %1 = alloc_storage _, alignment=64, f32[4], cpu
(vm-debug) run
breakpoint 1, double
=>* main@9         %2 = alloc_tensor %1, _, f32[4]  ; Add 'double'
(vm-debug) registers
  %x  f32[4]          [ 1,  2, -3,  4]
  %1  storage (16 B)
(vm-debug) watch %2
watch 3: %2 in main
(vm-debug) step
watch 3: %2 has changed
  before  nothing
  now     f32[4]  (not written yet)
=>  main@17        invoke_packed add(%x, %x, %2), outputs=1  ; Add 'double'
(vm-debug) step
watch 3: %2 has changed
  before  f32[4]  (not written yet)
  now     f32[4]  [ 2,  4, -6,  8]
=>  main@25        %3 = invoke logs(%2)
(vm-debug) continue
breakpoint 2, logs
=>* logs@0         %1 = alloc_storage _, alignment=64, f32[4], cpu
(vm-debug) where
=>   0  logs@0         %1 = alloc_storage _, alignment=64, f32[4], cpu
     1  main@25        %3 = invoke logs(%2)
(vm-debug) up
=>  main@25        %3 = invoke logs(%2)
(vm-debug) registers x
  %x  f32[4]  [ 1,  2, -3,  4]
)");
}

TEST_CASE("next passes over a call, finish leaves one, to runs to a place once") {
  const DebugSession session;
  const std::string out = session.Out("steps.asm", R"(start
next 3
next
run
to logs@17
finish
stops
continue 2
)",
                                      {"--random"});
  CHECK_THAT(out, Contains("(vm-debug) next 3\n=>  main@25        %3 = invoke logs(%2)\n"));
  CHECK_THAT(out, Contains("(vm-debug) next\n=>  main@30        ret %3\n"));
  CHECK_THAT(out, Contains("(vm-debug) to logs@17\narrived at logs@17\n=>  logs@17"));
  CHECK_THAT(out, Contains("(vm-debug) finish\n=>  main@30        ret %3\n"));
  CHECK_THAT(out, Contains("no breakpoints and no watches\n"));
  CHECK_THAT(out, Contains("main has returned after 9 instructions"));
}

TEST_CASE("inputs are changed and the function runs again") {
  const DebugSession session;
  const std::string out = session.Out("steps.asm", R"(input x=fill:0.5
run
outputs
input x=4xf32=1
start
run
outputs y
inputs
)");
  CHECK_THAT(out, Contains("(vm-debug) outputs\ny: f32[4]\n[0, 0, 0, 0]\n"));
  CHECK_THAT(out, Contains("(vm-debug) outputs y\ny: f32[4]\n[0.693147, 0.693147, 0.693147, 0.693147]\n"));
  CHECK_THAT(out, Contains("  x      f32[4]  4xf32=1\n"));

  const std::string many = session.Out("many.asm", R"(dim N=3
input x=fill:2
input tree=random
to main
print tree.1
print %tree.1.0
save x x.npy
input x=@x.npy
run
outputs
function other
input z=random
run
)");
  CHECK_THAT(many, Contains("(vm-debug) print tree.1\n%tree.1: adt 5 (2 fields)\nadt 5 ("));
  CHECK_THAT(many, Contains("wrote x.npy\n"));
  CHECK_THAT(many, Contains("y: f32[3]\n[2, 2, 2]\n"));
  CHECK_THAT(many, Contains("other has returned after 1 instructions"));
  CHECK(ReadNpy((session.folder().path() / "x.npy").string())->shape == std::vector<std::int64_t>{3});
}

TEST_CASE("catch stops behind the kernel that writes NaN or infinities") {
  const DebugSession session;
  const std::string nan = session.Out("steps.asm", "catch nan\nrun\nprint %2\n", {"-i", "x=4xf32=1,2,-3,4"});
  CHECK_THAT(nan, Contains("log at logs@17 has written 1 NaN and 0 infinite of 4 elements to argument 1\n"
                           "  made by Log 'logarithm'\n"
                           "=>  logs@24        ret %2\n"));
  CHECK_THAT(nan, Contains("%2: f32[4]\n[0.693147,  1.38629,      nan,  2.07944]\n"));
  const std::vector<std::string> zero = {"-i", "x=4xf32=0"};
  CHECK_THAT(session.Out("steps.asm", "catch nan\nrun\n", zero), Contains("main has returned"));
  CHECK_THAT(session.Out("steps.asm", "catch inf\nrun\n", zero), Contains("0 NaN and 4 infinite"));
}

TEST_CASE("a run that fails is reported, and the session goes on") {
  const DebugSession session;
  const std::string out = session.Out("steps.asm", "run\ninput x=5xf32=1\nrun\ninput x=random\nrun\n");
  CHECK_THAT(out, Contains("the run failed: these inputs of main are not set: x; say `input NAME=VALUE`"));
  CHECK_THAT(out, Contains("the run failed: function main, input 0 (x): f32[4] expected, f32[5] given"));
  CHECK_THAT(out, Contains("main has returned"));
}

TEST_CASE("a kernel that fails stops the run where it is") {
  const DebugSession session;
  const std::string out = session.Out("fails.asm", "run\nregisters x y\ncontinue\n",
                                      {"-i", "x=2xf32=1,2", "-i", "y=3xf32=1,2,3"});
  CHECK_THAT(
      out,
      Contains("kernel add has failed here; `continue` tells its error\n=>  main@17        invoke_packed"));
  CHECK_THAT(out, Contains("  %x  f32[2]  [1, 2]\n  %y  f32[3]  [1, 2, 3]\n"));
  CHECK_THAT(out, Contains("(vm-debug) continue\nthe run failed: main@17 (invoke_packed add("));
}

TEST_CASE("a watched storage shows writes to its memory, by whatever tensor") {
  const DebugSession session;
  const std::string out =
      session.Out("steps.asm", "start\nstep\nwatch %1\ncontinue\ncontinue\ncontinue\n", {"-i", "x=4xf32=1"});
  // The first tensor takes the memory, then the kernel writes it.
  CHECK_THAT(out, Contains("watch 1: %1 in main\n(vm-debug) continue\nwatch 1: %1 has changed\n"));
  CHECK_THAT(out, Contains("=>  main@17 "));
  CHECK_THAT(out, Contains("=>  main@25 "));
  CHECK_THAT(out, Contains("main has returned after"));
}

TEST_CASE("the first wrong command of a script ends the session with its exit code and place") {
  const DebugSession session;
  const auto refused = [&](const std::string& command, int exit_code, const std::string& message) {
    INFO(command);
    const Finished finished = session.Script("steps.asm", "start\n" + command + "\nstart\n", {"--random"});
    CHECK(finished.err == "vm-debug: error: script:2: " + message + "\n");
    CHECK(finished.exit_code == exit_code);
  };
  refused("break", 11, "write `break PLACE`; `help break` explains it");
  refused("hlep", 12, "no command is called 'hlep'; did you mean 'help'?");
  refused("xyzzy", 12, "no command is called 'xyzzy'; `help` lists them");
  refused("st", 11, "'st' may be start or step or stops; write more of it");
  refused("run now", 11, "`run` takes no argument");
  refused("step 0", 11, "0 times is not at all; write 1 or more");
  refused("step x", 11, "'x' is no number");
  refused("break mian", 12, "no function or node of the model is called 'mian'; did you mean 'main'?");
  refused("break main@10", 12, "no instruction of main starts at 10; the nearest ones start at 9 and 17");
  refused("break 999", 12, "no instruction of main starts at 999; the nearest ones start at 30");
  refused("print %9", 12, "main has no register '9'; its registers are the inputs and %0 to %3");
  refused("print x.1", 12, "%x.1: there is no field 1: f32[4] is reached, which has 0 fields");
  refused("print x.a", 11, "'x.a': a field is a number after a dot, such as %0.1; 'a' is none");
  refused("save x", 11, "write `save REGISTER FILE`, such as `save %4 x.npy`");
  refused("save %1 s.npy", 11, "%1: a tensor or an integer is expected, not nothing");
  refused("down", 12, "this is the innermost call");
  refused("up", 12, "the outermost call is 0; `where` lists them");
  refused("delete 7", 12, "there is no breakpoint or watch 7; `stops` lists them");
  refused("catch all", 11, "'all': write `catch nan`, `inf` or `off`");
  refused("input y=1", 12, "function main has no input 'y'; the inputs: x");
  refused("input x", 11, "'x': expected NAME=VALUE, such as x=@x.npy");
  refused("dim N=4", 12, "no symbolic dimension is called 'N'; the symbolic dimensions: none");
  refused("function logs", 26, "a run is going on; end it first, by `continue`");
  refused("outputs", 11, "there are no outputs: no run has returned yet");
  CHECK(session.Script("steps.asm", "where\n").err ==
        "vm-debug: error: script:1: nothing runs; `start` or `run` begins\n");
  CHECK_THAT(
      session.Script("many.asm", "input x=fill:1\n").err,
      Contains("input 'x' is f32[N]: `fill:` does not know its dtype and shape; say `dim N=SIZE` first"));
}

TEST_CASE("commands come from a pipe, too, and quit ends a run") {
  const DebugSession session;
  session.folder().Write("lines", "help\nstart\nquit\nnever read\n");
  test::Streams streams;
  streams.in = (session.folder().path() / "lines").string();
  const Finished finished =
      test::RunProgram("vm-debug", {"steps.asm", "--random"}, session.folder().path(), streams);
  CHECK(finished.err == "");
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("  break PLACE              stop before an instruction (b)\n"));
  CHECK_THAT(finished.out, Contains("=>  main@0"));
  CHECK_THAT(session.Out("steps.asm", "help break\n"),
             Contains("break PLACE  (short: b)\n") && Contains("main@12    the instruction at word 12"));
  CHECK(session.Script("steps.asm", "", {"-x", "none"}).exit_code == 12);
}

// Waits for a text and the prompt behind it, then types a line.
std::vector<std::pair<std::string, std::string>> Typed(
    const std::vector<std::pair<std::string, std::string>>& lines) {
  std::vector<std::pair<std::string, std::string>> steps;
  for (const auto& [text, keys] : lines) {
    steps.emplace_back(text, "");
    steps.emplace_back("(vm-debug) ", keys);
  }
  return steps;
}

TEST_CASE("at a terminal, lines are edited, completed, repeated and kept") {
  const DebugSession session;
  const test::TerminalSession terminal =
      test::RunAtTerminal("vm-debug", {"steps.asm", "--random"}, session.folder().path(),
                          Typed({{"steps.asm: main of 5 instructions. `help` lists the commands.",
                                  "brx\beak logs\n"},                // a wrong letter is taken back
                                 {"breakpoint 1: ", "regi\tx\b\n"},  // Tab completes
                                 {"nothing runs", "ru\tn\b\b\n"},
                                 {"breakpoint 1, logs", "hlep\n"},
                                 {"did you mean 'help'?", "step\n"},
                                 {"logs@9", "\n"},           // again
                                 {"logs@17", "\x10\x10\n"},  // two lines back in the history: hlep
                                 {"did you mean 'help'?", "quit\n"}}));
  INFO(terminal.screen);
  CHECK(terminal.exit_code == 0);
  CHECK_THAT(terminal.screen, Contains("\033[1;31merror: \033[0mno command is called 'hlep'"));
  // The next session has the history of this one.
  CHECK_THAT(test::ReadWholeFile(session.folder().path() / ".local/state/rewire/vm-debug-history"),
             Contains("quit"));
  const test::TerminalSession next = test::RunAtTerminal("vm-debug", {"steps.asm"}, session.folder().path(),
                                                         Typed({{"", "\x10\n"}}), {{"NO_COLOR", "1"}});
  INFO(next.screen);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.screen, !Contains("\033[1m"));
}

TEST_CASE("Ctrl-C stops a run at its next instruction, and gives up a line") {
  const DebugSession session;
  std::vector<std::pair<std::string, std::string>> steps = Typed({{"", "start\n"}, {"main@0", "continue\n"}});
  steps.insert(steps.end(), {{"continue\r\n", "\x03"}, {"interrupted", ""}});
  steps.insert(steps.end(), {{"(vm-debug) ", "abc"}, {"abc", "\x03"}, {"(vm-debug) ", "where\n"}});
  steps.insert(steps.end(), {{"=>   0  main@", ""}, {"(vm-debug) ", "quit\n"}});
  const test::TerminalSession terminal =
      test::RunAtTerminal("vm-debug", {"loop.asm"}, session.folder().path(), steps, {{"NO_COLOR", "1"}});
  INFO(terminal.screen);
  CHECK(terminal.exit_code == 0);
  CHECK_THAT(terminal.screen, !Contains("error"));
  // The empty line is no wish to go on.
  CHECK(terminal.screen.find("interrupted") == terminal.screen.rfind("interrupted"));
}

}  // namespace
}  // namespace rewire::tools
