/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime's C interface as far as this library serves it: types, constants and the table of functions.
 *
 * Names, order, values and types are facts of that interface. A host compiles against its own header. This
 * one is for the library and its tests, and it is C as well as C++. It has no declarations for functions
 * that are refused: they read no argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define REWIRE_ORT_NOEXCEPT noexcept
extern "C" {
#else
#define REWIRE_ORT_NOEXCEPT
#endif

/* The newest version of the table that GetApi gives. */
#define REWIRE_ORT_API_VERSION 32

typedef enum OrtErrorCode {
  ORT_OK,
  ORT_FAIL,
  ORT_INVALID_ARGUMENT,
  ORT_NO_SUCHFILE,
  ORT_NO_MODEL,
  ORT_ENGINE_ERROR,
  ORT_RUNTIME_EXCEPTION,
  ORT_INVALID_PROTOBUF,
  ORT_MODEL_LOADED,
  ORT_NOT_IMPLEMENTED,
  ORT_INVALID_GRAPH,
  ORT_EP_FAIL,
  ORT_MODEL_LOAD_CANCELED,
  ORT_MODEL_REQUIRES_COMPILATION,
  ORT_NOT_FOUND
} OrtErrorCode;

typedef enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ
} ONNXTensorElementDataType;

typedef enum ONNXType {
  ONNX_TYPE_UNKNOWN,
  ONNX_TYPE_TENSOR,
  ONNX_TYPE_SEQUENCE,
  ONNX_TYPE_MAP,
  ONNX_TYPE_OPAQUE,
  ONNX_TYPE_SPARSETENSOR,
  ONNX_TYPE_OPTIONAL
} ONNXType;

typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE,
  ORT_LOGGING_LEVEL_INFO,
  ORT_LOGGING_LEVEL_WARNING,
  ORT_LOGGING_LEVEL_ERROR,
  ORT_LOGGING_LEVEL_FATAL
} OrtLoggingLevel;

typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 } ExecutionMode;
typedef enum OrtLanguageProjection { ORT_PROJECTION_C = 0 } OrtLanguageProjection;

typedef enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2
} OrtAllocatorType;

typedef enum OrtMemType {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = OrtMemTypeCPUOutput,
  OrtMemTypeDefault = 0
} OrtMemType;

typedef enum OrtDeviceMemoryType {
  OrtDeviceMemoryType_DEFAULT = 0,
  OrtDeviceMemoryType_HOST_ACCESSIBLE = 5
} OrtDeviceMemoryType;

typedef enum OrtMemoryInfoDeviceType {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3
} OrtMemoryInfoDeviceType;

typedef enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU,
  OrtHardwareDeviceType_GPU,
  OrtHardwareDeviceType_NPU
} OrtHardwareDeviceType;

typedef struct OrtEnv OrtEnv;
typedef struct OrtStatus OrtStatus;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtSession OrtSession;
typedef struct OrtValue OrtValue;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtMapTypeInfo OrtMapTypeInfo;
typedef struct OrtSequenceTypeInfo OrtSequenceTypeInfo;
typedef struct OrtOptionalTypeInfo OrtOptionalTypeInfo;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtModelMetadata OrtModelMetadata;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtPrepackedWeightsContainer OrtPrepackedWeightsContainer;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtModelCompilationOptions OrtModelCompilationOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtLogger OrtLogger;
struct OrtApi;

/* Hosts bring allocators of their own. What stands behind `Info` exists only from some `version` on. */
typedef struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(struct OrtAllocator* self, size_t size);
  void (*Free)(struct OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const struct OrtAllocator* self);
  void* (*Reserve)(struct OrtAllocator* self, size_t size);
  OrtStatus* (*GetStats)(const struct OrtAllocator* self, OrtKeyValuePairs** out);
  void* (*AllocOnStream)(struct OrtAllocator* self, size_t size, void* stream);
  OrtStatus* (*Shrink)(struct OrtAllocator* self);
} OrtAllocator;

typedef enum OrtCustomOpInputOutputCharacteristic {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL,
  INPUT_OUTPUT_VARIADIC
} OrtCustomOpInputOutputCharacteristic;

/* An operator of the host. Callbacks exist only from some `version` on: those behind KernelDestroy from 8,
 * CreateKernelV2 and KernelComputeV2 from 16, those behind them from 17 and 18. */
