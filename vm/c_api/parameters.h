/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/vm/c_api/parameters.h>. */
/* Parameter sets: named weights that are bound when programs are linked. A set refers to its tensors and does
 * not copy them; files are mapped. Several threads may read one set at once. Only `add` changes a set. The
 * rules in status.h hold. */
#ifndef REWIRE_VM_C_API_PARAMETERS_H_
#define REWIRE_VM_C_API_PARAMETERS_H_

#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RewireParameterSet RewireParameterSet;

/* A decoder of the host for constants that are stored with its codec. */
typedef struct RewireCodec {
  uint32_t struct_size;
  uint32_t id; /* at least 256; one id means one codec in a process */
  void* context;
  /* Fills all of `raw` from `stored` and returns 0. The stored bytes may be damaged or hostile; any other
   * return value means that they are damaged. Several threads may call it at once. */
  int (*decode)(void* context, const void* stored, size_t stored_bytes, void* raw, size_t raw_bytes);
} RewireCodec;

/* Makes an empty set. */
REWIRE_API RewireStatus rewire_parameter_set_make(RewireParameterSet** out);
/* Opens the tensors of a file. In librewire_prepare. The content decides the kind: .safetensors, an
 * executable (its data constants), or a file of TVM's save_param_dict. `options` may be NULL. `codecs` are
 * `count` decoders in addition to zstd. Errors: kRewireNotFound, kRewireIo, kRewireInvalidFile,
 * kRewireUnsupported. */
REWIRE_API RewireStatus rewire_parameter_set_open(const char* path, const RewireOpenOptions* options,
                                                  const RewireCodec* const* codecs, uint32_t count,
                                                  RewireParameterSet** out);
REWIRE_API void rewire_parameter_set_destroy(RewireParameterSet* set);

/* Adds a tensor, which is shared, or replaces the tensor of that name. */
REWIRE_API RewireStatus rewire_parameter_set_add(RewireParameterSet* set, const char* name,
                                                 const RewireValue* tensor);
REWIRE_API RewireStatus rewire_parameter_set_count(const RewireParameterSet* set, uint32_t* count);
/* Entries are ordered by name, compared byte by byte. An index is valid until the set changes. */
REWIRE_API RewireStatus rewire_parameter_set_name(const RewireParameterSet* set, uint32_t index,
                                                  const char** name);
/* Returns a handle of the tensor. A compressed tensor is decompressed, unless somebody in the process already
 * holds the decompressed one. Errors: kRewireNotFound, with similar names. */
REWIRE_API RewireStatus rewire_parameter_set_get(const RewireParameterSet* set, const char* name,
                                                 RewireValue** out);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_VM_C_API_PARAMETERS_H_ */
