// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/emit_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/c_names.h"
#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/compiler/aot/static_program.h"

namespace rewire {
namespace {

using aot::CName;
using aot::CString;
using aot::Leaf;
using aot::StaticProgram;
using aot::Upper;

// An entry point, with the names of its parameters.
struct EntryPoint {
  std::string name;  // of the function in the executable
  std::string c_name;
  std::unique_ptr<StaticProgram> program;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// "[1][8][8]"; a scalar has one element. Empty if C has no such array.
std::string ArraySuffix(const Leaf& leaf) {
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
  const std::string type = (is_const ? "const " : "") + aot::ElementType(leaf.dtype);
  return suffix.empty() ? fmt::format("{} *{}", type, name) : fmt::format("{} {}{}", type, name, suffix);
}

// The type of that parameter as a pointer: "const float (*)[8][8]".
std::string PointerType(const Leaf& leaf, bool is_const) {
  const std::string type = (is_const ? "const " : "") + aot::ElementType(leaf.dtype);
  const std::string suffix = ArraySuffix(leaf);
  const std::size_t rest = suffix.find('[', 1);
  return rest == std::string::npos ? type + " *" : fmt::format("{} (*){}", type, suffix.substr(rest));
}

class Emitter {
 public:
  Emitter(const Module& module, const EmitCOptions& options, std::string header_name)
      : module_(module),
        options_(options),
        header_name_(std::move(header_name)),
        upper_(Upper(options.prefix)),
        is_packed_(options.kernels == CKernels::kPacked),
        is_behind_pointer_(options.weights == CWeights::kPointer),
        literals_(module, options),
        calls_(is_packed_ ? aot::MakePackedCalls(module, options.prefix)
                          : aot::MakeEmbeddedCalls(options.prefix)) {}

  Result<CSource> Emit() {
    if (Status found = FindFunctions(); !found) return found;
    std::string functions;
    for (EntryPoint& entry : entries_) {
      if (Status analyzed = entry.program->Analyze(); !analyzed) return analyzed;
      NameParameters(&entry);
      const Result<std::string> text = entry.program->Write();
      if (!text) return Forward(text);
      functions += FunctionText(entry, *text);
      arena_ = std::max(arena_, entry.program->arena_bytes());
    }
    CSource source;
    source.arena_bytes = arena_;
    source.constant_bytes = literals_.used_bytes();
    source.weights = literals_.weights();
    source.header = Header();
    source.source = Source(functions);
    return source;
  }

 private:
  Status FindFunctions() {
    std::vector<std::string> names = options_.functions;
    if (names.empty()) {
      const std::size_t main = PositionOfFunction(module_, "main");
      if (main == module_.functions.size() && module_.functions.size() != 1) {
        return Fail(StatusCode::kInvalidArgument,
                    "no function is called main; name those that C calls (--function NAME)");
      }
      names.push_back(main == module_.functions.size() ? module_.functions[0].name : "main");
    }
    std::set<std::string> taken;
    for (const std::string& name : names) {
      const std::size_t position = PositionOfFunction(module_, name);
      if (position == module_.functions.size()) {
        return Fail(StatusCode::kInvalidArgument, "no function of the executable is called {}", name);
      }
      EntryPoint entry;
      entry.name = name;
      entry.c_name = fmt::format("{}_{}", options_.prefix, CName("f" + name, &taken).substr(1));
      entry.program = std::make_unique<StaticProgram>(module_, options_, static_cast<std::uint32_t>(position),
                                                      &literals_, calls_.get());
      entries_.push_back(std::move(entry));
    }
    return {};
  }

  static void NameParameters(EntryPoint* entry) {
    std::set<std::string> taken;
    for (const Leaf& leaf : entry->program->inputs()) entry->inputs.push_back(CName(leaf.name, &taken));
    for (const Leaf& leaf : entry->program->outputs()) entry->outputs.push_back(CName(leaf.name, &taken));
  }

