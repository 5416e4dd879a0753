// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/function_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/c_names.h"

namespace rewire::aot {
namespace {

// "[1][8][8]"; a scalar has one element. Empty if C has no such array.
std::string ArraySuffix(const Leaf& leaf) {
  if (leaf.varies) return {};
  if (leaf.dims.empty()) return "[1]";
  std::string text;
  for (const std::int64_t dim : leaf.dims) {
    if (dim == 0) return {};
    text += fmt::format("[{}]", dim);
  }
  return text;
}

// "const float image[1][8][8]"
std::string Parameter(const Leaf& leaf, const std::string& name, bool is_const) {
  const std::string suffix = ArraySuffix(leaf);
  const std::string type = (is_const ? "const " : "") + ElementType(leaf.dtype);
  return suffix.empty() ? fmt::format("{} *{}", type, name) : fmt::format("{} {}{}", type, name, suffix);
}

// The type of that parameter as a pointer: "const float (*)[8][8]".
std::string PointerType(const Leaf& leaf, bool is_const) {
  const std::string type = (is_const ? "const " : "") + ElementType(leaf.dtype);
  const std::string suffix = ArraySuffix(leaf);
  const std::size_t rest = suffix.find('[', 1);
  return rest == std::string::npos ? type + " *" : fmt::format("{} (*){}", type, suffix.substr(rest));
}

// The function that takes an arena; a packed program has no other.
std::string NameInMemory(const SourceForm& form, const EntryPoint& entry) {
  return entry.c_name + (form.is_packed ? "" : "_in");
}

std::string Parameters(const SourceForm& form, const EntryPoint& entry, bool in_memory) {
  std::vector<std::string> parameters;
  if (form.is_packed) parameters.push_back("RewireAotKernel *kernels");
  if (in_memory || form.is_packed) parameters.push_back("void *memory");
  if (form.is_behind_pointer) parameters.push_back("const void *weights");
  for (const OpenSize& size : entry.sizes) parameters.push_back("int64_t " + size.c_name);
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    parameters.push_back(Parameter(entry.input_leaves[i], entry.inputs[i], true));
  }
  for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
    parameters.push_back(Parameter(entry.output_leaves[i], entry.outputs[i], false));
  }
  return parameters.empty() ? "void" : Joined(parameters, ", ");
}

// The variables that the statements of a version read, as parameters and as the caller's variables.
std::vector<std::string> Variables(const SourceForm& form, const EntryPoint& entry, bool with_types) {
  const auto named = [&](const char* type, const std::string& name) {
    return with_types ? type + name : name;
  };
  std::vector<std::string> all;
  if (form.is_packed) all.push_back(named("RewireAotKernel *", "kernels"));
  all.push_back(named("unsigned char *", "arena"));
  if (form.is_behind_pointer) all.push_back(named("const unsigned char *", "weight_bytes"));
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    all.push_back(named("const unsigned char *", fmt::format("in{}", i)));
  }
  for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
    all.push_back(named("unsigned char *", fmt::format("out{}", i)));
  }
  return all;
}

std::string Unused(const SourceForm& form, const EntryPoint& entry) {
  std::string text;
  for (const std::string& name : Variables(form, entry, false)) {
    if (name != "kernels") text += fmt::format("  (void){};\n", name);
  }
  return text;
}

// The same variables, made of the parameters of the entry point.
std::string Locals(const SourceForm& form, const EntryPoint& entry) {
  std::string text = "  unsigned char *const arena = (unsigned char *)memory;\n";
  if (form.is_behind_pointer) {
    text += "  const unsigned char *const weight_bytes = (const unsigned char *)weights;\n";
  }
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    text +=
        fmt::format("  const unsigned char *const in{} = (const unsigned char *){};\n", i, entry.inputs[i]);
  }
  for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
    text += fmt::format("  unsigned char *const out{} = (unsigned char *){};\n", i, entry.outputs[i]);
  }
  return text;
}

