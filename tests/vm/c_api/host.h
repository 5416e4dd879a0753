/* SPDX-License-Identifier: Apache-2.0 */
/* A host in C: runs whole scenarios through the C API as a C compiler sees it. */
#ifndef REWIRE_TESTS_VM_C_API_HOST_H_
#define REWIRE_TESTS_VM_C_API_HOST_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each takes the bytes of an executable (model.h), and returns how many checks failed; each failure is
 * printed to stderr. */
int RunCHostInference(const void* data, size_t size);
int RunCHostServices(const void* data, size_t size);
int RunCHostTrees(const void* data, size_t size);
int RunCHostOutputs(const void* data, size_t size);
int RunCHostOwnedOutputs(const void* data, size_t size);
int RunCHostInputReports(const void* data, size_t size);
/* `path` names a parameter file with w = {30, 40} and one that the model does not have. */
int RunCHostParameters(const void* data, size_t size, const char* path);

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_TESTS_VM_C_API_HOST_H_ */
