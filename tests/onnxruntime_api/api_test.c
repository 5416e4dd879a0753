/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime's C interface, checked against whichever libonnxruntime the first argument names.
 *
 * The same program runs against ONNX Runtime's own library and Rewire's, so that every expectation here is
 * what ONNX Runtime does. OURS marks what differs by design; differences.def has the reasons.
 *
 *   onnxruntime_api_test LIBRARY [TRANSCRIPT]
 *
 * TRANSCRIPT is a file for the code and the text of each failure, which against.py compares.
 */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rewire/tests/onnxruntime_api/checks.h"
#include "rewire/tests/onnxruntime_api/onnx_bytes.h"

static int messages; /* that the library has logged */

/* y = x + x of f32[N, 3], and the scalar s beside it: z = x * s. */
static Bytes SumModel(void) {
  Bytes graph = {{0}, 0};
  Bytes part = Node("Add", "", "x,x", "y");
  PutBytes(&graph, GRAPH_NODE, &part);
  part = Node("Mul", "", "x,s", "z");
  PutBytes(&graph, GRAPH_NODE, &part);
  PutText(&graph, GRAPH_NAME, "sums");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "N,3");
  PutTensor(&graph, GRAPH_INPUT, "s", 1, "");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "N,3");
  PutTensor(&graph, GRAPH_OUTPUT, "z", 1, "N,3");
  return Model(&graph, 17);
}

static void TestTable(const OrtApiBase* base) {
  void* const* slots = (void* const*)api;
  size_t i;
  uint32_t version;
  for (i = 0; i < sizeof *api / sizeof *slots; ++i) EQUAL(slots[i] != NULL, 1);
  for (version = 1; version <= REWIRE_ORT_API_VERSION; ++version) EQUAL(base->GetApi(version) == api, 1);
  EQUAL(base->GetApi(REWIRE_ORT_API_VERSION + 1) == NULL, 1);
  EQUAL(base->GetApi(0) == NULL, 1);
  TEXT(base->GetVersionString(), "1.32.0");
}

/* The names of the table's functions, in its order. */
static const char* const slot_names[] = {
#define SERVED(result, name, parameters) #name,
#define REFUSED(name) #name,
#define ABSENT(name) #name,
#define EMPTY(name) #name,
#include "rewire/onnxruntime_api/slots.def"
#undef SERVED
#undef REFUSED
#undef ABSENT
#undef EMPTY
};

/* Every Release function of one object takes null, as free does. */
static void TestReleaseNull(void) {
  size_t i;
  int released = 0;
  for (i = 0; i < sizeof slot_names / sizeof *slot_names; ++i) {
    void (*release)(void*);
    if (strncmp(slot_names[i], "Release", 7) != 0) continue;
    /* These two take more than an object. */
    if (strcmp(slot_names[i], "ReleaseAvailableProviders") == 0) continue;
    if (strcmp(slot_names[i], "ReleaseSharedAllocator") == 0) continue;
    memcpy(&release, (const char*)api + i * sizeof(void*), sizeof release);
    release(NULL);
    ++released;
  }
  EQUAL(released, 35);
  OK(api->ReleaseAvailableProviders(NULL, 0));
}

static void TestStatus(void) {
  OrtStatus* status = api->CreateStatus(ORT_NOT_IMPLEMENTED, "a text");
  EQUAL(api->GetErrorCode(status), ORT_NOT_IMPLEMENTED);
  TEXT(api->GetErrorMessage(status), "a text");
  api->ReleaseStatus(status);
}

static void TestEnv(void) {
  OrtEnv* second = NULL;
  char** providers = NULL;
  int count = 0;
  int i;
  int has_cpu = 0;
  OK(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "second", &second));
  EQUAL(second == env, 1);
  api->ReleaseEnv(second);
  OK(api->GetAvailableProviders(&providers, &count));
  for (i = 0; i < count; ++i) has_cpu |= strcmp(providers[i], "CPUExecutionProvider") == 0;
  EQUAL(has_cpu, 1);
  OK(api->ReleaseAvailableProviders(providers, count));
}

static void TestOptions(void) {
  OrtSessionOptions* options = NULL;
  OrtSessionOptions* clone = NULL;
  char text[16];
  size_t size = sizeof text;
  int has = 0;
  char* long_key = malloc(2000);
  memset(long_key, 'k', 1999);
  long_key[1999] = '\0';
  OK(api->CreateSessionOptions(&options));
  OK(api->SetIntraOpNumThreads(options, 1));
  OK(api->SetInterOpNumThreads(options, 1));
  OK(api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
  FAILS(api->SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)5), ORT_INVALID_ARGUMENT,
        "graph_optimization_level");
  OK(api->AddSessionConfigEntry(options, "some.key", "a value"));
  FAILS(api->AddSessionConfigEntry(options, "", "x"), ORT_INVALID_ARGUMENT, "empty");
  FAILS(api->AddSessionConfigEntry(options, long_key, "x"), ORT_INVALID_ARGUMENT, "1024");
  OK(api->CloneSessionOptions(options, &clone));
  OK(api->HasSessionConfigEntry(clone, "some.key", &has));
  EQUAL(has, 1);
  OK(api->HasSessionConfigEntry(clone, "other.key", &has));
  EQUAL(has, 0);
  OK(api->GetSessionConfigEntry(clone, "some.key", text, &size));
  TEXT(text, "a value");
  EQUAL(size, 8);
  size = 3;
  FAILS(api->GetSessionConfigEntry(clone, "some.key", text, &size), ORT_INVALID_ARGUMENT, "not large enough");
  EQUAL(size, 8);
  OK(api->SessionOptionsSetEpSelectionPolicy(options, 0));
  OK(api->DisableMemPattern(options));
  OK(api->DisableCpuMemArena(options));
  api->ReleaseSessionOptions(clone);
  api->ReleaseSessionOptions(options);
  free(long_key);
}

