/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers that a run overrides, those of external files, and outputs that take an input's memory. */
#include <stdlib.h>

#include "rewire/tests/onnxruntime_api/checks.h"

/* How a writer of protobuf puts the dimensions of a tensor: each as a field, or as proto3 does, in one list.
 */
typedef enum { kFieldEach, kPackedList } Dims;

/* An initializer of f32[1, 2]; external: its elements are at byte 4 of the file weights.bin. */
static void PutWeights(Bytes* graph, const char* name, const float* elements, Dims dims) {
  Bytes tensor = {{0}, 0};
  const char* const entries[][2] = {{"location", "weights.bin"}, {"offset", "4"}, {"length", "8"}};
  size_t i;
  if (dims == kPackedList) {
    PutData(&tensor, 1, "\x01\x02", 2);
  } else {
    PutNumber(&tensor, 1, 1);
    PutNumber(&tensor, 1, 2);
  }
  PutNumber(&tensor, 2, 1);
  PutText(&tensor, 8, name);
  if (elements != NULL) PutData(&tensor, 9, elements, 2 * sizeof *elements);
  for (i = 0; elements == NULL && i < 3; ++i) {
    Bytes entry = {{0}, 0};
    PutText(&entry, 1, entries[i][0]);
    PutText(&entry, 2, entries[i][1]);
    PutBytes(&tensor, 13, &entry);
  }
  if (elements == NULL) PutNumber(&tensor, 14, 1);
  PutBytes(graph, GRAPH_INITIALIZER, &tensor);
}

/* y = x + w; overridable: w is an input, too. */
static Bytes SumModel(const float* elements, int overridable, Dims dims) {
  Bytes graph = {{0}, 0};
  Bytes node = Node("Add", "", "x,w", "y");
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "sum");
  PutWeights(&graph, "w", elements, dims);
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "1,2");
  if (overridable) PutTensor(&graph, GRAPH_INPUT, "w", 1, "1,2");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "1,2");
  return Model(&graph, 17);
}

/* Runs the sum of x = 1, 2 with these weights, or with none given, and checks the result. */
static void CheckSum(OrtSession* session, float* weights, float first, float second) {
  const char* in[] = {"x", "w"};
  const char* out[] = {"y"};
  float data[2] = {1, 2};
  const int64_t shape[] = {1, 2};
  OrtValue* x = Floats(data, 2, shape, 2);
  OrtValue* w = weights == NULL ? NULL : Floats(weights, 2, shape, 2);
  const OrtValue* inputs[2];
  OrtValue* output = NULL;
  void* y = NULL;
  inputs[0] = x;
  inputs[1] = w;
  if (OK(api->Run(session, NULL, in, inputs, w == NULL ? 1 : 2, out, 1, &output))) {
    OK(api->GetTensorMutableData(output, &y));
    EQUAL(((float*)y)[0], first);
    EQUAL(((float*)y)[1], second);
    api->ReleaseValue(output);
  }
  api->ReleaseValue(x);
  if (w != NULL) api->ReleaseValue(w);
}

static void TestOverridable(void) {
  const float elements[] = {10, 20};
  float other[] = {100, 200};
  const Bytes model = SumModel(elements, 1, kFieldEach);
  OrtSession* session = Open(&model, NULL);
  char* name = NULL;
  size_t count = 0;
  OrtTypeInfo* type = NULL;
  if (session == NULL) return;
  OK(api->SessionGetInputCount(session, &count));
  EQUAL(count, 1);
  OK(api->SessionGetOverridableInitializerCount(session, &count));
  EQUAL(count, 1);
  OK(api->SessionGetOverridableInitializerName(session, 0, Allocator(), &name));
  TEXT(name, "w");
  OK(api->AllocatorFree(Allocator(), name));
  OK(api->SessionGetOverridableInitializerTypeInfo(session, 0, &type));
  api->ReleaseTypeInfo(type);
  CheckSum(session, NULL, 11, 22);
  CheckSum(session, other, 101, 202);
  other[0] = 1000;
  CheckSum(session, other, 1001, 202);
  CheckSum(session, NULL, 11, 22);
  api->ReleaseSession(session);
}

