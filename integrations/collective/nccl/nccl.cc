// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/nccl/nccl.h"

#include <dlfcn.h>

#include <string>

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

namespace {

constexpr char kFile[] = "libnccl.so.2";

// "2.28.9" of 22809
std::string VersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

struct Opened {
  NcclFunctions functions;
  std::string reason;  // why it cannot be used; empty if it can
};

Opened* Open() {
  auto* opened = new Opened();
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = dlerror();
    opened->reason = words != nullptr ? words : kFile;
    return opened;
  }
#define REWIRE_FIND(name, result, parameters)                                                         \
  opened->functions.name = reinterpret_cast<decltype(opened->functions.name)>(dlsym(library, #name)); \
  if (opened->functions.name == nullptr) opened->reason = std::string(kFile) + " has no function " #name;
  REWIRE_NCCL_FUNCTIONS(REWIRE_FIND)
#undef REWIRE_FIND
  int version = 0;
  if (!opened->reason.empty()) return opened;
  if (opened->functions.ncclGetVersion(&version) != kNcclSuccess || version < kLeastNccl) {
    opened->reason = std::string(kFile) + " is NCCL " + VersionText(version) + ", expected at least " +
                     VersionText(kLeastNccl);
  }
  return opened;
}

}  // namespace

Status OpenNccl(const NcclFunctions** nccl) {
  // Never destroyed: NCCL has threads that run until the process ends.
  static const Opened* const kOpened = Open();
  *nccl = &kOpened->functions;
  if (kOpened->reason.empty()) return Status();
  return RuntimeError("collectives on a device need NCCL: ", kOpened->reason,
                      "; install it, or run the collectives on the host");
}

Status NcclFailure(const NcclFunctions& nccl, const char* function, int result, void* comm) {
  const char* const last = comm != nullptr ? nccl.ncclGetLastError(comm) : nullptr;
  const std::string details = last != nullptr && *last != '\0' ? std::string(": ") + last : std::string();
  return RuntimeError(function, ": ", nccl.ncclGetErrorString(result), details);
}

}  // namespace rewire::collective
