/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/kernel/device_api.h>. */
/* RewireDeviceApi: a kind of device as a struct of functions, so that a library can add one. Plain C. The
 * host device is built in. docs/devices-inside.md shows how to write one.
 *
 * Calls: any thread may call any function at any time, unless the function says otherwise. `context` is the
 * struct's own member. Every function that returns int returns one of the codes below. After any code but
 * REWIRE_DEVICE_OK, `error` gives the words for it on the same thread: the driver's name for the error and
 * the driver's text. Members that are marked optional may be NULL.
 *
 * Addresses: memory of a device is named by a 64-bit address in a `void*`. The host does not read through it,
 * unless the device is host-addressable. Adding a number of bytes to an address gives the address of that
 * byte. So part of a block needs no call. Two live blocks never overlap. A driver whose memory objects are
 * handles (OpenCL) makes up such addresses.
 *
 * Streams: work that is given to one stream is done in the order in which it was given. Streams do not wait
 * for each other, except through events. A NULL stream is the device's default one. A function that takes a
 * stream gives it work and returns at once. The host then keeps all memory that the work uses until the work
 * is done. */
#ifndef REWIRE_VM_KERNEL_DEVICE_API_H_
#define REWIRE_VM_KERNEL_DEVICE_API_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes that functions return. After REWIRE_DEVICE_LOST, every later call on the device returns the same
 * code, and no call waits. */
#define REWIRE_DEVICE_OK 0
#define REWIRE_DEVICE_FAILED 1
#define REWIRE_DEVICE_NO_MEMORY 2
#define REWIRE_DEVICE_LOST 3
#define REWIRE_DEVICE_UNSUPPORTED 4

/* RewireDeviceApi::flags */
/* Host code may read and write the memory through its addresses. */
#define REWIRE_DEVICE_HOST_ADDRESSABLE 0x1u
/* In DLPack tensors of this device, `data` is a handle of the driver's (a cl_mem) and not an address. */
#define REWIRE_DEVICE_HANDLES 0x2u

/* Forms of device code. */
typedef enum RewireDeviceCode {
  REWIRE_DEVICE_CODE_OPENCL_C = 1, /* source text */
  REWIRE_DEVICE_CODE_SPIRV = 2,
  REWIRE_DEVICE_CODE_CUDA_CPP = 3, /* source text */
  REWIRE_DEVICE_CODE_PTX = 4,      /* text, ends with a zero byte */
  REWIRE_DEVICE_CODE_CUBIN = 5,
  REWIRE_DEVICE_CODE_FATBIN = 6
} RewireDeviceCode;

/* The properties of one device. Texts belong to the struct of functions and live as long as it. Numbers that
 * the driver does not know are 0. */
typedef struct RewireDeviceProperties {
  uint32_t struct_size;     /* set by the caller; members beyond it are not written */
  uint32_t compute_units;   /* multiprocessors */
  const char* name;         /* "pthread-AMD EPYC", "NVIDIA H100 80GB HBM3" */
  const char* driver;       /* platform or driver with its version */
  const char* architecture; /* what device code is chosen by: "sm_90", "opencl-3.0" */
  uint64_t memory_bytes;    /* in all */
  uint64_t largest_block;   /* bytes that one allocation may have */
  uint64_t shared_bytes;    /* memory that one group of threads shares */
  uint32_t group_threads;   /* the most threads in a group (block, work-group) */
  uint32_t group_sizes[3];  /* the most threads in each dimension of a group */
  uint32_t alignment;       /* bytes that every block is aligned to */
  uint32_t part_alignment;  /* bytes that a part of a block must be aligned to, to be a kernel's argument */
  uint32_t warp_threads;    /* threads that run in step; 1 where there is no such thing */
  uint32_t code_forms;      /* bit k: modules of the RewireDeviceCode k can be loaded */
  int32_t has_f16;          /* kernels may compute in float16 */
  int32_t has_f64;
  int32_t records; /* begin_recording works */
} RewireDeviceProperties;

