/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the table that no other test calls: settings that are read back, small objects, devices. */
#include <stdlib.h>
#include <string.h>

#include "rewire/tests/onnxruntime_api/checks.h"

static void TestSessionSettings(void) {
  OrtSessionOptions* options = NULL;
  OrtKeyValuePairs* pairs = NULL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  int number = -1;
  const char* const keys[] = {"key"};
  const char* const values[] = {"value"};
  OK(api->CreateSessionOptions(&options));
  OK(api->SetSessionExecutionMode(options, ORT_PARALLEL));
  OK(api->GetSessionExecutionMode(options, &mode));
  EQUAL(mode, ORT_PARALLEL);
  OK(api->SetSessionExecutionMode(options, ORT_SEQUENTIAL));
  OK(api->EnableMemPattern(options));
  OK(api->GetMemPatternEnabled(options, &number));
  EQUAL(number, 1);
  OK(api->DisableMemPattern(options));
  OK(api->GetMemPatternEnabled(options, &number));
  EQUAL(number, 0);
  OK(api->EnableCpuMemArena(options));
  OK(api->SetSessionLogVerbosityLevel(options, 0));
  OK(api->SetDeterministicCompute(options, true));
  OK(api->AddFreeDimensionOverride(options, "DATA_BATCH", 1));
  OK(api->SessionOptionsSetEpSelectionPolicyDelegate(options, NULL, NULL));
  OK(api->SessionOptionsSetLoadCancellationFlag(options, true));
  OK(api->SessionOptionsSetLoadCancellationFlag(options, false));
  FAILS(api->SessionOptionsAppendExecutionProvider(options, "Nope", keys, values, 1), ORT_INVALID_ARGUMENT,
        "Nope");
  OK(api->AddSessionConfigEntry(options, "an.entry", "1"));
  OK(api->GetSessionOptionsConfigEntries(options, &pairs));
  TEXT(api->GetKeyValue(pairs, "an.entry"), "1");
  api->ReleaseKeyValuePairs(pairs);
  api->ReleaseSessionOptions(options);
}

static void TestCancelledLoad(void) {
  Bytes model = OneNode("Abs", "", 1, "2");
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->SessionOptionsSetLoadCancellationFlag(options, true));
  FAILS(api->CreateSessionFromArray(env, model.data, model.size, options, &session), ORT_MODEL_LOAD_CANCELED,
        "canceled due to user request.");
  api->ReleaseSessionOptions(options);
}

static void TestRunSettings(void) {
  OrtRunOptions* options = NULL;
  int level = -1;
  const char* tag = NULL;
  OK(api->CreateRunOptions(&options));
  OK(api->RunOptionsSetRunLogVerbosityLevel(options, 3));
  OK(api->RunOptionsGetRunLogVerbosityLevel(options, &level));
  EQUAL(level, 3);
  OK(api->RunOptionsSetRunLogSeverityLevel(options, ORT_LOGGING_LEVEL_ERROR));
  OK(api->RunOptionsGetRunLogSeverityLevel(options, &level));
  EQUAL(level, ORT_LOGGING_LEVEL_ERROR);
  OK(api->RunOptionsSetRunTag(options, "a tag"));
  OK(api->RunOptionsGetRunTag(options, &tag));
  TEXT(tag, "a tag");
  OK(api->AddRunConfigEntry(options, "memory.nothing", "cpu:0"));
  TEXT(api->GetRunConfigEntry(options, "memory.nothing"), "cpu:0");
  EQUAL(api->GetRunConfigEntry(options, "no such") == NULL, 1);
  FAILS(api->AddRunConfigEntry(options, "", "1"), ORT_INVALID_ARGUMENT, "Config key is empty");
  api->ReleaseRunOptions(options);
}

static void TestEnvSettings(void) {
  OrtThreadingOptions* threading = NULL;
  OrtEnvCreationOptions creation = {0};
  OrtEnv* second = NULL;
  OK(api->EnableTelemetryEvents(env));
  OK(api->DisableTelemetryEvents(env));
  OK(api->SetLanguageProjection(env, ORT_PROJECTION_C));
  OK(api->CreateThreadingOptions(&threading));
  OK(api->SetGlobalIntraOpNumThreads(threading, 2));
  OK(api->SetGlobalInterOpNumThreads(threading, 1));
  OK(api->SetGlobalSpinControl(threading, 0));
  OK(api->SetGlobalDenormalAsZero(threading));
  OK(api->SetGlobalIntraOpThreadAffinity(threading, "1"));
  /* An environment after the first one is the first one. */
  OK(api->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_FATAL, "second", threading, &second));
  EQUAL(second == env, 1);
  api->ReleaseEnv(second);
  OK(api->CreateEnvWithCustomLoggerAndGlobalThreadPools(NULL, NULL, ORT_LOGGING_LEVEL_FATAL, "third",
                                                        threading, &second));
  EQUAL(second == env, 1);
  api->ReleaseEnv(second);
  creation.version = 28;
  creation.logging_severity_level = ORT_LOGGING_LEVEL_FATAL;
  creation.log_id = "fourth";
  OK(api->CreateEnvWithOptions(&creation, &second));
  EQUAL(second == env, 1);
  api->ReleaseEnv(second);
  api->ReleaseThreadingOptions(threading);
}