typedef struct OrtCustomOp {
  uint32_t version;
  void* (*CreateKernel)(const struct OrtCustomOp* op, const struct OrtApi* api, const OrtKernelInfo* info);
  const char* (*GetName)(const struct OrtCustomOp* op);
  const char* (*GetExecutionProviderType)(const struct OrtCustomOp* op);
  ONNXTensorElementDataType (*GetInputType)(const struct OrtCustomOp* op, size_t index);
  size_t (*GetInputTypeCount)(const struct OrtCustomOp* op);
  ONNXTensorElementDataType (*GetOutputType)(const struct OrtCustomOp* op, size_t index);
  size_t (*GetOutputTypeCount)(const struct OrtCustomOp* op);
  void (*KernelCompute)(void* kernel, OrtKernelContext* context);
  void (*KernelDestroy)(void* kernel);
  OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const struct OrtCustomOp* op, size_t index);
  OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const struct OrtCustomOp* op, size_t index);
  OrtMemType (*GetInputMemoryType)(const struct OrtCustomOp* op, size_t index);
  int (*GetVariadicInputMinArity)(const struct OrtCustomOp* op);
  int (*GetVariadicInputHomogeneity)(const struct OrtCustomOp* op);
  int (*GetVariadicOutputMinArity)(const struct OrtCustomOp* op);
  int (*GetVariadicOutputHomogeneity)(const struct OrtCustomOp* op);
  OrtStatus* (*CreateKernelV2)(const struct OrtCustomOp* op, const struct OrtApi* api,
                               const OrtKernelInfo* info, void** kernel);
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context);
  OrtStatus* (*InferOutputShapeFn)(const struct OrtCustomOp* op, OrtShapeInferContext* context);
  int (*GetStartVersion)(const struct OrtCustomOp* op);
  int (*GetEndVersion)(const struct OrtCustomOp* op);
  size_t (*GetMayInplace)(int** inputs, int** outputs);
  void (*ReleaseMayInplace)(int* inputs, int* outputs);
  size_t (*GetAliasMap)(int** inputs, int** outputs);
  void (*ReleaseAliasMap)(int* inputs, int* outputs);
} OrtCustomOp;

typedef void (*OrtLoggingFunction)(void* parameter, OrtLoggingLevel severity, const char* category,
                                   const char* log_id, const char* location, const char* message);
typedef void (*RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t count, OrtStatus* status);

typedef struct OrtEnvCreationOptions {
  uint32_t version;
  int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;
  const OrtKeyValuePairs* config_entries;
} OrtEnvCreationOptions;

typedef OrtStatus* (*OrtWriteBufferFunc)(void* state, const void* data, size_t size);

/* The table of functions that compile a model to a file. Here that file is an executable (.rwx). Functions
 * that are refused read no argument, so the types of their arguments are left out. */
typedef struct OrtCompileApi {
  void (*ReleaseModelCompilationOptions)(OrtModelCompilationOptions* options) REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*CreateModelCompilationOptionsFromSessionOptions)(
      const OrtEnv* env, const OrtSessionOptions* session_options,
      OrtModelCompilationOptions** out)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetInputModelPath)(OrtModelCompilationOptions* options,
                                                          const char* path)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetInputModelFromBuffer)(OrtModelCompilationOptions* options,
                                                                const void* data,
                                                                size_t size)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelPath)(OrtModelCompilationOptions* options,
                                                           const char* path)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelExternalInitializersFile)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelBuffer)(OrtModelCompilationOptions* options,
                                                             OrtAllocator* allocator, void** data,
                                                             size_t* size)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetEpContextEmbedMode)(OrtModelCompilationOptions* options,
                                                              bool embed)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*CompileModel)(const OrtEnv* env, const OrtModelCompilationOptions* options)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetFlags)(OrtModelCompilationOptions* options,
                                                 uint32_t flags)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetEpContextBinaryInformation)(OrtModelCompilationOptions* options,
                                                                      const char* folder,
                                                                      const char* model)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetGraphOptimizationLevel)(
      OrtModelCompilationOptions* options, GraphOptimizationLevel level)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelWriteFunc)(OrtModelCompilationOptions* options,
                                                                OrtWriteBufferFunc write,
                                                                void* state)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetInputModel)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetWeightlessEnabled)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetEpContextDataWriteFunc)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelExternalInitializersBuffer)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetOutputModelExternalInitializersAlignment)(void)REWIRE_ORT_NOEXCEPT;
  OrtStatus* (*ModelCompilationOptions_SetWeightlessMode)(void)REWIRE_ORT_NOEXCEPT;
} OrtCompileApi;

typedef struct OrtApi {
#define SERVED(result, name, parameters) result(*name) parameters REWIRE_ORT_NOEXCEPT;
#define REFUSED(name) OrtStatus* (*name)(void)REWIRE_ORT_NOEXCEPT;
#define ABSENT(name) void* (*name)(void)REWIRE_ORT_NOEXCEPT;
#define EMPTY(name) void (*name)(void*) REWIRE_ORT_NOEXCEPT;
#include "rewire/onnxruntime_api/slots.def"
#undef SERVED
#undef REFUSED
#undef ABSENT
#undef EMPTY
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version)REWIRE_ORT_NOEXCEPT;
  const char* (*GetVersionString)(void)REWIRE_ORT_NOEXCEPT;
} OrtApiBase;

__attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase(void) REWIRE_ORT_NOEXCEPT;
__attribute__((visibility("default"))) OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(
    OrtSessionOptions* options, int use_arena) REWIRE_ORT_NOEXCEPT;

#ifdef __cplusplus
}
#endif
