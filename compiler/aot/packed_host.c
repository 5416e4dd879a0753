/* SPDX-License-Identifier: Apache-2.0 */
/* A host for packed functions without the VM: one thread, memory from malloc. */
#include "rewire/compiler/aot/packed_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

REWIRE_KERNEL_LIBRARY;

typedef struct RewireAotBlock {
  struct RewireAotBlock* next;
  void* memory;
} Block;

static __thread char error_text[512];
__thread RewireAotThread RewireAotRunning;

static void SetError(const char* kind, const char* message) {
  snprintf(error_text, sizeof(error_text), "%s: %s", kind, message);
}

static void* GetSlot(void) { return RewireAotRunning.kernel == NULL ? NULL : RewireAotRunning.kernel->slot; }

static void SetSlot(void* state, void (*deleter)(void* state)) {
  RewireAotKernel* const kernel = RewireAotRunning.kernel;
  if (kernel == NULL) {
    if (deleter != NULL) deleter(state);
    return;
  }
  if (kernel->slot_deleter != NULL && kernel->slot != state) kernel->slot_deleter(kernel->slot);
  kernel->slot = state;
  kernel->slot_deleter = deleter;
}

static void* Workspace(uint64_t bytes) {
  Block* block = malloc(sizeof(Block));
  void* memory = NULL;
  memory = bytes > SIZE_MAX - 128 ? NULL : aligned_alloc(64, ((size_t)bytes / 64 + 1) * 64);
  if (block == NULL || memory == NULL) {
    free(memory);
    free(block);
    SetError("MemoryError", "there is no memory for a kernel's workspace");
    return NULL;
  }
  block->memory = memory;
  block->next = RewireAotRunning.workspaces;
  RewireAotRunning.workspaces = block;
  return memory;
}

static void DropWorkspaces(void) {
  while (RewireAotRunning.workspaces != NULL) {
    Block* const next = RewireAotRunning.workspaces->next;
    free(RewireAotRunning.workspaces->memory);
    free(RewireAotRunning.workspaces);
    RewireAotRunning.workspaces = next;
  }
}

static void ParallelFor(int64_t begin, int64_t end, int64_t grain,
                        void (*body)(void* data, int64_t begin, int64_t end), void* data) {
  (void)grain;
  if (begin < end) body(data, begin, end);
}

static int32_t ThreadCount(void) { return 1; }

static void* Stream(int32_t type, int32_t id) {
  (void)type;
  (void)id;
  return NULL;
}

static int Cancelled(void) { return 0; }

static int Unsupported(const char* what) {
  SetError("NotImplementedError", what);
  return -1;
}

static int NewTensor(DLDataType dtype, int32_t rank, const int64_t* shape, DLDevice device,
                     RewireFFIAny* result) {
  (void)dtype, (void)rank, (void)shape, (void)device, (void)result;
  return Unsupported("a program that was compiled to C takes no tensors from kernels");
}

static int NewAdt(uint32_t tag, int32_t size, const RewireFFIAny* fields, RewireFFIAny* result) {
  (void)tag, (void)size, (void)fields, (void)result;
  return Unsupported("a program that was compiled to C takes no ADTs from kernels");
}

static int32_t AdtSize(const RewireFFIAny* value) {
  (void)value;
  return -1;
}

static uint32_t AdtTag(const RewireFFIAny* value) {
  (void)value;
  return 0;
}

static int AdtField(const RewireFFIAny* value, int32_t index, RewireFFIAny* field) {
  (void)value, (void)index, (void)field;
  return Unsupported("a program that was compiled to C passes no ADTs to kernels");
}

static int AdtFields(const RewireFFIAny* value, int32_t begin, int32_t count, RewireFFIAny* fields) {
  (void)value, (void)begin, (void)count, (void)fields;
  return Unsupported("a program that was compiled to C passes no ADTs to kernels");
}

