// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/open_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tools/io/open_onnx.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/vm/loader/elf_file.h"
#include "rewire/vm/loader/library_bin.h"
#include "rewire/vm/loader/object_archive.h"

namespace rewire::tools {
namespace {

// Exporters put these into a library beside its functions: TVM to 0.20, and from 0.22 on.
constexpr char kClassicModules[] = "__tvm_dev_mblob";
constexpr char kFfiModules[] = "__tvm_ffi__library_bin";

Status NoModel(FileKind kind, const char* advice) {
  return Fail(StatusCode::kInvalidArgument, fmt::format("this is {}: {}", FileKindName(kind), advice));
}

// A module, and whether the files of --params went into it.
struct Imported {
  Module module;
  bool has_parameters = false;
};

Result<Imported> WithoutParameters(Result<Module> module) {
  if (!module) return Forward(module);
  return Imported{*std::move(module), false};
}

// A graph with the parameters of the files, and with those that it came with: `inside`, which `owner` keeps.
Result<Imported> ReadGraph(std::string_view json, const std::vector<std::string>& parameter_files,
                           const tvm::NamedTensors& inside, const std::shared_ptr<const void>& owner) {
  const auto tensors = std::make_shared<std::vector<NamedTensor>>();
  for (const std::string& path : parameter_files) {
    Result<std::vector<NamedTensor>> members = ReadArchive(path);
    if (!members) return Forward(members);
    tensors->insert(tensors->end(), members->begin(), members->end());
  }
  tvm::NamedTensors parameters;
  for (const NamedTensor& member : *tensors) {
    const HostTensor& tensor = member.tensor;
    parameters.emplace_back(member.name, tvm::ForeignTensor{tensor.dtype, tensor.shape, tensor.bytes.view});
  }
  // The first of two parameters of one name counts.
  parameters.append(inside.begin(), inside.end());
  const auto kept =
      std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(tensors, owner);
  Result<Module> module = tvm::ImportGraph(json, parameters, kept);
  if (!module) return Forward(module);
  return Imported{*std::move(module), true};
}

bool HasRelax(const ElfFile& elf) {
  const Result<Span<const std::byte>> symbol = elf.SymbolBytes(kFfiModules);
  if (!symbol) return false;
  const Result<Array<LibraryModule>> modules = ParseLibraryBin(*symbol);
  return modules && std::any_of(modules->begin(), modules->end(), [](const LibraryModule& module) {
           return module.kind.starts_with("relax.");
         });
}

// The model inside a library that TVM's export_library made.
Result<Imported> ReadExported(const SharedBytes& bytes, const std::vector<std::string>& parameters) {
  const Result<ElfFile> elf = ElfFile::Parse(bytes);
  if (!elf) return Forward(elf);
  if (elf->Defines(kFfiModules) && HasRelax(*elf)) return tvm::RefuseRelax();
  tvm::LibraryBlob blob;
  if (elf->Defines(kClassicModules)) {
    const Result<Span<const std::byte>> symbol = elf->SymbolBytes(kClassicModules);
    if (!symbol) return Forward(symbol);
    Result<tvm::LibraryBlob> read = tvm::ReadLibraryBlob(*symbol);
    if (!read) return Forward(read);
    blob = *std::move(read);
  }
  if (!blob.relay_executable.empty()) {
    return WithoutParameters(tvm::ImportRelayExecutable({blob.relay_executable, bytes.owner}));
  }
  // Parameters can be left out of a library when it is exported (`remove_params`).
  if (!blob.graph_json.empty()) return ReadGraph(blob.graph_json, parameters, blob.parameters, bytes.owner);
  return NoModel(FileKind::kSharedLibrary,
                 "there is no model inside; give the model as FILE and the library as --kernels");
}

Result<Imported> ReadModule(FileKind kind, const std::string& path, const SharedBytes& bytes,
                            const std::vector<std::string>& parameters,
                            const std::vector<std::string>& kernels) {
  switch (kind) {
    case FileKind::kExecutable:
      break;  // read as a host reads it
    case FileKind::kAssembly:
      return WithoutParameters(AssembleFile(path));
    case FileKind::kOnnx:
    case FileKind::kTflite:
      return WithoutParameters(OpenOnnx(path, kernels));
    case FileKind::kRelayExecutable:
      return WithoutParameters(tvm::ImportRelayExecutable(bytes));
    case FileKind::kGraph:
      return ReadGraph({reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size()}, parameters, {},
                       nullptr);
    case FileKind::kSharedLibrary:
      return ReadExported(bytes, parameters);
    case FileKind::kParameterList:
      return NoModel(kind, "give the model as FILE and this as --params");
    case FileKind::kObjectArchive:
      return Forward(RefuseArchive(bytes.view));
  }
  return Fail(StatusCode::kInternal, "not a foreign file");
}

Result<OpenedModel> OpenBundled(const std::string& path, const OpenOptions& options,
                                const std::string& model) {
  const Result<Array<BundledExecutable>> bundle = OpenBundle(path, options);
  if (!bundle) return Forward(bundle);
  Result<Executable> executable = FindExecutable(*bundle, model);
  if (!executable) return Forward(executable, path);
  return OpenedModel{FileKind::kExecutable, *std::move(executable), false, {}};
}

}  // namespace

Result<OpenedModel> OpenModel(const std::string& path, const std::vector<std::string>& parameters,
                              const OpenOptions& options, const std::string& model_name,
                              const std::vector<std::string>& kernels) {
  const Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  const FileKind kind = FindFileKind(path, bytes->view);
  if (IsBundle(bytes->view)) return OpenBundled(path, options, model_name);
  if (!model_name.empty()) {
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("{}: --model chooses one model of a bundle, and this is none; leave it out", path));
  }
  if (kind == FileKind::kOnnx) {
    if (Status refused = RefuseForeignModel(path, bytes->view); !refused) return Forward(refused);
  }
  if (kind == FileKind::kExecutable) {
    if (Status refused = RefuseNoExecutable(path, bytes->view); !refused) return Forward(refused);
    Result<Executable> executable = Executable::Open(path, options);
    if (!executable) return Forward(executable);
    return OpenedModel{kind, *std::move(executable), false, {}};
  }
  Result<Imported> imported = ReadModule(kind, path, *bytes, parameters, kernels);
  // The assembler's messages begin with file and line, the compiler's with the file.
  const bool names_file = kind == FileKind::kAssembly || kind == FileKind::kOnnx || kind == FileKind::kTflite;
  if (!imported) return names_file ? Forward(imported) : Forward(imported, path);
  Result<Executable> executable = Executable::FromModule(std::move(imported->module), options.limits);
  if (!executable) return Forward(executable, path);
  OpenedModel model{kind, *std::move(executable), imported->has_parameters, {}};
  // With a slash it is this file and no other of the same name elsewhere.
  if (kind == FileKind::kSharedLibrary && !model.executable.module().kernels.empty()) {
    model.kernels.push_back(path.find('/') == std::string::npos ? "./" + path : path);
  }
  return model;
}

}  // namespace rewire::tools
