/* SPDX-License-Identifier: Apache-2.0 */
/* A device and its kernel in plain C: one file, Rewire's kernel headers, nothing of Rewire to link.
 *
 * The device is a thread of the library. Each stream has one, which does the stream's work in the order in
 * which it was given. A driver of real hardware takes the place of the threads; the rest stays.
 *
 *   example_worker_twice(x: f32[...], out: f32[...])    out = 2 * x, on the device
 *
 * A host opens the device with rewire::OpenDevice(path), gives it to LinkOptions::devices, and adds the same
 * file to LinkOptions::kernels. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

/* ---- Streams: a thread and a list of work. ---- */

typedef struct Work {
  void (*run)(const struct Work* work);
  void* to;
  const void* from;
  uint64_t bytes;
  struct Work* next;
} Work;

typedef struct Stream {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Work* first;
  Work* last;
  int busy; /* a piece of work has been taken out and is not done */
  int ends;
} Stream;

/* The last failure on this thread, in words. */
static _Thread_local const char* words = "";

static int Fail(int code, const char* what) {
  words = what;
  return code;
}

static void* RunStream(void* argument) {
  Stream* stream = argument;
  pthread_mutex_lock(&stream->mutex);
  while (1) {
    while (stream->first == NULL && !stream->ends) pthread_cond_wait(&stream->changed, &stream->mutex);
    Work* work = stream->first;
    if (work == NULL) break;
    stream->first = work->next;
    stream->busy = 1;
    pthread_mutex_unlock(&stream->mutex);
    work->run(work);
    free(work);
    pthread_mutex_lock(&stream->mutex);
    stream->busy = 0;
    pthread_cond_broadcast(&stream->changed);
  }
  pthread_mutex_unlock(&stream->mutex);
  return NULL;
}

/* Gives work to a stream and returns at once. What the work uses stays until it is done: Rewire sees to that.
 */
static int Give(Stream* stream, void (*run)(const Work* work), void* to, const void* from, uint64_t bytes) {
  Work* work = malloc(sizeof(*work));
  if (work == NULL) return Fail(REWIRE_DEVICE_NO_MEMORY, "the host has no memory for the work");
  *work = (Work){run, to, from, bytes, NULL};
  pthread_mutex_lock(&stream->mutex);
  if (stream->first == NULL) {
    stream->first = work;
  } else {
    stream->last->next = work;
  }
  stream->last = work;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  return REWIRE_DEVICE_OK;
}

static int MakeStream(void* context, DLDevice device, void** made) {
  (void)context, (void)device;
  Stream* stream = calloc(1, sizeof(*stream));
  if (stream == NULL) return Fail(REWIRE_DEVICE_NO_MEMORY, "the host has no memory for a stream");
  pthread_mutex_init(&stream->mutex, NULL);
  pthread_cond_init(&stream->changed, NULL);
  if (pthread_create(&stream->thread, NULL, RunStream, stream) != 0) {
    free(stream);
    return Fail(REWIRE_DEVICE_FAILED, "pthread_create: the thread of a stream cannot be started");
  }
  *made = stream;
  return REWIRE_DEVICE_OK;
}

static int DestroyStream(void* context, DLDevice device, void* destroyed) {
  (void)context, (void)device;
  Stream* stream = destroyed;
  pthread_mutex_lock(&stream->mutex);
  stream->ends = 1; /* once all work is done */
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  pthread_cond_destroy(&stream->changed);
  pthread_mutex_destroy(&stream->mutex);
  free(stream);
  return REWIRE_DEVICE_OK;
}

/* The device's default stream, which NULL means. It lives as long as the process. */
static Stream* default_stream = NULL;
static Stream* StreamOf(void* stream) { return stream != NULL ? stream : default_stream; }

static int Synchronize(void* context, DLDevice device, void* waited) {
  (void)context, (void)device;
  Stream* stream = StreamOf(waited);
  pthread_mutex_lock(&stream->mutex);
  while (stream->first != NULL || stream->busy) pthread_cond_wait(&stream->changed, &stream->mutex);
  pthread_mutex_unlock(&stream->mutex);
  return REWIRE_DEVICE_OK;
}

/* ---- Memory. It is the process's own, but Rewire does not know that: REWIRE_DEVICE_HOST_ADDRESSABLE is not
 * set. ---- */