static void TestMemory(void) {
  OrtAllocator* allocator = Allocator();
  OrtMemoryInfo* a = NULL;
  OrtMemoryInfo* b = NULL;
  const OrtMemoryInfo* info = NULL;
  const char* name = NULL;
  void* memory = NULL;
  int number = 7;
  OrtAllocatorType type = OrtInvalidAllocator;
  OK(api->AllocatorAlloc(allocator, 100, &memory));
  EQUAL(memory != NULL, 1);
  OK(api->AllocatorFree(allocator, memory));
  OK(api->AllocatorFree(allocator, NULL));
  OK(api->AllocatorGetInfo(allocator, &info));
  OK(api->MemoryInfoGetName(info, &name));
  TEXT(name, "Cpu");
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &a));
  OK(api->CreateMemoryInfo("Cpu", OrtArenaAllocator, 0, OrtMemTypeDefault, &b));
  OK(api->CompareMemoryInfo(a, b, &number));
  EQUAL(number, 0);
  OK(api->MemoryInfoGetType(a, &type));
  EQUAL(type, OrtArenaAllocator);
  OK(api->MemoryInfoGetId(a, &number));
  EQUAL(number, 0);
  api->ReleaseMemoryInfo(a);
  api->ReleaseMemoryInfo(b);
}

static void TestValues(void) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 3};
  const int64_t negative[1] = {-1};
  const int64_t at[2] = {1, 2};
  int64_t dims[2] = {0, 0};
  OrtValue* value = Floats(data, 6, shape, 2);
  OrtValue* other = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  void* pointer = NULL;
  size_t size = 0;
  int is = 0;
  OK(api->IsTensor(value, &is));
  EQUAL(is, 1);
  OK(api->HasValue(value, &is));
  EQUAL(is, 1);
  OK(api->GetTensorMutableData(value, &pointer));
  EQUAL(pointer == data, 1);
  OK(api->TensorAt(value, at, 2, &pointer));
  EQUAL(pointer == data + 5, 1);
  OK(api->GetTensorTypeAndShape(value, &info));
  OK(api->GetTensorElementType(info, &type));
  EQUAL(type, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  OK(api->GetDimensionsCount(info, &size));
  EQUAL(size, 2);
  OK(api->GetDimensions(info, dims, 2));
  EQUAL(dims[1], 3);
  OK(api->GetTensorShapeElementCount(info, &size));
  EQUAL(size, 6);
  api->ReleaseTensorTypeAndShapeInfo(info);
  api->ReleaseValue(value);
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  FAILS(api->CreateTensorWithDataAsOrtValue(memory, data, 8, shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                            &other),
        ORT_INVALID_ARGUMENT, "not enough space: expected 24, got 8");
  FAILS(api->CreateTensorWithDataAsOrtValue(memory, data, 24, negative, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &other),
        ORT_INVALID_ARGUMENT, "negative value in shape");
  api->ReleaseMemoryInfo(memory);
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &other));
  OK(api->GetTensorSizeInBytes(other, &size));
  EQUAL(size, 48);
  api->ReleaseValue(other);
}

static void TestStrings(void) {
  const int64_t shape[1] = {2};
  const char* texts[2] = {"one", "\xFFtwo"};
  char bytes[16];
  size_t offsets[2];
  size_t size = 0;
  char* buffer = NULL;
  OrtValue* value = NULL;
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OK(api->FillStringTensor(value, texts, 2));
  OK(api->GetStringTensorDataLength(value, &size));
  EQUAL(size, 7);
  OK(api->GetStringTensorContent(value, bytes, 7, offsets, 2));
  EQUAL(offsets[1], 3);
  EQUAL(memcmp(bytes, "one\xFFtwo", 7), 0);
  OK(api->GetStringTensorElementLength(value, 1, &size));
  EQUAL(size, 4);
  OK(api->GetResizedStringTensorElementBuffer(value, 0, 2, &buffer));
  memcpy(buffer, "\0b", 2);
  OK(api->GetStringTensorElement(value, 2, 0, bytes));
  EQUAL(memcmp(bytes, "\0b", 2), 0);
  api->ReleaseValue(value);
}

static void TestSequences(void) {
  float data[2] = {1, 2};
  const int64_t shape[1] = {2};
  OrtValue* parts[2];
  OrtValue* sequence = NULL;
  OrtValue* part = NULL;
  ONNXType type = ONNX_TYPE_UNKNOWN;
  void* pointer = NULL;
  size_t count = 0;
  parts[0] = Floats(data, 2, shape, 1);
  parts[1] = Floats(data, 2, shape, 1);
  OK(api->CreateValue((const OrtValue* const*)parts, 2, ONNX_TYPE_SEQUENCE, &sequence));
  OK(api->GetValueType(sequence, &type));
  EQUAL(type, ONNX_TYPE_SEQUENCE);
  OK(api->GetValueCount(sequence, &count));
  EQUAL(count, 2);
  OK(api->GetValue(sequence, 1, Allocator(), &part));
  OK(api->GetTensorMutableData(part, &pointer));
  EQUAL(((float*)pointer)[1] == 2, 1);
  EQUAL(pointer != data, 1);
  api->ReleaseValue(part);
  api->ReleaseValue(sequence);
  api->ReleaseValue(parts[0]);
  api->ReleaseValue(parts[1]);
}

