/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of custom operators for ONNX Runtime's C interface, as hosts register them.
 *
 *   Above(x) -> values, at    the elements of x above the attribute `least`, and where they are: the outputs'
 *                             shapes depend on values. Its callbacks return no status.
 *   Facts(x, y, ...) -> facts what the node says of itself, as numbers. Its callbacks return statuses. Its
 *                             attribute `fail` is 1 for a kernel that cannot be made, and 2 for one whose
 *                             call fails.
 *
 * string_ops.c has two more, on strings.
 */
#include <stdlib.h>
#include <string.h>

#include "rewire/onnxruntime_api/api.h"
#include "rewire/tests/onnxruntime_api/custom_ops_library.h"
#include "rewire/tests/onnxruntime_api/string_ops.h"

const OrtApi* api;
static OrtCustomOpDomain* domain; /* as long as the library */

int IsOk(OrtStatus* status) {
  if (status != NULL) api->ReleaseStatus(status);
  return status == NULL;
}

size_t CountOf(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 0;
  if (!IsOk(api->GetTensorTypeAndShape(value, &info))) return 0;
  IsOk(api->GetTensorShapeElementCount(info, &count));
  api->ReleaseTensorTypeAndShapeInfo(info);
  return count;
}

void* DataOf(const OrtValue* value) {
  void* data = NULL;
  IsOk(api->GetTensorMutableData((OrtValue*)value, &data));
  return data;
}

/* --- Above */

static void* CreateAbove(const OrtCustomOp* op, const OrtApi* given, const OrtKernelInfo* info) {
  float* least = malloc(sizeof(float));
  (void)op, (void)given;
  *least = 0;
  IsOk(api->KernelInfoGetAttribute_float(info, "least", least));
  return least;
}

static void ComputeAbove(void* kernel, OrtKernelContext* context) {
  const float least = *(const float*)kernel;
  const OrtValue* x = NULL;
  OrtValue *values = NULL, *at = NULL;
  const float* data;
  size_t i, size;
  int64_t dims[2] = {0, 1};
  int64_t count = 0;
  if (!IsOk(api->KernelContext_GetInput(context, 0, &x))) return;
  data = DataOf(x);
  size = CountOf(x);
  for (i = 0; i < size; ++i) dims[0] += data[i] > least;
  if (!IsOk(api->KernelContext_GetOutput(context, 0, dims, 1, &values))) return;
  if (!IsOk(api->KernelContext_GetOutput(context, 1, dims, 2, &at))) return;
  for (i = 0; i < size; ++i) {
    if (!(data[i] > least)) continue;
    ((float*)DataOf(values))[count] = data[i];
    if (at != NULL) ((int64_t*)DataOf(at))[count] = (int64_t)i;
    ++count;
  }
}

static void Free(void* kernel) { free(kernel); }
static const char* NameAbove(const OrtCustomOp* op) { return (void)op, "Above"; }
static const char* NoProvider(const OrtCustomOp* op) { return (void)op, NULL; }
static size_t One(const OrtCustomOp* op) { return (void)op, 1; }
static size_t Two(const OrtCustomOp* op) { return (void)op, 2; }
static ONNXTensorElementDataType IsFloat(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}
static ONNXTensorElementDataType OutputOfAbove(const OrtCustomOp* op, size_t index) {
  (void)op;
  return index == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}
static OrtCustomOpInputOutputCharacteristic Required(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, INPUT_OUTPUT_REQUIRED;
}
static OrtCustomOpInputOutputCharacteristic SecondIsOptional(const OrtCustomOp* op, size_t index) {
  return (void)op, index == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}

/* --- Facts */

typedef struct Facts {
  int64_t facts[FACTS];
  int64_t fail;
} Facts;

