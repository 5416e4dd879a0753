// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/tvm/case_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/loader/elf_file.h"

namespace rewire::test {
namespace {

using Json = nlohmann::json;

Result<SharedBytes> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Fail(StatusCode::kNotFound, path);
  auto bytes = std::make_shared<const std::string>(std::istreambuf_iterator<char>(stream),
                                                   std::istreambuf_iterator<char>());
  return SharedBytes{{reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes};
}

Result<Tensor> ToTensor(DLDataType dtype, const std::vector<std::int64_t>& shape, const SharedBytes& bytes) {
  // As every version of TVM aligns its own: a runtime of 0.9 or before hands its kernels nothing else.
  const Result<SharedBytes> aligned = AlignedCopy(bytes.view, 128);
  if (!aligned) return Forward(aligned);
  return Tensor::Wrap(TensorView(const_cast<std::byte*>(aligned->view.data()), dtype, shape), aligned->owner);
}

Result<Value> ReadValue(const std::string& directory, const Json& json) {
  // Trees are as deep as lists are long, so they are built without recursion: nodes first, then from the
  // last.
  std::vector<const Json*> nodes = {&json};
  std::vector<std::size_t> first_field;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    first_field.push_back(nodes.size());
    if (!nodes[i]->contains("adt")) continue;
    for (const Json& field : nodes[i]->at("fields")) nodes.push_back(&field);
  }
  std::vector<Value> values(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i]->contains("tensor")) {
      Result<HostTensor> file = ReadNpy(directory + "/" + nodes[i]->at("tensor").get<std::string>());
      if (!file) return Forward(file);
      Result<Tensor> tensor = ToTensor(file->dtype, file->shape, file->bytes);
      if (!tensor) return Forward(tensor);
      values[i] = *tensor;
      continue;
    }
    const std::size_t fields = nodes[i]->at("fields").size();
    Result<Value> adt = Value::Adt(static_cast<std::uint32_t>(nodes[i]->at("adt").get<std::int64_t>()),
                                   {values.data() + first_field[i], fields});
    if (!adt) return Forward(adt);
    values[i] = *adt;
  }
  return values[0];
}

// The module of the case's files, from wherever it is.
Result<Module> ImportCase(const std::string& directory, const Json& files) {
  const auto read = [&](const char* role) {
    return ReadFile(directory + "/" + files.at(role).get<std::string>());
  };
  if (files.contains("code")) {
    Result<SharedBytes> code = read("code");
    if (!code) return Forward(code);
    return tvm::ImportRelayExecutable(*code);
  }
  if (files.contains("graph")) {
    Result<SharedBytes> graph = read("graph");
    Result<SharedBytes> parameters = read("parameters");
    if (!graph || !parameters) return Fail(StatusCode::kNotFound, directory);
    Result<tvm::NamedTensors> tensors = tvm::ReadParameterList(parameters->view);
    if (!tensors) return Forward(tensors);
    return tvm::ImportGraph({reinterpret_cast<const char*>(graph->view.data()), graph->view.size()}, *tensors,
                            parameters->owner);
  }
  Result<SharedBytes> library = read("library");
  if (!library) return Forward(library);
  Result<ElfFile> elf = ElfFile::Parse(*library);
  if (!elf) return Forward(elf);
  Result<Span<const std::byte>> symbol = elf->SymbolBytes("__tvm_dev_mblob");
  if (!symbol) return Forward(symbol);
  Result<tvm::LibraryBlob> blob = tvm::ReadLibraryBlob(*symbol);
  if (!blob) return Forward(blob);
  if (blob->graph_json.empty()) return tvm::ImportRelayExecutable({blob->relay_executable, library->owner});
  return tvm::ImportGraph(blob->graph_json, blob->parameters, library->owner);
}

Result<Program> LinkCase(const std::string& directory, const Json& files, const KernelWrapper& wrap) {
  Result<Module> module = ImportCase(directory, files);
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(std::move(*module));
  if (!executable) return Forward(executable);
  LinkOptions options;
  // A program that calls no kernel comes with a library that has none, and that is refused for it.
  if (!executable->module().kernels.empty()) {
    Status library = options.kernels.AddLibrary(directory + "/" + files.at("library").get<std::string>());
    if (!library) return Forward(library);
  }
  for (const KernelImport& import : executable->module().kernels) {
    if (wrap == nullptr) break;
    const Result<PackedFunction> kernel = options.kernels.Resolve(import);
    if (!kernel) return Forward(kernel);
    options.kernels.AddFunction(import.name, wrap(*kernel));
  }
  if (files.contains("late_bound")) {
    Result<ParameterSet> parameters =
        ParameterSet::Open(directory + "/" + files.at("late_bound").get<std::string>());
    if (!parameters) return Forward(parameters);
    options.parameters.push_back(*std::move(parameters));
  }
  return Program::Link(*executable, std::move(options));
}