/* The metadata that onnx_bytes.c gives every model. */
static void CheckMetadata(const OrtSession* session, const char* graph) {
  OrtAllocator* allocator = Allocator();
  OrtModelMetadata* metadata = NULL;
  int64_t version = 0;
  char* text = NULL;
  char** keys = NULL;
  OK(api->SessionGetModelMetadata(session, &metadata));
  OK(api->ModelMetadataGetProducerName(metadata, allocator, &text));
  TEXT(text, "test producer");
  OK(api->AllocatorFree(allocator, text));
  OK(api->ModelMetadataGetGraphName(metadata, allocator, &text));
  TEXT(text, graph);
  OK(api->AllocatorFree(allocator, text));
  OK(api->ModelMetadataGetDomain(metadata, allocator, &text));
  TEXT(text, "test.domain");
  OK(api->AllocatorFree(allocator, text));
  OK(api->ModelMetadataGetDescription(metadata, allocator, &text));
  TEXT(text, "a description");
  OK(api->AllocatorFree(allocator, text));
  OK(api->ModelMetadataGetVersion(metadata, &version));
  EQUAL(version, 7);
  OK(api->ModelMetadataLookupCustomMetadataMap(metadata, allocator, "key", &text));
  TEXT(text, "value of it");
  OK(api->AllocatorFree(allocator, text));
  OK(api->ModelMetadataLookupCustomMetadataMap(metadata, allocator, "no such key", &text));
  EQUAL(text == NULL, 1);
  OK(api->ModelMetadataGetCustomMetadataMapKeys(metadata, allocator, &keys, &version));
  EQUAL(version, 1);
  TEXT(keys[0], "key");
  OK(api->AllocatorFree(allocator, keys[0]));
  OK(api->AllocatorFree(allocator, keys));
  api->ReleaseModelMetadata(metadata);
}

static void TestSession(void) {
  const Bytes model = SumModel();
  OrtSession* session = Open(&model, NULL);
  OrtAllocator* allocator = Allocator();
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  const char* names[2] = {NULL, NULL};
  int64_t dims[2] = {0, 0};
  size_t count = 0;
  char* text = NULL;
  if (session == NULL) return;
  OK(api->SessionGetInputCount(session, &count));
  EQUAL(count, 2);
  OK(api->SessionGetOutputCount(session, &count));
  EQUAL(count, 2);
  OK(api->SessionGetOverridableInitializerCount(session, &count));
  EQUAL(count, 0);
  OK(api->SessionGetInputName(session, 1, allocator, &text));
  TEXT(text, "s");
  OK(api->AllocatorFree(allocator, text));
  OK(api->SessionGetOutputName(session, 0, allocator, &text));
  TEXT(text, "y");
  OK(api->AllocatorFree(allocator, text));
  FAILS(api->SessionGetInputName(session, 9, allocator, &text), ORT_FAIL, "");
  OK(api->SessionGetInputTypeInfo(session, 0, &type));
  OK(api->GetOnnxTypeFromTypeInfo(type, &kind));
  EQUAL(kind, ONNX_TYPE_TENSOR);
  OK(api->CastTypeInfoToTensorInfo(type, &info));
  OK(api->GetDimensions(info, dims, 2));
  EQUAL(dims[0], -1);
  EQUAL(dims[1], 3);
  OK(api->GetSymbolicDimensions(info, names, 2));
  TEXT(names[0], "N");
  TEXT(names[1], "");
  api->ReleaseTypeInfo(type);
  CheckMetadata(session, "sums");
  api->ReleaseSession(session);
}

static void TestOpenErrors(void) {
  OrtSession* session = NULL;
  Bytes opset = {{0}, 0};
  Bytes model = OneNode("NoSuchOperator", "", 1, "3");
  FAILS(api->CreateSession(env, "/no/such/model.onnx", NULL, &session), ORT_NO_SUCHFILE,
        "/no/such/model.onnx");
  FAILS(api->CreateSessionFromArray(env, "no model", 8, NULL, &session), ORT_INVALID_PROTOBUF, "");
  FAILS(api->CreateSessionFromArray(env, model.data, model.size, NULL, &session), ORT_INVALID_GRAPH,
        "NoSuchOperator");
  model = OneNode("Abs", "no.such.domain", 1, "3");
  PutText(&opset, 1, "no.such.domain");
  PutNumber(&opset, 2, 1);
  PutBytes(&model, 8, &opset);
  FAILS(api->CreateSessionFromArray(env, model.data, model.size, NULL, &session), ORT_FAIL, "Abs");
}

static void TestDimensions(void) {
  const Bytes model = SumModel();
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* info = NULL;
  int64_t dims[2] = {0, 0};
  OK(api->CreateSessionOptions(&options));
  OK(api->AddFreeDimensionOverrideByName(options, "N", 5));
  OK(api->AddFreeDimensionOverrideByName(options, "no such name", 5));
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  if (session == NULL) return;
  OK(api->SessionGetInputTypeInfo(session, 0, &type));
  OK(api->CastTypeInfoToTensorInfo(type, &info));
  OK(api->GetDimensions(info, dims, 2));
  EQUAL(dims[0], 5);
  api->ReleaseTypeInfo(type);
  api->ReleaseSession(session);
}

