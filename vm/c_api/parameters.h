/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter sets: named weights, to be bound when programs are linked. A set refers to its tensors and copies
 * none; files are mapped. Any number of threads may read one set at once; only add changes one. The rules in
 * status.h hold. */
#ifndef REWIRE_VM_C_API_PARAMETERS_H_
#define REWIRE_VM_C_API_PARAMETERS_H_

#include "vm/c_api/executable.h"
#include "vm/c_api/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireParameterSet RewireParameterSet;

/* A decoder of the host's for constants that are stored with its codec. */
typedef struct RewireCodec {
  uint32_t struct_size;
  uint32_t id; /* from 256; one id means one codec in a process */
  void* context;
  /* Fills all of `raw` from `stored`, which may be damaged or hostile, and returns 0; anything else: damaged.
   * May be called from several threads at once. */
  int (*decode)(void* context, const void* stored, size_t stored_bytes, void* raw, size_t raw_bytes);
} RewireCodec;

/* An empty set. */
REWIRE_API RewireStatus rewire_parameter_set_make(RewireParameterSet** out);
/* In librewire_prepare. The tensors of a file, which its content tells the kind of: .safetensors, an
 * executable's data constants, or what TVM's save_param_dict wrote. `options` may be NULL; `codecs` points at
 * `count` decoders besides zstd. kRewireNotFound, kRewireIo, kRewireInvalidFile, kRewireUnsupported. */
REWIRE_API RewireStatus rewire_parameter_set_open(const char* path, const RewireOpenOptions* options,
                                                  const RewireCodec* const* codecs, uint32_t count,
                                                  RewireParameterSet** out);
REWIRE_API void rewire_parameter_set_destroy(RewireParameterSet* set);

/* Adds a tensor, which is shared, or puts it in the place of one of that name. */
REWIRE_API RewireStatus rewire_parameter_set_add(RewireParameterSet* set, const char* name,
                                                 const RewireValue* tensor);
REWIRE_API RewireStatus rewire_parameter_set_count(const RewireParameterSet* set, uint32_t* count);
/* In the order of the names, byte by byte; valid until the set changes. */
REWIRE_API RewireStatus rewire_parameter_set_name(const RewireParameterSet* set, uint32_t index,
                                                  const char** name);
/* A handle of the tensor; a compressed one is decompressed if nobody in the process holds it.
 * kRewireNotFound, with near names. */
REWIRE_API RewireStatus rewire_parameter_set_get(const RewireParameterSet* set, const char* name,
                                                 RewireValue** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_PARAMETERS_H_ */
