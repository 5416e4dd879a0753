// SPDX-License-Identifier: Apache-2.0
// The effects of each instruction in an abstract run.
#include <algorithm>
#include <cstring>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/prepare/bound_analysis.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire::bounds {

bool BoundAnalysis::RewiredHere() const {
  const Activation& active = stack_.back();
  if (active.destinations == 0) return false;
  const std::uint32_t leaf = plans_[active.function].SiteAt(active.pc);
  return leaf != FunctionPlan::kNotRewired && active.bound[leaf - 1];
}

// The flow handles what the calls of functions make.
bool BoundAnalysis::Transfer() {
  const std::uint32_t* code = words();
  const Effects& effects = EffectsOf(code);
  if (effects.kernel != 0) return TransferKernel();
  const std::uint32_t dst = ChangedRegister(code);
  switch (effects.makes) {
    case Makes::kNone:
    case Makes::kCalled:
    case Makes::kComputed:
      return true;
    case Makes::kNothing:
      Put(dst, kNothing);
      return true;
    case Makes::kSame:
      Put(dst, Reg(code[effects.source]));
      return true;
    case Makes::kView:
      return Reshape();
    case Makes::kField:
      GetField();
      return true;
    case Makes::kTuple:
      MakeTuple(Node::kAdt, kNoFunction, ListedRegisters(code), dst);
      return true;
    case Makes::kClosure:
      MakeTuple(Node::kClosure, code[effects.function], ListedRegisters(code), dst);
      return true;
    case Makes::kTensor:
      return AllocTensor();
    case Makes::kShape:
      ShapeOf();
      return true;
    case Makes::kCopy:
      return DeviceCopy();
    case Makes::kStorage:
      return AllocStorage();
    case Makes::kInteger: {
      Node node;
      node.kind = Node::kInteger;
      if (OpcodeOf(*code) == Opcode::kLoadConsti) {
        node.contents =
            heap_.AddContents({{DecodeInt64(code + WordOf(Opcode::kLoadConsti, "value"))}, true, 0});
      }
      Put(dst, heap_.Add(std::move(node)));
      return true;
    }
    case Makes::kLoaded:
      LoadConstant();
      return true;
  }
  return true;
}

void BoundAnalysis::LoadConstant() {
  constexpr Opcode kOp = Opcode::kLoadConst;
  const Constant& constant = module_.constants[words()[WordOf(kOp, "constant")]];
  Node node = heap_.Get(InputNode(constant.type));
  const std::uint64_t element = ElementBytes(constant.type.dtype);
  const bool integers = constant.type.dtype == kInt64 || constant.type.dtype == kInt32;
  const bool plain = constant.kind == ConstantKind::kData && constant.codec == kCodecNone;
  const std::size_t count = integers ? constant.stored.view.size() / element : 0;
  if (integers && plain && node.rank <= 1 && count <= static_cast<std::size_t>(kMaxRank)) {
    Contents contents;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t value = 0;
      std::memcpy(&value, constant.stored.view.data() + i * element, element);
      contents.values.push_back(element == 4 ? static_cast<std::int32_t>(value) : value);
    }
    node.contents = heap_.AddContents(std::move(contents));
  }
  Put(words()[WordOf(kOp, "dst")], heap_.Add(std::move(node)));
}

bool BoundAnalysis::AllocTensor() {
  constexpr Opcode kStatic = Opcode::kAllocTensor, kDynamic = Opcode::kAllocTensorReg;
  const std::uint32_t* code = words();
  const bool is_static = OpcodeOf(*code) == kStatic;
  NodeId shape = kNothing;
  if (is_static) {
    const DimsView dims(code + WordOf(kStatic, "shape"));
    Contents known;
    for (std::uint32_t i = 0; i < dims.size(); ++i) known.values.push_back(dims[i]);
    Node node;
    node.kind = Node::kInteger;
    node.contents = heap_.AddContents(std::move(known));
    shape = heap_.Add(std::move(node));
  } else {
    shape = Reg(code[WordOf(kDynamic, "shape")]);
  }
  const std::uint32_t dtype = code[is_static ? WordOf(kStatic, "dtype") : WordOf(kDynamic, "dtype")];
  return FinishTensor(code[EffectsOf(code).source], DecodeDType(dtype), shape, ChangedRegister(code));
}

