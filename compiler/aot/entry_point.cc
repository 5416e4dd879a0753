// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/entry_point.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rewire/compiler/aot/c_names.h"

namespace rewire::aot {
namespace {

// The module's symbols that the inputs have, in the order in which they are found.
std::vector<std::uint32_t> SymbolsOf(const Function& function) {
  std::vector<std::uint32_t> symbols;
  for (const NamedType& input : function.inputs) {
    for (const TypeNode& node : input.type.nodes) {
      for (const Dim dim : node.dims) {
        if (!IsSymbol(dim)) continue;
        if (std::find(symbols.begin(), symbols.end(), SymbolOf(dim)) == symbols.end()) {
          symbols.push_back(SymbolOf(dim));
        }
      }
    }
  }
  return symbols;
}

// The smaller one of what the executable and the options allow; kNoLimit if neither does.
std::int64_t LimitOf(const SourceParts& parts, std::uint32_t symbol) {
  const Module& module = parts.module;
  std::int64_t limit = symbol < module.symbol_limits.size() ? module.symbol_limits[symbol] : kNoLimit;
  const auto given = parts.options.max_dims.find(module.symbols[symbol]);
  if (given == parts.options.max_dims.end()) return limit;
  return limit == kNoLimit ? given->second : std::min(limit, given->second);
}

Status FindSizes(const SourceParts& parts, const Function& function, EntryPoint* entry,
                 std::set<std::string>* taken) {
  for (const std::uint32_t symbol : SymbolsOf(function)) {
    OpenSize size{symbol, parts.module.symbols[symbol], {}, LimitOf(parts, symbol)};
    if (size.most < 1) {
      return Fail(
          StatusCode::kUnsupported,
          "{}: dimension {} of the inputs has no largest size. Give it (--max-dim {}=SIZE), or compile with "
          "vm-compile --dim {}=SIZE",
          function.name, size.name, size.name, size.name);
    }
    size.c_name = CName(size.name, taken);
    entry->sizes.push_back(std::move(size));
  }
  return {};
}

// The next sizes behind these; false after the last ones.
bool Advance(const std::vector<OpenSize>& open, std::vector<std::int64_t>* sizes) {
  for (std::size_t i = open.size(); i-- > 0;) {
    if (++(*sizes)[i] <= open[i].most) return true;
    (*sizes)[i] = 1;
  }
  return false;
}

// The leaves of one version widen those of all.
Status Widen(const std::vector<Leaf>& leaves, const std::string& function, std::vector<Leaf>* widest) {
  if (leaves.empty()) return {};  // it has none, or always fails
  if (widest->empty()) *widest = leaves;
  bool fits = leaves.size() == widest->size();
  for (std::size_t i = 0; fits && i < leaves.size(); ++i) {
    const Leaf& leaf = leaves[i];
    Leaf& wide = (*widest)[i];
    fits =
        leaf.is_tensor == wide.is_tensor && leaf.dtype == wide.dtype && leaf.dims.size() == wide.dims.size();
    wide.varies = wide.varies || (fits && leaf.dims != wide.dims);
    for (std::size_t k = 0; fits && k < leaf.dims.size(); ++k) {
      wide.dims[k] = std::max(wide.dims[k], leaf.dims[k]);
    }
  }
  if (fits) return {};
  return Fail(StatusCode::kUnsupported,
              "{} returns other kinds of values for other sizes of its inputs, which no C function can",
              function);
}

// The version for these sizes, with the smaller arena of both kinds of places.
Result<std::unique_ptr<StaticProgram>> Analyzed(const SourceParts& parts, std::uint32_t function,
                                                const std::map<std::uint32_t, std::int64_t>& sizes) {
  auto program = std::make_unique<StaticProgram>(parts, function, sizes, PlacesOf::kStorages);
  if (Status analyzed = program->Analyze(); !analyzed) return analyzed;
  auto apart = std::make_unique<StaticProgram>(parts, function, sizes, PlacesOf::kTensors);
  if (apart->Analyze() && apart->arena_bytes() < program->arena_bytes()) program = std::move(apart);
  return program;
}

}  // namespace

Result<EntryPoint> MakeEntryPoint(const SourceParts& parts, const std::string& name, std::uint32_t function,
                                  const std::string& c_name) {
  EntryPoint entry;
  entry.name = name;
  entry.c_name = c_name;
  std::set<std::string> taken;
  const Function& source = parts.module.functions[function];
  if (Status found = FindSizes(parts, source, &entry, &taken); !found) return found;
  std::vector<std::int64_t> sizes(entry.sizes.size(), 1);
  std::uint64_t words = 0;
  do {
    std::map<std::uint32_t, std::int64_t> by_symbol;
    for (std::size_t i = 0; i < sizes.size(); ++i) by_symbol[entry.sizes[i].symbol] = sizes[i];
    Result<std::unique_ptr<StaticProgram>> analyzed = Analyzed(parts, function, by_symbol);
    if (!analyzed) return Forward(analyzed);
    Version version{sizes, *std::move(analyzed), {}};
    StaticProgram& program = *version.program;
    words += program.code_words();
    if (entry.IsOpen() && words > parts.options.max_instructions) {
      return Fail(
          StatusCode::kUnsupported,
          "{}: a version for each size of its inputs takes more than {} words of instructions. Give smaller "
          "largest sizes (--max-dim NAME=SIZE)",
          name, parts.options.max_instructions);
    }
    Result<std::string> body = program.Write();
    if (!body) return Forward(body);
    version.body = *std::move(body);
    if (Status fits = Widen(program.inputs(), name, &entry.input_leaves); !fits) return fits;
    if (Status fits = Widen(program.outputs(), name, &entry.output_leaves); !fits) return fits;
    entry.arena_bytes = std::max(entry.arena_bytes, program.arena_bytes());
    entry.versions.push_back(std::move(version));
  } while (Advance(entry.sizes, &sizes));
  for (const Leaf& leaf : entry.input_leaves) entry.inputs.push_back(CName(leaf.name, &taken));
  for (const Leaf& leaf : entry.output_leaves) entry.outputs.push_back(CName(leaf.name, &taken));
  return entry;
}

}  // namespace rewire::aot
