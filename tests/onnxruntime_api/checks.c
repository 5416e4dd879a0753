/* SPDX-License-Identifier: Apache-2.0 */
#include "rewire/tests/onnxruntime_api/checks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const OrtApi* api;
OrtEnv* env;

static int is_rewire;
/* Threads make tensors, too, which is checked. */
static atomic_int checks;
static atomic_int failures;
static FILE* transcript;

static const char* const names[] = {
#define DIFFERENCE(name, reason) #name,
#define TEXT_DIFFERS(call, reason)
#include "rewire/tests/onnxruntime_api/differences.def"
#undef DIFFERENCE
#undef TEXT_DIFFERS
};
static int is_asked[kDifferences];

void BeginChecks(const char* file) {
  is_rewire = strstr(api->GetBuildInfoString(), "Rewire") != NULL;
  if (file == NULL) return;
  transcript = fopen(file, "w");
  if (transcript != NULL) return;
  perror(file);
  exit(2);
}

int EndChecks(void) {
  int i;
  for (i = 0; i < kDifferences; ++i) {
    ++checks;
    if (is_asked[i]) continue;
    ++failures;
    printf("differences.def: no check asks for %s\n", names[i]);
  }
  printf("%d checks, %d failed\n", (int)checks, (int)failures);
  if (transcript != NULL && fclose(transcript) != 0) return 2;
  return failures == 0 ? 0 : 1;
}

int IsDifferent(Difference difference) {
  is_asked[difference] = 1;
  return is_rewire;
}

static void Report(int line, const char* what, const char* given, const char* expected) {
  ++failures;
  printf("line %d: %s\n  given:    %s\n  expected: %s\n", line, what, given, expected);
}

void CheckNumber(int line, const char* what, long long given, long long expected) {
  char a[32];
  char b[32];
  ++checks;
  if (given == expected) return;
  snprintf(a, sizeof a, "%lld", given);
  snprintf(b, sizeof b, "%lld", expected);
  Report(line, what, a, b);
}

void CheckText(int line, const char* what, const char* given, const char* expected) {
  ++checks;
  if (given == NULL || strcmp(given, expected) != 0)
    Report(line, what, given == NULL ? "null" : given, expected);
}

int CheckOk(int line, const char* what, OrtStatus* status) {
  ++checks;
  if (status == NULL) return 1;
  Report(line, what, api->GetErrorMessage(status), "no error");
  api->ReleaseStatus(status);
  return 0;
}

/* One line of a transcript: a text with its line ends and tabs escaped. */
static void WriteEscaped(const char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '\n' || *text == '\t') {
      fputs(*text == '\n' ? "\\n" : "\\t", transcript);
    } else {
      fputc(*text, transcript);
    }
  }
}

void CheckFails(int line, const char* what, OrtStatus* status, OrtErrorCode code, const char* part) {
  ++checks;
  if (status == NULL) {
    Report(line, what, "no error", part);
    return;
  }
  if (transcript != NULL) {
    fprintf(transcript, "%d\t%s\t", (int)api->GetErrorCode(status), what);
    WriteEscaped(api->GetErrorMessage(status));
    fputc('\n', transcript);
  }
  if (api->GetErrorCode(status) != code || strstr(api->GetErrorMessage(status), part) == NULL) {
    char given[2048];
    char expected[2048];
    snprintf(given, sizeof given, "%d %s", (int)api->GetErrorCode(status), api->GetErrorMessage(status));
    snprintf(expected, sizeof expected, "%d ...%s...", (int)code, part);
    Report(line, what, given, expected);
  }
  api->ReleaseStatus(status);
}

OrtAllocator* Allocator(void) {
  OrtAllocator* allocator = NULL;
  OK(api->GetAllocatorWithDefaultOptions(&allocator));
  return allocator;
}

OrtSession* Open(const Bytes* model, const OrtSessionOptions* options) {
  OrtSession* session = NULL;
  Bytes copy = *model;
  if (!OK(api->CreateSessionFromArray(env, copy.data, copy.size, options, &session))) return NULL;
  memset(copy.data, 0xA5, copy.size);
  return session;
}

OrtValue* Floats(float* data, size_t count, const int64_t* shape, size_t rank) {
  OrtMemoryInfo* memory = NULL;
  OrtValue* value = NULL;
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, data, count * sizeof *data, shape, rank,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  api->ReleaseMemoryInfo(memory);
  return value;
}

Bytes OneNode(const char* op, const char* domain, int type, const char* dims) {
  Bytes graph = {{0}, 0};
  Bytes part = Node(op, domain, "x", "y");
  PutBytes(&graph, GRAPH_NODE, &part);
  PutText(&graph, GRAPH_NAME, "one");
  PutTensor(&graph, GRAPH_INPUT, "x", type, dims);
  PutTensor(&graph, GRAPH_OUTPUT, "y", type, dims);
  return Model(&graph, 17);
}
