// SPDX-License-Identifier: Apache-2.0
//
// The part of NCCL's binary interface that Rewire calls, so that building needs no header of NVIDIA's.
// tests/integrations/collective/nccl compares it with that header where it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::collective {

// X(name, value, NVIDIA's name)
#define REWIRE_NCCL_VALUES(X)           \
  X(kNcclSuccess, 0, ncclSuccess)       \
  X(kNcclInProgress, 7, ncclInProgress) \
  X(kNcclSum, 0, ncclSum)               \
  X(kNcclMax, 2, ncclMax)               \
  X(kNcclMin, 3, ncclMin)               \
  X(kNcclMean, 4, ncclAvg)              \
  X(kNcclInt8, 0, ncclInt8)             \
  X(kNcclUint8, 1, ncclUint8)           \
  X(kNcclInt32, 2, ncclInt32)           \
  X(kNcclInt64, 4, ncclInt64)           \
  X(kNcclFloat16, 6, ncclFloat16)       \
  X(kNcclFloat32, 7, ncclFloat32)       \
  X(kNcclFloat64, 8, ncclFloat64)       \
  X(kNcclBfloat16, 9, ncclBfloat16)     \
  X(kNcclIdBytes, 128, NCCL_UNIQUE_ID_BYTES)

#define REWIRE_NCCL_VALUE(name, value, theirs) inline constexpr int name = value;
REWIRE_NCCL_VALUES(REWIRE_NCCL_VALUE)
#undef REWIRE_NCCL_VALUE

// ncclUniqueId
struct NcclId {
  char bytes[kNcclIdBytes];
};

// ncclConfig_t as NCCL 2.14 has it. Later versions add members, and take this one by its size and version.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  std::uint32_t magic = 0xcafebeef;
  std::uint32_t version = 21400;
  std::int32_t blocking = 0;
};
inline constexpr int kLeastNccl = 21400;

// Communicators and streams are pointers. X(name, result, parameters)
#define REWIRE_NCCL_FUNCTIONS(X)                                                                           \
  X(ncclGetVersion, int, (int* version))                                                                   \
  X(ncclGetUniqueId, int, (NcclId * id))                                                                   \
  X(ncclCommInitRankConfig, int, (void** comm, int ranks, NcclId id, int rank, NcclConfig* config))        \
  X(ncclCommDestroy, int, (void* comm))                                                                    \
  X(ncclCommAbort, int, (void* comm))                                                                      \
  X(ncclCommGetAsyncError, int, (void* comm, int* error))                                                  \
  X(ncclGetErrorString, const char*, (int result))                                                         \
  X(ncclGetLastError, const char*, (void* comm))                                                           \
  X(ncclAllReduce, int,                                                                                    \
    (const void* x, void* out, std::size_t count, int type, int op, void* comm, void* stream))             \
  X(ncclAllGather, int, (const void* x, void* out, std::size_t count, int type, void* comm, void* stream)) \
  X(ncclReduceScatter, int,                                                                                \
    (const void* x, void* out, std::size_t count, int type, int op, void* comm, void* stream))             \
  X(ncclBroadcast, int,                                                                                    \
    (const void* x, void* out, std::size_t count, int type, int root, void* comm, void* stream))           \
  X(ncclSend, int, (const void* x, std::size_t count, int type, int peer, void* comm, void* stream))       \
  X(ncclRecv, int, (void* out, std::size_t count, int type, int peer, void* comm, void* stream))           \
  X(ncclGroupStart, int, ())                                                                               \
  X(ncclGroupEnd, int, ())

struct NcclFunctions {
#define REWIRE_NCCL_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  REWIRE_NCCL_FUNCTIONS(REWIRE_NCCL_MEMBER)  // NOLINT(readability-identifier-naming)
#undef REWIRE_NCCL_MEMBER
};

}  // namespace rewire::collective
