// SPDX-License-Identifier: Apache-2.0
// A job of MPI, by the library of collectives over MPI that lies beside this one.
#include <dlfcn.h>

#include <string>
#include <utility>

#include "rewire/integrations/collective/job_api.h"
#include "rewire/integrations/collective/nccl/job.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::collective {

using kernel::Status;

namespace {

constexpr std::uint64_t kMostWords = 1024;

class MpiJob final : public Job {
 public:
  explicit MpiJob(const RewireCollectiveJob& api) : api_(api) {}

  Status Open() {
    std::int32_t rank = 0, ranks = 1;
    std::int64_t timeout = 0;
    if (api_.open(&rank, &ranks, &timeout) != 0) return Status::AlreadySet();
    rank_ = rank;
    ranks_ = ranks;
    timeout_ = std::chrono::milliseconds(timeout);
    return Status();
  }

  Status Spread(const Group& group, void* data, std::int64_t bytes) override {
    if (!group.of_all()) return Swap(group.peer, 1, group.number, data, bytes, group.peer < rank_);
    if (rank_ != 0) return Swap(0, 0, group.number, data, bytes, true);
    for (int peer = 1; peer < ranks_; ++peer) {
      if (Status s = Swap(peer, 0, group.number, data, bytes, false); !s.ok()) return s;
    }
    return Status();
  }

  Status Notice() override {
    char words[kMostWords];
    return api_.notice(words, sizeof words) == 0 ? Status() : kernel::RuntimeError(words);
  }
  int FirstEnded() override { return api_.first_ended(); }
  std::string Name(int rank) override {
    char text[kMostWords];
    api_.name(rank, text, sizeof text);
    return text;
  }
  void Leave(const std::string& reason) override { api_.leave(reason.c_str()); }

 private:
  Status Swap(int peer, int is_message, int number, void* data, std::int64_t bytes, bool receives) {
    const std::int32_t done = api_.exchange(peer, is_message, number, data, bytes, receives ? 1 : 0);
    return done == 0 ? Status() : Status::AlreadySet();
  }

  const RewireCollectiveJob& api_;
};

// Stock libraries lie in one folder.
void* OpenBeside() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&OpenMpiJob), &own) == 0 || own.dli_fname == nullptr)
    return nullptr;
  std::string path = own.dli_fname;
  path.resize(path.rfind('/') + 1);
  return dlopen((path + names::kCollectiveLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Status OpenMpiJob(std::unique_ptr<Job>* job) {
  void* const library = OpenBeside();
  if (library == nullptr) return Status();
  const auto find =
      reinterpret_cast<RewireCollectiveJobFunction>(dlsym(library, REWIRE_COLLECTIVE_JOB_FUNCTION));
  const RewireCollectiveJob* const api = find != nullptr ? find() : nullptr;
  if (api == nullptr || api->struct_size < sizeof(RewireCollectiveJob)) {
    return kernel::RuntimeError(names::kCollectiveLibrary, " is of another version of Rewire");
  }
  // The loader has set the table of functions for kernels only if it has opened that library, too.
  auto* const table = static_cast<const RewireKernelApi**>(dlsym(library, "__rewire_kernel_api"));
  if (table != nullptr && *table == nullptr) *table = __rewire_kernel_api;
  auto made = std::make_unique<MpiJob>(*api);
  if (Status s = made->Open(); !s.ok()) return s;
  *job = std::move(made);
  return Status();
}

}  // namespace rewire::collective