// The place of the version for these sizes, or -1.
std::string VersionText(const EntryPoint& entry) {
  std::string text = fmt::format("\nstatic int {}_version(const int64_t *sizes) {{\n", entry.c_name);
  std::string place = "0";
  for (std::size_t i = 0; i < entry.sizes.size(); ++i) {
    const std::int64_t most = entry.sizes[i].most;
    text += fmt::format("  if (sizes[{0}] < 1 || sizes[{0}] > {1}) return -1;\n", i, most);
    place = i == 0 ? "sizes[0] - 1" : fmt::format("({}) * {} + sizes[{}] - 1", place, most, i);
  }
  return text + fmt::format("  return (int)({});\n}}\n", place);
}

// A function that tells the dimensions of an output.
std::string OutputDimsText(const EntryPoint& entry) {
  std::string tables;
  std::string text = fmt::format(
      "\nint {0}_output_dims(const int64_t *sizes, int32_t output, int64_t *dims) {{\n"
      "  const int version = {0}_version(sizes);\n  int32_t i;\n  if (version < 0) return 1;\n  switch "
      "(output) {{\n",
      entry.c_name);
  for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
    const std::size_t rank = entry.output_leaves[i].dims.size();
    text += fmt::format("    case {}:\n", i);
    if (rank != 0) {
      std::vector<std::string> rows;
      for (const Version& version : entry.versions) {
        const std::vector<Leaf>& leaves = version.program->outputs();
        const std::vector<std::int64_t> none(rank, 0);
        const std::vector<std::int64_t>& dims = leaves.empty() ? none : leaves[i].dims;
        rows.push_back(fmt::format("{{{}}}", fmt::join(dims, ", ")));
      }
      const std::string name = fmt::format("{}_dims_of_{}", entry.c_name, i);
      tables += fmt::format("\nstatic const int64_t {}[{}][{}] = {{{}}};\n", name, rows.size(), rank,
                            Joined(rows, ", "));
      text += fmt::format("      for (i = 0; i < {}; ++i) dims[i] = {}[version][i];\n", rank, name);
    }
    text += "      return 0;\n";
  }
  return tables + text + "    default:\n      break;\n  }\n  (void)dims;\n  (void)i;\n  return 1;\n}\n";
}

// The sizes as an array, whose name follows.
std::string SizesArray(const EntryPoint& entry) {
  std::vector<std::string> names;
  for (const OpenSize& size : entry.sizes) names.push_back(size.c_name);
  return fmt::format("  const int64_t sizes[{}] = {{{}}};\n", names.size(), Joined(names, ", "));
}

// A function for each version, and the choice among them.
std::string VersionsText(const SourceForm& form, const EntryPoint& entry, const KernelCalls& calls) {
  std::string text;
  std::string cases;
  const std::string arguments = Joined(Variables(form, entry, false), ", ");
  for (std::size_t i = 0; i < entry.versions.size(); ++i) {
    const Version& version = entry.versions[i];
    text += fmt::format("\nstatic int {}_{}({}) {{\n{}{}{}}}\n", entry.c_name, i,
                        Joined(Variables(form, entry, true), ", "),
                        calls.Locals(version.program->most_arguments()), Unused(form, entry), version.body);
    cases += fmt::format("    case {0}:\n      return {1}_{0}({2});\n", i, entry.c_name, arguments);
  }
  text += VersionText(entry) + OutputDimsText(entry);
  text += fmt::format("\nint {}({}) {{\n", NameInMemory(form, entry), Parameters(form, entry, true));
  text += Locals(form, entry) + SizesArray(entry);
  text += fmt::format("  switch ({}_version(sizes)) {{\n{}    default:\n      break;\n  }}\n", entry.c_name,
                      cases);
  std::string limits;
  for (const OpenSize& size : entry.sizes) {
    limits += fmt::format("{}{} from 1 to {}", limits.empty() ? "" : ", ", size.name, size.most);
  }
  const int code = static_cast<int>(StatusCode::kInvalidArgument);
  text += fmt::format("  {}_ON_ERROR({}, {});\n  return {};\n}}\n", form.upper, code,
                      CString(fmt::format("{}: expected {}", entry.name, limits)), code);
  return text;
}

