// SPDX-License-Identifier: Apache-2.0
//
// The functions of job_api.h over this library's World. Part of the shared library alone.
#include "rewire/integrations/collective/job_api.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "rewire/integrations/collective/exchange.h"
#include "rewire/integrations/collective/world.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::collective {
namespace {

using kernel::Status;

// 0, or -1 with the thread's error set.
std::int32_t Told(const Status& status) {
  if (status.ok()) return 0;
  if (status.kind() != nullptr) __rewire_kernel_api->set_error(status.kind(), status.message().c_str());
  return -1;
}

void Write(const std::string& text, char* to, std::uint64_t size) {
  const std::size_t bytes = std::min<std::size_t>(text.size(), size - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

// The world, once it is open.
World* g_open = nullptr;

std::int32_t Open(std::int32_t* rank, std::int32_t* ranks, std::int64_t* timeout) {
  World* world = nullptr;
  if (const Status s = World::Get(&world); !s.ok()) return Told(s);
  g_open = world;
  *rank = world->rank();
  *ranks = world->ranks();
  *timeout = world->timeout().count();
  return 0;
}

std::int32_t Swap(std::int32_t peer, std::int32_t is_message, std::int32_t number, void* data,
                  std::int64_t bytes, std::int32_t receives) {
  const auto lane = is_message != 0 ? World::Lane::kMessages : World::Lane::kCollectives;
  Exchange exchange(*g_open, g_open->communicator(lane), number);
  if (receives != 0) {
    exchange.Receive(peer, data, bytes);
  } else {
    exchange.Send(peer, data, bytes);
  }
  return Told(exchange.Wait());
}

std::int32_t Notice(char* words, std::uint64_t size) {
  if (!g_open->MayBeAsked()) return 0;
  const Status notice = g_open->Notice();
  if (notice.ok()) return 0;
  Write(notice.message(), words, size);
  return 1;
}

std::int32_t FirstEnded() { return g_open->FirstEnded(); }
void Name(std::int32_t rank, char* text, std::uint64_t size) { Write(g_open->Name(rank), text, size); }
void Leave(const char* reason) {
  if (g_open->MayBeAsked()) g_open->Leave(reason);
}

constexpr RewireCollectiveJob kJob = {
    sizeof(RewireCollectiveJob), Open, Swap, Notice, FirstEnded, Name, Leave,
};

}  // namespace
}  // namespace rewire::collective

extern "C" REWIRE_KERNEL_EXPORT const RewireCollectiveJob* rewire_collective_job() {
  return &rewire::collective::kJob;
}
