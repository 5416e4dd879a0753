// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/input_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/data_files.h"
#include "rewire/executable_format/text/element_text.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/run/text_tensors.h"

namespace rewire::tools {
namespace {

class InputMaker {
 public:
  InputMaker(const Module& module, const Function& function, const InputOptions& options,
             Span<const Value> known)
      : module_(module),
        function_(function),
        options_(options),
        known_(known),
        random_(options.seed),
        specs_(function.inputs.size()),
        sizes_(module.symbols.size()) {}

  Result<std::vector<Value>> Make();

 private:
  Status ReadDims();
  Status ReadBindings();
  Status AddArchive(const std::string& path);
  Status AddInput(std::uint32_t index, ValueSpec spec);
  Status LoadFiles(std::uint32_t index);
  // Turns strings for an input into the three inputs that stand for them.
  Status SplitTexts();
  // Learns the sizes of symbols from the tensors given for an input.
  void LearnSymbols(std::uint32_t index);
  // A spec of random leaves by the signature.
  Result<ValueSpec> RandomSpec(const NamedType& input) const;
  Result<Value> Build(std::uint32_t index);
  Result<Value> BuildLeaf(const SpecNode& node, const TypeNode* type);

  const Module& module_;
  const Function& function_;
  const InputOptions& options_;
  Span<const Value> known_;
  RandomTensors random_;
  text::DataFiles files_{options_.folder};
  std::vector<ValueSpec> specs_;                    // by input; empty: not given
  std::vector<std::optional<std::int64_t>> sizes_;  // by symbol
};

// The nodes of the type that the nodes of the spec stand for, null where the two differ in structure.
std::vector<const TypeNode*> Align(const ValueSpec& spec, const Type& type) {
  std::vector<const TypeNode*> aligned(spec.size(), nullptr);
  if (spec.size() != type.nodes.size()) return aligned;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    const TypeNode& node = type.nodes[i];
    const bool is_tree = spec[i].kind == SpecNode::Kind::kTree;
    const bool fits =
        is_tree == (node.kind == TypeKind::kAdt) && (!is_tree || spec[i].field_count == node.field_count);
    if (!fits) break;
    aligned[i] = &node;
  }
  return aligned;
}

std::string InputText(const Module& module, const NamedType& input) {
  return fmt::format("input '{}' ({})", input.name, TypeText(input.type, module.symbols));
}

Status InputMaker::ReadDims() {
  for (const std::string& text : options_.dims) {
    const Result<SymbolSize> dim = FindSymbol(module_, text);
    if (!dim) return Forward(dim, "--dim");
    sizes_[dim->symbol] = dim->size;
  }
  return {};
}

Status InputMaker::AddInput(std::uint32_t index, ValueSpec spec) {
  if (!specs_[index].empty()) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("input '{}' is given twice; leave one out", function_.inputs[index].name));
  }
  specs_[index] = std::move(spec);
  return {};
}

Status InputMaker::AddArchive(const std::string& path) {
  Result<std::vector<NamedTensor>> tensors = ReadArchive(path);
  if (!tensors) return Forward(tensors);
  for (NamedTensor& member : *tensors) {
    const Result<std::uint32_t> index = FindInput(function_, member.name);
    if (!index) return Forward(index, path);
    SpecNode node;
    node.kind = SpecNode::Kind::kLiteral;
    node.tensor = std::move(member.tensor);
    if (Status added = AddInput(*index, {std::move(node)}); !added) return added;
  }
  return {};
}

Status InputMaker::ReadBindings() {
  for (const std::string& text : options_.inputs) {
    Result<ValueBinding> binding = ParseValueBinding(text);
    if (!binding) return Forward(binding, "--input");
    if (!binding->archive.empty()) {
      if (Status added = AddArchive(binding->archive); !added) return added;
      continue;
    }
    const Result<std::uint32_t> index = FindInput(function_, binding->target);
    if (!index) return Forward(index, "--input");
    if (Status added = AddInput(*index, std::move(binding->value)); !added) return added;
    if (Status loaded = LoadFiles(*index); !loaded) return loaded;
  }
  return {};
}