static int Allocate(void* context, DLDevice device, uint64_t bytes, uint64_t alignment, const char* scope,
                    void* stream, void** block) {
  (void)context, (void)device, (void)stream;
  if (scope != NULL && *scope != 0) return Fail(REWIRE_DEVICE_UNSUPPORTED, "there is one kind of memory");
  *block = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *block != NULL ? REWIRE_DEVICE_OK : Fail(REWIRE_DEVICE_NO_MEMORY, "no memory is left");
}

static void RunFree(const Work* work) { free(work->to); }
static int Deallocate(void* context, DLDevice device, void* block, void* stream) {
  (void)context, (void)device;
  return Give(StreamOf(stream), RunFree, block, NULL, 0); /* behind the work that uses it */
}

static void RunCopy(const Work* work) { memmove(work->to, work->from, work->bytes); }
static int Copy(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
                uint64_t bytes, void* stream) {
  (void)context, (void)to_device, (void)from_device;
  return Give(StreamOf(stream), RunCopy, to, from, bytes);
}

static const char* Error(void* context) {
  (void)context;
  return words;
}

static const RewireDeviceApi kWorker = {
    .struct_size = sizeof(RewireDeviceApi),
    .device_type = kDLExtDev,
    .name = "worker",
    .error = Error,
    .allocate = Allocate,
    .deallocate = Deallocate,
    .copy = Copy,
    .make_stream = MakeStream,
    .destroy_stream = DestroyStream,
    .synchronize = Synchronize,
};

static void StartDefaultStream(void) {
  void* made = NULL;
  if (MakeStream(NULL, (DLDevice){kDLExtDev, 0}, &made) == REWIRE_DEVICE_OK) default_stream = made;
}

/* Rewire asks for the device here, maybe several times. */
REWIRE_KERNEL_EXPORT int rewire_device_open(uint32_t version, const RewireDeviceApi** api,
                                            const char** reason) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (version != REWIRE_DEVICE_API_VERSION) {
    *reason = "worker.c was built for another version of RewireDeviceApi";
    return REWIRE_DEVICE_UNSUPPORTED;
  }
  pthread_once(&once, StartDefaultStream);
  if (default_stream == NULL) {
    *reason = "the thread of the default stream cannot be started";
    return REWIRE_DEVICE_FAILED;
  }
  *api = &kWorker;
  return REWIRE_DEVICE_OK;
}

/* ---- The kernel: checks its arguments on the host, and gives the work to the stream of the running VM. ----
 */

static void RunTwice(const Work* work) {
  const float* x = work->from;
  float* y = work->to;
  for (uint64_t i = 0; i < work->bytes / sizeof(float); ++i) y[i] = 2 * x[i];
}

static int FailCall(const char* kind, const char* message) {
  __rewire_kernel_api->set_error(kind, message);
  return -1;
}

REWIRE_KERNEL_EXPORT int __tvm_ffi_example_worker_twice(void* handle, const RewireFFIAny* args,
                                                        int32_t num_args, RewireFFIAny* result) {
  (void)handle, (void)result;
  if (num_args != 2) return FailCall("TypeError", "expected x and out");
  DLTensor* tensors[2];
  int64_t sizes[2];
  for (int i = 0; i < 2; ++i) {
    DLTensor* tensor = tensors[i] = RewireTensorOf(&args[i]);
    if (tensor == NULL || tensor->device.device_type != kDLExtDev || tensor->dtype.code != kDLFloat ||
        tensor->dtype.bits != 32 || tensor->dtype.lanes != 1)
      return FailCall("TypeError", "x, out: expected f32 tensors on the worker");
    sizes[i] = 1;
    for (int k = tensor->ndim - 1; k >= 0; --k) {
      if (tensor->shape[k] != 1 && tensor->strides[k] != sizes[i])
        return FailCall("ValueError", "x, out: expected contiguous tensors");
      sizes[i] *= tensor->shape[k];
    }
  }
  if (sizes[0] != sizes[1]) return FailCall("ValueError", "x and out differ in size");
  const RewireDeviceApi* api = NULL;
  void* stream = NULL;
  if (__rewire_kernel_api->device(tensors[1]->device, &api, &stream) != 0) return -1;
  if (api != &kWorker) return FailCall("RuntimeError", "the device is not the one of this library");
  if (Give(StreamOf(stream), RunTwice, tensors[1]->data, tensors[0]->data,
           (uint64_t)sizes[0] * sizeof(float)) != REWIRE_DEVICE_OK)
    return FailCall("RuntimeError", words);
  return 0;
}