static void TestRun(void) {
  const Bytes model = SumModel();
  OrtSession* session = Open(&model, NULL);
  float x[6] = {1, 2, 3, 4, 5, 6};
  float s[1] = {10};
  float room[6] = {0};
  const int64_t shape[2] = {2, 3};
  const int64_t wrong_size[2] = {2, 2};
  const int64_t one[1] = {1};
  const char* in[2] = {"x", "s"};
  const char* wrong_in[2] = {"q", "s"};
  const char* out[3] = {"y", "z", "y"};
  const char* wrong_out[1] = {"q"};
  const OrtValue* inputs[2];
  OrtValue* outputs[3] = {NULL, NULL, NULL};
  OrtValue* value;
  void* a = NULL;
  void* b = NULL;
  if (session == NULL) return;
  inputs[0] = Floats(x, 6, shape, 2);
  inputs[1] = Floats(s, 1, one, 1); /* of rank 0 in the model */
  if (!OK(api->Run(session, NULL, in, inputs, 2, out, 3, outputs))) return;
  OK(api->GetTensorMutableData(outputs[0], &a));
  EQUAL(((float*)a)[5] == 12, 1);
  OK(api->GetTensorMutableData(outputs[2], &b));
  EQUAL(((float*)b)[5] == 12, 1);
  EQUAL(outputs[0] != outputs[2], 1);
  EQUAL(a == b, OURS(outputs_of_one_name_are_apart, 1, 0));
  OK(api->GetTensorMutableData(outputs[1], &b));
  EQUAL(((float*)b)[5] == 60, 1);

  FAILS(api->Run(session, NULL, wrong_in, inputs, 2, out, 1, outputs), ORT_INVALID_ARGUMENT,
        "Invalid input name: q");
  FAILS(api->Run(session, NULL, in, inputs, 2, wrong_out, 1, outputs), ORT_INVALID_ARGUMENT, "q");
  FAILS(api->Run(session, NULL, in, inputs, 1, out, 1, outputs), ORT_FAIL, "s");
  FAILS(api->Run(session, NULL, in, inputs, 2, out, 0, outputs), ORT_INVALID_ARGUMENT, "output");
  api->ReleaseValue((OrtValue*)inputs[0]);
  inputs[0] = Floats(x, 3, one + 0, 1);
  FAILS(api->Run(session, NULL, in, inputs, 2, out, 1, outputs), ORT_INVALID_ARGUMENT,
        "Invalid rank for input: x Got: 1 Expected: 2 Please fix either the inputs/outputs or the model.");
  api->ReleaseValue((OrtValue*)inputs[0]);
  inputs[0] = Floats(x, 4, wrong_size, 2);
  FAILS(api->Run(session, NULL, in, inputs, 2, out, 1, outputs), ORT_INVALID_ARGUMENT,
        "Got invalid dimensions for input: x for the following indices\n index: 1 Got: 2 Expected: 3\n");
  api->ReleaseValue((OrtValue*)inputs[0]);
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &value));
  inputs[0] = value;
  FAILS(api->Run(session, NULL, in, inputs, 2, out, 1, outputs), ORT_INVALID_ARGUMENT,
        "Unexpected input data type. Actual: (tensor(int64)) , expected: (tensor(float))");
  api->ReleaseValue(value);

  /* A given output is written in place. */
  inputs[0] = Floats(x, 6, shape, 2);
  api->ReleaseValue(outputs[0]);
  outputs[0] = value = Floats(room, 6, shape, 2);
  OK(api->Run(session, NULL, in, inputs, 2, out, 1, outputs));
  EQUAL(outputs[0] == value, 1);
  EQUAL(room[5] == 12, 1);
  /* The output may be the input's own value. */
  api->ReleaseValue(outputs[0]);
  outputs[0] = (OrtValue*)inputs[0];
  OK(api->Run(session, NULL, in, inputs, 2, out, 1, outputs));
  EQUAL(x[5] == 12, 1);
  outputs[0] = NULL;
  /* Outputs stay readable when the session is gone. */
  api->ReleaseSession(session);
  EQUAL(((float*)b)[5] == 60, 1);
  api->ReleaseValue(outputs[1]);
  api->ReleaseValue(outputs[2]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseValue((OrtValue*)inputs[1]);
}

/* Two tensors are given for one output. */
static void TestGivenTwice(void) {
  const Bytes model = OneNode("Abs", "", 1, "3");
  OrtSession* session = Open(&model, NULL);
  float x[3] = {-1, -2, -3};
  float first[3] = {0};
  float second[3] = {0};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[2] = {"y", "y"};
  const OrtValue* inputs[1];
  OrtValue* outputs[2];
  if (session == NULL) return;
  inputs[0] = Floats(x, 3, shape, 1);
  outputs[0] = Floats(first, 3, shape, 1);
  outputs[1] = Floats(second, 3, shape, 1);
  OK(api->Run(session, NULL, in, inputs, 1, out, 2, outputs));
  EQUAL(first[2] == 3, OURS(every_given_output_is_written, 0, 1));
  EQUAL(second[2] == 3, 1);
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue(outputs[1]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseSession(session);
}

static void TestIdentityCopies(void) {
  const Bytes model = OneNode("Identity", "", 1, "3");
  OrtSession* session = Open(&model, NULL);
  float x[3] = {1, 2, 3};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  void* data = NULL;
  if (session == NULL) return;
  inputs[0] = Floats(x, 3, shape, 1);
  OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs));
  OK(api->GetTensorMutableData(outputs[0], &data));
  EQUAL(data != x, 1);
  ((float*)data)[0] = 9;
  EQUAL(x[0] == 1, 1);
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseSession(session);
}

