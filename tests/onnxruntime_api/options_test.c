/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators that sessions share, loggers of sessions, and limits that config entries set. */
#include <stdlib.h>
#include <string.h>

#include "rewire/tests/onnxruntime_api/checks.h"

/* The size of a result that is large enough for blocks that are kept. */
enum { kElements = 65536 };
static float* Data(OrtValue* value) {
  void* data = NULL;
  OK(api->GetTensorMutableData(value, &data));
  return (float*)data;
}

/* Runs the model, and returns the status. The output is null if it fails. */
static OrtStatus* RunAbs(OrtSession* session, float* data, OrtValue** output) {
  const int64_t shape[] = {kElements};
  const char* in[] = {"x"};
  const char* out[] = {"y"};
  OrtValue* x = Floats(data, kElements, shape, 1);
  const OrtValue* inputs[1];
  OrtStatus* status;
  inputs[0] = x;
  *output = NULL;
  status = api->Run(session, NULL, in, inputs, 1, out, 1, output);
  api->ReleaseValue(x);
  return status;
}

/* Each run's result is right, also where its memory was an earlier result's. */
static void CheckRuns(OrtSession* session) {
  static float data[kElements];
  OrtValue* kept = NULL;
  OrtValue* output = NULL;
  int run;
  for (run = 1; run <= 3; ++run) {
    data[0] = (float)-run;
    data[kElements - 1] = (float)-2 * (float)run;
    if (!OK(RunAbs(session, data, &output))) return;
    EQUAL(Data(output)[0], run);
    EQUAL(Data(output)[kElements - 1], 2 * run);
    if (run == 2) {
      kept = output;
    } else {
      api->ReleaseValue(output);
    }
  }
  EQUAL(Data(kept)[0], 2);
  api->ReleaseValue(kept);
}

static const OrtMemoryInfo* host_memory;
static int allocated, freed;
static void* Allocate(OrtAllocator* self, size_t size) {
  (void)self;
  ++allocated;
  return size == 0 ? NULL : malloc(size);
}
static void FreeMemory(OrtAllocator* self, void* memory) {
  (void)self;
  if (memory != NULL) ++freed;
  free(memory);
}
static const OrtMemoryInfo* InfoOf(const OrtAllocator* self) {
  (void)self;
  return host_memory;
}

static void TestSharedAllocator(void) {
  const Bytes model = OneNode("Abs", "", 1, "65536");
  OrtAllocator own = {18, Allocate, FreeMemory, InfoOf, Allocate, NULL, NULL, NULL};
  OrtMemoryInfo* memory = NULL;
  OrtSessionOptions* options = NULL;
  OrtAllocator* shared = NULL;
  OrtSession* session;
  OK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  host_memory = memory;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddSessionConfigEntry(options, "session.use_env_allocators", "1"));
  FAILS(api->UnregisterAllocator(env, memory), ORT_INVALID_ARGUMENT,
        "No allocator for this device has been registered for sharing.");
  OK(api->GetSharedAllocator(env, memory, &shared));
  EQUAL(shared != NULL, 1);
  OK(api->RegisterAllocator(env, &own));
  OK(api->RegisterAllocator(env, &own)); /* in place of the first one */
  session = Open(&model, options);
  if (session != NULL) CheckRuns(session);
  EQUAL(allocated > 0, 1);
  api->ReleaseSession(session);
  EQUAL(freed == allocated, 1);
  OK(api->UnregisterAllocator(env, memory));
  allocated = 0;
  session = Open(&model, options);
  if (session != NULL) CheckRuns(session);
  EQUAL(allocated, 0);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseMemoryInfo(memory);
}