std::string OneVersionText(const SourceForm& form, const EntryPoint& entry, const KernelCalls& calls) {
  const Version& version = entry.versions.front();
  return fmt::format("\nint {}({}) {{\n{}{}{}{}}}\n", NameInMemory(form, entry),
                     Parameters(form, entry, true), Locals(form, entry),
                     calls.Locals(version.program->most_arguments()), Unused(form, entry), version.body);
}

// The form of the function that the table has.
std::string RunText(const SourceForm& form, const EntryPoint& entry) {
  std::vector<std::string> arguments;
  if (form.is_packed) arguments.push_back("(RewireAotKernel *)kernels");
  arguments.push_back("memory");
  if (form.is_behind_pointer) arguments.push_back("weights");
  for (std::size_t i = 0; i < entry.sizes.size(); ++i) arguments.push_back(fmt::format("sizes[{}]", i));
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    arguments.push_back(fmt::format("({})inputs[{}]", PointerType(entry.input_leaves[i], true), i));
  }
  for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
    arguments.push_back(fmt::format("({})outputs[{}]", PointerType(entry.output_leaves[i], false), i));
  }
  return fmt::format(
      "\nstatic int {}_run(void *kernels, void *memory, const void *weights, const int64_t *sizes,\n"
      "    const void *const *inputs, void *const *outputs) {{\n"
      "  (void)kernels;\n  (void)weights;\n  (void)sizes;\n  (void)inputs;\n  (void)outputs;\n  return "
      "{}({});\n}}\n",
      entry.c_name, NameInMemory(form, entry), Joined(arguments, ", "));
}

// "image: f32[N, 8], ": the shapes of what varies, for a comment.
std::string ShapesText(const EntryPoint& entry) {
  std::string text;
  for (const OpenSize& size : entry.sizes)
    text += fmt::format(" {} is from 1 to {}.", size.c_name, size.most);
  return text + fmt::format(" {}_output_dims tells the dimensions of an output.", entry.c_name);
}

}  // namespace

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::string DeclarationText(const SourceForm& form, const EntryPoint& entry) {
  std::string text =
      fmt::format("/* {}: needs {} bytes of memory. Outputs may not overlap inputs or each other.{} */\n",
                  entry.c_name, entry.arena_bytes, entry.IsOpen() ? ShapesText(entry) : "");
  text += fmt::format("int {}({});\n", NameInMemory(form, entry), Parameters(form, entry, true));
  if (!form.is_packed) {
    text += fmt::format("#ifndef {}_NO_STATIC_ARENA\nint {}({});\n#endif\n", form.upper, entry.c_name,
                        Parameters(form, entry, false));
  }
  if (entry.IsOpen()) {
    text += fmt::format("int {}_output_dims(const int64_t *sizes, int32_t output, int64_t *dims);\n",
                        entry.c_name);
  }
  return text;
}

std::string FunctionText(const SourceForm& form, const EntryPoint& entry, const KernelCalls& calls) {
  std::string text = entry.IsOpen() ? VersionsText(form, entry, calls) : OneVersionText(form, entry, calls);
  if (!form.is_packed) {
    std::vector<std::string> arguments = {form.prefix + "_arena.bytes"};
    if (form.is_behind_pointer) arguments.push_back("weights");
    for (const OpenSize& size : entry.sizes) arguments.push_back(size.c_name);
    arguments.insert(arguments.end(), entry.inputs.begin(), entry.inputs.end());
    arguments.insert(arguments.end(), entry.outputs.begin(), entry.outputs.end());
    text += fmt::format("\n#ifndef {}_NO_STATIC_ARENA\nint {}({}) {{\n  return {}({});\n}}\n#endif\n",
                        form.upper, entry.c_name, Parameters(form, entry, false), NameInMemory(form, entry),
                        Joined(arguments, ", "));
  }
  return text + RunText(form, entry);
}

}  // namespace rewire::aot
