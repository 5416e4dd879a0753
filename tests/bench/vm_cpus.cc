// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/vm_cpus.h"

#include <sched.h>

#include <string>

#include "rewire/tests/bench/vm_cases.h"

namespace rewire::bench {

std::vector<int> AllowedCpus() {
  cpu_set_t allowed;
  Require(::sched_getaffinity(0, sizeof(allowed), &allowed) == 0,
          "the CPUs of this process cannot be asked for");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

void PinThread(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (::sched_setaffinity(0, sizeof(only), &only) != 0) Die("cannot pin to CPU " + std::to_string(cpu));
}

}  // namespace rewire::bench
