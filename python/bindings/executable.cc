// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.Executable: opening, describing, assembling and writing executables.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "rewire/base/near_names.h"
#include "rewire/compiler/overridable.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/executable_format/names/name_map.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/text/disassembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/tools/io/open_model.h"

namespace rewire::python {
namespace {

// A size, the name of a symbol, or None for what is unknown.
nb::object DimOf(const Module& module, Dim dim) {
  if (dim >= 0) return nb::int_(dim);
  if (IsSymbol(dim)) return nb::str(module.symbols[SymbolOf(dim)].c_str());
  return nb::none();
}

// (name, text, dtype or None, shape or None) of a value of the signature.
nb::tuple Describe(const Module& module, const std::string& name, const Type& type) {
  const TypeNode& node = type.nodes[0];
  nb::object dtype = nb::none(), shape = nb::none();
  if (node.kind == TypeKind::kTensor) {
    if (!(node.dtype == kUnknownDType)) dtype = nb::str(DTypeName(node.dtype).c_str());
    if (node.rank != kUnknownRank) {
      nb::list dims;
      for (Dim dim : node.dims) dims.append(DimOf(module, dim));
      shape = nb::tuple(dims);
    }
  }
  return nb::make_tuple(name, TypeText(type, module.symbols), dtype, shape);
}

Type SubtypeOf(const Type& type, std::uint32_t node) {
  Type found;
  for (std::uint32_t i = node; i < SubtreeEnd(type, node); ++i) found.nodes.push_back(type.nodes[i]);
  return found;
}

nb::list Inputs(const Executable& self, std::uint32_t function) {
  const Module& module = self.module();
  if (function >= module.functions.size()) throw nb::index_error("there is no such function");
  nb::list rows;
  for (const NamedType& input : module.functions[function].inputs) {
    rows.append(Describe(module, input.name, input.type));
  }
  return rows;
}

nb::list Outputs(const Executable& self, std::uint32_t function) {
  const Module& module = self.module();
  if (function >= module.functions.size()) throw nb::index_error("there is no such function");
  const Function& found = module.functions[function];
  const Array<std::uint32_t> leaves = Leaves(found.result);
  nb::list rows;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string name =
        found.output_names[i].empty() ? "output." + std::to_string(i) : found.output_names[i];
    rows.append(Describe(module, name, SubtypeOf(found.result, leaves[i])));
  }
  return rows;
}

nb::list Parameters(const Executable& self) {
  const Module& module = self.module();
  nb::list rows;
  for (const Constant& constant : module.constants) {
    if (constant.kind != ConstantKind::kParameter) continue;
    Type type;
    type.nodes.push_back(constant.type);
    rows.append(Describe(module, constant.name, type));
  }
  return rows;
}

// (name, element type, shape or None) of the initializers that runs may give.
nb::list Overridable(const Executable& self) {
  nb::list rows;
  for (const OverridableInitializer& each : OverridableInitializers(self)) {
    nb::object shape = nb::none();
    if (each.shape) {
      nb::list dims;
      for (const auto& [size, name] : *each.shape) {
        if (size >= 0) {
          dims.append(size);
        } else if (name.empty()) {
          dims.append(nb::none());
        } else {
          dims.append(name);
        }
      }
      shape = nb::tuple(dims);
    }
    rows.append(nb::make_tuple(each.name, each.element_type, shape));
  }
  return rows;
}

nb::list Names(const Executable& self) {
  nb::list names;
  for (const Function& function : self.module().functions) names.append(nb::str(function.name.c_str()));
  return names;
}

nb::list Kernels(const Executable& self) {
  nb::list names;
  for (const KernelImport& kernel : self.module().kernels) names.append(nb::str(kernel.name.c_str()));
  return names;
}

nb::dict Metadata(const Executable& self) {
  nb::dict entries;
  for (const auto& [key, value] : self.module().metadata) entries[key.c_str()] = value;
  return entries;
}

nb::dict ModelRow(const Executable& self) {
  const ModelMetadata model = ReadModelMetadata(self.module());
  nb::dict properties;
  for (const auto& [key, value] : model.properties) properties[key.c_str()] = value;
  nb::dict row;
  row["producer_name"] = model.producer;
  row["producer_version"] = model.producer_version;
  row["graph_name"] = model.graph;
  row["domain"] = model.domain;
  row["description"] = model.description;
  row["graph_description"] = model.graph_description;
  row["version"] = model.version;
  row["custom_metadata_map"] = properties;
  return row;
}

nb::bytes Serialize(const Executable& self) {
  const std::vector<std::byte> bytes = Take(SerializeModule(self.module()));
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Executable FromBytes(nb::handle data, bool verify) {
  const Tensor held = Import(data, Access::kRead, "the executable");
  const TensorView view = held.view();
  if (!view.IsContiguous()) {
    Raise(Error(StatusCode::kInvalidArgument, "the executable: its bytes are strided; copy them first"));
  }
  const Span<const std::byte> bytes(static_cast<const std::byte*>(view.data()), view.bytes());
  const auto owner = std::make_shared<Tensor>(held);
  Result<Executable> opened = [&] {
    const nb::gil_scoped_release released;
    OpenOptions options;
    options.verify_data = verify;
    return Executable::FromBytes({bytes, owner}, options);
  }();
  return Take(std::move(opened));
}

nb::tuple Open(const std::string& path, const std::string& model, bool verify) {
  OpenOptions options;
  options.verify_data = verify;
  Result<tools::OpenedModel> opened = [&] {
    const nb::gil_scoped_release released;
    return tools::OpenModel(path, {}, options, model);
  }();
  const tools::OpenedModel found = TakeFile(std::move(opened), path);
  return nb::make_tuple(found.executable, found.kernels, found.has_parameters);
}

}  // namespace

void AddExecutable(nb::module_& module) {
  nb::class_<Executable> executable(
      module, "Executable",
      "A verified program that is not linked: none of its code has run. Immutable; any number\n"
      "of threads may use one.");
  executable
      .def_prop_ro("functions", &Names, nb::sig("def functions(self) -> list[str]"),
                   "The names of the functions.")
      .def_prop_ro("kernels", &Kernels, nb::sig("def kernels(self) -> list[str]"),
                   "The names of the kernels that linking must find.")
      .def_prop_ro("metadata", &Metadata, nb::sig("def metadata(self) -> dict[str, str]"),
                   "What the file says about itself, such as its producer.")
      .def("_model", &ModelRow, nb::sig("def _model(self) -> dict[str, typing.Any]"))
      .def("_inputs", &Inputs, nb::arg("function"),
           nb::sig("def _inputs(self, function: int) -> list[rewire.signature.Row]"))
      .def("_outputs", &Outputs, nb::arg("function"),
           nb::sig("def _outputs(self, function: int) -> list[rewire.signature.Row]"))
      .def("_parameters", &Parameters, nb::sig("def _parameters(self) -> list[rewire.signature.Row]"))
      .def("_overridable", &Overridable,
           nb::sig("def _overridable(self) -> list[rewire.signature.DeclaredRow]"));
  Method(
      executable, "def _index(self, name: str) -> int | None",
      [](const Executable& self, const Arguments& given) -> nb::object {
        const auto found = self.FindFunction(ToText(given[0], "function"));
        return found ? nb::object(nb::int_(*found)) : nb::none();
      },
      "The place of a function.");
  Method(
      executable, "def to_bytes(self) -> bytes",
      [](const Executable& self, const Arguments&) { return Serialize(self); },
      "Returns the bytes of the .rwx file.");
  Method(
      executable, "def save(self, path: rewire.types.Path) -> None",
      [](const Executable& self, const Arguments& given) {
        ThrowIf(WriteModule(self.module(), ToPath(given[0], "path")));
      },
      "Writes the .rwx file, which is complete or unchanged. Raises IoError.");
  FunctionOf(
      module,
      "def _open(path: rewire.types.Path, model: str, verify: bool) -> tuple[Executable, list[str], bool]",
      [](const Arguments& given) {
        return Open(ToPath(given[0], "model"), ToText(given[1], "model_name"),
                    ToFlag(given[2], "verify", false));
      },
      "Opens a file of any kind: the executable, its kernel libraries, and whether it has parameters.");
  FunctionOf(
      module, "def _from_bytes(data: rewire.types.Array, verify: bool) -> Executable",
      [](const Arguments& given) { return FromBytes(given[0], ToFlag(given[1], "verify", false)); },
      "Opens the bytes of a .rwx file.");
  FunctionOf(
      module, "def _restore_names(executable: Executable, path: rewire.types.Path) -> Executable",
      [](const Arguments& given) {
        const std::string path = ToPath(given[1], "name_map");
        return TakeFile(
            RestoreNames(ToObject<Executable>(given[0], "executable", "a rewire.Executable"), path), path);
      },
      "Gives a stripped executable its names back.");
  FunctionOf(
      module, "def assemble(text: str, directory: str = '') -> Executable",
      [](const Arguments& given) {
        AssembleOptions options;
        if (!given[1].is_none()) options.directory = ToPath(given[1], "directory");
        Module assembled = Take(Assemble(ToText(given[0], "text"), options));
        return Take(Executable::FromModule(std::move(assembled)));
      },
      "Returns the Executable that text assembly describes. Relative @files start in `directory`. Raises\n"
      "InvalidArgumentError with a line for each mistake, or VerificationError.");
  FunctionOf(
      module, "def _known_names(what: str, name: str, names: collections.abc.Iterable[str]) -> str",
      [](const Arguments& given) {
        return KnownNames(ToText(given[0], "what"), ToText(given[1], "name"), ToTexts(given[2], "names"));
      },
      "The end of the message that there is no such name: those nearest to it, and a list of all `what`.");
  FunctionOf(
      module, "def _disassemble(executable: Executable) -> str",
      [](const Arguments& given) {
        return Disassemble(
                   ToObject<Executable>(given[0], "program", "a rewire.Program or Executable").module())
            .text;
      },
      "Returns text assembly.");
}

}  // namespace rewire::python
