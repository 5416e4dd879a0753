/* SPDX-License-Identifier: Apache-2.0 */
/* The scenarios in C share checks that count, the kernels of the model, small tensors. */
#ifndef REWIRE_TESTS_VM_C_API_HOST_SUPPORT_H_
#define REWIRE_TESTS_VM_C_API_HOST_SUPPORT_H_

#include "rewire/vm/c_api.h"

/* Counts and prints a failure; gives `ok` back. */
int Check(int ok, const char* what, int line);
#define CHECK(condition) Check((condition), #condition, __LINE__)
#define CHECK_OK(call) Check((call) == kRewireOk, #call, __LINE__)

/* Sets the counts of failures and of host.add's calls to zero. */
void StartChecks(void);
int FailedChecks(void);
int AddCalls(void);

/* Two floats. */
extern int64_t two[1];
DLTensor Vector(float* data, int64_t* shape);

/* Two floats that are handed over; the deleter counts. */
DLManagedTensor* MakeOwned(float a, float b, int* deleted);
/* The element that lay in the last one when its deleter ran. */
const float* LastDeleted(void);

/* The model's kernels, and (10, 20) as its parameter w. The caller's to destroy. */
RewireLinkOptions* Options(void);
/* The model opened from memory, linked with these options, and a VM over it. The caller's to destroy. */
void OpenHost(const void* data, size_t size, RewireExecutable** executable, RewireProgram** program,
              RewireVm** vm);

#endif /* REWIRE_TESTS_VM_C_API_HOST_SUPPORT_H_ */