static void TestStringModel(void) {
  const Bytes model = OneNode("Identity", "", 8, "N");
  OrtSession* session = Open(&model, NULL);
  const int64_t shape[1] = {2};
  const char* texts[2] = {"left", "r\u00E9al"};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  OrtValue* value = NULL;
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  char bytes[8];
  size_t count = 0;
  if (session == NULL) return;
  OK(api->SessionGetInputCount(session, &count));
  EQUAL(count, 1);
  OK(api->SessionGetOutputCount(session, &count));
  EQUAL(count, 1);
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OK(api->FillStringTensor(value, texts, 2));
  inputs[0] = value;
  if (OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs))) {
    OK(api->GetStringTensorElement(outputs[0], 5, 1, bytes));
    EQUAL(memcmp(bytes, "r\u00E9al", 5), 0);
  }
  api->ReleaseValue(outputs[0]);
  outputs[0] = NULL;
  OK(api->FillStringTensorElement(value, "\xFF", 1));
  if (Differs(strings_are_utf8)) {
    FAILS(api->Run(session, NULL, in, inputs, 1, out, 1, outputs), ORT_FAIL, "not UTF-8");
  } else {
    OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs));
  }
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue(value);
  api->ReleaseSession(session);
}

static void TestBinding(void) {
  const Bytes model = SumModel();
  OrtSession* session = Open(&model, NULL);
  OrtAllocator* allocator = Allocator();
  OrtIoBinding* binding = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtRunOptions* options = NULL;
  float x[6] = {1, 2, 3, 4, 5, 6};
  float s[1] = {10};
  float room[6] = {0};
  const int64_t shape[2] = {2, 3};
  OrtValue* values[3];
  OrtValue** bound = NULL;
  char* names = NULL;
  size_t* lengths = NULL;
  size_t count = 0;
  void* data = NULL;
  if (session == NULL) return;
  values[0] = Floats(x, 6, shape, 2);
  values[1] = Floats(s, 1, NULL, 0);
  values[2] = Floats(room, 6, shape, 2);
  OK(api->CreateRunOptions(&options));
  OK(api->CreateIoBinding(session, &binding));
  OK(api->BindInput(binding, "x", values[0]));
  OK(api->BindInput(binding, "s", values[1]));
  OK(api->BindOutput(binding, "y", values[2]));
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OK(api->BindOutputToDevice(binding, "z", memory));
  OK(api->RunWithBinding(session, options, binding));
  EQUAL(room[0] == 2, 1);
  OK(api->GetBoundOutputNames(binding, allocator, &names, &lengths, &count));
  EQUAL(count, 2);
  EQUAL(memcmp(names, "yz", 2), 0);
  EQUAL(lengths[1], 1);
  OK(api->AllocatorFree(allocator, names));
  OK(api->AllocatorFree(allocator, lengths));
  OK(api->GetBoundOutputValues(binding, allocator, &bound, &count));
  EQUAL(count, 2);
  OK(api->GetTensorMutableData(bound[1], &data));
  EQUAL(((float*)data)[5] == 60, 1);
  api->ReleaseValue(bound[0]);
  api->ReleaseValue(bound[1]);
  OK(api->AllocatorFree(allocator, bound));
  api->ClearBoundOutputs(binding);
  api->ClearBoundInputs(binding);
  api->ReleaseIoBinding(binding);
  api->ReleaseRunOptions(options);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseValue(values[0]);
  api->ReleaseValue(values[1]);
  api->ReleaseValue(values[2]);
  api->ReleaseSession(session);
}

/* Memory of a run's input, which the host frees as soon as the run must have ended. */
typedef struct Running {
  OrtRunOptions* options;
  float* x;
} Running;

static void* TerminateSoon(void* argument) {
  Running* running = argument;
  OrtStatus* status;
  usleep(20000);
  status = api->RunOptionsSetTerminate(running->options);
  /* No turn of the loop comes after that: it would read what is freed, which the address sanitizer sees. */
  if (Differs(terminate_waits)) {
    free(running->x);
    running->x = NULL;
  }
  return status;
}

static void TestTerminate(void) {
  const Bytes model = LoopModel();
  OrtSession* session = Open(&model, NULL);
  OrtRunOptions* options = NULL;
  OrtMemoryInfo* memory = NULL;
  int64_t n = (int64_t)1 << 40;
  float x[4] = {1, 2, 3, 4};
  Running running;
  void* failed = NULL;
  const int64_t shape[1] = {4};
  const char* in[2] = {"n", "x"};
  const char* out[1] = {"y"};
  OrtValue* count = NULL;
  const OrtValue* inputs[2];
  OrtValue* outputs[1] = {NULL};
  pthread_t thread;
  if (session == NULL) return;
  OK(api->CreateRunOptions(&options));
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, &n, 8, NULL, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
                                         &count));
  inputs[0] = count;
  running.options = options;
  running.x = malloc(sizeof x);
  if (running.x == NULL) abort();
  memcpy(running.x, x, sizeof x);
  inputs[1] = Floats(running.x, 4, shape, 1);
  pthread_create(&thread, NULL, TerminateSoon, &running);
  FAILS(api->Run(session, options, in, inputs, 2, out, 1, outputs), ORT_FAIL,
        "Exiting due to terminate flag being set to true.");
  pthread_join(thread, &failed);
  EQUAL(failed == NULL, 1);
  EQUAL(running.x == NULL, OURS(terminate_waits, 0, 1));
  free(running.x);
  api->ReleaseValue((OrtValue*)inputs[1]);
  inputs[1] = Floats(x, 4, shape, 1);
  /* It holds until it is taken back. */
  n = 2;
  FAILS(api->Run(session, options, in, inputs, 2, out, 1, outputs), ORT_FAIL,
        "Exiting due to terminate flag being set to true.");
  OK(api->RunOptionsUnsetTerminate(options));
  OK(api->Run(session, options, in, inputs, 2, out, 1, outputs));
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue(count);
  api->ReleaseValue((OrtValue*)inputs[1]);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseRunOptions(options);
  api->ReleaseSession(session);
}

