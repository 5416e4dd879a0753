// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "rewire/base/array.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/import/compact.h"
#include "rewire/executable_format/import/graph_file.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/import/tables.h"

namespace rewire::tvm {
namespace {

// The JSON does not say which TVM compiled the kernels, so they get what the strictest version relied on. A
// library that tells what its kernels need is believed when the program is linked.
constexpr std::uint32_t kGraphAlignment = 128;

// The graph executor's names for nodes that call no kernel.
constexpr std::string_view kNop = "__nop";
constexpr std::string_view kCopy = "__copy";

class GraphTranslator {
 public:
  GraphTranslator(const GraphFile& graph, const NamedTensors& parameters, std::shared_ptr<const void> owner)
      : graph_(graph), owner_(std::move(owner)) {
    for (const auto& [name, tensor] : parameters) parameters_.emplace(name, &tensor);
    devices_.resize(graph.entries.size());
    registers_.resize(graph.entries.size(), kNone);
  }

  Result<Module> Run();

 private:
  Status AddDevices();
  void AddInputs();
  Status AddParameters();
  Status AddParameter(const GraphNode& node, const ForeignTensor& tensor);
  Status TranslateNode(const GraphNode& node);
  Status Reshape(const GraphNode& node);
  Status Copy(const GraphNode& node);
  void AllocateOutput(std::uint32_t entry);
  void SizeStorages();
  std::uint32_t Kernel(const std::string& name);
  void Return();

  const ForeignTensor* FindParameter(const GraphNode& node) const {
    const auto found = parameters_.find(node.name);
    return found == parameters_.end() ? nullptr : found->second;
  }
  Type EntryType(std::uint32_t entry) const {
    return TensorType(graph_.entries[entry].dtype, graph_.entries[entry].shape, devices_[entry]);
  }

  struct Storage {
    std::uint64_t bytes = 0;
    std::uint32_t reg = kNone;
  };
  // Entries of one storage on different devices cannot share it.
  using StorageKey = std::pair<std::int64_t, std::uint32_t>;
  struct HashKey {
    std::size_t operator()(const StorageKey& key) const {
      return std::hash<std::int64_t>()(key.first * 31 + key.second);
    }
  };
  Storage& StorageOf(std::uint32_t entry) {
    return storages_[{graph_.entries[entry].storage, devices_[entry]}];
  }

