/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures sessions of one model on a library with ONNX Runtime's C interface: how long each takes to open,
 * what memory they take, and how long a run takes.
 *
 *   bench-onnxruntime-api LIBRARY MODEL SESSIONS RUNS THREADS [hold] [INPUT=1x3x48x320 | INPUT@VALUE]...
 *
 * With "hold" it prints "ready" when its sessions have run, and waits for a line before it measures
 * `private`, and for another one before it ends. So several processes can be measured while all of them live.
 *
 * Dimensions that neither the model nor an argument fixes are 1, and so are integers without a value. Prints
 * one line of JSON. Times are milliseconds, memory is MB beyond what the process took before it loaded the
 * library: `resident` with mapped pages of files, `dirty` what is private and written, `private` what no
 * other process shares.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rewire/onnxruntime_api/api.h"

enum { kMostPorts = 64, kMostRank = 16, kMostSessions = 64, kMostRuns = 10000 };

static const OrtApi* api;

static void Check(OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "bench-onnxruntime-api: %s\n", api->GetErrorMessage(status));
  exit(1);
}

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

typedef struct Memory {
  double resident, dirty, private; /* MB */
} Memory;

static Memory MemoryNow(void) {
  Memory memory = {0, 0, 0};
  char line[256];
  long kilobytes = 0;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) {
    perror("smaps_rollup");
    exit(1);
  }
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Rss: %ld kB", &kilobytes) == 1) memory.resident = (double)kilobytes / 1e3;
    if (sscanf(line, "Private_Dirty: %ld kB", &kilobytes) == 1) memory.dirty = (double)kilobytes / 1e3;
    if (sscanf(line, "Private_Clean: %ld kB", &kilobytes) == 1) memory.private = (double)kilobytes / 1e3;
  }
  memory.private += memory.dirty;
  fclose(file);
  return memory;
}

static int Ascending(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

/* The sizes that an argument "NAME=1x3" gives to an input; 0 if none does. */
static size_t SizesOf(const char* name, int count, char** arguments, int64_t* sizes) {
  int i;
  for (i = 0; i < count; ++i) {
    const size_t length = strlen(name);
    size_t rank = 0;
    char* at = arguments[i] + length;
    if (strncmp(arguments[i], name, length) != 0 || *at != '=') continue;
    while (*at != '\0' && rank < kMostRank) sizes[rank++] = strtoll(at + 1, &at, 10);
    return rank;
  }
  return 0;
}

/* The value that an argument "NAME@16000" gives to the integers of an input; 1 if none does. */
static int64_t ValueOf(const char* name, int count, char** arguments) {
  const size_t length = strlen(name);
  int i;
  for (i = 0; i < count; ++i) {
    if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '@')
      return strtoll(arguments[i] + length + 1, NULL, 10);
  }
  return 1;
}

static OrtValue* Input(OrtSession* session, size_t index, const char* name, int count, char** arguments) {
  OrtAllocator* allocator = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  int64_t sizes[kMostRank], elements = 1;
  size_t rank = 0, given, i;
  OrtValue* value = NULL;
  void* data = NULL;
  Check(api->GetAllocatorWithDefaultOptions(&allocator));
  Check(api->SessionGetInputTypeInfo(session, index, &type));
  Check(api->CastTypeInfoToTensorInfo(type, &info));
  Check(api->GetTensorElementType(info, &element));
  Check(api->GetDimensionsCount(info, &rank));
  if (rank > kMostRank) exit(1);
  Check(api->GetDimensions(info, sizes, rank));
  given = SizesOf(name, count, arguments, sizes);
  if (given != 0) rank = given;
  for (i = 0; i < rank; ++i) {
    if (sizes[i] < 0) sizes[i] = 1;
    elements *= sizes[i];
  }
  api->ReleaseTypeInfo(type);
  Check(api->CreateTensorAsOrtValue(allocator, sizes, rank, element, &value));
  Check(api->GetTensorMutableData(value, &data));
  if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    for (i = 0; i < (size_t)elements; ++i) ((float*)data)[i] = (float)(i % 17) / 17.0F;
  } else if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) {
    for (i = 0; i < (size_t)elements; ++i) ((int64_t*)data)[i] = ValueOf(name, count, arguments);
  } else if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32) {
    for (i = 0; i < (size_t)elements; ++i) ((int32_t*)data)[i] = (int32_t)ValueOf(name, count, arguments);
  } else {
    fprintf(stderr, "bench-onnxruntime-api: input '%s' has elements of type %d\n", name, (int)element);
    exit(1);
  }
  return value;
}

