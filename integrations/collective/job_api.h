/* SPDX-License-Identifier: Apache-2.0 */
/* The job of an MPI process, as the library of collectives on devices asks the one over MPI. Both are opened
 * at run time, so that neither needs the other to be built or to run. */
#ifndef REWIRE_INTEGRATIONS_COLLECTIVE_JOB_API_H_
#define REWIRE_INTEGRATIONS_COLLECTIVE_JOB_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that return -1 have set the error of the running kernel's thread. */
typedef struct RewireCollectiveJob {
  uint32_t struct_size;

  /* Connects the process with its job, and says who it is there. The first call waits for all ranks. */
  int32_t (*open)(int32_t* rank, int32_t* ranks, int64_t* timeout_milliseconds);
  /* Sends bytes to a rank, or receives them from it (`receives`). `number` is a channel, or the tag of a
   * message between two ranks (`is_message`). Returns when that is done, or -1. */
  int32_t (*exchange)(int32_t peer, int32_t is_message, int32_t number, void* data, int64_t bytes,
                      int32_t receives);

  /* Any thread may call these. `notice` returns 1 with words if another rank has left a call, else 0.
   * `first_ended` returns a rank whose process has ended, or -1. `name` writes "rank 1 (process 4711 on host
   * node2)". Texts end with a zero byte and are cut to `size` bytes. */
  int32_t (*notice)(char* words, uint64_t size);
  int32_t (*first_ended)(void);
  void (*name)(int32_t rank, char* text, uint64_t size);
  /* This rank leaves a call that others wait in. They are told the reason, and later calls fail. */
  void (*leave)(const char* reason);
} RewireCollectiveJob;

/* The library over MPI exports a function of this type by this name. */
#define REWIRE_COLLECTIVE_JOB_FUNCTION "rewire_collective_job"
typedef const RewireCollectiveJob* (*RewireCollectiveJobFunction)(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_INTEGRATIONS_COLLECTIVE_JOB_API_H_ */