static void TestExternal(Dims dims) {
  const Bytes model = SumModel(NULL, 0, dims);
  const char* const names[] = {"w"};
  const char* const files[] = {"weights.bin"};
  float file[] = {-1, 30, 40, -1};
  char* data[1];
  const size_t sizes[] = {sizeof file};
  const int64_t shape[] = {1, 2};
  float weights[] = {50, 60};
  OrtValue* value = Floats(weights, 2, shape, 2);
  const OrtValue* values[1];
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  values[0] = value;
  data[0] = (char*)file;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddExternalInitializers(options, names, values, 1));
  session = Open(&model, options);
  if (session != NULL) CheckSum(session, NULL, 51, 62);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);

  OK(api->CreateSessionOptions(&options));
  OK(api->AddExternalInitializersFromFilesInMemory(options, files, data, sizes, 1));
  session = Open(&model, options);
  if (session != NULL) CheckSum(session, NULL, 31, 42);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseValue(value);
}

/* y = x reshaped by w of i64[2]: a program depends on these elements. */
static Bytes ReshapeModel(void) {
  Bytes graph = {{0}, 0};
  Bytes tensor = {{0}, 0};
  Bytes node = Node("Reshape", "", "x,w", "y");
  const int64_t shape[] = {1, 2};
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "reshape");
  PutNumber(&tensor, 1, 2);
  PutNumber(&tensor, 2, 7);
  PutText(&tensor, 8, "w");
  PutData(&tensor, 9, shape, sizeof shape);
  PutBytes(&graph, GRAPH_INITIALIZER, &tensor);
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "1,2");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "?,?");
  return Model(&graph, 17);
}

/* A shape that the host gives. */
static void TestGivenShape(void) {
  const Bytes model = ReshapeModel();
  int64_t elements[] = {2, 1};
  const int64_t two[] = {2};
  const int64_t shape[] = {1, 2};
  int64_t dims[2] = {0, 0};
  float data[2] = {1, 2};
  const char* in[] = {"x"};
  const char* out[] = {"y"};
  const OrtValue* inputs[1];
  OrtValue* given = NULL;
  OrtValue* x = Floats(data, 2, shape, 2);
  OrtValue* y = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  OrtTensorTypeAndShapeInfo* info = NULL;
  OrtMemoryInfo* memory = NULL;
  OK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, elements, sizeof elements, two, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &given));
  api->ReleaseMemoryInfo(memory);
  OK(api->CreateSessionOptions(&options));
  OK(api->AddInitializer(options, "w", given));
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  inputs[0] = x;
  if (session != NULL && OK(api->Run(session, NULL, in, inputs, 1, out, 1, &y))) {
    OK(api->GetTensorTypeAndShape(y, &info));
    OK(api->GetDimensions(info, dims, 2));
    EQUAL(dims[0], 2);
    EQUAL(dims[1], 1);
    api->ReleaseTensorTypeAndShapeInfo(info);
  }
  api->ReleaseValue(y);
  api->ReleaseValue(x);
  api->ReleaseValue(given);
  api->ReleaseSession(session);
}

/* Two sessions over one value of the host's, given for an initializer that runs may override, and for one
 * that they may not. */
static void TestGivenToSessions(void) {
  const float elements[] = {10, 20};
  const Bytes models[] = {SumModel(elements, 1, kFieldEach), SumModel(elements, 0, kFieldEach)};
  const int64_t shape[] = {1, 2};
  float weights[] = {50, 60};
  float other[] = {100, 200};
  OrtValue* value = Floats(weights, 2, shape, 2);
  OrtSessionOptions* options = NULL;
  int i;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddInitializer(options, "w", value));
  for (i = 0; i < 2; ++i) {
    OrtSession* first = Open(&models[i], options);
    OrtSession* second = Open(&models[i], options);
    if (first == NULL || second == NULL) continue;
    CheckSum(first, NULL, 51, 62);
    if (i == 0) CheckSum(first, other, 101, 202);
    api->ReleaseSession(first);
    CheckSum(second, NULL, 51, 62);
    api->ReleaseSession(second);
  }
  api->ReleaseSessionOptions(options);
  api->ReleaseValue(value);
}

