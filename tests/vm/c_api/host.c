/* SPDX-License-Identifier: Apache-2.0 */
#include "rewire/tests/vm/c_api/host.h"

#include <stdlib.h>
#include <string.h>

#include "rewire/tests/vm/c_api/host_support.h"
#include "rewire/vm/c_api.h"

static void Increment(void* counter) { ++*(int*)counter; }

int RunCHostInference(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  RewireLinkOptions* options = NULL;
  StartChecks();
  CHECK(rewire_api_version() == REWIRE_API_VERSION);
  CHECK_OK(rewire_check_api_version(REWIRE_API_VERSION));
  CHECK(rewire_check_api_version(REWIRE_API_VERSION + 1) == kRewireUnsupported);

  int released = 0;
  CHECK_OK(rewire_executable_open_memory(data, size, Increment, &released, NULL, &executable));
  options = Options();
  CHECK_OK(rewire_program_link(executable, options, &program));
  CHECK_OK(rewire_vm_make(program, NULL, &vm));
  /* Handles may go in any order: what a VM needs stays. */
  rewire_link_options_destroy(options);
  rewire_executable_destroy(executable);

  float x[2] = {1, 2};
  const DLTensor input = Vector(x, two);
  CHECK(rewire_vm_invoke(vm, NULL) == kRewireInvalidArgument); /* the input is not set */
  CHECK_OK(rewire_vm_set_input_by_name(vm, "x", &input, kRewireBorrow));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  DLTensor y;
  CHECK_OK(rewire_vm_output_tensor(vm, 0, &y));
  CHECK(y.ndim == 1 && y.shape[0] == 2 && ((float*)y.data)[0] == 11 && ((float*)y.data)[1] == 22);

  x[0] = 5; /* borrowed: seen by the next run */
  CHECK_OK(rewire_vm_invoke(vm, "main"));
  RewireValue* value = NULL;
  CHECK_OK(rewire_vm_output_by_name(vm, "y", &value));
  CHECK_OK(rewire_vm_set_input_by_index(vm, 0, &input, kRewireCopy));
  x[0] = 100; /* copied: not seen */
  CHECK_OK(rewire_vm_invoke(vm, ""));
  CHECK_OK(rewire_vm_output_tensor(vm, 0, &y));
  CHECK(((float*)y.data)[0] == 15);
  CHECK(AddCalls() == 3);

  /* A result outlives its VM and its program. */
  DLManagedTensor* managed = NULL;
  CHECK_OK(rewire_vm_output_dlpack(vm, 0, &managed));
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  DLTensor kept;
  CHECK_OK(rewire_value_tensor(value, &kept));
  CHECK(((float*)kept.data)[0] == 15 && ((float*)managed->dl_tensor.data)[1] == 22);
  managed->deleter(managed);
  rewire_value_destroy(value);
  CHECK(released == 1);
  return FailedChecks();
}

/* --- services --- */

struct Heap {
  size_t held;
  size_t blocks;
};

static void* Allocate(void* context, size_t size, size_t alignment) {
  struct Heap* heap = (struct Heap*)context;
  heap->held += size;
  ++heap->blocks;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void Deallocate(void* context, void* pointer, size_t size, size_t alignment) {
  struct Heap* heap = (struct Heap*)context;
  (void)alignment;
  heap->held -= size;
  --heap->blocks;
  free(pointer);
}

static void SerialLoop(void* context, int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* data, int64_t begin, int64_t end), void* data) {
  (void)context, (void)grain;
  body(data, begin, end);
}

struct Trace {
  int instructions;
  int kernels;
  uint32_t last_kernel_pc;
};

static void OnInstruction(void* context, const RewireInstructionEvent* event) {
  struct Trace* trace = (struct Trace*)context;
  CHECK(event->struct_size == sizeof(*event) && event->depth == 1);
  ++trace->instructions;
}

static void OnKernel(void* context, const RewireKernelEvent* event) {
  struct Trace* trace = (struct Trace*)context;
  CHECK(event->arg_count == 3 && event->ok == 1 && event->end_ns >= event->start_ns);
  ++trace->kernels;
  trace->last_kernel_pc = event->pc;
}

/* An observer may end the run of the VM that it watches. */
static void CancelRun(void* vm, const RewireInstructionEvent* event) {
  CHECK(event->depth == 1);
  CHECK_OK(rewire_vm_cancel((RewireVm*)vm));
  CHECK(rewire_vm_trim((RewireVm*)vm) == kRewireBusy);
}