/* Prints the text, and waits for a line of the input or its end. */
static void WaitForALine(const char* text) {
  int read;
  fputs(text, stdout);
  fflush(stdout);
  do {
    read = getchar();
  } while (read != '\n' && read != EOF);
}

int main(int argc, char** argv) {
  static OrtSession* sessions[kMostSessions];
  static double opened[kMostSessions], taken[kMostRuns];
  static OrtValue *inputs[kMostPorts], *outputs[kMostPorts];
  static char *input_names[kMostPorts], *output_names[kMostPorts];
  const int session_count = argc > 5 ? atoi(argv[3]) : 0, run_count = argc > 5 ? atoi(argv[4]) : 0;
  const int hold = argc > 6 && strcmp(argv[6], "hold") == 0;
  Memory before, one = {0, 0, 0}, two = {0, 0, 0}, all;
  const OrtApiBase* (*get_base)(void);
  OrtSessionOptions* options = NULL;
  OrtAllocator* allocator = NULL;
  OrtEnv* env = NULL;
  void* library;
  size_t input_count = 0, output_count = 0, i;
  int session, run;
  if (session_count < 2 || session_count > kMostSessions || run_count < 1 || run_count > kMostRuns) {
    fprintf(stderr,
            "usage: bench-onnxruntime-api LIBRARY MODEL SESSIONS RUNS THREADS [hold] [INPUT=SIZES | "
            "INPUT@VALUE]...\n");
    return 2;
  }
  before = MemoryNow();
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "bench-onnxruntime-api: %s\n", dlerror());
    return 1;
  }
  *(void**)&get_base = dlsym(library, "OrtGetApiBase");
  api = get_base()->GetApi(20);
  Check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
  Check(api->CreateSessionOptions(&options));
  Check(api->SetIntraOpNumThreads(options, atoi(argv[5])));
  Check(api->GetAllocatorWithDefaultOptions(&allocator));
  for (session = 0; session < session_count; ++session) {
    const double begin = Now();
    Check(api->CreateSession(env, argv[2], options, &sessions[session]));
    opened[session] = Now() - begin;
    if (session == 0) {
      Check(api->SessionGetInputCount(sessions[0], &input_count));
      Check(api->SessionGetOutputCount(sessions[0], &output_count));
      if (input_count > kMostPorts || output_count > kMostPorts) return 1;
      for (i = 0; i < input_count; ++i) {
        Check(api->SessionGetInputName(sessions[0], i, allocator, &input_names[i]));
        inputs[i] = Input(sessions[0], i, input_names[i], argc - 6, argv + 6);
      }
      for (i = 0; i < output_count; ++i)
        Check(api->SessionGetOutputName(sessions[0], i, allocator, &output_names[i]));
    }
    Check(api->Run(sessions[session], NULL, (const char* const*)input_names, (const OrtValue* const*)inputs,
                   input_count, (const char* const*)output_names, output_count, outputs));
    for (i = 0; i < output_count; ++i) {
      api->ReleaseValue(outputs[i]);
      outputs[i] = NULL;
    }
    if (session == 0) one = MemoryNow();
    if (session == 1) two = MemoryNow();
  }
  all = MemoryNow();
  for (run = 0; run < run_count; ++run) {
    const double begin = Now();
    Check(api->Run(sessions[0], NULL, (const char* const*)input_names, (const OrtValue* const*)inputs,
                   input_count, (const char* const*)output_names, output_count, outputs));
    taken[run] = Now() - begin;
    for (i = 0; i < output_count; ++i) {
      api->ReleaseValue(outputs[i]);
      outputs[i] = NULL;
    }
  }
  qsort(taken, (size_t)run_count, sizeof *taken, Ascending);
  if (hold) WaitForALine("ready\n");
  printf(
      "{\"first\": %.3f, \"second\": %.3f, \"run\": %.5f, \"one_resident\": %.2f, \"one_dirty\": %.2f, "
      "\"two_dirty\": %.2f, \"all_resident\": %.2f, \"all_dirty\": %.2f, \"private\": %.2f}\n",
      opened[0], opened[1], taken[run_count / 2], one.resident - before.resident, one.dirty - before.dirty,
      two.dirty - before.dirty, all.resident - before.resident, all.dirty - before.dirty,
      MemoryNow().private - before.private);
  if (hold) WaitForALine("");
  for (session = 0; session < session_count; ++session) api->ReleaseSession(sessions[session]);
  return 0;
}
