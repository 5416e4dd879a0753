/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test of ONNX Runtime's C interface checks with these. Numbers, texts and successes may be checked by
 * any thread; what fails, and differences, are for the first one.
 */
#pragma once

#include "rewire/onnxruntime_api/api.h"
#include "rewire/tests/onnxruntime_api/onnx_bytes.h"

/* The library under test. */
extern const OrtApi* api;
extern OrtEnv* env;

typedef enum Difference {
#define DIFFERENCE(name, reason) kDifference_##name,
#define TEXT_DIFFERS(call, reason)
#include "rewire/tests/onnxruntime_api/differences.def"
#undef DIFFERENCE
#undef TEXT_DIFFERS
  kDifferences
} Difference;

/* After `api` is set. `transcript` is a file to write, or null: a line for each failure that is expected,
 * with its code, the call, and the text. */
void BeginChecks(const char* transcript);
/* Prints the counts; returns the exit status. */
int EndChecks(void);

/* Whether the library is Rewire's, so that the difference holds. */
int IsDifferent(Difference difference);
#define Differs(name) IsDifferent(kDifference_##name)
/* OURS chooses between what is expected of ONNX Runtime and of Rewire. */
#define OURS(name, theirs, ours) (Differs(name) ? (ours) : (theirs))

void CheckNumber(int line, const char* what, long long given, long long expected);
void CheckText(int line, const char* what, const char* given, const char* expected);
/* A status of success; releases it. */
int CheckOk(int line, const char* what, OrtStatus* status);
/* A failure with a code, and a text that has `part`; releases it. */
void CheckFails(int line, const char* what, OrtStatus* status, OrtErrorCode code, const char* part);
#define EQUAL(given, expected) CheckNumber(__LINE__, #given, (long long)(given), (long long)(expected))
#define TEXT(given, expected) CheckText(__LINE__, #given, given, expected)
#define OK(call) CheckOk(__LINE__, #call, call)
#define FAILS(call, code, part) CheckFails(__LINE__, #call, call, code, part)

OrtAllocator* Allocator(void);
/* A session of a model in memory, which is overwritten after the call; null if it fails. */
OrtSession* Open(const Bytes* model, const OrtSessionOptions* options);
/* A tensor over the caller's memory. */
OrtValue* Floats(float* data, size_t count, const int64_t* shape, size_t rank);
/* Custom operators of the library in this file. */
void TestCustomOps(const char* library);
void TestInitializers(void);

/* A model of one node: y = op(x), both of one type and shape. */
Bytes OneNode(const char* op, const char* domain, int type, const char* dims);

/* Tests in files of their own. */
void TestProfile(void);
void TestRunProfile(void);
void TestRefusedSlots(void);
void TestSessionOptions(void);
void TestSurface(void);
void TestOtherValues(void);
