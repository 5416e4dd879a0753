/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom operators on strings:
 *
 *   Longer(x) -> kept, lengths    the strings of x with more bytes than the attribute `least`, and how many
 *                                 bytes each string of x has
 *   Joined(x, y) -> joined        the strings of x, each with "-" and that of y behind it; y is optional
 */
#include "rewire/tests/onnxruntime_api/string_ops.h"

#include <stdlib.h>

static void* CreateLonger(const OrtCustomOp* op, const OrtApi* given, const OrtKernelInfo* info) {
  int64_t* least = malloc(sizeof(int64_t));
  (void)op, (void)given;
  *least = 0;
  IsOk(api->KernelInfoGetAttribute_int64(info, "least", least));
  return least;
}

static size_t LengthOf(const OrtValue* strings, size_t index) {
  size_t length = 0;
  IsOk(api->GetStringTensorElementLength(strings, index, &length));
  return length;
}

static void ComputeLonger(void* kernel, OrtKernelContext* context) {
  const size_t least = (size_t) * (const int64_t*)kernel;
  const OrtValue* x = NULL;
  OrtValue *kept = NULL, *lengths = NULL;
  size_t i, size, count = 0;
  int64_t dims[1];
  if (!IsOk(api->KernelContext_GetInput(context, 0, &x))) return;
  size = CountOf(x);
  dims[0] = (int64_t)size;
  if (!IsOk(api->KernelContext_GetOutput(context, 1, dims, 1, &lengths))) return;
  for (i = 0; i < size; ++i) {
    if (lengths != NULL) ((int64_t*)DataOf(lengths))[i] = (int64_t)LengthOf(x, i);
    count += LengthOf(x, i) > least;
  }
  dims[0] = (int64_t)count;
  if (!IsOk(api->KernelContext_GetOutput(context, 0, dims, 1, &kept))) return;
  for (i = count = 0; i < size; ++i) {
    const size_t length = LengthOf(x, i);
    char* text = NULL;
    if (length <= least) continue;
    if (IsOk(api->GetResizedStringTensorElementBuffer(kept, count++, length, &text)))
      IsOk(api->GetStringTensorElement(x, length, i, text));
  }
}

static void ComputeJoined(void* kernel, OrtKernelContext* context) {
  const OrtValue *x = NULL, *y = NULL;
  OrtValue* joined = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  int64_t dims[4];
  size_t i, rank = 0, size;
  (void)kernel;
  if (!IsOk(api->KernelContext_GetInput(context, 0, &x))) return;
  if (!IsOk(api->KernelContext_GetInput(context, 1, &y))) return;
  if (!IsOk(api->GetTensorTypeAndShape(x, &info))) return;
  if (!IsOk(api->GetDimensionsCount(info, &rank)) || rank > 4) return;
  IsOk(api->GetDimensions(info, dims, rank));
  api->ReleaseTensorTypeAndShapeInfo(info);
  if (!IsOk(api->KernelContext_GetOutput(context, 0, dims, rank, &joined))) return;
  size = CountOf(x);
  for (i = 0; i < size; ++i) {
    char text[64] = "";
    const size_t length = LengthOf(x, i);
    if (length > 30 || !IsOk(api->GetStringTensorElement(x, length, i, text))) return;
    text[length] = '-';
    if (y != NULL && LengthOf(y, i) < 30)
      IsOk(api->GetStringTensorElement(y, LengthOf(y, i), i, text + length + 1));
    IsOk(api->FillStringTensorElement(joined, text, i));
  }
}

static const char* NameLonger(const OrtCustomOp* op) { return (void)op, "Longer"; }
static const char* NameJoined(const OrtCustomOp* op) { return (void)op, "Joined"; }
static ONNXTensorElementDataType IsString(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}
static ONNXTensorElementDataType OutputOfLonger(const OrtCustomOp* op, size_t index) {
  (void)op;
  return index == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}
static size_t One(const OrtCustomOp* op) { return (void)op, 1; }
static size_t Two(const OrtCustomOp* op) { return (void)op, 2; }
static OrtCustomOpInputOutputCharacteristic Required(const OrtCustomOp* op, size_t index) {
  return (void)op, (void)index, INPUT_OUTPUT_REQUIRED;
}

void DescribeStringOps(const OrtCustomOp* like, OrtCustomOp* longer, OrtCustomOp* joined) {
  *longer = *like;
  longer->CreateKernel = CreateLonger;
  longer->GetName = NameLonger;
  longer->GetInputType = IsString;
  longer->GetOutputType = OutputOfLonger;
  longer->KernelCompute = ComputeLonger;
  *joined = *longer;
  joined->GetName = NameJoined;
  joined->GetInputTypeCount = Two;
  joined->GetInputCharacteristic = like->GetOutputCharacteristic;
  joined->GetOutputType = IsString;
  joined->GetOutputTypeCount = One;
  joined->GetOutputCharacteristic = Required;
  joined->KernelCompute = ComputeJoined;
}