static void TestTensorInfo(void) {
  const int64_t dims[] = {2, -1};
  const char* names[] = {"", "N"};
  const char* read[2] = {NULL, NULL};
  OrtTensorTypeAndShapeInfo* info = NULL;
  OK(api->CreateTensorTypeAndShapeInfo(&info));
  OK(api->SetTensorElementType(info, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8));
  OK(api->SetDimensions(info, dims, 2));
  EQUAL(api->TensorTypeAndShape_HasShape(info), 1);
  OK(api->SetSymbolicDimensions(info, names, 2));
  OK(api->GetSymbolicDimensions(info, read, 2));
  TEXT(read[1], "N");
  api->ReleaseTensorTypeAndShapeInfo(info);
}

static void TestValueTypes(void) {
  float data[2] = {1, 2};
  const int64_t shape[] = {2};
  const int64_t* dims = NULL;
  size_t rank = 0, length = 1;
  int is_sparse = 1;
  const void* at = NULL;
  const char* denotation = NULL;
  const OrtMemoryInfo* memory = NULL;
  const OrtMapTypeInfo* map = NULL;
  const OrtSequenceTypeInfo* sequence = NULL;
  const OrtOptionalTypeInfo* optional = NULL;
  OrtTypeInfo* type = NULL;
  OrtTypeInfo* element_type = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OrtValue* value = Floats(data, 2, shape, 1);
  OrtValue* list = NULL;
  const OrtValue* parts[1];
  OK(api->IsSparseTensor(value, &is_sparse));
  EQUAL(is_sparse, 0);
  OK(api->GetTensorData(value, &at));
  EQUAL(at == data, 1);
  OK(api->GetTensorMemoryInfo(value, &memory));
  EQUAL(memory != NULL, 1);
  OK(api->GetTensorElementTypeAndShapeDataReference(value, &element, &dims, &rank));
  EQUAL(element, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  EQUAL(rank, 1);
  EQUAL(dims[0], 2);
  OK(api->GetTypeInfo(value, &type));
  OK(api->GetDenotationFromTypeInfo(type, &denotation, &length));
  EQUAL(length, 0);
  OK(api->CastTypeInfoToMapTypeInfo(type, &map));
  EQUAL(map == NULL, 1);
  OK(api->CastTypeInfoToOptionalTypeInfo(type, &optional));
  EQUAL(optional == NULL, 1);
  api->ReleaseTypeInfo(type);
  parts[0] = value;
  OK(api->CreateValue(parts, 1, ONNX_TYPE_SEQUENCE, &list));
  OK(api->GetTypeInfo(list, &type));
  OK(api->CastTypeInfoToSequenceTypeInfo(type, &sequence));
  OK(api->GetSequenceElementType(sequence, &element_type));
  OK(api->GetOnnxTypeFromTypeInfo(element_type, &kind));
  EQUAL(kind, ONNX_TYPE_TENSOR);
  api->ReleaseTypeInfo(element_type);
  api->ReleaseTypeInfo(type);
  api->ReleaseValue(list);
  api->ReleaseValue(value);
}

static void TestMapType(void) {
  float scores[2] = {1, 2};
  int64_t keys[2] = {7, 8};
  const int64_t shape[] = {2};
  OrtMemoryInfo* memory = NULL;
  OrtValue* parts[2] = {NULL, NULL};
  const OrtValue* given[2];
  OrtValue* map = NULL;
  OrtTypeInfo* type = NULL;
  OrtTypeInfo* value_type = NULL;
  const OrtMapTypeInfo* info = NULL;
  ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, keys, sizeof keys, shape, 1,
                                         ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &parts[0]));
  parts[1] = Floats(scores, 2, shape, 1);
  given[0] = parts[0];
  given[1] = parts[1];
  OK(api->CreateValue(given, 2, ONNX_TYPE_MAP, &map));
  OK(api->GetTypeInfo(map, &type));
  OK(api->CastTypeInfoToMapTypeInfo(type, &info));
  OK(api->GetMapKeyType(info, &key));
  EQUAL(key, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  OK(api->GetMapValueType(info, &value_type));
  api->ReleaseTypeInfo(value_type);
  api->ReleaseTypeInfo(type);
  api->ReleaseValue(map);
  api->ReleaseValue(parts[0]);
  api->ReleaseValue(parts[1]);
  api->ReleaseMemoryInfo(memory);
}