typedef struct Function {
  RewireFFIFunctionObject object; /* first, so that a pointer to it is one to this */
  void* state;
  RewirePackedFunction call;
  void (*deleter)(void* state);
} Function;

static int CallFunction(void* handle, const RewireFFIAny* arguments, int32_t count, RewireFFIAny* result) {
  const Function* const function = (const Function*)handle;
  return function->call(function->state, arguments, count, result);
}

static void DeleteFunction(void* self, int flags) {
  Function* const function = (Function*)self;
  if ((flags & kRewireFFIStrongGone) != 0 && function->deleter != NULL) function->deleter(function->state);
  if ((flags & kRewireFFIWeakGone) != 0) free(function);
}

static int NewFunction(void* state, RewirePackedFunction call, void (*deleter)(void* state),
                       RewireFFIAny* result) {
  Function* const function = calloc(1, sizeof(Function));
  if (function == NULL) {
    if (deleter != NULL) deleter(state);
    SetError("MemoryError", "there is no memory for a kernel");
    return -1;
  }
  function->object.header.combined_ref_count = ((uint64_t)1 << 32) | 1;
  function->object.header.type_index = kRewireFFIFunction;
  function->object.header.deleter = DeleteFunction;
  function->object.cell.safe_call = CallFunction;
  function->state = state;
  function->call = call;
  function->deleter = deleter;
  result->type_index = kRewireFFIFunction;
  result->zero_padding = 0;
  result->v_obj = &function->object.header;
  return 0;
}

static int Device(DLDevice device, const struct RewireDeviceApi** api, void** stream) {
  (void)device, (void)api, (void)stream;
  return Unsupported("a program that was compiled to C uses no devices");
}

static const RewireKernelApi kApi = {
    .struct_size = sizeof(RewireKernelApi),
    .version = REWIRE_KERNEL_API_VERSION,
    .set_error = SetError,
    .get_slot = GetSlot,
    .set_slot = SetSlot,
    .workspace = Workspace,
    .parallel_for = ParallelFor,
    .thread_count = ThreadCount,
    .stream = Stream,
    .cancelled = Cancelled,
    .new_tensor = NewTensor,
    .new_adt = NewAdt,
    .adt_size = AdtSize,
    .adt_tag = AdtTag,
    .adt_field = AdtField,
    .new_function = NewFunction,
    .adt_fields = AdtFields,
    .device = Device,
};

const RewireKernelApi* RewireAotKernelApi(void) { return &kApi; }

const char* RewireAotError(void) { return error_text; }

static void DropObject(RewireFFIObject* object) {
  const uint64_t before = __atomic_fetch_sub(&object->combined_ref_count, 1, __ATOMIC_ACQ_REL);
  if ((before & 0xFFFFFFFFu) != 1) return;
  object->deleter(object, kRewireFFIStrongGone);
  if (__atomic_sub_fetch(&object->combined_ref_count, (uint64_t)1 << 32, __ATOMIC_ACQ_REL) == 0) {
    object->deleter(object, kRewireFFIWeakGone);
  }
}

/* The most attributes of a kernel that this host passes on. */
enum { kMostAttributes = 64 };