/* A file in memory that goes before a run overrides the initializer. */
static void TestFileThatGoes(void) {
  const Bytes model = SumModel(NULL, 1, kFieldEach);
  const char* const files[] = {"weights.bin"};
  const size_t sizes[] = {4 * sizeof(float)};
  float* const file = malloc(sizes[0]);
  char* data[1];
  float other[] = {100, 200};
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  if (file == NULL) return;
  file[0] = file[3] = -1;
  file[1] = 30;
  file[2] = 40;
  data[0] = (char*)file;
  OK(api->CreateSessionOptions(&options));
  OK(api->AddExternalInitializersFromFilesInMemory(options, files, data, sizes, 1));
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  free(file);
  if (session != NULL) {
    CheckSum(session, NULL, 31, 42);
    CheckSum(session, other, 101, 202);
  }
  api->ReleaseSession(session);
}

/* A value of another shape than the model's, and of another type. */
static void TestGivenOtherwise(void) {
  const float elements[] = {10, 20};
  const Bytes model = SumModel(elements, 0, kFieldEach);
  const int64_t one[] = {1, 1};
  const int64_t two[] = {1, 2};
  float weight[] = {50};
  int64_t integers[] = {50, 60};
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue* value = Floats(weight, 1, one, 2);
  OK(api->CreateSessionOptions(&options));
  OK(api->AddInitializer(options, "w", value));
  session = Open(&model, options);
  if (session != NULL) CheckSum(session, NULL, 51, 52);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseValue(value);

  OK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, integers, sizeof integers, two, 2,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &value));
  api->ReleaseMemoryInfo(memory);
  OK(api->CreateSessionOptions(&options));
  OK(api->AddInitializer(options, "w", value));
  if (Differs(initializers_have_their_type)) {
    FAILS(api->CreateSessionFromArray(env, model.data, model.size, options, &session), ORT_INVALID_ARGUMENT,
          "initializer 'w' is given as i64[1, 2], expected f32");
  } else {
    OK(api->CreateSessionFromArray(env, model.data, model.size, options, &session));
    api->ReleaseSession(session);
  }
  api->ReleaseSessionOptions(options);
  api->ReleaseValue(value);
}

/* The state of a loop: each run writes what it reads. */
static void TestInPlace(void) {
  const float elements[] = {1, 2};
  const Bytes model = SumModel(elements, 0, kPackedList);
  OrtSession* session = Open(&model, NULL);
  const char* in[] = {"x"};
  const char* out[] = {"y"};
  float data[2] = {0, 0};
  const int64_t shape[] = {1, 2};
  OrtValue* state = Floats(data, 2, shape, 2);
  const OrtValue* inputs[1];
  OrtValue* outputs[1];
  int run;
  for (run = 0; session != NULL && run < 3; ++run) {
    inputs[0] = outputs[0] = state;
    OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs));
    EQUAL(outputs[0] == state, 1);
    EQUAL(data[0], run + 1);
    EQUAL(data[1], 2 * (run + 1));
  }
  if (session != NULL) CheckSum(session, NULL, 2, 4); /* with nothing left bound */
  api->ReleaseSession(session);
  api->ReleaseValue(state);
}

void TestInitializers(void) {
  TestOverridable();
  TestExternal(kFieldEach);
  TestExternal(kPackedList);
  TestGivenShape();
  TestGivenToSessions();
  TestGivenOtherwise();
  TestFileThatGoes();
  TestInPlace();
}
