// SPDX-License-Identifier: Apache-2.0
//
// State of a VM as bytes: inputs that are set, in the form of executable_format/state/state_format.h.
#include <cstring>
#include <string>
#include <utility>

#include "rewire/base/atomic_file.h"
#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/max_rank.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/state/content_hash.h"
#include "rewire/executable_format/state/state_format.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire {
namespace {

static_assert(kRewireStateMaxRank == kMaxRank);

// A part of an input that a state file has as a tensor. Fields of tuples are called "pair.0", "pair.1.0".
struct StateLeaf {
  std::string name;
  std::uint32_t node = 0;  // of the input's type
};

// The leaves of an input, in pre-order.
Array<StateLeaf> LeavesOf(const NamedType& input) {
  struct Open {
    std::string name;
    std::uint32_t next = 0, fields = 0;
  };
  Array<StateLeaf> leaves;
  Array<Open> open;
  for (std::uint32_t node = 0; node < input.type.nodes.size(); ++node) {
    std::string name = input.name;
    if (!open.empty()) name = Format("{}.{}", open.back().name, open.back().next++);
    if (input.type.nodes[node].kind == TypeKind::kAdt) {
      open.push_back({std::move(name), 0, input.type.nodes[node].field_count});
    } else {
      leaves.push_back({std::move(name), node});
    }
    while (!open.empty() && open.back().next == open.back().fields) open.pop_back();
  }
  return leaves;
}

// The values of these leaves. The value was checked against the type when it was set.
Array<Value> ValuesOfLeaves(const Type& type, const Value& value) {
  Array<Value> values, open;
  open.push_back(value);
  for (const TypeNode& node : type.nodes) {
    const Value top = open.back();
    open.pop_back();
    if (node.kind != TypeKind::kAdt) {
      values.push_back(top);
      continue;
    }
    for (std::uint32_t i = node.field_count; i-- > 0;) open.push_back(top.field(i));
  }
  return values;
}

// The value of an input of this type, from the values of its leaves: from the last node to the first, so that
// a tree's fields are on top, the first one uppermost.
Result<Value> InputOfLeaves(const Type& type, Array<Value> leaves) {
  Array<Value> open;
  for (std::size_t i = type.nodes.size(); i-- > 0;) {
    const TypeNode& node = type.nodes[i];
    if (node.kind != TypeKind::kAdt) {
      open.push_back(std::move(leaves.back()));
      leaves.pop_back();
      continue;
    }
    Array<Value> fields;
    for (std::uint32_t field = 0; field < node.field_count; ++field) {
      fields.push_back(std::move(open.back()));
      open.pop_back();
    }
    Result<Value> tree = Value::Adt(node.tag, fields);
    if (!tree) return tree;
    open.push_back(*std::move(tree));
  }
  return std::move(open.back());
}

std::string NameOfInput(const Function& function, std::string_view name) {
  return Format("function {}, input {}", function.name, name);
}

// The tensor that stands for a leaf, on the host.
Result<Tensor> TensorOfLeaf(const Value& value) {
  if (value.kind() == ValueKind::kTensor) return CopyToHost(value.tensor());
  if (value.kind() != ValueKind::kInteger) {
    return Fail(StatusCode::kUnsupported,
                "a state holds tensors, integers and tuples of them; a value of kind {} is set",
                ValueKindName(value.kind()));
  }
  Result<Tensor> tensor = Tensor::Make(kInt64, {});
  if (!tensor) return tensor;
  const std::int64_t integer = value.integer();
  std::memcpy(tensor->view().data(), &integer, sizeof(integer));
  return tensor;
}

struct SavedTensor {
  std::string name;
  Tensor tensor;
};

void WriteTensors(std::uint64_t hash, const Function& function, const Array<SavedTensor>& tensors,
                  RewireStateWriter* writer, void* bytes, std::uint64_t room) {
  RewireStateBegin(writer, bytes, room, hash, function.name.c_str());
  for (const SavedTensor& saved : tensors) {
    const TensorView view = saved.tensor.view();
    RewireStateAdd(writer, saved.name.c_str(), DTypeName(view.dtype()).c_str(),
                   static_cast<std::uint32_t>(view.shape().size()), view.shape().data(), view.data(),
                   view.bytes());
  }
}

// The failure that a code of the reader means.
Status StateFailure(RewireStateError error, Span<const std::byte> state) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(state.data());
  if (error == kRewireStateForeign) {
    return Fail(StatusCode::kInvalidFile,
                "it does not begin with RWXSTATE as a state file does; write one with vm-run --save-state");
  }
  if (error == kRewireStateNewer) {
    return Fail(StatusCode::kUnsupported,
                "the state file has version {}, and this library reads version {}; load it with the library "
                "that has saved it, or save it with this one",
                RewireStateRead32(bytes + 8), REWIRE_STATE_VERSION);
  }
  if (error == kRewireStateTruncated) {
    return Fail(StatusCode::kInvalidFile, "the state file is cut off: it has {} bytes; write it again",
                state.size());
  }
  return Fail(StatusCode::kInvalidFile,
              "the state file is damaged: its checksum or a record is wrong; write it again");
}