static void TestPairs(void) {
  OrtKeyValuePairs* pairs = NULL;
  const char* const* keys = NULL;
  const char* const* values = NULL;
  size_t count = 0;
  api->CreateKeyValuePairs(&pairs);
  api->AddKeyValuePair(pairs, "a", "1");
  api->AddKeyValuePair(pairs, "b", "2");
  api->AddKeyValuePair(pairs, "a", "3");
  api->AddKeyValuePair(pairs, "", "4");
  api->GetKeyValuePairs(pairs, &keys, &values, &count);
  EQUAL(count, 2);
  TEXT(api->GetKeyValue(pairs, "a"), "3");
  api->RemoveKeyValuePair(pairs, "a");
  EQUAL(api->GetKeyValue(pairs, "a") == NULL, 1);
  api->ReleaseKeyValuePairs(pairs);
}

/* Memory that the library frees by the host's allocator. */
static void TestDeleter(void) {
  const int64_t shape[] = {2};
  OrtKeyValuePairs* stats = NULL;
  OrtValue* value = NULL;
  void* memory = NULL;
  OK(api->AllocatorAlloc(Allocator(), 2 * sizeof(float), &memory));
  OK(api->CreateTensorWithDataAndDeleterAsOrtValue(Allocator(), memory, 2 * sizeof(float), shape, 1,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  api->ReleaseValue(value);
  OK(api->AllocatorGetStats(Allocator(), &stats));
  api->ReleaseKeyValuePairs(stats);
}

static void TestMemoryKinds(void) {
  OrtMemoryInfo* memory = NULL;
  OrtMemType mem_type = OrtMemTypeCPUInput;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_GPU;
  OK(api->CreateMemoryInfo_V2("Cpu", OrtMemoryInfoDeviceType_CPU, 0, 0, OrtDeviceMemoryType_DEFAULT, 0,
                              OrtDeviceAllocator, &memory));
  OK(api->MemoryInfoGetMemType(memory, &mem_type));
  EQUAL(mem_type, OrtMemTypeDefault);
  api->MemoryInfoGetDeviceType(memory, &device);
  EQUAL(device, OrtMemoryInfoDeviceType_CPU);
  EQUAL(api->MemoryInfoGetDeviceMemType(memory), OrtDeviceMemoryType_DEFAULT);
  EQUAL(api->MemoryInfoGetVendorId(memory), 0);
  api->ReleaseMemoryInfo(memory);
}

static void TestDevices(void) {
  const OrtEpDevice* const* devices = NULL;
  const OrtHardwareDevice* hardware = NULL;
  OrtSessionOptions* options = NULL;
  size_t count = 0;
  OK(api->GetEpDevices(env, &devices, &count));
  if (count == 0) return;
  TEXT(api->EpDevice_EpName(devices[0]), "CPUExecutionProvider");
  EQUAL(api->EpDevice_EpVendor(devices[0]) != NULL, 1);
  EQUAL(api->EpDevice_EpMetadata(devices[0]) != NULL, 1);
  EQUAL(api->EpDevice_EpOptions(devices[0]) != NULL, 1);
  hardware = api->EpDevice_Device(devices[0]);
  EQUAL(api->HardwareDevice_Type(hardware), OrtHardwareDeviceType_CPU);
  EQUAL(api->HardwareDevice_Vendor(hardware) != NULL, 1);
  EQUAL(api->HardwareDevice_Metadata(hardware) != NULL, 1);
  (void)api->HardwareDevice_VendorId(hardware); /* the machine's */
  (void)api->HardwareDevice_DeviceId(hardware);
  (void)api->EpDevice_MemoryInfo(devices[0], OrtDeviceMemoryType_DEFAULT);
  OK(api->GetNumHardwareDevices(env, &count));
  EQUAL(count > 0, 1);
  OK(api->CreateSessionOptions(&options));
  OK(api->SessionOptionsAppendExecutionProvider_V2(options, env, devices, 1, NULL, NULL, 0));
  OK(api->DisablePerSessionThreads(options));
  api->ReleaseSessionOptions(options);
  if (!Differs(tables_are_absent)) return;
  OK(api->GetHardwareDevices(env, &hardware, 1)); /* of ONNX Runtime there may be several */
  OK(api->ReleaseSharedAllocator(env, devices[0], OrtDeviceMemoryType_DEFAULT));
}

static void TestSessionDevices(void) {
  Bytes model = OneNode("Abs", "", 1, "2");
  OrtSession* session = NULL;
  OrtPrepackedWeightsContainer* container = NULL;
  OrtMemoryInfo* wanted = NULL;
  OrtAllocator* allocator = NULL;
  OrtModelMetadata* metadata = NULL;
  OrtIoBinding* binding = NULL;
  char* text = NULL;
  void* memory = NULL;
  const OrtMemoryInfo* places[1] = {NULL};
  const OrtEpDevice* devices[1] = {NULL};
  OK(api->CreatePrepackedWeightsContainer(&container));
  OK(api->CreateSessionFromArrayWithPrepackedWeightsContainer(env, model.data, model.size, NULL, container,
                                                              &session));
  if (session == NULL) return;
  OK(api->SessionGetMemoryInfoForInputs(session, places, 1));
  EQUAL(places[0] != NULL, 1);
  OK(api->SessionGetMemoryInfoForOutputs(session, places, 1));
  OK(api->SessionGetEpDeviceForInputs(session, devices, 1));
  OK(api->SessionGetEpDeviceForOutputs(session, devices, 1));
  OK(api->SessionGetModelMetadata(session, &metadata));
  OK(api->ModelMetadataGetGraphDescription(metadata, Allocator(), &text));
  TEXT(text, "");
  OK(api->AllocatorFree(Allocator(), text));
  api->ReleaseModelMetadata(metadata);
  OK(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &wanted));
  OK(api->CreateAllocator(session, wanted, &allocator));
  OK(api->AllocatorAlloc(allocator, 100, &memory));
  EQUAL(memory != NULL, 1);
  OK(api->AllocatorFree(allocator, memory));
  api->ReleaseAllocator(allocator);
  OK(api->CreateIoBinding(session, &binding));
  OK(api->SynchronizeBoundInputs(binding));
  OK(api->SynchronizeBoundOutputs(binding));
  api->ReleaseIoBinding(binding);
  api->ReleaseMemoryInfo(wanted);
  api->ReleaseSession(session);
  FAILS(
      api->CreateSessionWithPrepackedWeightsContainer(env, "/no/such/model.onnx", NULL, container, &session),
      ORT_NO_SUCHFILE, "/no/such/model.onnx");
  api->ReleasePrepackedWeightsContainer(container);
}

/* has = whether x, an optional tensor of floats, has a value. */
static void TestOptionalType(void) {
  Bytes tensor = {{0}, 0}, type = {{0}, 0}, optional = {{0}, 0}, outer = {{0}, 0}, value = {{0}, 0},
        graph = {{0}, 0};
  Bytes node = Node("OptionalHasElement", "", "x", "has");
  Bytes model;
  OrtSession* session;
  OrtTypeInfo *of_input = NULL, *inner = NULL;
  const OrtOptionalTypeInfo* cast = NULL;
  const OrtTensorTypeAndShapeInfo* contained = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  PutNumber(&tensor, 1, 1);
  PutBytes(&type, 1, &tensor);
  PutBytes(&optional, 1, &type);
  PutBytes(&outer, 9, &optional);
  PutText(&value, 1, "x");
  PutBytes(&value, 2, &outer);
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "optional");
  PutBytes(&graph, GRAPH_INPUT, &value);
  PutTensor(&graph, GRAPH_OUTPUT, "has", 9, "");
  model = Model(&graph, 18);
  session = Open(&model, NULL);
  if (session == NULL) return;
  OK(api->SessionGetInputTypeInfo(session, 0, &of_input));
  OK(api->GetOnnxTypeFromTypeInfo(of_input, &kind));
  EQUAL(kind, ONNX_TYPE_OPTIONAL);
  OK(api->CastTypeInfoToOptionalTypeInfo(of_input, &cast));
  if (cast != NULL && OK(api->GetOptionalContainedTypeInfo(cast, &inner))) {
    OK(api->GetOnnxTypeFromTypeInfo(inner, &kind));
    EQUAL(kind, ONNX_TYPE_TENSOR);
    api->ReleaseTypeInfo(of_input); /* the type inside is a copy */
    of_input = NULL;
    OK(api->CastTypeInfoToTensorInfo(inner, &contained));
    OK(api->GetTensorElementType(contained, &element));
    EQUAL(element, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    api->ReleaseTypeInfo(inner);
  }
  EQUAL(cast != NULL, 1);
  api->ReleaseTypeInfo(of_input);
  api->ReleaseSession(session);
}

void TestSurface(void) {
  TestOptionalType();
  TestSessionSettings();
  TestCancelledLoad();
  TestRunSettings();
  TestEnvSettings();
  TestTensorInfo();
  TestValueTypes();
  TestMapType();
  TestPairs();
  TestDeleter();
  TestMemoryKinds();
  TestDevices();
  TestSessionDevices();
}
