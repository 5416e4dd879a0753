/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a run in a Loop goes on after it is told to end, on a library with ONNX Runtime's C
 * interface:
 *
 *   bench-onnxruntime-terminate LIBRARY RUNS
 *
 * Prints one line of JSON: the median and the largest of the milliseconds from the call of
 * RunOptionsSetTerminate to the end of Run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/tests/onnxruntime_api/onnx_bytes.h"

enum { kMostRuns = 1000, kMicrosecondsBefore = 20000 };

static const OrtApi* api;

static void Check(OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "bench-onnxruntime-terminate: %s\n", api->GetErrorMessage(status));
  exit(1);
}

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

typedef struct Ending {
  OrtRunOptions* options;
  double told; /* when */
} Ending;

static void* Terminate(void* argument) {
  Ending* ending = argument;
  usleep(kMicrosecondsBefore);
  ending->told = Now();
  return api->RunOptionsSetTerminate(ending->options);
}

static int Ascending(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  static double taken[kMostRuns];
  const int runs = argc > 2 ? atoi(argv[2]) : 0;
  const Bytes model = LoopModel();
  int64_t turns = (int64_t)1 << 40;
  float x[4] = {1, 2, 3, 4};
  const int64_t shape[1] = {4};
  const char* const in[2] = {"n", "x"};
  const char* const out[1] = {"y"};
  const OrtApiBase* (*get_base)(void);
  OrtEnv* env = NULL;
  OrtSession* session = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue *n = NULL, *given = NULL;
  const OrtValue* inputs[2];
  void* library;
  int run;
  if (runs < 1 || runs > kMostRuns) {
    fprintf(stderr, "usage: bench-onnxruntime-terminate LIBRARY RUNS\n");
    return 2;
  }
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "bench-onnxruntime-terminate: %s\n", dlerror());
    return 1;
  }
  *(void**)&get_base = dlsym(library, "OrtGetApiBase");
  api = get_base()->GetApi(20);
  Check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "bench", &env));
  Check(api->CreateSessionFromArray(env, model.data, model.size, NULL, &session));
  Check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  Check(api->CreateTensorWithDataAsOrtValue(memory, &turns, sizeof turns, NULL, 0,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &n));
  Check(api->CreateTensorWithDataAsOrtValue(memory, x, sizeof x, shape, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &given));
  inputs[0] = n;
  inputs[1] = given;
  for (run = 0; run < runs; ++run) {
    Ending ending = {NULL, 0};
    OrtValue* output = NULL;
    OrtStatus* ended;
    void* told = NULL;
    pthread_t thread;
    Check(api->CreateRunOptions(&ending.options));
    if (pthread_create(&thread, NULL, Terminate, &ending) != 0) return 1;
    ended = api->Run(session, ending.options, in, inputs, 2, out, 1, &output);
    taken[run] = Now();
    pthread_join(thread, &told);
    taken[run] -= ending.told;
    Check(told);
    if (ended == NULL) {
      fprintf(stderr, "bench-onnxruntime-terminate: the run was not ended\n");
      return 1;
    }
    api->ReleaseStatus(ended);
    api->ReleaseRunOptions(ending.options);
  }
  qsort(taken, (size_t)runs, sizeof *taken, Ascending);
  printf("{\"median\": %.3f, \"largest\": %.3f}\n", taken[runs / 2], taken[runs - 1]);
  api->ReleaseValue(n);
  api->ReleaseValue(given);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseSession(session);
  api->ReleaseEnv(env);
  return 0;
}