// A tensor of the file as a value for a leaf of this type.
Result<Value> ValueOfTensor(const RewireStateTensor& from, const TypeNode& type) {
  const std::string spelled(from.dtype);  // the reader has seen its end
  const std::optional<DLDataType> dtype = ParseDType(spelled);
  if (!dtype || DTypeName(*dtype) != spelled)
    return Fail(StatusCode::kInvalidFile, "there is no dtype '{}'", spelled);
  Array<std::int64_t> shape;
  for (std::uint32_t i = 0; i < from.rank; ++i) shape.push_back(RewireStateDim(&from, i));
  const std::optional<std::uint64_t> bytes = TensorBytes(*dtype, shape);  // none for negative dimensions
  if (!bytes || *bytes != from.data_bytes) {
    return Fail(StatusCode::kInvalidFile, "its shape does not go with its {} bytes", from.data_bytes);
  }
  Result<Tensor> tensor = Tensor::Make(*dtype, shape);
  if (!tensor) return Forward(tensor);
  if (*bytes != 0) std::memcpy(tensor->view().data(), from.data, static_cast<std::size_t>(*bytes));
  if (type.kind == TypeKind::kInteger && *dtype == kInt64 && shape.empty()) {
    std::int64_t integer = 0;
    std::memcpy(&integer, from.data, sizeof(integer));
    return Value(integer);
  }
  return Value(*std::move(tensor));
}

// The values of a state, by input; empty where the state has none.
Result<Array<Value>> ReadInputs(const Function& function, RewireStateReader reader) {
  Array<Value> values(function.inputs.size());
  RewireStateTensor tensor;
  int more = RewireStateNext(&reader, &tensor);
  for (std::size_t i = 0; more > 0 && i < values.size(); ++i) {
    const NamedType& input = function.inputs[i];
    const Array<StateLeaf> leaves = LeavesOf(input);
    if (leaves.empty() || !RewireStateIs(tensor.name, tensor.name_bytes, leaves[0].name.c_str())) continue;
    Array<Value> parts;
    for (const StateLeaf& leaf : leaves) {
      if (more <= 0 || !RewireStateIs(tensor.name, tensor.name_bytes, leaf.name.c_str()))
        return Fail(StatusCode::kInvalidFile, "{}: the state has no tensor {}",
                    NameOfInput(function, input.name), leaf.name);
      Result<Value> part = ValueOfTensor(tensor, input.type.nodes[leaf.node]);
      if (!part) return Forward(part, NameOfInput(function, leaf.name));
      parts.push_back(*std::move(part));
      more = RewireStateNext(&reader, &tensor);
    }
    Result<Value> value = InputOfLeaves(input.type, std::move(parts));
    if (!value) return Forward(value, NameOfInput(function, input.name));
    values[i] = *std::move(value);
  }
  if (more <= 0) return values;
  const std::string_view name(tensor.name, tensor.name_bytes);
  Array<std::string> known;
  for (const NamedType& input : function.inputs) known.push_back(input.name);
  return Fail(StatusCode::kInvalidFile,
              "the state has a tensor '{}' that is no input of function {}, or is out of their order{}", name,
              function.name, KnownNames("inputs", name, known));
}