/* Writes down what a node says of itself. */
static void ReadNode(const OrtKernelInfo* info, Facts* made) {
  char text[64] = "";
  size_t size = sizeof text;
  int number = 1;
  OrtTypeInfo* type = NULL;
  OrtKernelInfo* copy = NULL;
  OrtAllocator* allocator = NULL;
  const OrtValue* constant = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (IsOk(api->KernelInfo_GetOperatorDomain(info, text, &size)))
    made->facts[FACT_OPERATOR] += strcmp(text, "test.custom") == 0;
  size = sizeof text;
  if (IsOk(api->KernelInfo_GetOperatorType(info, text, &size)))
    made->facts[FACT_OPERATOR] += 10 * (strcmp(text, "Facts") == 0);
  if (!IsOk(api->KernelInfo_GetOperatorSinceVersion(info, &number))) made->facts[FACT_OPERATOR] += 100;
  size = sizeof text;
  if (IsOk(api->KernelInfo_GetOutputName(info, 0, text, &size)))
    made->facts[FACT_OUTPUT] = 100 * (strcmp(text, "facts") == 0);
  if (IsOk(api->KernelInfo_GetOutputTypeInfo(info, 0, &type))) {
    IsOk(api->CastTypeInfoToTensorInfo(type, &tensor));
    IsOk(api->GetTensorElementType(tensor, &element));
    made->facts[FACT_OUTPUT] += element;
    api->ReleaseTypeInfo(type);
  }
  IsOk(api->KernelInfoGetConstantInput_tensor(info, 0, &number, &constant));
  made->facts[FACT_CONSTANT] = number;
  made->facts[FACT_COPIED] = IsOk(api->CopyKernelInfo(info, &copy)) && copy != NULL &&
                             IsOk(api->KernelInfoGetAllocator(info, OrtMemTypeDefault, &allocator));
  if (allocator != NULL) api->ReleaseAllocator(allocator);
  api->ReleaseKernelInfo(copy);
}

/* 1,000 for each string of an attribute, and its length times its place, from 1; -1 if it cannot be read. */
static int64_t StringsOf(const OrtKernelInfo* info, const char* name) {
  OrtAllocator* allocator = NULL;
  char** strings = NULL;
  size_t i, count = 0;
  int64_t fact = 0;
  if (!IsOk(api->GetAllocatorWithDefaultOptions(&allocator))) return -1;
  if (!IsOk(api->KernelInfoGetAttributeArray_string(info, name, allocator, &strings, &count))) return -1;
  for (i = 0; i < count; ++i) {
    fact += 1000 + (int64_t)((i + 1) * strlen(strings[i]));
    allocator->Free(allocator, strings[i]);
  }
  allocator->Free(allocator, strings);
  return fact;
}

