// SPDX-License-Identifier: Apache-2.0
//
// A run that stands still while a second thread makes its calls, and the functions that a header declares.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

// A kernel that stands still until Release.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (open_) return;
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void WaitForEntered() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return entered_; });
  }
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = entered_ = false;
  }
  void Release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  bool entered_ = false;
};

inline Program GatedProgram(Gate* gate, LinkOptions options = {}) {
  options.kernels.AddFunction("test.gate", MakePackedFunction([gate] { gate->Pass(); }));
  return ProgramOf(R"(
    .kernel test.gate
    .func main(x: f32[3]) -> f32[3]
      invoke_packed test.gate(), outputs=0
      ret %x
    .end
    .func free(x: f32[3]) -> f32[3]
      ret %x
    .end)",
                   std::move(options));
}

// A state that a VM of this program takes while it does not run.
inline Array<std::byte> StateOf(const Program& program) {
  VirtualMachine vm(program);
  vm.SetInput("x", Floats({4, 5, 6}));
  return vm.State("main");
}

// The same in a file.
inline const std::string& StateFileOf(const Program& program) {
  static const TempFolder folder;
  static const std::string path = (folder.path() / "x.state").string();
  VirtualMachine vm(program);
  vm.SetInput("x", Floats({4, 5, 6}));
  vm.SaveState(path, "main");
  return path;
}

// The run that goes on while `call` is made, and what comes of it.
template <typename Call>
Status DuringRun(Gate* gate, VirtualMachine* vm, const Call& call) {
  gate->Close();
  Status ran;
  std::thread runner([&] { ran = vm->TryInvoke(); });
  gate->WaitForEntered();
  call();
  gate->Release();
  runner.join();
  return ran;
}

// The declarations of a header: the names that `pattern` finds between two texts.
inline std::set<std::string> Declared(const char* header, const std::string& from, const std::string& to,
                                      const char* pattern) {
  std::ifstream file(std::string(SourceDir()) + "/" + header);
  std::stringstream text;
  text << file.rdbuf();
  std::string part = text.str();
  part = part.substr(part.find(from));
  part = part.substr(0, part.find(to));
  std::set<std::string> names;
  const std::regex names_of(pattern);
  for (std::sregex_iterator at(part.begin(), part.end(), names_of), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

// A member function: a line that begins with two spaces and a type.
inline constexpr char kMember[] = R"(\n  (?:static )?[A-Za-z][\w:<>,&* ]*[ &*](\w+)\()";

// A member variable: a line that begins with two spaces and a type, and ends with a semicolon.
inline constexpr char kVariable[] = R"(\n  [A-Za-z][\w:<>,* ]*[ *](\w+)(?: = [^;\n]*)?;)";

// A function of an object that a run uses, or a variable of one.
struct SharedRow {
  const char* name;
  std::function<bool()> right;
};

// The member functions of a class, but for constructors and operators.
inline std::set<std::string> Members(const char* header, const std::string& type,
                                     const std::string& end = " private:") {
  std::set<std::string> names = Declared(header, "class REWIRE_API " + type + " {", end, kMember);
  names.erase("bool");
  names.erase(type);
  return names;
}

// The names that `pattern` finds in all headers of the C API of the VM.
inline std::set<std::string> DeclaredInC(const char* pattern) {
  std::set<std::string> names;
  const std::filesystem::path folder = std::filesystem::path(SourceDir()) / "vm" / "c_api";
  for (const auto& header : std::filesystem::directory_iterator(folder)) {
    if (header.path().extension() != ".h") continue;
    names.merge(Declared(("vm/c_api/" + header.path().filename().string()).c_str(), "extern \"C\"",
                         "#endif /*", pattern));
  }
  return names;
}

// A function of C whose first argument is a VM.
inline constexpr char kTakesVm[] = R"(\b(rewire_vm_\w+)\(\s*(?:const )?RewireVm\*)";

template <typename Row>
std::set<std::string> NamesOf(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) names.insert(row.name);
  return names;
}

}  // namespace rewire::test
