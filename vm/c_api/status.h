/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, status codes and errors of the C API, and what holds for all of its functions:
 *
 * - Functions that can fail return a RewireStatus. On failure the message stands in a place of the calling
 *   thread, rewire_last_error_message(), until the next call of this API fails on that thread; successful
 *   calls leave it. A message is thus never lost to clean-up code, and never seen by another thread.
 * - A required pointer that is NULL, an index out of range, a wrong struct_size: kRewireInvalidArgument.
 *   Results (the last parameters) are written on success only.
 * - No C++ exception leaves a function. Running out of memory is kRewireOutOfMemory.
 * - Strings are UTF-8 and end with NUL. Those given are borrowed for the call; those returned say how long
 *   they live.
 * - Objects are handles. Who gets one from a `make`, `open`, `link` or from a `RewireX** out` parameter owns
 *   it and destroys it; destroy functions take NULL. Handles keep alive what they need: they may be destroyed
 *   in any order.
 * - Structs with a struct_size begin with it: set it to sizeof the struct, and everything that is not wanted
 *   to zero, which is each member's default. Later versions append members; both directions stay compatible.
 * - Callbacks given to Rewire must return: no longjmp and no exception through it. */
#ifndef REWIRE_VM_C_API_STATUS_H_
#define REWIRE_VM_C_API_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Major in the high 16 bits, minor in the low. A program runs with a library of the same major version and
 * the same or a later minor one. */
#define REWIRE_API_VERSION ((uint32_t)(1u << 16 | 0u))

/* REWIRE_API_VERSION of the library that is loaded. */
REWIRE_API uint32_t rewire_api_version(void);

/* One of the codes below. */
typedef int32_t RewireStatus;

/* kRewireOk when a program compiled against `version` (pass REWIRE_API_VERSION) can use the loaded library,
 * else kRewireUnsupported. */
REWIRE_API RewireStatus rewire_check_api_version(uint32_t version);

/* The numbers are those of rewire::StatusCode (base/status.h) and never change. */
enum {
  kRewireOk = 0,
  kRewireInvalidArgument = 1,    /* a wrong pointer, name, index, dtype, shape or option was given */
  kRewireNotFound = 2,           /* no such file, function, input, kernel library */
  kRewireIo = 3,                 /* the operating system refused a read or a write */
  kRewireInvalidFile = 4,        /* not an executable, or a damaged one */
  kRewireUnsupported = 5,        /* newer than this library, or needing a part it was built without */
  kRewireVerificationFailed = 6, /* an executable breaks a rule of docs/verification.md */
  kRewireLinkFailed = 7,         /* kernels or parameters are missing or do not match */
  kRewireRuntimeFailed = 8,      /* an instruction failed: shape, dtype, bounds, Fatal */
  kRewireKernelFailed = 9,       /* a kernel returned an error */
  kRewireDepthLimit = 10,
  kRewireStepLimit = 11,
  kRewireMemoryLimit = 12,
  kRewireDeadlineExceeded = 13,
  kRewireCancelled = 14,
  kRewireOutOfMemory = 15, /* the allocator returned nothing */
  kRewireBusy = 16,        /* an object that serves one thread at a time is in use */
  kRewireInternal = 17     /* a fault of Rewire's own */
};

/* A code in words, "invalid argument"; "unknown status" for other numbers. Static storage. */
REWIRE_API const char* rewire_status_name(RewireStatus status);

/* The calling thread's last failure of this API: kRewireOk and "" before the first one. The message lives
 * until the next failure on this thread, or its end. */
REWIRE_API RewireStatus rewire_last_error_code(void);
/* Its message. */
REWIRE_API const char* rewire_last_error_message(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_STATUS_H_ */