// True if the elements at the same place are floats that differ no more than the tolerance.
template <typename T>
bool AreClose(const unsigned char* a, const unsigned char* b, double tolerance) {
  T given, expected;
  std::memcpy(&given, a, sizeof(T));
  std::memcpy(&expected, b, sizeof(T));
  if (std::isnan(given) && std::isnan(expected)) return true;
  const double distance = std::abs(static_cast<double>(given) - static_cast<double>(expected));
  return distance <= tolerance * std::max(1.0, std::abs(static_cast<double>(expected)));
}

std::string TensorDifference(const Tensor& result, const Tensor& expected, double tolerance) {
  const Result<Tensor> given = CopyToHost(result);
  if (!given) return given.error().message();
  const std::string given_type = TensorTypeText(given->dtype(), given->shape());
  const std::string expected_type = TensorTypeText(expected.dtype(), expected.shape());
  if (given_type != expected_type) return fmt::format("{} instead of {}", given_type, expected_type);
  const auto* a = static_cast<const unsigned char*>(given->view().data());
  const auto* b = static_cast<const unsigned char*>(expected.view().data());
  const std::uint64_t bytes = expected.view().bytes();
  if (tolerance > 0 && expected.dtype() == kFloat32) {
    for (std::uint64_t i = 0; i < bytes; i += sizeof(float)) {
      if (!AreClose<float>(a + i, b + i, tolerance)) {
        return fmt::format("element {} of {} differs by more than {}", i / sizeof(float), given_type,
                           tolerance);
      }
    }
    return "";
  }
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (a[i] != b[i])
      return fmt::format("byte {} of {} is {:#x} instead of {:#x}", i, given_type, a[i], b[i]);
  }
  return "";
}

}  // namespace

Result<TvmCase> ReadTvmCase(const std::string& directory, const KernelWrapper& wrap) {
  Result<SharedBytes> text = ReadFile(directory + "/case.json");
  if (!text) return Forward(text);
  const Json json =
      Json::parse(std::string_view(reinterpret_cast<const char*>(text->view.data()), text->view.size()));
  Result<Program> program = LinkCase(directory, json.at("files"), wrap);
  if (!program) return Forward(program);
  TvmCase result{json.at("name"), json.at("alignment"), json.value("tolerance", 0.0), *program, {}};
  for (const Json& call : json.at("calls")) {
    TvmCall entry;
    entry.function = call.at("function");
    for (const Json& input : call.at("inputs")) {
      Result<Value> value = ReadValue(directory, input.at("value"));
      if (!value) return Forward(value);
      entry.inputs.push_back(*value);
    }
    Result<Value> expected = ReadValue(directory, call.at("expected"));
    if (!expected) return Forward(expected);
    entry.expected = *expected;
    result.calls.push_back(std::move(entry));
  }
  return result;
}

std::string Difference(const Value& given, const Value& expected, double tolerance) {
  std::vector<std::pair<Value, Value>> open = {{given, expected}};
  while (!open.empty()) {
    const auto [a, b] = open.back();
    open.pop_back();
    if (a.kind() != b.kind()) {
      return fmt::format("{} instead of {}", ValueKindName(a.kind()), ValueKindName(b.kind()));
    }
    if (a.kind() == ValueKind::kTensor) {
      if (std::string text = TensorDifference(a.tensor(), b.tensor(), tolerance); !text.empty()) return text;
      continue;
    }
    if (a.tag() != b.tag() || a.field_count() != b.field_count()) {
      return fmt::format("ADT {} of {} fields instead of {} of {}", a.tag(), a.field_count(), b.tag(),
                         b.field_count());
    }
    for (std::uint32_t i = 0; i < a.field_count(); ++i) open.emplace_back(a.field(i), b.field(i));
  }
  return "";
}

std::vector<Tensor> LeavesOf(const Value& value) {
  std::vector<Tensor> leaves;
  std::vector<Value> open = {value};
  while (!open.empty()) {
    const Value next = open.back();
    open.pop_back();
    if (next.kind() == ValueKind::kTensor) leaves.push_back(next.tensor());
    for (std::uint32_t i = next.field_count(); i-- > 0;) open.push_back(next.field(i));
  }
  return leaves;
}

}  // namespace rewire::test
