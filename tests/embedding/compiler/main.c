/* SPDX-License-Identifier: Apache-2.0 */
/* The same in C: compiles relu.onnx, and shows why relo.onnx cannot be compiled. */
#include <rewire/compiler/c_api.h>
#include <stdio.h>

struct Told {
  const char* first;
};

static void OnProgress(void* context, const char* what) {
  struct Told* told = context;
  if (told->first == NULL) told->first = what[0] == 'r' ? "reading" : what;
}

static void OnUnsupported(void* context, const RewireUnsupportedNode* node) {
  (void)context;
  printf("%s: %s\n", node->op_type, node->reason);
}

int main(void) {
  struct Told told = {NULL};
  RewireCompileOptions options = {.struct_size = sizeof(options), .context = &told};
  options.progress = OnProgress;
  options.unsupported = OnUnsupported;
  RewireCompileReport report = {.struct_size = sizeof(report)};
  RewireExecutable* executable = NULL;
  if (rewire_compile("relu.onnx", &options, &report, &executable) != kRewireOk ||
      rewire_executable_write(executable, "relu_c.rwx") != kRewireOk || rewire_compiler_pass(0) == NULL) {
    puts(rewire_last_error_message());
    return 1;
  }
  rewire_executable_destroy(executable);
  options.external_folder_count = 1; /* without a folder */
  if (rewire_compile("relu.onnx", &options, NULL, &executable) != kRewireInvalidArgument) return 1;
  options.external_folder_count = 0;
  printf("%d node, first step '%s'\n", (int)report.model_nodes, told.first);
  if (rewire_compile("relo.onnx", &options, NULL, &executable) != kRewireUnsupported) return 1;
  printf("unsupported: %s\n", rewire_last_error_message());
  return 0;
}
