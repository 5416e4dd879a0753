// SPDX-License-Identifier: Apache-2.0
// collective_rank STEP...: one rank of a job, for ranks.py. Tensors of calls are on the device that
// REWIRE_TEST_DEVICE names, if it does. It prints a line for each step, and ends with 1
// at the first one that fails. A step is one of these:
//
// - host:LEVEL initializes MPI as a host does, with this MPI_THREAD_ level. MPI is finalized at the end.
// - deadline:SECONDS is the time that each later call may take; 0: any.
// - sleep:SECONDS
// - KERNEL,ATTRIBUTES,X,Y is one call. x is of the type X and all ones, or missing where X is empty.
// - other:KERNEL... is one on a thread of its own.
// - fails:KERNEL... is one that may fail; the next step follows.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/vm/vm.h"

namespace {

using rewire::Result;

int Rank() {
  const char* rank = std::getenv("REWIRE_COLLECTIVE_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

// One line, written at once, so that those of several ranks do not mix.
void Say(const std::string& text) {
  const std::string line = "rank " + std::to_string(Rank()) + ": " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

std::string Take(std::string_view* rest, char separator) {
  const std::size_t at = rest->find(separator);
  const std::string taken(rest->substr(0, at));
  *rest = at == std::string_view::npos ? std::string_view() : rest->substr(at + 1);
  return taken;
}

// The message of a failure, or nothing.
std::string Call(std::string_view step, double deadline) {
  const std::string kernel = Take(&step, ',');
  std::string attributes = Take(&step, ',');
  std::replace(attributes.begin(), attributes.end(), ';', ',');
  const std::string x = Take(&step, ','), y = Take(&step, ',');
  const char* const device = std::getenv("REWIRE_TEST_DEVICE");
  const bool is_here = device == nullptr;
  const std::string read = x.empty() ? "" : is_here ? "%x, " : "%d, ";
  const Result<rewire::Module> module = rewire::Assemble(
      (is_here ? "" : ".device gpu = " + std::string(device) + ":0\n") + ".kernel k = \"rewire." +
      (is_here ? "" : "device.") + "collective." + kernel + "\" {" + attributes + "}\n.func main(" +
      (x.empty() ? "" : "x: " + x) + ") -> y: " + y + "\n" +
      (is_here || x.empty() ? "" : "  %d = device_copy %x, cpu, gpu\n") +
      "  %s = alloc_storage _, alignment=64, " + y + (is_here ? ", cpu" : ", gpu") +
      "\n  %y = alloc_tensor %s, _, " + y + "\n  invoke_packed k(" + read + "%y), outputs=1\n" +
      (is_here ? "  ret %y" : "  %h = device_copy %y, gpu, cpu\n  ret %h") + "\n.end\n");
  if (!module) return module.error().message();
  const Result<rewire::Executable> executable = rewire::Executable::FromModule(rewire::Module(*module));
  if (!executable) return executable.error().message();
  const Result<rewire::Program> program = rewire::Program::Link(*executable);
  if (!program) return program.error().message();
  rewire::VirtualMachine vm(*program);
  const auto time = std::chrono::duration<double>(deadline);
  if (deadline > 0) {
    vm.SetDeadline(std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(time));
  }
  std::vector<rewire::Value> inputs;
  if (!x.empty()) {
    const std::int64_t size = std::atoll(x.c_str() + x.find('[') + 1);
    Result<rewire::Tensor> tensor =
        rewire::Tensor::Make(rewire::DTypeOf<float>(), std::vector<std::int64_t>{size});
    if (!tensor) return tensor.error().message();
    std::fill_n(static_cast<float*>(tensor->view().data()), size, 1.0f);
    inputs.emplace_back(*tensor);
  }
  const Result<rewire::Value> result = vm.TryInvoke("main", inputs);
  return result ? std::string() : result.error().message();
}

void Host(const std::string& level) {
  const int wanted = level == "single"       ? MPI_THREAD_SINGLE
                     : level == "funneled"   ? MPI_THREAD_FUNNELED
                     : level == "serialized" ? MPI_THREAD_SERIALIZED
                                             : MPI_THREAD_MULTIPLE;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, wanted, &provided);
}

}  // namespace

int main(int count, char** arguments) {
  double deadline = 0;
  bool is_host = false;
  for (int i = 1; i < count; ++i) {
    std::string_view rest = arguments[i];
    const std::string_view step = rest;
    const std::string word = Take(&rest, ':');
    std::string failure;
    if (word == "host") {
      Host(std::string(rest));
      is_host = true;
    } else if (word == "deadline") {
      deadline = std::atof(std::string(rest).c_str());
    } else if (word == "sleep") {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(std::string(rest).c_str())));
    } else if (word == "other") {
      std::thread([&] { failure = Call(rest, deadline); }).join();
    } else {
      failure = Call(word == "fails" ? rest : step, deadline);
    }
    Say(failure.empty() ? "done " + std::string(step) : "failed: " + failure);
    if (!failure.empty() && word != "fails") return 1;
  }
  if (is_host) MPI_Finalize();
  return 0;
}