Status InputMaker::LoadFiles(std::uint32_t index) {
  for (SpecNode& node : specs_[index]) {
    if (node.kind != SpecNode::Kind::kFile) continue;
    // x=@inputs.npz means the member x.
    const std::string reference =
        IsArchivePath(node.text) ? node.text + ":" + function_.inputs[index].name : node.text;
    Result<HostTensor> tensor = files_.Load(reference);
    if (!tensor) return Forward(tensor, fmt::format("input '{}'", function_.inputs[index].name));
    node.kind = SpecNode::Kind::kLiteral;
    node.tensor = *std::move(tensor);
  }
  return {};
}

Status InputMaker::SplitTexts() {
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    const std::string& name = function_.inputs[i].name;
    const bool is_text = specs_[i].size() == 1 && IsText(specs_[i][0].tensor);
    if (!is_text) continue;
    const std::optional<TextPlaces> places =
        PlacesOf(module_, fmt::format("input strings {}.{}", function_.name, i), specs_.size());
    if (!places)
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("{} takes no strings", InputText(module_, function_.inputs[i])));
    const Result<TextArray> array = TextsIn(specs_[i][0].tensor);
    if (!array) return Forward(array, fmt::format("input '{}'", name));
    TextParts parts = PartsOf(*array);
    specs_[i][0].tensor = std::move(parts.positions);
    for (auto& [place, tensor] :
         {std::pair(places->offsets, &parts.offsets), std::pair(places->bytes, &parts.bytes)}) {
      SpecNode node;
      node.kind = SpecNode::Kind::kLiteral;
      node.tensor = std::move(*tensor);
      if (Status added = AddInput(place, {std::move(node)}); !added) return added;
    }
  }
  return {};
}

void InputMaker::LearnSymbols(std::uint32_t index) {
  const std::vector<const TypeNode*> aligned = Align(specs_[index], function_.inputs[index].type);
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    const std::vector<std::int64_t>& shape = specs_[index][i].tensor.shape;
    if (aligned[i] == nullptr || aligned[i]->dims.size() != shape.size()) continue;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Dim dim = aligned[i]->dims[d];
      if (IsSymbol(dim) && !sizes_[SymbolOf(dim)]) sizes_[SymbolOf(dim)] = shape[d];
    }
  }
}

Result<ValueSpec> InputMaker::RandomSpec(const NamedType& input) const {
  ValueSpec spec;
  for (const TypeNode& type : input.type.nodes) {
    SpecNode node;
    switch (type.kind) {
      case TypeKind::kAdt:
        node.kind = SpecNode::Kind::kTree;
        node.field_count = type.field_count;
        break;
      case TypeKind::kInteger:
        node.kind = SpecNode::Kind::kRandom;
        node.tensor.dtype = kInt64;
        break;
      case TypeKind::kTensor:
        if (type.rank == kUnknownRank || type.dtype == kUnknownDType) {
          return Fail(
              StatusCode::kInvalidArgument,
              fmt::format("{}: --random does not know its dtype and shape; write --input {}=2x3xf32=random",
                          InputText(module_, input), input.name));
        }
        node.kind = SpecNode::Kind::kRandom;
        node.tensor.dtype = type.dtype;
        for (const Dim dim : type.dims) {
          if (dim == kUnknownDim || (IsSymbol(dim) && !sizes_[SymbolOf(dim)])) {
            const std::string hint = dim == kUnknownDim
                                         ? fmt::format("write --input {}=2x3xf32=random", input.name)
                                         : fmt::format("write --dim {}=SIZE", module_.symbols[SymbolOf(dim)]);
            return Fail(StatusCode::kInvalidArgument,
                        fmt::format("{}: --random does not know the size of every dimension; {}",
                                    InputText(module_, input), hint));
          }
          node.tensor.shape.push_back(IsSymbol(dim) ? *sizes_[SymbolOf(dim)] : dim);
        }
        break;
      case TypeKind::kClosure:
      case TypeKind::kStorage:
      case TypeKind::kValue:
        return Fail(StatusCode::kInvalidArgument,
                    fmt::format("{}: --random makes tensors, integers and trees of them; use --input",
                                InputText(module_, input)));
    }
    spec.push_back(std::move(node));
  }
  return spec;
}