/* Several threads run one session at once. */
static OrtSession* shared_session;
static void* RunOften(void* unused) {
  float x[3] = {1, 2, 3};
  float s[1] = {10};
  const int64_t shape[2] = {1, 3};
  const char* in[2] = {"x", "s"};
  const char* out[1] = {"z"};
  const OrtValue* inputs[2];
  int i;
  (void)unused;
  inputs[0] = Floats(x, 3, shape, 2);
  inputs[1] = Floats(s, 1, NULL, 0);
  for (i = 0; i < 100; ++i) {
    OrtValue* outputs[1] = {NULL};
    void* data = NULL;
    OrtStatus* status = api->Run(shared_session, NULL, in, inputs, 2, out, 1, outputs);
    if (status != NULL) return status;
    (void)api->GetTensorMutableData(outputs[0], &data);
    if (((float*)data)[2] != 30) return "a wrong sum";
    api->ReleaseValue(outputs[0]);
  }
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseValue((OrtValue*)inputs[1]);
  return NULL;
}

static void TestThreads(void) {
  const Bytes model = SumModel();
  pthread_t threads[4];
  int i;
  shared_session = Open(&model, NULL);
  if (shared_session == NULL) return;
  for (i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, RunOften, NULL);
  for (i = 0; i < 4; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    EQUAL(result == NULL, 1);
  }
  api->ReleaseSession(shared_session);
}

/* y = x + w, with an initializer w of zeros. */
static Bytes WeightsModel(void) {
  Bytes graph = {{0}, 0};
  Bytes tensor = {{0}, 0};
  Bytes part = Node("Add", "", "x,w", "y");
  const float zeros[3] = {0, 0, 0};
  PutBytes(&graph, GRAPH_NODE, &part);
  PutText(&graph, GRAPH_NAME, "weights");
  PutNumber(&tensor, 1, 3);
  PutNumber(&tensor, 2, 1);
  PutText(&tensor, 8, "w");
  PutData(&tensor, 9, zeros, sizeof zeros);
  PutBytes(&graph, GRAPH_INITIALIZER, &tensor);
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "3");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "3");
  return Model(&graph, 17);
}

/* The last element of y for x = 1, 2, 3. */
static float LastSum(OrtSession* session) {
  float x[3] = {1, 2, 3};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  void* data = NULL;
  float sum = 0;
  if (session == NULL) return 0;
  inputs[0] = Floats(x, 3, shape, 1);
  if (OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs))) {
    OK(api->GetTensorMutableData(outputs[0], &data));
    sum = ((float*)data)[2];
  }
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  return sum;
}

/* The host gives an initializer in place of the model's. */
static void TestInitializer(void) {
  const Bytes model = WeightsModel();
  float own[3] = {10, 20, 30};
  const int64_t shape[1] = {3};
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  OrtValue* weights = Floats(own, 3, shape, 1);
  OK(api->CreateSessionOptions(&options));
  OK(api->AddInitializer(options, "w", weights));
  FAILS(api->AddInitializer(options, "w", weights), ORT_INVALID_ARGUMENT, "already");
  OK(api->AddInitializer(options, "no such name", weights));
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  EQUAL(LastSum(session) == 33, 1);
  api->ReleaseSession(session);
  api->ReleaseValue(weights);
}

/* A model that makes a sequence of its input, and takes its length. */
static void TestSequenceModel(void) {
  Bytes graph = {{0}, 0};
  Bytes model;
  Bytes part = Node("SplitToSequence", "", "x", "y");
  Bytes sequence = {{0}, 0};
  Bytes value = {{0}, 0};
  Bytes wrapped = {{0}, 0};
  float x[3] = {1, 2, 3};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  OrtSession* session;
  OrtTypeInfo* info = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  OrtValue* element = NULL;
  void* data = NULL;
  size_t count = 0;
  PutBytes(&graph, GRAPH_NODE, &part);
  PutText(&graph, GRAPH_NAME, "sequence");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "3");
  /* seq(tensor(float)): types nest as messages do */
  PutNumber(&sequence, 1, 1);
  PutBytes(&wrapped, 1, &sequence);
  sequence.size = 0;
  PutBytes(&sequence, 1, &wrapped);
  wrapped.size = 0;
  PutBytes(&wrapped, 4, &sequence);
  PutText(&value, 1, "y");
  PutBytes(&value, 2, &wrapped);
  PutBytes(&graph, GRAPH_OUTPUT, &value);
  model = Model(&graph, 17);
  session = Open(&model, NULL);
  if (session == NULL) return;
  OK(api->SessionGetOutputTypeInfo(session, 0, &info));
  OK(api->GetOnnxTypeFromTypeInfo(info, &kind));
  EQUAL(kind, ONNX_TYPE_SEQUENCE);
  api->ReleaseTypeInfo(info);
  inputs[0] = Floats(x, 3, shape, 1);
  if (OK(api->Run(session, NULL, in, inputs, 1, out, 1, outputs))) {
    OK(api->GetValueCount(outputs[0], &count));
    EQUAL(count, 3);
    OK(api->GetValue(outputs[0], 2, Allocator(), &element));
    OK(api->GetTensorMutableData(element, &data));
    EQUAL(((float*)data)[0] == 3, 1);
    api->ReleaseValue(element);
  }
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseSession(session);
}

