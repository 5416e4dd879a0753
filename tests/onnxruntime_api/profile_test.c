/* SPDX-License-Identifier: Apache-2.0 */
/*
 * These tests read the profiles that sessions and runs write when a host asks for them.
 */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rewire/tests/onnxruntime_api/checks.h"
#include "rewire/tests/onnxruntime_api/onnx_bytes.h"

/* The file's text, which ends with zero; empty if there is none. */
static void Read(const char* path, char* text, size_t size) {
  FILE* file = fopen(path, "rb");
  size_t read = 0;
  if (file != NULL) {
    read = fread(text, 1, size - 1, file);
    fclose(file);
  }
  text[read] = '\0';
}

static int Count(const char* text, const char* part) {
  int count = 0;
  for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part)) ++count;
  return count;
}

static void RunAbs(OrtSession* session, const OrtRunOptions* options) {
  float x[3] = {-1, 2, -3};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  inputs[0] = Floats(x, 3, shape, 1);
  OK(api->Run(session, options, in, inputs, 1, out, 1, outputs));
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue((OrtValue*)inputs[0]);
}

static Bytes AbsModel(void) {
  Bytes graph = {{0}, 0};
  const Bytes node = Node("Abs", "", "x", "y");
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "abs");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "3");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "3");
  return Model(&graph, 17);
}

void TestProfile(void) {
  const Bytes model = AbsModel();
  char folder[] = "/tmp/onnxruntime_api_profile.XXXXXX";
  char prefix[64];
  static char text[1 << 16];
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  char* file = NULL;
  uint64_t start = 0;
  int run;
  if (mkdtemp(folder) == NULL) abort();
  snprintf(prefix, sizeof prefix, "%s/session", folder);
  OK(api->CreateSessionOptions(&options));
  OK(api->EnableProfiling(options, prefix));
  session = Open(&model, options);
  if (session == NULL) return;
  OK(api->SessionGetProfilingStartTimeNs(session, &start));
  EQUAL(start > 0, 1);
  for (run = 0; run < 3; ++run) RunAbs(session, NULL);
  OK(api->SessionEndProfiling(session, Allocator(), &file));
  EQUAL(strncmp(file, prefix, strlen(prefix)), 0);
  TEXT(file + strlen(file) - 5, ".json");
  Read(file, text, sizeof text);
  EQUAL(text[0], '[');
  EQUAL(strrchr(text, '}') != NULL && strchr(strrchr(text, '}'), ']') != NULL, 1);
  EQUAL(Count(text, "\"session_initialization\""), 1);
  EQUAL(Count(text, "\"model_run\""), 3);
  EQUAL(Count(text, "_kernel_time\""), 3);
  EQUAL(Count(text, "CPUExecutionProvider"), 3);
  remove(file);
  OK(api->AllocatorFree(Allocator(), file));
  /* It is written once. */
  RunAbs(session, NULL);
  OK(api->SessionEndProfiling(session, Allocator(), &file));
  TEXT(file, "");
  OK(api->AllocatorFree(Allocator(), file));
  api->ReleaseSession(session);
  /* Without a profile there is no file. */
  OK(api->DisableProfiling(options));
  session = Open(&model, options);
  RunAbs(session, NULL);
  OK(api->SessionEndProfiling(session, Allocator(), &file));
  TEXT(file, "");
  OK(api->AllocatorFree(Allocator(), file));
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  EQUAL(rmdir(folder), 0);
}

/* A run may have a profile of its own, which is written when it ends. */
void TestRunProfile(void) {
  const Bytes model = AbsModel();
  char folder[] = "/tmp/onnxruntime_api_profile.XXXXXX";
  char command[128];
  static char text[1 << 16];
  OrtRunOptions* options = NULL;
  OrtSession* session = Open(&model, NULL);
  FILE* listed;
  char path[96] = "";
  if (session == NULL || mkdtemp(folder) == NULL) abort();
  snprintf(command, sizeof command, "%s/run", folder);
  OK(api->CreateRunOptions(&options));
  OK(api->RunOptionsEnableProfiling(options, command));
  RunAbs(session, options);
  snprintf(command, sizeof command, "ls %s/run*", folder);
  listed = popen(command, "r");
  EQUAL(fscanf(listed, "%95s", path), 1);
  pclose(listed);
  Read(path, text, sizeof text);
  EQUAL(Count(text, "_kernel_time\""), 1);
  remove(path);
  OK(api->RunOptionsDisableProfiling(options));
  RunAbs(session, options);
  EQUAL(rmdir(folder), 0);
  api->ReleaseRunOptions(options);
  api->ReleaseSession(session);
}