Result<Value> InputMaker::BuildLeaf(const SpecNode& node, const TypeNode* type) {
  bool wants_integer = type != nullptr && type->kind == TypeKind::kInteger;
  HostTensor tensor = node.tensor;
  if (node.kind == SpecNode::Kind::kRandom) {
    Result<HostTensor> made = random_.Make(tensor.dtype, tensor.shape);
    if (!made) return Forward(made);
    tensor = *std::move(made);
  } else if (node.kind == SpecNode::Kind::kNumber) {
    tensor.dtype = kInt64;
    const bool typed = type != nullptr && type->kind == TypeKind::kTensor && type->dtype != kUnknownDType;
    if (typed) tensor.dtype = type->dtype;
    std::byte* element = nullptr;
    tensor.bytes = AllocateBytes(ElementBytes(tensor.dtype), &element);
    if (Status parsed = text::ParseElement(tensor.dtype, node.text, element); !parsed) return Forward(parsed);
    if (!typed) wants_integer = true;
  }
  if (wants_integer && tensor.shape.empty() && tensor.dtype == kInt64) {
    std::int64_t integer = 0;
    std::memcpy(&integer, tensor.bytes.view.data(), sizeof(integer));
    return Value(integer);
  }
  Result<Tensor> wrapped = ToTensor(tensor);
  if (!wrapped) return Forward(wrapped);
  return Value(*std::move(wrapped));
}

Result<Value> InputMaker::Build(std::uint32_t index) {
  const ValueSpec& spec = specs_[index];
  const std::vector<const TypeNode*> types = Align(spec, function_.inputs[index].type);
  // From the last node to the first, so that a tree's fields are on top of the stack, the first one
  // uppermost.
  std::vector<Value> stack;
  for (std::size_t i = spec.size(); i-- > 0;) {
    const SpecNode& node = spec[i];
    if (node.kind != SpecNode::Kind::kTree) {
      Result<Value> leaf = BuildLeaf(node, types[i]);
      if (!leaf) return leaf;
      stack.push_back(*std::move(leaf));
      continue;
    }
    std::vector<Value> fields;
    for (std::uint32_t f = 0; f < node.field_count; ++f) {
      fields.push_back(std::move(stack.back()));
      stack.pop_back();
    }
    const std::uint32_t tag = node.tag.value_or(types[i] != nullptr ? types[i]->tag : 0);
    Result<Value> tree = Value::Adt(tag, fields);
    if (!tree) return tree;
    stack.push_back(*std::move(tree));
  }
  return std::move(stack.front());
}

Result<std::vector<Value>> InputMaker::Make() {
  for (const std::string& range : options_.random_ranges) {
    if (Status set = random_.SetRange(range); !set) return Forward(set, "--range");
  }
  if (Status read = ReadDims(); !read) return Forward(read);
  if (Status read = ReadBindings(); !read) return Forward(read);
  if (Status split = SplitTexts(); !split) return Forward(split);
  for (std::uint32_t i = 0; i < specs_.size(); ++i) LearnSymbols(i);
  std::vector<Value> values;
  for (std::uint32_t i = 0; i < specs_.size(); ++i) {
    const NamedType& input = function_.inputs[i];
    if (specs_[i].empty() && i < known_.size() && known_[i].kind() != ValueKind::kNone) {
      values.push_back(known_[i]);
      continue;
    }
    if (specs_[i].empty()) {
      if (!options_.random) {
        return Fail(StatusCode::kInvalidArgument,
                    fmt::format("{} of function {} is not given; write --input {}=@FILE, or --random",
                                InputText(module_, input), function_.name, input.name));
      }
      Result<ValueSpec> spec = RandomSpec(input);
      if (!spec) return Forward(spec);
      specs_[i] = *std::move(spec);
    }
    Result<Value> value = Build(i);
    if (!value) return Forward(value, fmt::format("input '{}'", input.name));
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace

Result<std::vector<Value>> MakeInputs(const Module& module, const Function& function,
                                      const InputOptions& options, Span<const Value> known) {
  return InputMaker(module, function, options, known).Make();
}

}  // namespace rewire::tools