int RunCHostServices(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  struct Heap heap = {0, 0};
  int destroyed = 0;
  StartChecks();

  const RewireOpenOptions open = {.struct_size = sizeof(open), .verify_data = 1, .copy = 1};
  CHECK_OK(rewire_executable_open_memory(data, size, NULL, NULL, &open, &executable));
  RewireLinkOptions* options = Options();
  const RewireAllocator allocator = {
      .struct_size = sizeof(allocator), .context = &heap, .allocate = Allocate, .deallocate = Deallocate};
  CHECK_OK(rewire_link_options_set_allocator(options, &allocator));
  const RewireThreadPool pool = {.struct_size = sizeof(pool),
                                 .thread_count = 1,
                                 .context = &destroyed,
                                 .parallel_for = SerialLoop,
                                 .destroy = Increment};
  CHECK_OK(rewire_link_options_set_thread_pool(options, &pool));
  CHECK_OK(rewire_program_link(executable, options, &program));
  rewire_link_options_destroy(options);

  const RewireLimits limits = {.struct_size = sizeof(limits), .steps = 1000};
  CHECK_OK(rewire_vm_make(program, &limits, &vm));
  struct Trace trace = {0, 0, 0};
  const RewireObserver observer = {.struct_size = sizeof(observer),
                                   .context = &trace,
                                   .on_instruction = OnInstruction,
                                   .on_kernel = OnKernel};
  CHECK_OK(rewire_vm_set_observer(vm, &observer));
  float x[2] = {1, 2};
  const DLTensor input = Vector(x, two);
  RewireInput handle;
  CHECK_OK(rewire_program_find_input(program, NULL, "x", &handle));
  CHECK_OK(rewire_vm_set_input(vm, handle, &input, kRewireBorrow));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(trace.instructions == 5 && trace.kernels == 1);
  char text[128];
  CHECK_OK(rewire_executable_instruction_text(executable, 0, trace.last_kernel_pc, text, sizeof(text), NULL));
  CHECK(strstr(text, "invoke_packed add") != NULL);
  CHECK_OK(rewire_vm_set_observer(vm, NULL));

  uint64_t held = 0;
  uint64_t peak = 0;
  CHECK_OK(rewire_vm_bytes_held(vm, &held));
  CHECK_OK(rewire_vm_bytes_peak(vm, &peak));
  CHECK(held > 0 && peak >= held && heap.held >= held);

  CHECK(rewire_vm_invoke(vm, "forever") == kRewireStepLimit);
  CHECK_OK(rewire_vm_set_limits(vm, NULL));
  CHECK_OK(rewire_vm_set_timeout(vm, 1000 * 1000));
  CHECK(rewire_vm_invoke(vm, "forever") == kRewireDeadlineExceeded);
  CHECK_OK(rewire_vm_set_timeout(vm, -1));
  /* Without a run there is nothing to cancel. */
  CHECK_OK(rewire_vm_cancel(vm));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  RewireObserver canceller = {0};
  canceller.struct_size = sizeof(canceller);
  canceller.context = vm;
  canceller.on_instruction = CancelRun;
  CHECK_OK(rewire_vm_set_observer(vm, &canceller));
  CHECK(rewire_vm_invoke(vm, "forever") == kRewireCancelled);
  CHECK_OK(rewire_vm_set_observer(vm, NULL));
  CHECK(rewire_vm_invoke(vm, "fail") == kRewireKernelFailed);
  /* Success leaves the last message alone. */
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(strstr(rewire_last_error_message(), "ValueError: this kernel fails") != NULL);
  CHECK(rewire_last_error_code() == kRewireKernelFailed);

  CHECK_OK(rewire_vm_clear_inputs(vm, NULL));
  CHECK_OK(rewire_vm_trim(vm));
  rewire_vm_destroy(vm);
  CHECK(heap.blocks == 0 && heap.held == 0);
  rewire_program_destroy(program);
  CHECK(destroyed == 1);
  rewire_executable_destroy(executable);
  return FailedChecks();
}

/* --- trees, and ownership that passes --- */

int RunCHostTrees(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  StartChecks();
  OpenHost(data, size, &executable, &program, &vm);

  int deleted = 0;
  RewireValue* fields[2] = {NULL, NULL};
  RewireValue* pair = NULL;
  CHECK_OK(rewire_value_from_dlpack(MakeOwned(3, 4, &deleted), &fields[0]));
  CHECK_OK(rewire_value_from_integer(7, &fields[1]));
  CHECK_OK(rewire_value_make_adt(0, (const RewireValue* const*)fields, 2, &pair));
  rewire_value_destroy(fields[0]);
  rewire_value_destroy(fields[1]);

  uint32_t swap = 0;
  RewireValue* result = NULL;
  CHECK_OK(rewire_program_find_function(program, "swap", &swap));
  CHECK_OK(rewire_vm_call(vm, swap, (const RewireValue* const*)&pair, 1, &result));
  rewire_value_destroy(pair);
  uint32_t tag = 1;
  uint32_t count = 0;
  int64_t number = 0;
  RewireValue* first = NULL;
  RewireValue* second = NULL;
  DLTensor vector;
  CHECK_OK(rewire_value_adt(result, &tag, &count));
  CHECK(tag == 0 && count == 2);
  CHECK_OK(rewire_value_field(result, 0, &first));
  CHECK_OK(rewire_value_field(result, 1, &second));
  CHECK_OK(rewire_value_integer(first, &number));
  CHECK_OK(rewire_value_tensor(second, &vector));
  CHECK(number == 7 && ((float*)vector.data)[1] == 4);
  rewire_value_destroy(first);
  rewire_value_destroy(result);
  CHECK(deleted == 0);
  rewire_value_destroy(second);
  CHECK(deleted == 0); /* the VM's last result still refers to it */
  CHECK_OK(rewire_vm_trim(vm));
  CHECK(deleted == 1);

  RewireInput x;
  CHECK_OK(rewire_program_find_input(program, "main", "x", &x));
  CHECK_OK(rewire_vm_set_input_dlpack(vm, x, MakeOwned(1, 1, &deleted)));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK_OK(rewire_vm_set_input_dlpack(vm, x, MakeOwned(2, 2, &deleted)));
  CHECK(deleted == 2);
  /* Ownership passes on failure, too. */
  const RewireInput wrong = {x.function, 5};
  CHECK(rewire_vm_set_input_dlpack(vm, wrong, MakeOwned(0, 0, &deleted)) == kRewireInvalidArgument);
  CHECK(deleted == 3);
  rewire_vm_destroy(vm);
  CHECK(deleted == 4);
  rewire_program_destroy(program);
  rewire_executable_destroy(executable);
  return FailedChecks();
}