bool BoundAnalysis::TransferCall() {
  const std::uint32_t* code = words();
  std::uint32_t callee = 0;
  State first;
  first.facts = state().facts;
  Array<bool> bound;
  const auto pass = [&](const std::uint32_t* list) {
    for (const std::uint32_t reg : ReadsView(list)) first.registers.push_back(Reg(reg));
  };
  if (OpcodeOf(*code) == Opcode::kInvoke) {
    callee = code[WordOf(Opcode::kInvoke, "function")];
    pass(code + WordOf(Opcode::kInvoke, "args"));
    bound.resize(module_.functions[callee].output_names.size(), false);
    const FunctionPlan& plan = plans_[stack_.back().function];
    const std::uint32_t call = plan.SiteAt(stack_.back().pc);
    for (std::size_t i = 0; call != FunctionPlan::kNotRewired && i < bound.size(); ++i) {
      const std::uint32_t leaf = plan.calls[call - 1][i];
      bound[i] = leaf != FunctionPlan::kNotRewired && stack_.back().bound[leaf - 1];
    }
  } else {
    const Node& closure = heap_.Get(Reg(code[WordOf(Opcode::kInvokeClosure, "closure")]));
    callee = closure.function;
    if (closure.kind != Node::kClosure || callee == kNoFunction) {
      return Stop("which function the closure calls is not known before the run");
    }
    first.registers = closure.children;
    pass(code + WordOf(Opcode::kInvokeClosure, "args"));
    const std::size_t taken = module_.functions[callee].inputs.size();
    if (first.registers.size() != taken) {
      stack_.back().in_block = false;  // the run fails here
      return true;
    }
    bound.resize(module_.functions[callee].output_names.size(), false);
  }
  return Enter(callee, Site(), std::move(bound), std::move(first));
}

bool BoundAnalysis::AllocStorage() {
  constexpr Opcode kOp = Opcode::kAllocStorage;
  const std::uint32_t* code = words();
  const std::uint32_t size_register = code[WordOf(kOp, "size")];
  std::uint64_t bytes = 0;
  bool exact = true;
  if (size_register == kNone) {
    const DimsView shape(code + WordOf(kOp, "shape"));
    Array<std::int64_t> dims;
    for (std::uint32_t i = 0; i < shape.size(); ++i) dims.push_back(shape[i]);
    bytes = TensorBytes(DecodeDType(code[WordOf(kOp, "dtype")]), dims).value_or(0);
  } else {
    const Contents* size = heap_.ContentsOf(state(), Reg(size_register));
    if (size == nullptr || size->values.size() != 1) {
      return Stop("the size of the storage is not known before the run");
    }
    bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(size->values[0], 0));
    exact = size->exact;
  }
  const NodeId storage =
      heap_.Add(StorageNode(bytes, code[WordOf(kOp, "alignment")], code[WordOf(kOp, "device")], exact));
  if (!exact) TakeMemory(storage);  // a smaller one may have it from the start
  Measure({storage});
  Put(code[WordOf(kOp, "dst")], storage);
  return true;
}

Node BoundAnalysis::Shaped(NodeId shape, DLDataType dtype) const {
  Node node;
  node.kind = Node::kTensor;
  node.dtype = dtype;
  const Node& given = heap_.Get(shape);
  const Contents* known = heap_.ContentsOf(state(), shape);
  if (known != nullptr && known->values.size() <= static_cast<std::size_t>(kMaxRank)) {
    node.dims = known->values;
    node.exact = known->exact;
    node.origin = known->origin;
    node.has_dims = true;
    node.rank = static_cast<std::int32_t>(node.dims.size());
  } else if (given.kind == Node::kInteger || (given.kind == Node::kTensor && given.rank == 0)) {
    node.rank = 1;
  } else if (given.kind == Node::kTensor && given.has_dims && given.exact) {
    node.rank = static_cast<std::int32_t>(std::min<std::int64_t>(given.dims[0], kMaxRank));
  }
  return node;
}

bool BoundAnalysis::FinishTensor(std::uint32_t storage_register, DLDataType dtype, NodeId shape,
                                 std::uint32_t dst) {
  const NodeId storage = Reg(storage_register);
  if (heap_.Get(storage).kind == Node::kUnknown) return Stop("the storage may be one of several values");
  Node tensor = Shaped(shape, dtype);
  GiveTensorHeader(&tensor);
  if (!RewiredHere()) {
    tensor.children = {storage};
    TakeMemory(storage);
  }
  const NodeId id = heap_.Add(std::move(tensor));
  Measure({id});
  Put(dst, id);
  return true;
}

void BoundAnalysis::MakeTuple(Node::Kind kind, std::uint32_t function, Span<const std::uint32_t> fields,
                              std::uint32_t dst) {
  Node node;
  node.kind = kind;
  node.function = function;
  for (const std::uint32_t reg : fields) node.children.push_back(Reg(reg));
  GiveHeader(&node, TupleObject::Bytes(static_cast<std::uint32_t>(fields.size())));
  const NodeId id = heap_.Add(std::move(node));
  Measure({id});
  Put(dst, id);
}

void BoundAnalysis::GetField() {
  const std::uint32_t* code = words();
  const Node& object = heap_.Get(Reg(code[WordOf(Opcode::kGetField, "object")]));
  const std::uint32_t index = code[WordOf(Opcode::kGetField, "index")];
  const bool known = object.kind == Node::kAdt && index < object.children.size();
  NodeId field = kNothing;
  if (known) {
    field = object.children[index];
  } else {
    // A field of a value of the caller, or of an ADT that may be one of several. It may be anything inside
    // that value, so the value is held as long as the field is.
    Node node;
    node.kind = object.children.empty() ? Node::kTensor : Node::kUnknown;
    node.children = object.children;
    field = heap_.Add(std::move(node));
  }
  Put(code[WordOf(Opcode::kGetField, "dst")], field);
}

