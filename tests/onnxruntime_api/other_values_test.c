/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of values with values of another kind, and parts that make no value. */
#include "rewire/tests/onnxruntime_api/checks.h"

static OrtValue* Typed(void* data, size_t bytes, const int64_t* shape, size_t rank,
                       ONNXTensorElementDataType type) {
  OrtMemoryInfo* memory = NULL;
  OrtValue* value = NULL;
  OK(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OK(api->CreateTensorWithDataAsOrtValue(memory, data, bytes, shape, rank, type, &value));
  api->ReleaseMemoryInfo(memory);
  return value;
}

/* Functions of tensors with a sequence, and of strings with other indices. */
static void TestOtherKinds(void) {
  float data[2] = {1, 2};
  const int64_t shape[] = {2};
  const int64_t place[] = {0};
  char text[4];
  size_t size = 0;
  void* at = NULL;
  const void* read = NULL;
  const OrtMemoryInfo* memory = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  OrtValue* list = NULL;
  OrtValue* strings = NULL;
  OrtValue* const value = Floats(data, 2, shape, 1);
  const OrtValue* parts[1];
  parts[0] = value;
  OK(api->CreateValue(parts, 1, ONNX_TYPE_SEQUENCE, &list));
  FAILS(api->GetTensorTypeAndShape(list, &info), ORT_FAIL, "tensor");
  FAILS(api->GetTensorMemoryInfo(list, &memory), ORT_RUNTIME_EXCEPTION, "");
  FAILS(api->GetTensorMutableData(list, &at), ORT_RUNTIME_EXCEPTION, "");
  FAILS(api->GetTensorData(list, &read), ORT_RUNTIME_EXCEPTION, "");
  FAILS(api->TensorAt(list, place, 1, &at), ORT_RUNTIME_EXCEPTION, "");
  FAILS(api->GetTensorSizeInBytes(list, &size), ORT_INVALID_ARGUMENT, "tensor");
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &strings));
  FAILS(api->GetTensorSizeInBytes(strings, &size), ORT_INVALID_ARGUMENT, "not supported by this API");
  FAILS(api->GetStringTensorElementLength(strings, 2, &size), ORT_INVALID_ARGUMENT, "out of bounds");
  FAILS(api->GetStringTensorElement(strings, sizeof text, 2, text), ORT_INVALID_ARGUMENT, "out of bounds");
  api->ReleaseValue(strings);
  api->ReleaseValue(list);
  api->ReleaseValue(value);
}

static void TestPartsThatDoNotFit(void) {
  float data[4] = {1, 2, 3, 4};
  int64_t numbers[2] = {7, 8};
  uint8_t flags[2] = {0, 1};
  const int64_t two[] = {2}, three[] = {3}, square[] = {2, 2};
  OrtValue* const keys = Typed(numbers, sizeof numbers, two, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  OrtValue* const bools = Typed(flags, sizeof flags, two, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
  OrtValue* const longer = Floats(data, 3, three, 1);
  OrtValue* const table = Floats(data, 4, square, 2);
  OrtValue* list = NULL;
  OrtValue* made = NULL;
  const OrtValue* parts[2];
  parts[0] = keys;
  OK(api->CreateValue(parts, 1, ONNX_TYPE_SEQUENCE, &list));
  FAILS(api->CreateValue(parts, 1, ONNX_TYPE_MAP, &made), ORT_FAIL, "MUST be 2");
  parts[1] = longer;
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_MAP, &made), ORT_FAIL, "unequal number of elements");
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_SEQUENCE, &made), ORT_FAIL, "same data type");
  parts[1] = table;
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_MAP, &made), ORT_FAIL, "NumDimensions > 1");
  parts[1] = bools;
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_MAP, &made), ORT_FAIL, "Value type is not supported yet: bool");
  parts[1] = list;
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_MAP, &made), ORT_RUNTIME_EXCEPTION, "");
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_SEQUENCE, &made), ORT_FAIL, "different from others");
  parts[0] = list;
  FAILS(api->CreateValue(parts, 1, ONNX_TYPE_SEQUENCE, &made), ORT_FAIL, "either tensor or map");
  parts[0] = bools;
  parts[1] = bools;
  FAILS(api->CreateValue(parts, 2, ONNX_TYPE_MAP, &made), ORT_FAIL, "Key type is not supported yet");
  api->ReleaseValue(list);
  api->ReleaseValue(table);
  api->ReleaseValue(longer);
  api->ReleaseValue(bools);
  api->ReleaseValue(keys);
}

/* A type that a host makes has no shape before it sets one. */
static void TestNewTensorInfo(void) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t count = 7;
  OK(api->CreateTensorTypeAndShapeInfo(&info));
  OK(api->GetTensorElementType(info, &element));
  EQUAL(element, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  EQUAL(api->TensorTypeAndShape_HasShape(info), 0);
  OK(api->GetTensorShapeElementCount(info, &count));
  EQUAL(count, 0);
  OK(api->SetDimensions(info, NULL, 0));
  EQUAL(api->TensorTypeAndShape_HasShape(info), 1);
  OK(api->GetTensorShapeElementCount(info, &count));
  EQUAL(count, 1);
  api->ReleaseTensorTypeAndShapeInfo(info);
}

/* Shapes must broadcast where the result has no elements, too. */
static void TestSumOfNothing(void) {
  Bytes graph = {{0}, 0};
  Bytes node = Node("Add", "", "a,b", "y");
  const char* const in[] = {"a", "b"};
  const char* const out[] = {"y"};
  const int64_t empty[] = {2, 0}, one[] = {1}, three[] = {3};
  float data[3] = {1, 2, 3};
  OrtValue* const values[] = {Floats(data, 0, empty, 2), Floats(data, 1, one, 1), Floats(data, 3, three, 1)};
  const OrtValue* inputs[2];
  OrtValue* output = NULL;
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "sum of nothing");
  PutTensor(&graph, GRAPH_INPUT, "a", 1, "2,0");
  PutTensor(&graph, GRAPH_INPUT, "b", 1, "N");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "2,M");
  const Bytes model = Model(&graph, 17);
  OrtSession* const session = Open(&model, NULL);
  if (session == NULL) return;
  inputs[0] = values[0];
  inputs[1] = values[1];
  if (OK(api->Run(session, NULL, in, inputs, 2, out, 1, &output))) api->ReleaseValue(output);
  output = NULL;
  inputs[1] = values[2];
  FAILS(api->Run(session, NULL, in, inputs, 2, out, 1, &output), ORT_FAIL, "broadcast");
  for (size_t i = 0; i < 3; ++i) api->ReleaseValue(values[i]);
  api->ReleaseSession(session);
}

void TestOtherValues(void) {
  TestSumOfNothing();
  TestOtherKinds();
  TestPartsThatDoNotFit();
  TestNewTensorInfo();
}