/* Sessions of files, and the file that a session writes. */
static void TestFiles(void) {
  const Bytes model = WeightsModel();
  char folder[] = "/tmp/onnxruntime_api_test.XXXXXX";
  char path[64];
  char written[64];
  FILE* file;
  OrtSessionOptions* options = NULL;
  OrtSession* sessions[4] = {NULL, NULL, NULL, NULL};
  int i;
  if (mkdtemp(folder) == NULL) abort();
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  snprintf(written, sizeof written, "%s/optimized.onnx", folder);
  file = fopen(path, "wb");
  fwrite(model.data, 1, model.size, file);
  fclose(file);
  OK(api->CreateSessionOptions(&options));
  OK(api->UpdateEnvWithCustomLogLevel(env, ORT_LOGGING_LEVEL_INFO));
  messages = 0;
  OK(api->CreateSession(env, path, options, &sessions[0]));
  EQUAL(messages > 0, 1);
  messages = 0;
  OK(api->CreateSession(env, path, options, &sessions[1]));
  EQUAL(messages == 0, OURS(sessions_share_models, 0, 1));
  OK(api->UpdateEnvWithCustomLogLevel(env, ORT_LOGGING_LEVEL_FATAL));
  OK(api->SetOptimizedModelFilePath(options, written));
  messages = 0;
  OK(api->CreateSession(env, path, options, &sessions[2]));
  EQUAL(messages, 0);
  api->ReleaseSession(sessions[2]);
  api->ReleaseSessionOptions(options);
  OK(api->CreateSession(env, written, NULL, &sessions[2]));
  if (Differs(executables_are_models)) {
    /* Weights could be used in place, but the host overwrites them. */
    static _Alignas(64) Bytes executable;
    file = fopen(written, "rb");
    executable.size = fread(executable.data, 1, sizeof executable.data, file);
    fclose(file);
    OK(api->CreateSessionFromArray(env, executable.data, executable.size, NULL, &sessions[3]));
    memset(executable.data, 0x55, executable.size);
  }
  for (i = 0; i < OURS(executables_are_models, 3, 4); ++i) {
    EQUAL(LastSum(sessions[i]) == 3, 1);
    if (i != 2 || Differs(executables_are_models)) CheckMetadata(sessions[i], "weights");
    api->ReleaseSession(sessions[i]);
  }
  remove(path);
  remove(written);
  rmdir(folder);
}

static OrtStatus* KeepFile(void* state, const void* data, size_t size) {
  Bytes* const file = state;
  if (size > sizeof file->data) return api->CreateStatus(ORT_FAIL, "no room");
  memcpy(file->data, data, size);
  file->size = size;
  return NULL;
}

static void TestCompileApi(void) {
  const Bytes model = WeightsModel();
  const OrtCompileApi* compile = api->GetCompileApi();
  OrtModelCompilationOptions* options = NULL;
  OrtSessionOptions* session_options = NULL;
  OrtSession* session = NULL;
  void* data = NULL;
  size_t size = 0;
  static _Alignas(64) Bytes file;
  if (compile == NULL) abort();
  OK(api->CreateSessionOptions(&session_options));
  OK(compile->CreateModelCompilationOptionsFromSessionOptions(env, session_options, &options));
  api->ReleaseSessionOptions(session_options);
  FAILS(compile->ModelCompilationOptions_SetInputModelPath(options, ""), ORT_INVALID_ARGUMENT,
        "Invalid input model: path string is empty");
  FAILS(compile->ModelCompilationOptions_SetInputModelFromBuffer(options, NULL, 0), ORT_INVALID_ARGUMENT, "");
  FAILS(compile->ModelCompilationOptions_SetOutputModelPath(options, ""), ORT_INVALID_ARGUMENT, "");
  FAILS(compile->ModelCompilationOptions_SetOutputModelBuffer(options, NULL, &data, &size),
        ORT_INVALID_ARGUMENT, "");
  FAILS(compile->ModelCompilationOptions_SetOutputModelWriteFunc(options, NULL, NULL), ORT_INVALID_ARGUMENT,
        "");
  OK(compile->ModelCompilationOptions_SetEpContextEmbedMode(options, false));
  OK(compile->ModelCompilationOptions_SetFlags(options, 0));
  OK(compile->ModelCompilationOptions_SetGraphOptimizationLevel(options, ORT_ENABLE_ALL));
  OK(compile->ModelCompilationOptions_SetInputModelFromBuffer(options, model.data, model.size));
  if (Differs(compiling_makes_executables)) {
    FAILS(compile->CompileModel(env, options), ORT_INVALID_ARGUMENT, "an output is needed");
    OK(compile->ModelCompilationOptions_SetOutputModelBuffer(options, Allocator(), &data, &size));
    OK(compile->CompileModel(env, options));
    OK(compile->ModelCompilationOptions_SetOutputModelWriteFunc(options, KeepFile, &file));
    OK(compile->CompileModel(env, options));
    EQUAL(size == file.size && memcmp(data, file.data, size) == 0, 1);
    OK(api->AllocatorFree(Allocator(), data));
    OK(api->CreateSessionFromArray(env, file.data, file.size, NULL, &session));
    EQUAL(LastSum(session) == 3, 1);
    api->ReleaseSession(session);
    OK(compile->ModelCompilationOptions_SetInputModelFromBuffer(options, file.data, file.size));
    FAILS(compile->CompileModel(env, options), ORT_INVALID_ARGUMENT, "the model is compiled already");
    OK(compile->ModelCompilationOptions_SetInputModelPath(options, "/no/such/model.onnx"));
    FAILS(compile->CompileModel(env, options), ORT_NO_SUCHFILE, "/no/such/model.onnx");
    FAILS(compile->ModelCompilationOptions_SetInputModel(), ORT_NOT_IMPLEMENTED,
          "ModelCompilationOptions_SetInputModel");
  }
  compile->ReleaseModelCompilationOptions(options);
  compile->ReleaseModelCompilationOptions(NULL);
}

