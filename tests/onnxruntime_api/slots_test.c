/* SPDX-License-Identifier: Apache-2.0 */
/* Each function that the table, or the table for compiling, refuses names itself. */
#include <stdio.h>
#include <string.h>

#include "rewire/tests/onnxruntime_api/checks.h"

typedef OrtStatus* (*Refused)(void);

static void CheckRefused(const char* name, Refused call) {
  OrtStatus* status = call();
  const int refuses = status != NULL && api->GetErrorCode(status) == ORT_NOT_IMPLEMENTED;
  CheckText(__LINE__, name, refuses && strstr(api->GetErrorMessage(status), name) != NULL ? name : NULL,
            name);
  api->ReleaseStatus(status);
}

static void CheckCompileTable(void) {
  const OrtCompileApi* compile = api->GetCompileApi();
#define REFUSED(name) CheckRefused(#name, compile->name)
  REFUSED(ModelCompilationOptions_SetOutputModelExternalInitializersFile);
  REFUSED(ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc);
  REFUSED(ModelCompilationOptions_SetInputModel);
  REFUSED(ModelCompilationOptions_SetWeightlessEnabled);
  REFUSED(ModelCompilationOptions_SetEpContextDataWriteFunc);
  REFUSED(ModelCompilationOptions_SetOutputModelExternalInitializersBuffer);
  REFUSED(ModelCompilationOptions_SetOutputModelExternalInitializersAlignment);
  REFUSED(ModelCompilationOptions_SetWeightlessMode);
#undef REFUSED
}

void TestRefusedSlots(void) {
  if (!Differs(functions_are_refused)) return;
#define SERVED(result, name, parameters)
#define REFUSED(name) CheckRefused(#name, api->name);
#define ABSENT(name) EQUAL(api->name() == NULL, 1);
#define EMPTY(name)
#include "rewire/onnxruntime_api/slots.def"
#undef SERVED
#undef REFUSED
#undef ABSENT
#undef EMPTY
  CheckCompileTable();
}