/* RewireLaunchArgument::kind */
#define REWIRE_LAUNCH_ADDRESS 0u /* `address` is an address of this device; NULL is allowed */
#define REWIRE_LAUNCH_VALUE 1u   /* `bytes` bytes at `value`, copied by the call */
#define REWIRE_LAUNCH_SHARED 2u  /* OpenCL alone: `bytes` bytes of local memory */

typedef struct RewireLaunchArgument {
  uint32_t kind;
  uint32_t bytes; /* of an address: how many the kernel uses from there on; 0 if that is not known */
  union {
    void* address;
    const void* value;
  } u;
} RewireLaunchArgument;

typedef struct RewireLaunch {
  void* kernel;
  uint32_t groups[3];        /* number of groups in each dimension, at least 1 */
  uint32_t group_threads[3]; /* threads of a group in each dimension, at least 1 */
  uint32_t shared_bytes;     /* dynamic shared memory of a group (CUDA) */
  uint32_t argument_count;
  const RewireLaunchArgument* arguments;
} RewireLaunch;

/* The struct must outlive every Program that is linked with it, and all results of these Programs. */
typedef struct RewireDeviceApi {
  uint32_t struct_size; /* sizeof(RewireDeviceApi) in the code that filled it in */
  int32_t device_type;  /* DLDeviceType */
  const char* name;     /* "cuda" */
  void* context;        /* first argument of every function */
  uint32_t flags;       /* set of REWIRE_DEVICE_* flags */

  /* Returns the words for the last failure on this thread. They stay valid until the thread's next call. */
  const char* (*error)(void* context);

  /* Enumeration. Devices are numbered from 0. `count` is optional: without it there is one device. So is
   * `properties`. */
  int (*count)(void* context, int32_t* devices);
  int (*properties)(void* context, int32_t device_id, RewireDeviceProperties* properties);

  /* Memory. `allocate` gives `bytes` bytes at a multiple of `alignment`, for work that is given to `stream`
   * afterwards. `scope` is the memory scope in the executable's device table ("" for the usual memory).
   * `deallocate` frees a block after the work that `stream` has so far. The code for a full device is
   * REWIRE_DEVICE_NO_MEMORY. */
  int (*allocate)(void* context, DLDevice device, uint64_t bytes, uint64_t alignment, const char* scope,
                  void* stream, void** block);
  int (*deallocate)(void* context, DLDevice device, void* block, void* stream);
  /* Optional, both or none. Memory of the host that the device copies from and to without a detour (pinned
   * memory), at a multiple of 64. Where there is such memory, copies to the host go there: a copy to other
   * memory may make the host wait. The block is freed when no work uses it. */
  int (*allocate_host)(void* context, DLDevice device, uint64_t bytes, void** block);
  int (*deallocate_host)(void* context, DLDevice device, void* block);
  /* Optional. Bytes that are free, and bytes in all. */
  int (*memory)(void* context, DLDevice device, uint64_t* free_bytes, uint64_t* all_bytes);
  /* Required with REWIRE_DEVICE_HANDLES. `import_handle` gives the address of the driver's memory object
   * and holds the object until `release_handle`. It may be given an address too, which it returns as it is.
   * `bytes` is the least size that the object must have. `find_handle` gives the object that an address lies
   * in, and the distance from its beginning. */
  int (*import_handle)(void* context, DLDevice device, void* handle, uint64_t bytes, void** address);
  int (*release_handle)(void* context, DLDevice device, void* address);
  int (*find_handle)(void* context, DLDevice device, const void* address, void** handle, uint64_t* offset);

  /* Copies within a device, between two devices of this kind, or between a device and the host. The host's
   * memory may be of any kind. `stream` belongs to the device; between two devices, to the first one given
   * (`to_device`). */
  int (*copy)(void* context, void* to, DLDevice to_device, const void* from, DLDevice from_device,
              uint64_t bytes, void* stream);
  /* Optional. Fills memory with a pattern of 1, 2 or 4 bytes. `bytes` is a multiple of that. */
  int (*fill)(void* context, DLDevice device, void* to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, void* stream);

  /* Streams. `make_stream` and `destroy_stream` are optional: without them there is the default stream only.
   * Nobody uses a stream while it is being destroyed; its work is done first. */
  int (*make_stream)(void* context, DLDevice device, void** stream);
  int (*destroy_stream)(void* context, DLDevice device, void* stream);
  /* Waits until all work that was given to the stream is done. A failure of that work is told here, if not
   * before. */
  int (*synchronize)(void* context, DLDevice device, void* stream);

  /* Events, optional as a group. `record_event` sets a point in a stream. `wait_event` lets later work of
   * another stream, also of another device of this kind, wait for the point. `query_event` sets *done to 1
   * if the point has been reached. `synchronize_event` waits for it on the host. */
  int (*make_event)(void* context, DLDevice device, void** event);
  int (*destroy_event)(void* context, DLDevice device, void* event);
  int (*record_event)(void* context, DLDevice device, void* event, void* stream);
  int (*wait_event)(void* context, DLDevice device, void* stream, void* event);
  int (*query_event)(void* context, DLDevice device, void* event, int32_t* done);
  int (*synchronize_event)(void* context, DLDevice device, void* event);
  /* Optional. Calls `function(data)` on a thread of the driver's, after the stream's earlier work. It must
   * call no function of this struct. */
  int (*call_host)(void* context, DLDevice device, void* stream, void (*function)(void* data), void* data);

  /* Modules and kernels, optional as a group. `form` is a RewireDeviceCode. `options` are for the compiler of
   * source text. `cache` is a folder in which compiled code may be kept, or NULL. A kernel lives as long as
   * its module. Several threads may launch one kernel at once. */
  int (*load_module)(void* context, DLDevice device, uint32_t form, const void* code, uint64_t bytes,
                     const char* options, const char* cache, void** module);
  int (*unload_module)(void* context, DLDevice device, void* module);
  int (*find_kernel)(void* context, DLDevice device, void* module, const char* name, void** kernel);
  int (*launch)(void* context, DLDevice device, const RewireLaunch* launch, void* stream);

  /* Recording, optional as a group. What is given to the stream between the two calls is recorded and not
   * done. Each replay does all of it, with the same addresses and values. */
  int (*begin_recording)(void* context, DLDevice device, void* stream);
  int (*end_recording)(void* context, DLDevice device, void* stream, void** recording);
  int (*replay)(void* context, DLDevice device, void* recording, void* stream);
  int (*destroy_recording)(void* context, DLDevice device, void* recording);

  /* Optional; older structs end before it. Sets *pinned to 1 if the device copies from and to this memory of
   * the host without a detour, whoever has allocated it, and to 0 if not. */
  int (*is_pinned)(void* context, DLDevice device, const void* memory, uint64_t bytes, int32_t* pinned);
} RewireDeviceApi;

/* A device library exports this function under the name `rewire_device_open`. It opens the driver and sets
 * *api. If that is impossible, it returns another code than REWIRE_DEVICE_OK. *reason is then set to words
 * that name the driver's library and what is missing. They live as long as the library is loaded. It may be
 * called several times and gives the same struct each time. `version` is REWIRE_DEVICE_API_VERSION of the
 * caller. */
#define REWIRE_DEVICE_API_VERSION 1u
typedef int (*RewireDeviceOpen)(uint32_t version, const RewireDeviceApi** api, const char** reason);

#ifdef __cplusplus
}

namespace rewire {
using DeviceApi = ::RewireDeviceApi;
}  // namespace rewire
#endif

#endif /* REWIRE_VM_KERNEL_DEVICE_API_H_ */