static pthread_mutex_t async_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t async_done = PTHREAD_COND_INITIALIZER;
static int async_calls;
static size_t async_outputs;
static void AsyncDone(void* unused, OrtValue** outputs, size_t count, OrtStatus* status) {
  (void)unused;
  (void)outputs;
  pthread_mutex_lock(&async_mutex);
  ++async_calls;
  async_outputs = count;
  CheckOk(__LINE__, "the status of RunAsync", status);
  pthread_cond_signal(&async_done);
  pthread_mutex_unlock(&async_mutex);
}

static void TestAsync(void) {
  const Bytes model = OneNode("Abs", "", 1, "3");
  OrtSessionOptions* options = NULL;
  OrtSession* session;
  float x[3] = {-1, 2, -3};
  const int64_t shape[1] = {3};
  const char* in[1] = {"x"};
  const char* out[1] = {"y"};
  const OrtValue* inputs[1];
  OrtValue* outputs[1] = {NULL};
  void* data = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->SetIntraOpNumThreads(options, 2)); /* ONNX Runtime runs it on a thread of the pool */
  session = Open(&model, options);
  api->ReleaseSessionOptions(options);
  if (session == NULL) return;
  inputs[0] = Floats(x, 3, shape, 1);
  OK(api->RunAsync(session, NULL, in, inputs, 1, out, 1, outputs, AsyncDone, NULL));
  pthread_mutex_lock(&async_mutex);
  while (async_calls == 0) pthread_cond_wait(&async_done, &async_mutex);
  pthread_mutex_unlock(&async_mutex);
  EQUAL(async_outputs, 1);
  OK(api->GetTensorMutableData(outputs[0], &data));
  EQUAL(((float*)data)[2] == 3, 1);
  api->ReleaseValue(outputs[0]);
  api->ReleaseValue((OrtValue*)inputs[0]);
  api->ReleaseSession(session);
}

static void TestAbsent(void) {
  EQUAL(api->GetModelEditorApi() == NULL, OURS(tables_are_absent, 0, 1));
  EQUAL(api->GetModelPackageApi() == NULL, OURS(tables_are_absent, 0, 1));
  EQUAL(api->GetTrainingApi() == NULL, 1);
}

/* oneDNN is large, and none of the models here has a convolution that it computes, a regular expression or an
 * encoded picture. */
static void TestLibrariesInUse(void) {
  static const char* const unused[] = {"dnnl", "kernels_device", "kernels_image", "kernels_re2"};
  size_t i;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int others = 0;
  if (maps == NULL) abort();
  while (fgets(line, sizeof line, maps) != NULL)
    for (i = 0; i < sizeof unused / sizeof *unused; ++i) others += strstr(line, unused[i]) != NULL;
  fclose(maps);
  EQUAL(others, 0);
}

static void CountMessage(void* parameter, OrtLoggingLevel severity, const char* category, const char* log_id,
                         const char* location, const char* message) {
  (void)parameter, (void)severity, (void)category, (void)log_id, (void)location, (void)message;
  ++messages;
}

int main(int count, char** arguments) {
  const OrtApiBase* (*get)(void);
  const OrtApiBase* base;
  void* library = count < 2 ? NULL : dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  void* symbol;
  if (library == NULL) {
    printf("usage: onnxruntime_api_test libonnxruntime.so [transcript] (%s)\n",
           count < 2 ? "none given" : dlerror());
    return 2;
  }
  symbol = dlsym(library, "OrtGetApiBase");
  memcpy(&get, &symbol, sizeof get);
  base = get();
  api = base->GetApi(28);
  BeginChecks(count > 2 ? arguments[2] : NULL);
  OK(api->CreateEnvWithCustomLogger(CountMessage, NULL, ORT_LOGGING_LEVEL_FATAL, "test", &env));
  TestTable(base);
  TestReleaseNull();
  TestStatus();
  TestEnv();
  TestOptions();
  TestMemory();
  TestValues();
  TestStrings();
  TestSequences();
  TestSession();
  TestOpenErrors();
  TestDimensions();
  TestRun();
  TestGivenTwice();
  TestIdentityCopies();
  TestStringModel();
  TestBinding();
  TestTerminate();
  TestThreads();
  TestInitializer();
  TestSequenceModel();
  TestFiles();
  TestCompileApi();
  TestAsync();
  TestLibrariesInUse();
  TestProfile();
  TestRunProfile();
  TestCustomOps(REWIRE_TEST_CUSTOM_OPS);
  TestInitializers();
  TestSessionOptions();
  TestSurface();
  TestOtherValues();
  TestAbsent();
  TestRefusedSlots();
  api->ReleaseEnv(env);
  return EndChecks();
}
