// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/graph_file.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/max_rank.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/limits.h"

namespace rewire::tvm {
namespace {

using Json = nlohmann::json;

// The most that the verifier takes, checked before anything is made of it.
constexpr std::size_t kMaxHeads = FormatLimits{}.result_leaves;
constexpr std::size_t kMaxNameBytes = FormatLimits{}.name_bytes;

// A member of an object, or null (of JSON).
const Json& Member(const Json& object, const char* name) {
  static const Json kAbsent;
  if (!object.is_object()) return kAbsent;
  const auto found = object.find(name);
  return found == object.end() ? kAbsent : *found;
}

std::optional<std::uint32_t> Index(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

// The value that stands in place of the one expected, for a message: short, whatever it is.
std::string Brief(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kMost = 40;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

// The list behind ["list_int", [...]]: a list of `expected` elements, or nothing when the attribute is
// absent.
Result<const Json*> AttributeList(const Json& attributes, const char* name, std::size_t expected) {
  const Json& attribute = Member(attributes, name);
  if (attribute.is_null()) return nullptr;
  if (!attribute.is_array() || attribute.size() != 2 || !attribute[1].is_array() ||
      attribute[1].size() != expected) {
    return Malformed(fmt::format("attrs.{} is not a list of {} elements", name, expected));
  }
  return &attribute[1];
}

// "float32", or as TVM calls a boolean: "bool", "uint1".
std::optional<DLDataType> DTypeOf(const Json& name) {
  const std::string text = Text(name);
  return text == "uint1" ? kBool8 : ParseDType(text);
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  Result<GraphFile> Run();

 private:
  Status ReadRows();
  Status ReadNode(std::size_t index);
  Status ReadEntries();
  Status ReadShapes(const Json& shapes, const Json& dtypes);
  Status ReadHeads();
  // The entry that [node, output, version] names; `limit`: the node must be before it.
  Result<std::uint32_t> Entry(const Json& reference, std::size_t limit) const;

  const Json& json_;
  Array<std::uint32_t> rows_;  // per node its first entry; then the number of entries
  GraphFile file_;
};

Status Reader::ReadRows() {
  const Json& nodes = Member(json_, "nodes");
  const Json& rows = Member(json_, "node_row_ptr");
  if (!nodes.is_array() || !rows.is_array() || rows.size() != nodes.size() + 1) {
    return Malformed("the JSON has no nodes, or node_row_ptr does not have one element more than they");
  }
  for (const Json& row : rows) {
    const std::optional<std::uint32_t> entry = Index(row);
    const std::uint32_t least = rows_.empty() ? 0 : rows_.back();
    if (!entry || *entry < least || (rows_.empty() && *entry != 0)) {
      return Malformed("node_row_ptr does not ascend from 0");
    }
    rows_.push_back(*entry);
  }
  return {};
}

Result<std::uint32_t> Reader::Entry(const Json& reference, std::size_t limit) const {
  const bool listed = reference.is_array() && reference.size() >= 2;
  const std::optional<std::uint32_t> node = listed ? Index(reference[0]) : std::nullopt;
  const std::optional<std::uint32_t> output = listed ? Index(reference[1]) : std::nullopt;
  if (!node || !output || *node >= limit || *output >= rows_[*node + 1] - rows_[*node]) {
    return Malformed("refers to what is no output of an earlier node");
  }
  return rows_[*node] + *output;
}

Status Reader::ReadNode(std::size_t index) {
  const Json& json = Member(json_, "nodes")[index];
  GraphNode node;
  node.name = Text(Member(json, "name"));
  if (node.name.size() > kMaxNameBytes) {
    return Malformed(fmt::format("node {} has a name of {} bytes; at most {} are read", index,
                                 node.name.size(), kMaxNameBytes));
  }
  node.first_entry = rows_[index];
  node.outputs = rows_[index + 1] - rows_[index];
  const std::string what = fmt::format("node {} ('{}')", index, node.name);
  const std::string op = Text(Member(json, "op"));
  if (op == "null") {
    if (node.outputs != 1) return Malformed(fmt::format("{} is an input of {} entries", what, node.outputs));
    file_.nodes.push_back(std::move(node));
    return {};
  }
  if (op != "tvm_op") {
    return Fail(StatusCode::kUnsupported,
                fmt::format("{} is of kind '{}'; 'null' and 'tvm_op' are known", what, op));
  }
  const Json& attributes = Member(json, "attrs");
  node.kernel = Text(Member(attributes, "func_name"));
  if (node.kernel.empty()) return Malformed(what + " names no function");
  if (Text(Member(attributes, "flatten_data")) == "1") {
    return Fail(StatusCode::kUnsupported, what + " passes its tensors flattened");
  }
  for (const Json& reference : Member(json, "inputs")) {
    Result<std::uint32_t> entry = Entry(reference, index);
    if (!entry) return Forward(entry, what);
    node.inputs.push_back(*entry);
  }
  file_.nodes.push_back(std::move(node));
  return {};
}

Status Reader::ReadShapes(const Json& shapes, const Json& dtypes) {
  for (std::size_t i = 0; i < file_.entries.size(); ++i) {
    GraphEntry& entry = file_.entries[i];
    const std::optional<DLDataType> dtype = DTypeOf(dtypes[i]);
    if (!dtype) return Malformed(fmt::format("entry {} has dtype {}", i, Brief(dtypes[i])));
    entry.dtype = *dtype;
    if (!shapes[i].is_array() || shapes[i].size() > kMaxRank) {
      return Malformed(fmt::format("entry {} has no shape of rank up to {}", i, kMaxRank));
    }
    for (const Json& dim : shapes[i]) {
      // Symbolic dimensions do not occur: the graph executor has static shapes alone.
      if (!dim.is_number_integer()) return Malformed(fmt::format("entry {} has dimension {}", i, Brief(dim)));
      entry.shape.push_back(dim.get<std::int64_t>());
    }
    const std::optional<std::uint64_t> bytes = TensorBytes(entry.dtype, entry.shape);
    if (!bytes) return Malformed(fmt::format("entry {} has no valid size", i));
    entry.bytes = *bytes;
  }
  return {};
}

Status Reader::ReadEntries() {
  const std::size_t count = rows_.back();
  const Json& attributes = Member(json_, "attrs");
  // Each must be there with one element per entry, so the count is bounded by the text.
  Result<const Json*> shapes = AttributeList(attributes, "shape", count);
  if (!shapes) return Forward(shapes);
  Result<const Json*> dtypes = AttributeList(attributes, "dltype", count);
  if (!dtypes) return Forward(dtypes);
  Result<const Json*> storages = AttributeList(attributes, "storage_id", count);
  if (!storages) return Forward(storages);
  Result<const Json*> devices = AttributeList(attributes, "device_index", count);
  if (!devices) return Forward(devices);
  Result<const Json*> scopes = AttributeList(attributes, "storage_scope", count);
  if (!scopes) return Forward(scopes);
  if (*shapes == nullptr || *dtypes == nullptr || *storages == nullptr) {
    return Malformed("attrs lack one of shape, dltype and storage_id");
  }
  file_.entries.resize(count);
  for (std::uint32_t node = 0; node < file_.nodes.size(); ++node) {
    for (std::uint32_t i = rows_[node]; i < rows_[node + 1]; ++i) file_.entries[i].node = node;
  }
  if (Status read = ReadShapes(**shapes, **dtypes); !read) return read;
  for (std::size_t i = 0; i < count; ++i) {
    GraphEntry& entry = file_.entries[i];
    const std::optional<std::uint32_t> storage = Index((**storages)[i]);
    const std::optional<std::uint32_t> device =
        *devices == nullptr ? std::uint32_t{kDLCPU} : Index((**devices)[i]);
    if (!storage || !device) return Malformed(fmt::format("entry {} has no valid storage and device", i));
    entry.storage = *storage;
    entry.device.type = static_cast<std::int32_t>(*device);
    if (*scopes != nullptr) entry.device.memory_scope = Text((**scopes)[i]);
  }
  return {};
}

Status Reader::ReadHeads() {
  const Json& heads = Member(json_, "heads");
  if (!heads.is_array()) return Malformed("the graph has no list of heads");
  if (heads.size() > kMaxHeads) {
    return Fail(
        StatusCode::kUnsupported,
        fmt::format("the graph has {} heads; a function gives {} outputs at most", heads.size(), kMaxHeads));
  }
  for (const Json& head : heads) {
    Result<std::uint32_t> entry = Entry(head, file_.nodes.size());
    if (!entry) return Forward(entry, "a head");
    file_.heads.push_back(*entry);
  }
  return {};
}

Result<GraphFile> Reader::Run() {
  if (Status rows = ReadRows(); !rows) return Forward(rows);
  for (std::size_t i = 0; i + 1 < rows_.size(); ++i) {
    if (Status node = ReadNode(i); !node) return Forward(node);
  }
  if (Status entries = ReadEntries(); !entries) return Forward(entries);
  if (Status heads = ReadHeads(); !heads) return Forward(heads);
  return std::move(file_);
}

}  // namespace

Result<GraphFile> ReadGraphFile(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Malformed("graph: not JSON");
  Result<GraphFile> file = Reader(json).Run();
  if (!file) return Forward(file, "graph");
  return file;
}

}  // namespace rewire::tvm