  const GraphFile& graph_;
  std::shared_ptr<const void> owner_;
  std::unordered_map<std::string_view, const ForeignTensor*> parameters_;
  std::unordered_map<StorageKey, Storage, HashKey> storages_;
  std::unordered_map<std::string, std::uint32_t> kernels_;
  std::map<std::pair<const ForeignTensor*, std::uint32_t>, std::uint32_t> constants_;  // tensor, device
  Array<std::uint32_t> devices_;                                                       // per entry
  Array<std::uint32_t> registers_;  // per entry, kNone until it is there
  std::uint32_t next_register_ = 0;
  Module module_;
  Function main_;
  CodeWriter writer_;
};

Status GraphTranslator::AddDevices() {
  DeviceTable table(&module_);
  for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
    Result<std::uint32_t> device = table.Add(graph_.entries[i].device);
    if (!device) return Forward(device, fmt::format("graph: entry {}", i));
    devices_[i] = *device;
  }
  return {};
}

void GraphTranslator::AddInputs() {
  UniqueNames names;
  for (const GraphNode& node : graph_.nodes) {
    if (!node.kernel.empty() || FindParameter(node) != nullptr) continue;
    registers_[node.first_entry] = next_register_++;
    main_.inputs.push_back(
        {names.Make(node.name, fmt::format("input{}", main_.inputs.size())), EntryType(node.first_entry)});
  }
}

Status GraphTranslator::AddParameter(const GraphNode& node, const ForeignTensor& tensor) {
  const GraphEntry& entry = graph_.entries[node.first_entry];
  if (tensor.dtype != entry.dtype || tensor.shape != entry.shape) {
    return Malformed(fmt::format("graph: parameter '{}' is {}[{}], the graph has {}[{}]", node.name,
                                 DTypeName(tensor.dtype), fmt::join(tensor.shape, ", "),
                                 DTypeName(entry.dtype), fmt::join(entry.shape, ", ")));
  }
  const std::uint32_t reg = next_register_++;
  registers_[node.first_entry] = reg;
  // Nodes of one name have one parameter, on a device one constant.
  const auto [found, is_new] = constants_.emplace(std::pair(&tensor, devices_[node.first_entry]),
                                                  static_cast<std::uint32_t>(module_.constants.size()));
  if (is_new) {
    module_.constants.push_back(DataConstant(node.name, tensor, devices_[node.first_entry], owner_));
  }
  writer_.LoadConst(found->second, reg);
  return {};
}

Status GraphTranslator::AddParameters() {
  for (const GraphNode& node : graph_.nodes) {
    const ForeignTensor* tensor = node.kernel.empty() ? FindParameter(node) : nullptr;
    if (tensor == nullptr) continue;
    if (Status added = AddParameter(node, *tensor); !added) return added;
  }
  return {};
}

void GraphTranslator::SizeStorages() {
  for (std::uint32_t i = 0; i < graph_.entries.size(); ++i) {
    Storage& storage = StorageOf(i);
    storage.bytes = std::max(storage.bytes, graph_.entries[i].bytes);
  }
}

void GraphTranslator::AllocateOutput(std::uint32_t entry) {
  Storage& storage = StorageOf(entry);
  if (storage.reg == kNone) {
    storage.reg = next_register_++;
    writer_.AllocStorage(kNone, kGraphAlignment, kUInt8, devices_[entry], storage.reg,
                         {static_cast<std::int64_t>(storage.bytes)});
  }
  registers_[entry] = next_register_++;
  writer_.AllocTensor(storage.reg, kNone, graph_.entries[entry].dtype, registers_[entry],
                      graph_.entries[entry].shape);
}

std::uint32_t GraphTranslator::Kernel(const std::string& name) {
  const auto [found, added] = kernels_.emplace(name, static_cast<std::uint32_t>(module_.kernels.size()));
  if (added) {
    KernelImport kernel;
    kernel.name = name;
    kernel.alignment = kGraphAlignment;
    module_.kernels.push_back(std::move(kernel));
  }
  return found->second;
}

// A node without a kernel gives its input's data another shape: both are on one storage.
Status GraphTranslator::Reshape(const GraphNode& node) {
  if (node.inputs.empty() || node.outputs != 1) {
    return Malformed(fmt::format("graph: node '{}' is a nop of {} inputs and {} outputs", node.name,
                                 node.inputs.size(), node.outputs));
  }
  const GraphEntry& from = graph_.entries[node.inputs[0]];
  const GraphEntry& to = graph_.entries[node.first_entry];
  if (from.dtype != to.dtype || from.bytes != to.bytes) {
    return Malformed(fmt::format("graph: nop '{}' makes {} bytes of {} into {} of {}", node.name, from.bytes,
                                 DTypeName(from.dtype), to.bytes, DTypeName(to.dtype)));
  }
  const auto dims = std::make_shared<const Array<std::int64_t>>(to.shape);
  const Span<const std::byte> bytes = {reinterpret_cast<const std::byte*>(dims->data()),
                                       dims->size() * sizeof(std::int64_t)};
  const std::uint32_t shape_reg = next_register_++;
  writer_.LoadConst(static_cast<std::uint32_t>(module_.constants.size()), shape_reg);
  module_.constants.push_back(
      DataConstant("", {kInt64, {static_cast<std::int64_t>(dims->size())}, bytes}, kHostDevice, dims));
  registers_[node.first_entry] = next_register_++;
  writer_.ReshapeTensor(registers_[node.inputs[0]], shape_reg, registers_[node.first_entry]);
  return {};
}

Status GraphTranslator::Copy(const GraphNode& node) {
  if (node.inputs.size() != 1 || node.outputs != 1) {
    return Malformed(fmt::format("graph: copy '{}' has {} inputs and {} outputs", node.name,
                                 node.inputs.size(), node.outputs));
  }
  registers_[node.first_entry] = next_register_++;
  writer_.DeviceCopy(registers_[node.inputs[0]], devices_[node.inputs[0]], devices_[node.first_entry],
                     registers_[node.first_entry]);
  return {};
}

Status GraphTranslator::TranslateNode(const GraphNode& node) {
  if (node.kernel == kNop) return Reshape(node);
  if (node.kernel == kCopy) return Copy(node);
  Array<std::uint32_t> args;
  for (std::uint32_t entry : node.inputs) args.push_back(registers_[entry]);
  for (std::uint32_t i = 0; i < node.outputs; ++i) {
    AllocateOutput(node.first_entry + i);
    args.push_back(registers_[node.first_entry + i]);
  }
  writer_.InvokePacked(Kernel(node.kernel), node.outputs, kNone, args);
  return {};
}

void GraphTranslator::Return() {
  UniqueNames names;
  Array<Type> types;
  Array<std::uint32_t> fields;
  for (std::uint32_t entry : graph_.heads) {
    const GraphNode& node = graph_.nodes[graph_.entries[entry].node];
    main_.output_names.push_back(names.Make(node.name, fmt::format("output{}", fields.size())));
    types.push_back(EntryType(entry));
    fields.push_back(registers_[entry]);
  }
  if (fields.size() == 1) {
    main_.result = types[0];
    writer_.Ret(fields[0]);
    return;
  }
  main_.result = AdtType(0, types);
  const std::uint32_t tuple = next_register_++;
  writer_.AllocADT(0, tuple, fields);
  writer_.Ret(tuple);
}

Result<Module> GraphTranslator::Run() {
  if (Status devices = AddDevices(); !devices) return Forward(devices);
  main_.name = "main";
  AddInputs();
  if (Status parameters = AddParameters(); !parameters) return Forward(parameters);
  SizeStorages();
  for (const GraphNode& node : graph_.nodes) {
    if (node.kernel.empty()) continue;
    if (Status status = TranslateNode(node); !status) return Forward(status);
  }
  Return();
  Result<Array<std::uint32_t>> code = writer_.Finish();
  if (!code) return Forward(code, "graph");
  main_.code = std::move(*code);
  if (Status compacted = CompactFunction(main_, &module_.strings); !compacted)
    return Forward(compacted, "graph");
  module_.functions.push_back(std::move(main_));
  module_.metadata.emplace_back("source", "graph-executor artifact of TVM");
  return std::move(module_);
}

}  // namespace

Result<Module> ImportGraph(std::string_view json, const NamedTensors& parameters,
                           const std::shared_ptr<const void>& owner) {
  Result<GraphFile> graph = ReadGraphFile(json);
  if (!graph) return Forward(graph);
  return GraphTranslator(*graph, parameters, owner).Run();
}

}  // namespace rewire::tvm
