/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of the library of custom operators share this. */
#pragma once

#include "rewire/onnxruntime_api/api.h"

/* Null until the library is registered. */
extern const OrtApi* api;

/* Releases a status; whether it was one of success. */
int IsOk(OrtStatus* status);
size_t CountOf(const OrtValue* value);
void* DataOf(const OrtValue* value);

/* Two operators on strings. `like` is one of one input and two outputs, the second of which is optional. */
void DescribeStringOps(const OrtCustomOp* like, OrtCustomOp* longer, OrtCustomOp* joined);
