// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/emit_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/compiler/aot/c_names.h"
#include "rewire/compiler/aot/entry_point.h"
#include "rewire/compiler/aot/function_table.h"
#include "rewire/compiler/aot/function_text.h"
#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/compiler/aot/known_calls.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/compiler/aot/stack_depth.h"
#include "rewire/executable_format/names/no_function.h"
#include "rewire/executable_format/state/content_hash.h"

namespace rewire {
namespace {

using aot::CName;
using aot::EntryPoint;
using aot::Upper;

class Emitter {
 public:
  Emitter(const Module& module, const EmitCOptions& options, std::string header_name, bool compute_now)
      : module_(module),
        options_(options),
        header_name_(std::move(header_name)),
        form_{options.prefix, Upper(options.prefix), options.kernels == CKernels::kPacked,
              options.weights == CWeights::kPointer, ContentHash(module)},
        compute_now_(compute_now),
        plans_(PlanOutputs(module)),
        literals_(module, options),
        calls_(form_.is_packed ? aot::MakePackedCalls(module, options.prefix)
                               : aot::MakeEmbeddedCalls(module, options.prefix)) {}

  Result<CSource> Emit() {
    Result<std::vector<std::uint32_t>> functions = FindFunctions();
    if (!functions) return Forward(functions);
    const aot::SourceParts parts{module_,    options_,     plans_,
                                 &literals_, calls_.get(), compute_now_ ? &known_calls_ : nullptr};
    std::set<std::string> taken;
    std::string text;
    for (const std::uint32_t function : *functions) {
      const std::string& name = module_.functions[function].name;
      Result<EntryPoint> entry = aot::MakeEntryPoint(
          parts, name, function, fmt::format("{}_{}", options_.prefix, CName("f" + name, &taken).substr(1)));
      if (!entry) return Forward(entry);
      text += aot::FunctionText(form_, *entry, *calls_);
      arena_ = std::max(arena_, entry->arena_bytes);
      entries_.push_back(*std::move(entry));
    }
    if (!options_.call_graphs.empty()) {
      Result<aot::StackDepth> depth =
          aot::DeepestStack(options_.call_graphs, options_.prefix + "_",
                            literals_.Text() + calls_->Tables() + text, options_.library_stack);
      if (!depth) return Forward(depth);
      stack_ = *std::move(depth);
    }
    CSource source;
    source.arena_bytes = arena_;
    source.constant_bytes = literals_.used_bytes();
    if (stack_) source.stack_bytes = stack_->bytes;
    source.weights = literals_.weights();
    source.header = Header();
    source.source = Source(text);
    return source;
  }

 private:
  Result<std::vector<std::uint32_t>> FindFunctions() const {
    std::vector<std::string> names = options_.functions;
    if (names.empty()) {
      const std::size_t main = PositionOfFunction(module_, "main");
      if (main == module_.functions.size() && module_.functions.size() != 1) {
        return Fail(StatusCode::kInvalidArgument,
                    "no function is called main; name those that C calls (--function NAME)");
      }
      names.push_back(main == module_.functions.size() ? module_.functions[0].name : "main");
    }
    std::vector<std::uint32_t> positions;
    for (const std::string& name : names) {
      const std::size_t position = PositionOfFunction(module_, name);
      if (position == module_.functions.size()) {
        return Forward(NoFunction(module_, name));
      }
      positions.push_back(static_cast<std::uint32_t>(position));
    }
    return positions;
  }

  std::string Header() const {
    std::string text = fmt::format(
        "/* Made by vm-aot. Returns of functions: 0, or the number of the error as docs/aot.md lists them. "
        "*/\n"
        "#ifndef {0}_AOT_H_\n#define {0}_AOT_H_\n\n#include <stdint.h>\n",
        form_.upper);
    if (form_.is_packed) text += calls_->Includes();
    text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text += fmt::format(
        "/* Bytes of memory that a call needs for its tensors, at an address that is a multiple of 16. */\n"
        "#define {0}_ARENA_BYTES {1}\n/* Bytes of constants. */\n#define {0}_CONSTANT_BYTES {2}\n",
        form_.upper, arena_, literals_.used_bytes());
    if (form_.is_behind_pointer) {
      text += fmt::format(
          "/* Bytes of the file that vm-aot wrote beside this one. `weights` points to them, at a multiple "
          "of 16. "
          "*/\n#define {}_WEIGHTS_BYTES {}\n",
          form_.upper, literals_.weights().size());
    }
    if (stack_) text += StackText(*stack_);
    text += "\n";
    for (const EntryPoint& entry : entries_) text += aot::DeclarationText(form_, entry);
    text += aot::kTableTypes;
    text += fmt::format("extern const RewireAotFunctionInfo {}_functions[{}];\n", options_.prefix,
                        entries_.size());
    if (form_.is_packed) {
      text += fmt::format("\n#define {}_KERNELS {}\nextern const RewireAotImport {}_imports[];\n",
                          form_.upper, module_.kernels.size(), options_.prefix);
    }
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  }