bool BoundAnalysis::BytesOf(const Node& tensor, std::uint64_t* bytes) const {
  if (!tensor.has_dims || tensor.dtype.bits == 0) return false;
  *bytes =
      std::min(TensorBytes(tensor.dtype, tensor.dims).value_or(BlockPool::kMaxBlock), BlockPool::kMaxBlock);
  return true;
}

NodeId BoundAnalysis::NewTensor(Node tensor, std::uint64_t bytes, std::uint64_t alignment,
                                std::uint32_t device, bool pinned) {
  GiveTensorHeader(&tensor);
  if (RewiredHere()) {
    const NodeId id = heap_.Add(std::move(tensor));
    Measure({id});
    return id;
  }
  const NodeId storage = heap_.Add(StorageNode(bytes, alignment, device, tensor.exact, pinned));
  TakeMemory(storage);
  tensor.children = {storage};
  const NodeId id = heap_.Add(std::move(tensor));
  Measure({id});
  return id;
}

// An integer as a tensor; never where an output goes.
NodeId BoundAnalysis::Box() {
  Node tensor;
  tensor.kind = Node::kTensor;
  tensor.rank = 0;
  tensor.has_dims = true;
  tensor.dtype = kInt64;
  GiveTensorHeader(&tensor);
  const NodeId storage = heap_.Add(StorageNode(8, 64, kHostDevice, true));
  TakeMemory(storage);
  tensor.children = {storage};
  return heap_.Add(std::move(tensor));
}

void BoundAnalysis::ShapeOf() {
  const std::uint32_t* code = words();
  const Node source = heap_.Get(Reg(code[WordOf(Opcode::kShapeOf, "tensor")]));
  Node shape;
  shape.kind = Node::kTensor;
  shape.dtype = kInt64;
  shape.rank = 1;
  std::uint64_t bytes = std::uint64_t{8} * kMaxRank;
  ContentsId contents = 0;
  if (source.kind == Node::kInteger || source.rank != kUnknownRank) {
    const std::int64_t rank = source.kind == Node::kInteger ? 0 : source.rank;
    shape.has_dims = true;
    shape.dims = {rank};
    bytes = static_cast<std::uint64_t>(rank) * 8;
    if (source.has_dims) {
      contents = heap_.AddContents({source.dims, source.exact, source.exact ? 0 : Site()});
    }
  }
  shape.exact = shape.has_dims;
  const NodeId id = NewTensor(std::move(shape), bytes, 64, kHostDevice);
  state().SetFact(id, contents);
  Put(code[WordOf(Opcode::kShapeOf, "dst")], id);
}

bool BoundAnalysis::Reshape() {
  constexpr Opcode kOp = Opcode::kReshapeTensor;
  const std::uint32_t* code = words();
  const std::uint32_t source_register = code[WordOf(kOp, "tensor")];
  if (heap_.Get(Reg(source_register)).kind == Node::kInteger) {
    const NodeId box = Box();
    Measure({box});
    Put(source_register, box);
  }
  const NodeId source = Reg(source_register);
  Node view = Shaped(Reg(code[WordOf(kOp, "shape")]), heap_.Get(source).dtype);
  GiveTensorHeader(&view);
  // A view keeps the storage, not the tensor.
  view.children =
      heap_.Get(source).kind == Node::kTensor ? heap_.Get(source).children : Array<NodeId>{source};
  const NodeId id = heap_.Add(std::move(view));
  Measure({id});
  Put(code[WordOf(kOp, "dst")], id);
  return true;
}

bool BoundAnalysis::DeviceCopy() {
  constexpr Opcode kOp = Opcode::kDeviceCopy;
  const std::uint32_t* code = words();
  const std::uint32_t source_register = code[WordOf(kOp, "src")];
  if (heap_.Get(Reg(source_register)).kind == Node::kInteger) {
    const NodeId box = Box();
    Measure({box});
    Put(source_register, box);
  }
  Node copy = heap_.Get(Reg(source_register));
  std::uint64_t bytes = 0;
  if (!BytesOf(copy, &bytes))
    return Stop("the size of the tensor that is copied is not known before the run");
  copy.kind = Node::kTensor;
  copy.contents = 0;
  const auto is_host = [&](std::uint32_t device) { return module_.devices[device].type == kDLCPU; };
  const std::uint32_t source = code[WordOf(kOp, "src_device")];
  const std::uint32_t target = code[WordOf(kOp, "dst_device")];
  findings_.copies = findings_.copies || is_host(source) != is_host(target);
  const bool pinned = is_host(target) && options_.pins[source] && bytes >= kLeastPinned;
  const NodeId id = NewTensor(std::move(copy), bytes, 64, pinned ? source : target, pinned);
  Put(code[WordOf(kOp, "dst")], id);
  return true;
}

}  // namespace rewire::bounds