static int MakeKernel(const RewireAotImport* import, const RewireKernelEntry* entry,
                      RewireAotKernel* kernel) {
  RewireFFIAny arguments[2 * kMostAttributes];
  RewireFFIShapeObject shapes[kMostAttributes];
  DLTensor lists[kMostAttributes];
  const DLDevice host = {kDLCPU, 0};
  RewireFFIAny result;
  int32_t i;
  if (!entry->is_factory) {
    kernel->call = entry->function;
    return 0;
  }
  if (import->attribute_count > kMostAttributes) return Unsupported("a kernel has too many attributes");
  memset(arguments, 0, sizeof(arguments));
  memset(shapes, 0, sizeof(shapes));
  memset(lists, 0, sizeof(lists));
  memset(&result, 0, sizeof(result));
  for (i = 0; i < import->attribute_count; ++i) {
    const RewireAotAttribute* const attribute = &import->attributes[i];
    RewireFFIAny* const value = &arguments[2 * i + 1];
    arguments[2 * i].type_index = kRewireFFIRawStr;
    arguments[2 * i].v_c_str = attribute->name;
    switch (attribute->kind) {
      case kRewireAotInt:
        value->type_index = kRewireFFIInt;
        value->v_int64 = attribute->integer;
        break;
      case kRewireAotFloat:
        value->type_index = kRewireFFIFloat;
        value->v_float64 = attribute->number;
        break;
      case kRewireAotText:
        value->type_index = kRewireFFIRawStr;
        value->v_c_str = attribute->text;
        break;
      case kRewireAotInts:
        shapes[i].header.combined_ref_count = ((uint64_t)1 << 32) | 1;
        shapes[i].header.type_index = kRewireFFIShape;
        shapes[i].cell.data = attribute->integers;
        shapes[i].cell.size = (size_t)attribute->integer;
        value->type_index = kRewireFFIShape;
        value->v_obj = &shapes[i].header;
        break;
      default:
        lists[i].data = (void*)(uintptr_t)attribute->numbers;
        lists[i].device = host;
        lists[i].ndim = 1;
        lists[i].dtype.code = kDLFloat;
        lists[i].dtype.bits = 64;
        lists[i].dtype.lanes = 1;
        lists[i].shape = (int64_t*)(uintptr_t)&attribute->integer;
        value->type_index = kRewireFFIDLTensorPtr;
        value->v_ptr = &lists[i];
    }
  }
  if (entry->function(NULL, arguments, 2 * import->attribute_count, &result) != 0) return -1;
  if (result.type_index != kRewireFFIFunction) return Unsupported("a factory made no function");
  kernel->owner = result.v_obj;
  kernel->handle = result.v_obj;
  kernel->call = ((RewireFFIFunctionObject*)result.v_obj)->cell.safe_call;
  return 0;
}

int RewireAotLink(const RewireAotImport* imports, int32_t count, const RewireKernelTable* table,
                  RewireAotKernel* kernels, int32_t* failed) {
  if (__rewire_kernel_api == NULL) __rewire_kernel_api = &kApi;
  RewireAotRunning.kernel = NULL; /* factories have no slot */
  memset(kernels, 0, (size_t)count * sizeof(*kernels));
  for (int32_t i = 0; i < count; ++i) {
    const RewireKernelEntry* found = NULL;
    for (uint32_t k = 0; k < table->count; ++k) {
      if (strcmp(table->entries[k].name, imports[i].name) == 0) found = &table->entries[k];
    }
    *failed = i;
    if (found == NULL) {
      snprintf(error_text, sizeof(error_text), "no kernel is called %s", imports[i].name);
    }
    if (found == NULL || MakeKernel(&imports[i], found, &kernels[i]) != 0) {
      RewireAotUnlink(kernels, i);
      return -1;
    }
  }
  return 0;
}

void RewireAotUnlink(RewireAotKernel* kernels, int32_t count) {
  RewireAotRunning.kernel = NULL;
  for (int32_t i = 0; i < count; ++i) {
    if (kernels[i].slot_deleter != NULL) kernels[i].slot_deleter(kernels[i].slot);
    if (kernels[i].owner != NULL) DropObject(kernels[i].owner);
  }
  memset(kernels, 0, (size_t)count * sizeof(*kernels));
}

int RewireAotFinish(int failed) {
  RewireFFIAny* const result = &RewireAotRunning.result;
  if (RewireAotRunning.workspaces != NULL) DropWorkspaces();
  if (failed == 0 && result->type_index >= kRewireFFIObject) DropObject(result->v_obj);
  memset(result, 0, sizeof(*result));
  return failed;
}