  std::string StackText(const aot::StackDepth& stack) const {
    std::string library;
    for (const std::string& name : stack.library) library += (library.empty() ? "" : ", ") + name;
    if (!library.empty()) {
      library = fmt::format(" Of these, {} stand for each of: {}.", options_.library_stack, library);
    }
    return fmt::format(
        "/* Bytes of stack that a call needs at most, by the call graphs of the build that was measured.{} "
        "*/\n#define {}_STACK_BYTES {}\n",
        library, form_.upper, stack.bytes);
  }

  std::string Source(const std::string& functions) const {
    std::string text = fmt::format("/* Made by vm-aot. */\n#include \"{}\"\n\n", header_name_);
    if (functions.find("memcpy") != std::string::npos || functions.find("_load_") != std::string::npos ||
        functions.find("_store_") != std::string::npos) {
      text += "#include <string.h>\n";
    }
    if (!form_.is_packed) text += calls_->Includes();
    text += fmt::format(
        "\n/* Define it to place the weights elsewhere. */\n#ifndef {0}_WEIGHTS\n{1}#endif\n"
        "/* Define it to be told where a call fails. */\n#ifndef {0}_ON_ERROR\n"
        "#define {0}_ON_ERROR(code, text) ((void)0)\n#endif\n\n",
        form_.upper, WeightsMacro());
    if (!form_.is_packed) {
      text += fmt::format(
          "#ifndef {0}_NO_STATIC_ARENA\nstatic union {{\n  unsigned char bytes[{1}];\n  int64_t alignment;\n"
          "}} {2}_arena\n#ifdef __GNUC__\n    __attribute__((aligned(16)))\n#endif\n    ;\n#endif\n\n",
          form_.upper, std::max<std::uint64_t>(arena_, 1), options_.prefix);
    }
    text += literals_.Text() + calls_->Tables() + Helpers(functions) + functions +
            aot::TableText(form_, entries_);
    return text;
  }

  // The macro stands in front of a constant unless the program says otherwise.
  std::string WeightsMacro() const {
    if (options_.weights != CWeights::kSection) return fmt::format("#define {}_WEIGHTS\n", form_.upper);
    return fmt::format(
        "#if defined(__GNUC__) && defined(__ELF__)\n#define {0}_WEIGHTS "
        "__attribute__((section(\".{1}_weights\")))\n#else\n#define {0}_WEIGHTS\n#endif\n",
        form_.upper, options_.prefix);
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

  const Module& module_;
  const EmitCOptions& options_;
  std::string header_name_;
  aot::SourceForm form_;
  bool compute_now_;
  Array<FunctionPlan> plans_;
  aot::KnownCalls known_calls_{};
  aot::Literals literals_;
  std::unique_ptr<aot::KernelCalls> calls_;
  std::vector<EntryPoint> entries_{};
  std::uint64_t arena_ = 0;
  std::optional<aot::StackDepth> stack_{};
};

}  // namespace

Result<CSource> EmitC(const Executable& executable, const EmitCOptions& options,
                      const std::string& header_name) {
  if (!aot::IsCName(options.prefix)) {
    return Fail(StatusCode::kInvalidArgument,
                "{} cannot begin names of C; give letters, digits and _, with a letter first (--prefix)",
                options.prefix);
  }
  if (!options.call_graphs.empty() && options.kernels == CKernels::kPacked) {
    return Fail(
        StatusCode::kInvalidArgument,
        "packed functions stand in no call graph; leave out --stack-usage, or use --kernels embedded");
  }
  const Module& module = executable.module();
  for (const auto& [name, most] : options.max_dims) {
    if (std::find(module.symbols.begin(), module.symbols.end(), name) == module.symbols.end()) {
      return Fail(StatusCode::kInvalidArgument, "no dimension of the executable is called {}", name);
    }
    if (most < 1) {
      return Fail(StatusCode::kInvalidArgument, "the largest size of {} is {}, at least 1 is expected", name,
                  most);
    }
  }
  // Calls are computed only where nothing else helps: a result that is known here, and memory elsewhere,
  // makes some loops other than static.
  Result<CSource> source = Emitter(module, options, header_name, false).Emit();
  if (source || source.error().code() != StatusCode::kUnsupported) return source;
  return Emitter(module, options, header_name, true).Emit();
}

}  // namespace rewire