static void TestArenas(void) {
  const char* const keys[] = {"max_mem", "arena_extend_strategy", "initial_chunk_size_bytes",
                              "max_dead_bytes_per_chunk", "max_power_of_two_extend_bytes"};
  const size_t values[] = {0, 1, 1024, 0, 4096};
  const char* const unknown[] = {"nope"};
  const char* const strategy[] = {"arena_extend_strategy"};
  const size_t wrong[] = {7};
  OrtMemoryInfo* memory = NULL;
  OrtArenaCfg* arena = NULL;
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  FAILS(api->CreateArenaCfgV2(unknown, values, 1, &arena), ORT_INVALID_ARGUMENT, "Invalid key found: nope");
  FAILS(api->CreateArenaCfgV2(strategy, wrong, 1, &arena), ORT_INVALID_ARGUMENT,
        "Invalid configuration value was provided.");
  OK(api->CreateArenaCfg(0, -1, -1, -1, &arena));
  OK(api->CreateAndRegisterAllocator(env, memory, arena));
  api->ReleaseArenaCfg(arena);
  OK(api->CreateArenaCfgV2(keys, values, 5, &arena));
  OK(api->CreateAndRegisterAllocator(env, memory, arena));
  OK(api->CreateAndRegisterAllocatorV2(env, "CPUExecutionProvider", memory, arena, NULL, NULL, 0));
  FAILS(api->CreateAndRegisterAllocatorV2(env, "Nope", memory, NULL, NULL, NULL, 0), ORT_INVALID_ARGUMENT,
        "Nope is not implemented in CreateAndRegisterAllocatorV2()");
  api->ReleaseArenaCfg(arena);
  OK(api->UnregisterAllocator(env, memory));
  api->ReleaseMemoryInfo(memory);
}

static int messages;
static int of_other_logger;
static void Count(void* parameter, OrtLoggingLevel severity, const char* category, const char* log_id,
                  const char* location, const char* message) {
  (void)severity, (void)category, (void)location, (void)message;
  ++messages;
  if (parameter != &messages || strstr(log_id, "the session") == NULL) ++of_other_logger;
}

/* The messages of a session go to its own function, from its own severity on, under its own name. */
static void TestSessionLogger(void) {
  const Bytes model = OneNode("Abs", "", 1, "65536");
  const int severities[] = {ORT_LOGGING_LEVEL_VERBOSE, ORT_LOGGING_LEVEL_FATAL};
  int i;
  for (i = 0; i < 2; ++i) {
    OrtSessionOptions* options = NULL;
    OK(api->CreateSessionOptions(&options));
    OK(api->SetUserLoggingFunction(options, Count, &messages));
    OK(api->SetSessionLogSeverityLevel(options, severities[i]));
    OK(api->SetSessionLogId(options, "the session"));
    messages = 0;
    of_other_logger = 0;
    api->ReleaseSession(Open(&model, options));
    EQUAL(messages > 0, i == 0);
    EQUAL(of_other_logger, 0);
    api->ReleaseSessionOptions(options);
  }
}

/* A session with one config entry, whose runs end with a text; null: they succeed. */
static void CheckLimit(const char* key, const char* value, const char* text) {
  static float data[kElements];
  const Bytes model = OneNode("Abs", "", 1, "65536");
  OrtSessionOptions* options = NULL;
  OrtValue* output = NULL;
  OrtSession* session;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddSessionConfigEntry(options, key, value));
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  if (session == NULL) return;
  if (text == NULL) {
    OK(RunAbs(session, data, &output));
  } else {
    FAILS(RunAbs(session, data, &output), ORT_FAIL, text);
  }
  if (output != NULL) api->ReleaseValue(output);
  api->ReleaseSession(session);
}

static void CheckWrongEntry(const char* key, const char* value) {
  Bytes model = OneNode("Abs", "", 1, "65536");
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddSessionConfigEntry(options, key, value));
  FAILS(api->CreateSessionFromArray(env, model.data, model.size, options, &session), ORT_INVALID_ARGUMENT,
        key);
  api->ReleaseSessionOptions(options);
}

static void TestLimits(void) {
  if (!Differs(entries_set_limits)) return;
  CheckLimit("session.rewire_max_bytes", "1000", "limit");
  CheckLimit("session.rewire_max_bytes", "10000000", NULL);
  CheckLimit("session.rewire_max_steps", "1", "limit");
  CheckLimit("session.rewire_max_steps", "1000", NULL);
  CheckLimit("session.rewire_max_run_ms", "100000", NULL);
  CheckLimit("session.rewire_max_load_ms", "100000", NULL);
  CheckLimit("session.rewire_zero_memory", "1", NULL);
  CheckWrongEntry("session.rewire_max_bytes", "many");
  CheckWrongEntry("session.rewire_max_steps", "-1");
  CheckWrongEntry("session.rewire_max_run_ms", "");
  CheckWrongEntry("session.rewire_zero_memory", "2");
}

static void TestKeptBlocks(void) {
  const Bytes model = OneNode("Abs", "", 1, "65536");
  OrtSession* session = Open(&model, NULL);
  if (session != NULL) CheckRuns(session);
  api->ReleaseSession(session);
}

void TestSessionOptions(void) {
  TestKeptBlocks();
  TestSharedAllocator();
  TestArenas();
  TestSessionLogger();
  TestLimits();
}