static OrtStatus* CreateFacts(const OrtCustomOp* op, const OrtApi* given, const OrtKernelInfo* info,
                              void** kernel) {
  Facts* made;
  char text[64] = "";
  size_t size = sizeof text, count = 0;
  int64_t number = 0, list[4] = {0};
  float floats[4] = {0};
  OrtAllocator* allocator = NULL;
  const OrtLogger* logger = NULL;
  OrtLoggingLevel level = ORT_LOGGING_LEVEL_VERBOSE;
  OrtValue* table = NULL;
  OrtKeyValuePairs* entries = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  (void)op, (void)given;
  IsOk(api->KernelInfoGetAttribute_int64(info, "fail", &number));
  if (number == 1) return api->CreateStatus(ORT_INVALID_ARGUMENT, "the kernel cannot be made");
  made = calloc(1, sizeof *made);
  made->fail = number;
  IsOk(api->KernelInfo_GetInputCount(info, &count));
  made->facts[FACT_INPUTS] = (int64_t)count;
  IsOk(api->KernelInfo_GetOutputCount(info, &count));
  made->facts[FACT_OUTPUTS] = (int64_t)count;
  made->facts[FACT_NAMED] =
      IsOk(api->KernelInfo_GetInputName(info, 0, text, &size)) && strcmp(text, "x") == 0;
  size = sizeof text;
  made->facts[FACT_NODE] = IsOk(api->KernelInfo_GetNodeName(info, text, &size)) && strcmp(text, "n") == 0;
  size = sizeof text;
  if (IsOk(api->KernelInfoGetAttribute_string(info, "text", text, &size)))
    made->facts[FACT_TEXT] = (int64_t)size * 1000 + text[0];
  size = 0;
  if (IsOk(api->KernelInfoGetAttribute_string(info, "text", NULL, &size)))
    made->facts[FACT_TEXT_SIZE] = (int64_t)size;
  size = 1;
  made->facts[FACT_TOO_SMALL] = IsOk(api->KernelInfoGetAttribute_string(info, "text", text, &size));
  count = 4;
  if (IsOk(api->KernelInfoGetAttributeArray_int64(info, "list", list, &count)))
    made->facts[FACT_LIST] = (int64_t)count * 100 + list[0] * 10 + list[1];
  count = 4;
  if (IsOk(api->KernelInfoGetAttributeArray_float(info, "floats", floats, &count)))
    made->facts[FACT_FLOATS] = (int64_t)count * 100 + (int64_t)(4 * floats[0]);
  made->facts[FACT_MISSING] = IsOk(api->KernelInfoGetAttribute_int64(info, "no such", &number));
  IsOk(api->GetAllocatorWithDefaultOptions(&allocator));
  if (IsOk(api->KernelInfoGetAttribute_tensor(info, "table", allocator, &table))) {
    made->facts[FACT_TABLE] = (int64_t)CountOf(table) * 1000 + ((const int16_t*)DataOf(table))[1];
    api->ReleaseValue(table);
  }
  if (IsOk(api->KernelInfo_GetInputTypeInfo(info, 0, &type))) {
    IsOk(api->CastTypeInfoToTensorInfo(type, &tensor));
    IsOk(api->GetTensorElementType(tensor, &element));
    made->facts[FACT_TYPE] = element;
    api->ReleaseTypeInfo(type);
  }
  ReadNode(info, made);
  made->facts[FACT_NAMES] = StringsOf(info, "names");
  made->facts[FACT_NO_NAMES] = StringsOf(info, "no such");
  made->facts[FACT_OTHER_NAMES] = StringsOf(info, "text");
  count = 4;
  if (IsOk(api->KernelInfoGetAttributeArray_int64(info, "text", list, &count)))
    made->facts[FACT_OTHER_LISTS] = 10 + (int64_t)count;
  count = 4;
  if (IsOk(api->KernelInfoGetAttributeArray_float(info, "text", floats, &count)))
    made->facts[FACT_OTHER_LISTS] += 100 + (int64_t)count;
  if (IsOk(api->KernelInfo_GetConfigEntries(info, &entries))) {
    const char* entry = api->GetKeyValue(entries, "of.the.session");
    made->facts[FACT_ENTRY] = entry != NULL && strcmp(entry, "yes") == 0;
    api->ReleaseKeyValuePairs(entries);
  }
  made->facts[FACT_LOGGED] = IsOk(api->KernelInfo_GetLogger(info, &logger)) &&
                             IsOk(api->Logger_GetLoggingSeverityLevel(logger, &level)) &&
                             level == ORT_LOGGING_LEVEL_FATAL &&
                             IsOk(api->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_VERBOSE, "made", __FILE__,
                                                         __LINE__, "CreateFacts"));
  *kernel = made;
  return NULL;
}

static void AddOne(void* data, size_t index) { ((int64_t*)data)[index] += 1; }

