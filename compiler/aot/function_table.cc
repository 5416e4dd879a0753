// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/function_table.h"

#include <fmt/format.h>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/c_names.h"

namespace rewire::aot {
namespace {

// Definitions of the tensors' dimensions; `rows` gets a row for each tensor.
std::string TensorRows(const EntryPoint& entry, bool is_input, std::string* rows) {
  const std::vector<Leaf>& leaves = is_input ? entry.input_leaves : entry.output_leaves;
  std::string text;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    const std::string dims = fmt::format("{}_{}_{}", entry.c_name, is_input ? "in" : "out", i);
    text += fmt::format("static const int64_t {}_dims[] = {{{}}};\n", dims,
                        leaf.dims.empty() ? "0" : fmt::format("{}", fmt::join(leaf.dims, ", ")));
    const std::uint64_t bytes = TensorBytes(leaf.dtype, {leaf.dims.data(), leaf.dims.size()}).value_or(0);
    *rows += fmt::format("  {{{}, {}, {}, {}_dims, {}u}},\n", CString(leaf.name),
                         CString(DTypeName(leaf.dtype)), leaf.dims.size(), dims, bytes);
  }
  return text;
}

}  // namespace

const char kTableTypes[] = R"(
#ifndef REWIRE_AOT_TABLE
#define REWIRE_AOT_TABLE
typedef struct RewireAotTensorInfo {
  const char *name;
  const char *dtype; /* "f32" */
  int32_t rank;
  const int64_t *dims; /* of dimensions that vary the largest size */
  uint64_t bytes;
} RewireAotTensorInfo;
typedef struct RewireAotSizeInfo {
  const char *name;
  int64_t most; /* it is from 1 to this */
} RewireAotSizeInfo;
/* A function for hosts that do not know it. `kernels` is null unless the kernels are packed functions, and
   `weights` unless they lie in memory of the host. `sizes` has size_count numbers. `output_dims` returns 0 and the
   dimensions of an output, or 1 for sizes or outputs that there are not; null if size_count is 0. */
typedef struct RewireAotFunctionInfo {
  const char *name;
  uint64_t executable; /* the content hash of the executable, which states of the function name */
  uint64_t arena_bytes;
  const RewireAotTensorInfo *inputs;
  int32_t input_count;
  const RewireAotTensorInfo *outputs;
  int32_t output_count;
  const RewireAotSizeInfo *sizes;
  int32_t size_count;
  int (*output_dims)(const int64_t *sizes, int32_t output, int64_t *dims);
  int (*run)(void *kernels, void *memory, const void *weights, const int64_t *sizes, const void *const *inputs,
             void *const *outputs);
} RewireAotFunctionInfo;
#endif
)";

std::string TableText(const SourceForm& form, const std::vector<EntryPoint>& entries) {
  std::string text;
  std::string rows;
  for (const EntryPoint& entry : entries) {
    std::string names[3] = {"0", "0", "0"};
    for (const bool is_input : {true, false}) {
      std::string tensors;
      text += TensorRows(entry, is_input, &tensors);
      if (tensors.empty()) continue;
      std::string& name = names[is_input ? 0 : 1];
      name = fmt::format("{}_{}", entry.c_name, is_input ? "inputs" : "outputs");
      text += fmt::format("static const RewireAotTensorInfo {}[] = {{\n{}}};\n", name, tensors);
    }
    if (entry.IsOpen()) {
      names[2] = entry.c_name + "_sizes";
      std::string sizes;
      for (const OpenSize& size : entry.sizes)
        sizes += fmt::format("  {{{}, {}}},\n", CString(size.name), size.most);
      text += fmt::format("static const RewireAotSizeInfo {}[] = {{\n{}}};\n", names[2], sizes);
    }
    rows += fmt::format("  {{{}, UINT64_C({}), {}u, {}, {}, {}, {}, {}, {}, {}, {}_run}},\n",
                        CString(entry.name), form.executable, entry.arena_bytes, names[0],
                        entry.inputs.size(), names[1], entry.outputs.size(), names[2], entry.sizes.size(),
                        entry.IsOpen() ? entry.c_name + "_output_dims" : "0", entry.c_name);
  }
  return fmt::format("\n{}const RewireAotFunctionInfo {}_functions[{}] = {{\n{}}};\n", text, form.prefix,
                     entries.size(), rows);
}

}  // namespace rewire::aot
