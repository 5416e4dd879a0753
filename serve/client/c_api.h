/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/serve/client/c_api.h>. */
/* Models on a server in C, in librewire_remote. serve/client/remote_program.h explains what such a program is
 * and does. The rules in vm/c_api/status.h hold.
 *
 *   RewireRemote* remote = NULL;
 *   RewireProgram* program = NULL;
 *   if (rewire_remote_connect("grpc://localhost:8001/model", NULL, NULL, &remote) == kRewireOk &&
 *       rewire_remote_program(remote, &program) == kRewireOk) {
 *     ... rewire_vm_make(program, ...): a program like any other
 *   } */
#ifndef REWIRE_SERVE_CLIENT_C_API_H_
#define REWIRE_SERVE_CLIENT_C_API_H_

#include "rewire/vm/c_api/program.h"
#include "rewire/vm/c_api/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model on a server. A handle is immutable; several threads may use one at once. */
typedef struct RewireRemote RewireRemote;

typedef struct RewireConnectOptions {
  uint32_t struct_size;
  /* Nanoseconds for connecting and for asking the server what the model's inputs and outputs are. 0: ten
   * seconds. */
  int64_t timeout;
} RewireConnectOptions;

/* Connects to a model: grpc://HOST:PORT/MODEL or http://HOST:PORT/MODEL, with /VERSION behind it for one
 * version, and `?shared_memory` at its end for a server on this machine. grpcs:// and
 * https:// stand for TLS. Of `link`, kernels and parameters
 * are of no use, because the model is the server's, and the allocator counts unless memory is shared. NULL
 * for `options` or `link` means the defaults.
 *
 * Errors: kRewireInvalidArgument for another URL, or a time below 0. kRewireNotFound if there is no such host
 * or model. kRewireIo if the server does not answer. kRewireDeadlineExceeded after the time.
 * kRewireUnsupported for a server, or for a model, of which no program can be made. */
REWIRE_API RewireStatus rewire_remote_connect(const char* url, const RewireConnectOptions* options,
                                              const RewireLinkOptions* link, RewireRemote** out);
/* Destroys the handle. Programs and tensors stay. NULL is allowed. */
REWIRE_API void rewire_remote_destroy(RewireRemote* remote);

/* Makes a handle of the program, which the caller destroys. It may outlive `remote`. */
REWIRE_API RewireStatus rewire_remote_program(const RewireRemote* remote, RewireProgram** out);

/* Makes a tensor in memory that is shared with the server: contiguous, uninitialized. Memory below 4096 bytes
 * is not shared, but sent. The tensor may outlive `remote`. `shape` has `ndim` sizes; it may be NULL if
 * `ndim` is 0. Errors: kRewireInvalidArgument without `?shared_memory` in the URL, or for a shape that no
 * tensor has; kRewireOutOfMemory. */
REWIRE_API RewireStatus rewire_remote_make_tensor(const RewireRemote* remote, DLDataType dtype, uint32_t ndim,
                                                  const int64_t* shape, RewireValue** out);

#ifdef __cplusplus
}
#endif

#endif  // REWIRE_SERVE_CLIENT_C_API_H_
