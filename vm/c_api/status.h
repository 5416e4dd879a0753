/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/status.h>. */
/* Versions, status codes and errors of the C API. These rules hold for all of its functions:
 *
 * - Functions that can fail return a RewireStatus. On failure the message is stored per thread and is read by
 *   rewire_last_error_message(). It stays until the next call of this API fails on the same thread;
 *   successful calls do not change it. So clean-up code cannot lose a message, and other threads never see
 *   it.
 * - kRewireInvalidArgument is returned for a required pointer that is NULL, an index out of range, or a wrong
 *   struct_size. Results (the last parameters) are written only on success.
 * - No C++ exception leaves a function. Running out of memory returns kRewireOutOfMemory.
 * - Strings are UTF-8 and end with NUL. Strings given to a function are borrowed for the call. For returned
 *   strings, the function's comment says how long they live.
 * - Objects are handles. Whoever gets one from a `make`, `open` or `link` function, or through a `RewireX**
 *   out` parameter, owns it and must destroy it. Destroy functions accept NULL. Handles keep alive what they
 *   need, so they may be destroyed in any order.
 * - Structs with a struct_size begin with it. Set it to sizeof the struct, and set members that you do not
 *   need to zero, which is their default. Later versions append members; old and new code stay compatible in
 *   both directions.
 * - Callbacks given to Rewire must return normally: no longjmp and no exception may leave them. */
#ifndef REWIRE_VM_C_API_STATUS_H_
#define REWIRE_VM_C_API_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#include "rewire/base/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Major version in the high 16 bits, minor version in the low ones. A program runs with a library of the same
 * major version and the same or a later minor version. */
#define REWIRE_API_VERSION ((uint32_t)(1u << 16 | 0u))

/* Returns the REWIRE_API_VERSION of the loaded library. */
REWIRE_API uint32_t rewire_api_version(void);

/* One of the codes below. */
typedef int32_t RewireStatus;

/* Returns kRewireOk if a program compiled against `version` (pass REWIRE_API_VERSION) can use the loaded
 * library, and kRewireUnsupported otherwise. */
REWIRE_API RewireStatus rewire_check_api_version(uint32_t version);

/* The numbers are those of rewire::StatusCode (base/status.h) and never change. */
enum {
  kRewireOk = 0,
  kRewireInvalidArgument = 1,    /* a wrong pointer, name, index, dtype, shape or option was given */
  kRewireNotFound = 2,           /* no such file, function, input, kernel library */
  kRewireIo = 3,                 /* the operating system refused a read or a write */
  kRewireInvalidFile = 4,        /* not an executable, or a damaged one */
  kRewireUnsupported = 5,        /* newer than this library, or needs a part that it was built without */
  kRewireVerificationFailed = 6, /* an executable breaks a rule of docs/verification.md */
  kRewireLinkFailed = 7,         /* kernels or parameters are missing or do not match */
  kRewireRuntimeFailed = 8,      /* an instruction failed: shape, dtype, bounds, Fatal */
  kRewireKernelFailed = 9,       /* a kernel returned an error */
  kRewireDepthLimit = 10,
  kRewireStepLimit = 11,
  kRewireMemoryLimit = 12,
  kRewireDeadlineExceeded = 13,
  kRewireCancelled = 14,
  kRewireOutOfMemory = 15, /* the allocator returned NULL */
  kRewireBusy = 16,        /* an object that serves one thread at a time is already in use */
  kRewireInternal = 17     /* a bug in Rewire */
};

/* Returns the name of a code, such as "invalid argument", or "unknown status" for other numbers. Static
 * storage. */
REWIRE_API const char* rewire_status_name(RewireStatus status);

/* Returns the calling thread's last failure of this API; kRewireOk and "" before the first one. The message
 * lives until the next failure on this thread, or until the thread ends. */
REWIRE_API RewireStatus rewire_last_error_code(void);
/* The message of that failure. */
REWIRE_API const char* rewire_last_error_message(void);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_STATUS_H_ */