// Sets the inputs that have a value here.
Status SetValues(VirtualMachine* vm, std::uint32_t function, const Array<Value>& values) {
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (values[i].kind() == ValueKind::kNone) continue;
    if (Status set = vm->TrySetInput(InputHandle{function, i}, values[i]); !set) return set;
  }
  return {};
}

}  // namespace

Result<Array<std::byte>> VirtualMachine::TryState(std::string_view function) const {
  if (impl_ == nullptr) return Forward(TryInput(0));  // says so
  const Result<std::uint32_t> index = program().FindFunction(function);
  if (!index) return Forward(index);
  const Module& module = program().executable().module();
  const Function& source = module.functions[*index];
  Array<SavedTensor> tensors;
  for (std::uint32_t i = 0; i < source.inputs.size(); ++i) {
    const Result<Value> value = TryInput(InputHandle{*index, i});
    if (!value) return Forward(value);
    if (value->kind() == ValueKind::kNone) continue;
    const Array<StateLeaf> leaves = LeavesOf(source.inputs[i]);
    const Array<Value> values = ValuesOfLeaves(source.inputs[i].type, *value);
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      Result<Tensor> tensor = TensorOfLeaf(values[leaf]);
      if (!tensor) return Forward(tensor, NameOfInput(source, leaves[leaf].name));
      tensors.push_back({leaves[leaf].name, *std::move(tensor)});
    }
  }
  const std::uint64_t hash = ContentHash(module);
  RewireStateWriter writer;
  std::uint64_t size = 0;
  WriteTensors(hash, source, tensors, &writer, nullptr, 0);
  RewireStateEnd(&writer, &size);
  Array<std::byte> state(static_cast<std::size_t>(size));
  WriteTensors(hash, source, tensors, &writer, state.data(), size);
  RewireStateEnd(&writer, &size);
  return state;
}

Status VirtualMachine::TrySaveState(const std::string& path, std::string_view function) const {
  const Result<Array<std::byte>> state = TryState(function);
  if (!state) return Forward(state);
  return WriteFileAtomically(path, *state);
}

Result<std::uint32_t> VirtualMachine::TrySetState(Span<const std::byte> state) {
  if (impl_ == nullptr) return Forward(TryInput(0));  // says so
  RewireStateReader reader;
  const RewireStateError error = RewireStateOpen(&reader, state.data(), state.size());
  if (error != kRewireStateOk) return StateFailure(error, state);
  const Module& module = program().executable().module();
  if (reader.program != ContentHash(module)) {
    return Fail(StatusCode::kInvalidArgument,
                "the state is of another executable: it was saved with {}, this one is {}; load it with the "
                "executable that has saved it",
                HashText(reader.program), HashText(ContentHash(module)));
  }
  const std::string name(reader.function, reader.function_bytes);
  const Result<std::uint32_t> index = program().FindFunction(name);
  if (!index) return Forward(index);
  if (name.empty()) return StateFailure(kRewireStateDamaged, state);  // the entry has a name
  const Function& function = module.functions[*index];
  const Result<Array<Value>> values = ReadInputs(function, reader);
  if (!values) return Forward(values);
  Array<Value> before;
  for (std::uint32_t i = 0; i < values->size(); ++i) {
    Result<Value> input = TryInput(InputHandle{*index, i});
    if (!input) return Forward(input);
    before.push_back(*std::move(input));
  }
  if (Status set = SetValues(this, *index, *values); !set) {
    // As it was: what was set is a value that the VM has taken before.
    if (Status cleared = TryClearInputs(function.name); !cleared) return Forward(cleared);
    if (Status restored = SetValues(this, *index, before); !restored) return Forward(restored);
    return Forward(set);
  }
  return *index;
}

Result<std::uint32_t> VirtualMachine::TryLoadState(const std::string& path) {
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  Result<std::uint32_t> function = TrySetState(bytes->view);
  if (!function) return Forward(function, path);
  return function;
}

}  // namespace rewire