static OrtStatus* ComputeFacts(void* kernel, OrtKernelContext* context) {
  Facts* facts = kernel;
  const OrtValue* input = NULL;
  OrtValue* output = NULL;
  const int64_t dims[] = {FACTS};
  int64_t together[3] = {0, 0, 0};
  void* scratch = NULL;
  size_t i, count = 0;
  OrtStatus* status;
  OrtMemoryInfo* memory = NULL;
  OrtAllocator* allocator = NULL;
  const OrtLogger* logger = NULL;
  if (facts->fail == 2) return api->CreateStatus(ORT_FAIL, "the call fails");
  IsOk(api->KernelContext_GetInputCount(context, &count));
  facts->facts[FACT_GIVEN] = 0;
  for (i = 0; i < count; ++i) {
    IsOk(api->KernelContext_GetInput(context, i, &input));
    facts->facts[FACT_GIVEN] = 10 * facts->facts[FACT_GIVEN] + (input == NULL ? 9 : (int64_t)CountOf(input));
  }
  facts->facts[FACT_PAST_END] = IsOk(api->KernelContext_GetInput(context, count, &input));
  IsOk(api->KernelContext_ParallelFor(context, AddOne, 3, 0, together));
  facts->facts[FACT_TOGETHER] = together[0] + 10 * together[1] + 100 * together[2];
  IsOk(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  if (IsOk(api->KernelContext_GetScratchBuffer(context, memory, 64, &scratch))) memset(scratch, 1, 64);
  IsOk(api->KernelContext_GetOutputCount(context, &count));
  facts->facts[FACT_CONTEXT] = count == 1 && IsOk(api->KernelContext_GetLogger(context, &logger)) &&
                               IsOk(api->KernelContext_GetAllocator(context, memory, &allocator));
  if (allocator != NULL) api->ReleaseAllocator(allocator);
  api->ReleaseMemoryInfo(memory);
  facts->facts[FACT_SCRATCH] = scratch != NULL;
  status = api->KernelContext_GetOutput(context, 0, dims, 1, &output);
  if (status != NULL) return status;
  memcpy(DataOf(output), facts->facts, sizeof facts->facts);
  return NULL;
}

static const char* NameFacts(const OrtCustomOp* op) { return (void)op, "Facts"; }
static ONNXTensorElementDataType IsInt64(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}
static OrtCustomOpInputOutputCharacteristic SecondIsVariadic(const OrtCustomOp* op, size_t index) {
  return (void)op, index == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_VARIADIC;
}
static OrtMemType DefaultMemory(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, OrtMemTypeDefault;
}
static int NoLeast(const OrtCustomOp* op) { return (void)op, 0; }
static int IsHomogeneous(const OrtCustomOp* op) { return (void)op, 1; }

__attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                    const OrtApiBase* base) {
  static OrtCustomOp above, facts, longer, joined;
  OrtStatus* status;
  api = base->GetApi(16);
  above.version = 16;
  above.CreateKernel = CreateAbove;
  above.GetName = NameAbove;
  above.GetExecutionProviderType = NoProvider;
  above.GetInputType = IsFloat;
  above.GetInputTypeCount = One;
  above.GetOutputType = OutputOfAbove;
  above.GetOutputTypeCount = Two;
  above.KernelCompute = ComputeAbove;
  above.KernelDestroy = Free;
  above.GetInputCharacteristic = Required;
  above.GetOutputCharacteristic = SecondIsOptional;
  above.GetInputMemoryType = DefaultMemory;
  above.GetVariadicInputMinArity = NoLeast;
  above.GetVariadicInputHomogeneity = IsHomogeneous;
  above.GetVariadicOutputMinArity = NoLeast;
  above.GetVariadicOutputHomogeneity = IsHomogeneous;
  facts = above;
  facts.CreateKernel = NULL;
  facts.CreateKernelV2 = CreateFacts;
  facts.GetName = NameFacts;
  facts.GetInputTypeCount = Two;
  facts.GetOutputType = IsInt64;
  facts.GetOutputTypeCount = One;
  facts.KernelCompute = NULL;
  facts.KernelComputeV2 = ComputeFacts;
  facts.GetInputCharacteristic = SecondIsVariadic;
  facts.GetOutputCharacteristic = Required;
  DescribeStringOps(&above, &longer, &joined);
  if (domain == NULL) {
    status = api->CreateCustomOpDomain("test.custom", &domain);
    if (status == NULL) status = api->CustomOpDomain_Add(domain, &above);
    if (status == NULL) status = api->CustomOpDomain_Add(domain, &facts);
    if (status == NULL) status = api->CustomOpDomain_Add(domain, &longer);
    if (status == NULL) status = api->CustomOpDomain_Add(domain, &joined);
    if (status != NULL) return status;
  }
  return api->AddCustomOpDomain(options, domain);
}

/* The domain is the library's own: a host that closes the library asks nobody else to release it. */
__attribute__((destructor)) static void ReleaseDomain(void) {
  if (domain != NULL) api->ReleaseCustomOpDomain(domain);
}
