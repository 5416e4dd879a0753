/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/stream_work.h>. */
/* Work of a run that the run's stream does not do itself. Plain C.
 *
 * A kernel may give its work to a stream of its own, beside that of the run, so that both go on at once. The
 * run's stream then has to know two things that the device does not notice by itself.
 *
 * - Failures. Work that waits for another process may never end, or end without a result, and the driver
 *   calls that a success. Who gave such work watches it, and tells the run's stream that it has failed.
 * - Memory. All memory of a run is free for others when the run's stream has come to its end. Who gave work
 *   that uses such memory attaches an event to the run's stream. The stream then has not come to its end
 *   before that event.
 *
 * The functions stand behind RewireDeviceApi in memory, if the struct's struct_size says so. They have a
 * header of their own because hardly any kernel needs them. A copy of a RewireDeviceApi sets struct_size to
 * its own size.
 */
#ifndef REWIRE_VM_KERNEL_STREAM_WORK_H_
#define REWIRE_VM_KERNEL_STREAM_WORK_H_

#include "rewire/vm/kernel/device_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireStreamWorkApi {
  RewireDeviceApi device;

  /* The work that `stream` has so far has failed. The next `synchronize` of the stream waits as it always
   * does, and then returns REWIRE_DEVICE_FAILED, once. `error` then gives `message`, which is copied. So the
   * run fails whose stream it is. Of several failures before a wait, the first one counts. Any thread may
   * call it. The stream must not be destroyed meanwhile. */
  int (*fail_stream)(void* context, DLDevice device, void* stream, const char* message);

  /* `synchronize`, `destroy_stream`, `deallocate` and `record_event` of `stream` wait for `event`, a point in
   * another stream of the device, as if the stream had waited for it before. Its other work does not wait.
   * The event must not be set again or destroyed until `detach_event`. A stream that `make_stream` has not
   * made is REWIRE_DEVICE_UNSUPPORTED, because its owner gives it work without asking: wait_event serves
   * there. detach_event does nothing if the event is not attached to the stream, or if there is no such
   * stream any more. */
  int (*attach_event)(void* context, DLDevice device, void* stream, void* event);
  int (*detach_event)(void* context, DLDevice device, void* stream, void* event);
} RewireStreamWorkApi;

/* The struct with these functions, or NULL if the device does not have them. */
static inline const RewireStreamWorkApi* RewireStreamWorkOf(const RewireDeviceApi* api) {
  const RewireStreamWorkApi* with = (const RewireStreamWorkApi*)api;
  const int is_here = api->struct_size >= sizeof(RewireStreamWorkApi) && with->fail_stream != NULL &&
                      with->attach_event != NULL && with->detach_event != NULL;
  return is_here ? with : NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_KERNEL_STREAM_WORK_H_ */