  // The parameters of an entry point; `in_memory` has the arena, which a packed program always has.
  std::string Parameters(const EntryPoint& entry, bool in_memory) const {
    std::vector<std::string> parameters;
    if (is_packed_) parameters.push_back("RewireAotKernel *kernels");
    if (in_memory || is_packed_) parameters.push_back("void *memory");
    if (is_behind_pointer_) parameters.push_back("const void *weights");
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      parameters.push_back(Parameter(entry.program->inputs()[i], entry.inputs[i], true));
    }
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
      parameters.push_back(Parameter(entry.program->outputs()[i], entry.outputs[i], false));
    }
    return parameters.empty() ? "void" : Joined(parameters, ", ");
  }

  static std::string Joined(const std::vector<std::string>& parts, const char* between) {
    std::string text;
    for (const std::string& part : parts) text += text.empty() ? part : between + part;
    return text;
  }

  std::string FunctionText(const EntryPoint& entry, const std::string& body) const {
    const std::string in_memory = entry.c_name + (is_packed_ ? "" : "_in");
    std::string text = fmt::format("\nint {}({}) {{\n", in_memory, Parameters(entry, true));
    text += "  unsigned char *const arena = (unsigned char *)memory;\n";
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      text +=
          fmt::format("  const unsigned char *const in{} = (const unsigned char *){};\n", i, entry.inputs[i]);
    }
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
      text += fmt::format("  unsigned char *const out{} = (unsigned char *){};\n", i, entry.outputs[i]);
    }
    std::string unused = "  (void)arena;\n";
    if (is_behind_pointer_) {
      text += "  const unsigned char *const weight_bytes = (const unsigned char *)weights;\n";
      unused += "  (void)weight_bytes;\n";
    }
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) unused += fmt::format("  (void)in{};\n", i);
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) unused += fmt::format("  (void)out{};\n", i);
    text += calls_->Locals(entry.program->most_arguments()) + unused + body + "}\n";
    if (!is_packed_) {
      std::vector<std::string> arguments = {options_.prefix + "_arena.bytes"};
      if (is_behind_pointer_) arguments.push_back("weights");
      arguments.insert(arguments.end(), entry.inputs.begin(), entry.inputs.end());
      arguments.insert(arguments.end(), entry.outputs.begin(), entry.outputs.end());
      text += fmt::format("\n#ifndef {}_NO_STATIC_ARENA\nint {}({}) {{\n  return {}({});\n}}\n#endif\n",
                          upper_, entry.c_name, Parameters(entry, false), in_memory, Joined(arguments, ", "));
    }
    return text + RunText(entry, in_memory);
  }

  // The form of the function that the table has.
  std::string RunText(const EntryPoint& entry, const std::string& in_memory) const {
    std::vector<std::string> arguments;
    if (is_packed_) arguments.push_back("(RewireAotKernel *)kernels");
    arguments.push_back("memory");
    if (is_behind_pointer_) arguments.push_back("weights");
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      arguments.push_back(fmt::format("({})inputs[{}]", PointerType(entry.program->inputs()[i], true), i));
    }
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
      arguments.push_back(fmt::format("({})outputs[{}]", PointerType(entry.program->outputs()[i], false), i));
    }
    return fmt::format(
        "\nstatic int {}_run(void *kernels, void *memory, const void *weights, const void *const *inputs,\n"
        "    void *const *outputs) {{\n"
        "  (void)kernels;\n  (void)weights;\n  (void)inputs;\n  (void)outputs;\n  return {}({});\n}}\n",
        entry.c_name, in_memory, Joined(arguments, ", "));
  }

  std::string TensorRows(const EntryPoint& entry, bool is_input, std::string* rows) const {
    const std::vector<Leaf>& leaves = is_input ? entry.program->inputs() : entry.program->outputs();
    std::string text;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Leaf& leaf = leaves[i];
      const std::string dims = fmt::format("{}_{}_{}", entry.c_name, is_input ? "in" : "out", i);
      std::vector<std::string> sizes;
      for (const std::int64_t dim : leaf.dims) sizes.push_back(fmt::format("{}", dim));
      if (sizes.empty()) sizes.push_back("0");
      text += fmt::format("static const int64_t {}_dims[] = {{{}}};\n", dims, Joined(sizes, ", "));
      const std::uint64_t bytes = TensorBytes(leaf.dtype, {leaf.dims.data(), leaf.dims.size()}).value_or(0);
      *rows += fmt::format("  {{{}, {}, {}, {}_dims, {}u}},\n", CString(leaf.name),
                           CString(DTypeName(leaf.dtype)), leaf.dims.size(), dims, bytes);
    }
    return text;
  }

  std::string Table() const {
    std::string text;
    std::string rows;
    for (const EntryPoint& entry : entries_) {
      std::string names[2] = {"0", "0"};
      for (const bool is_input : {true, false}) {
        std::string tensors;
        text += TensorRows(entry, is_input, &tensors);
        if (tensors.empty()) continue;
        const std::string name = fmt::format("{}_{}", entry.c_name, is_input ? "inputs" : "outputs");
        text += fmt::format("static const RewireAotTensorInfo {}[] = {{\n{}}};\n", name, tensors);
        names[is_input ? 0 : 1] = name;
      }
      rows += fmt::format("  {{{}, {}u, {}, {}, {}, {}, {}_run}},\n", CString(entry.name),
                          entry.program->arena_bytes(), names[0], entry.inputs.size(), names[1],
                          entry.outputs.size(), entry.c_name);
    }
    return fmt::format("\n{}const RewireAotFunctionInfo {}_functions[{}] = {{\n{}}};\n", text,
                       options_.prefix, entries_.size(), rows);
  }

  std::string Header() const {
    std::string text = fmt::format(
        "/* Made by vm-aot. Returns of functions: 0, or the number of the error as docs/aot.md lists them. "
        "*/\n"
        "#ifndef {0}_AOT_H_\n#define {0}_AOT_H_\n\n#include <stdint.h>\n",
        upper_);
    if (is_packed_) text += calls_->Includes();
    text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text += fmt::format(
        "/* Bytes of memory that a call needs for its tensors, at an address that is a multiple of 16. */\n"
        "#define {0}_ARENA_BYTES {1}\n/* Bytes of constants. */\n#define {0}_CONSTANT_BYTES {2}\n",
        upper_, arena_, literals_.used_bytes());
    if (is_behind_pointer_) {
      text += fmt::format(
          "/* Bytes of the file that vm-aot wrote beside this one. `weights` points to them, at a multiple "
          "of 16. "
          "*/\n#define {}_WEIGHTS_BYTES {}\n",
          upper_, literals_.weights().size());
    }
    text += "\n";
    for (const EntryPoint& entry : entries_) {
      text +=
          fmt::format("/* {}: needs {} bytes of memory. Outputs may not overlap inputs or each other. */\n",
                      entry.c_name, entry.program->arena_bytes());
      if (is_packed_) {
        text += fmt::format("int {}({});\n", entry.c_name, Parameters(entry, true));
      } else {
        text += fmt::format("int {}_in({});\n", entry.c_name, Parameters(entry, true));
        text += fmt::format("#ifndef {}_NO_STATIC_ARENA\nint {}({});\n#endif\n", upper_, entry.c_name,
                            Parameters(entry, false));
      }
    }
    text += kTableTypes;
    text += fmt::format("extern const RewireAotFunctionInfo {}_functions[{}];\n", options_.prefix,
                        entries_.size());
    if (is_packed_) {
      text += fmt::format("\n#define {}_KERNELS {}\nextern const RewireAotImport {}_imports[];\n", upper_,
                          module_.kernels.size(), options_.prefix);
    }
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  }

  std::string Source(const std::string& functions) const {
    std::string text = fmt::format("/* Made by vm-aot. */\n#include \"{}\"\n\n", header_name_);
    if (functions.find("memcpy") != std::string::npos || functions.find("_load_") != std::string::npos ||
        functions.find("_store_") != std::string::npos) {
      text += "#include <string.h>\n";
    }
    if (!is_packed_) text += calls_->Includes();
    text += fmt::format(
        "\n/* Define it to place the weights elsewhere. */\n#ifndef {0}_WEIGHTS\n{1}#endif\n"
        "/* Define it to be told where a call fails. */\n#ifndef {0}_ON_ERROR\n"
        "#define {0}_ON_ERROR(code, text) ((void)0)\n#endif\n\n",
        upper_, WeightsMacro());
    if (!is_packed_) {
      text += fmt::format(
          "#ifndef {0}_NO_STATIC_ARENA\nstatic union {{\n  unsigned char bytes[{1}];\n  int64_t alignment;\n"
          "}} {2}_arena\n#ifdef __GNUC__\n    __attribute__((aligned(16)))\n#endif\n    ;\n#endif\n\n",
          upper_, std::max<std::uint64_t>(arena_, 1), options_.prefix);
    }
    text += literals_.Text() + calls_->Tables() + Helpers(functions) + functions + Table();
    return text;
  }

  // The macro stands in front of a constant unless the program says otherwise.
  std::string WeightsMacro() const {
    if (options_.weights != CWeights::kSection) return fmt::format("#define {}_WEIGHTS\n", upper_);
    return fmt::format(
        "#if defined(__GNUC__) && defined(__ELF__)\n#define {0}_WEIGHTS "
        "__attribute__((section(\".{1}_weights\")))\n#else\n#define {0}_WEIGHTS\n#endif\n",
        upper_, options_.prefix);
  }

  // Functions that read and write an integer in memory of bytes; those that the source uses.
  std::string Helpers(const std::string& functions) const {
    std::string text;
    for (const char* type : {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
      const std::string short_name =
          (type[0] == 'u' ? "u" : "i") + std::string(type + (type[0] == 'u' ? 4 : 3));
      const std::string load = fmt::format("{}_load_{}", options_.prefix, short_name);
      if (functions.find(load + "(") != std::string::npos) {
        text += fmt::format(
            "static int64_t {}(const unsigned char *from) {{\n  {}_t value;\n  memcpy(&value, from, "
            "sizeof(value));\n  return (int64_t)value;\n}}\n",
            load, type);
      }
      const std::string store = fmt::format("{}_store_{}", options_.prefix, short_name);
      if (functions.find(store + "(") != std::string::npos) {
        text += fmt::format(
            "static void {}(unsigned char *to, int64_t number) {{\n  const {}_t value = ({}_t)number;\n  "
            "memcpy(to, &value, sizeof(value));\n}}\n",
            store, type, type);
      }
    }
    return text;
  }

  // The same for all sources of vm-aot, so that a host can have several.
  static constexpr const char* kTableTypes = R"(
#ifndef REWIRE_AOT_TABLE
#define REWIRE_AOT_TABLE
typedef struct RewireAotTensorInfo {
  const char *name;
  const char *dtype; /* "f32" */
  int32_t rank;
  const int64_t *dims;
  uint64_t bytes;
} RewireAotTensorInfo;
/* A function for hosts that do not know it. `kernels` is null unless the kernels are packed functions, and
   `weights` unless they lie in memory of the host. */
typedef struct RewireAotFunctionInfo {
  const char *name;
  uint64_t arena_bytes;
  const RewireAotTensorInfo *inputs;
  int32_t input_count;
  const RewireAotTensorInfo *outputs;
  int32_t output_count;
  int (*run)(void *kernels, void *memory, const void *weights, const void *const *inputs, void *const *outputs);
} RewireAotFunctionInfo;
#endif
)";

  const Module& module_;
  const EmitCOptions& options_;
  std::string header_name_;
  std::string upper_;
  bool is_packed_;
  bool is_behind_pointer_;
  aot::Literals literals_;
  std::unique_ptr<aot::KernelCalls> calls_;
  std::vector<EntryPoint> entries_{};
  std::uint64_t arena_ = 0;
};

}  // namespace

Result<CSource> EmitC(const Executable& executable, const EmitCOptions& options,
                      const std::string& header_name) {
  if (!aot::IsCName(options.prefix)) {
    return Fail(StatusCode::kInvalidArgument,
                "{} cannot begin names of C; give letters, digits and _, with a letter first (--prefix)",
                options.prefix);
  }
  return Emitter(executable.module(), options, header_name).Emit();
}

}  // namespace rewire
