// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/node_list.h"

#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {

Value* NodeList::Append(Node* node, std::vector<Value*> inputs, const std::string& name, Type type) {
  if (!inputs.empty() && inputs[0]->producer != nullptr) node->source = inputs[0]->producer->source;
  node->inputs = std::move(inputs);
  Value* output = graph_->NewValue(name, std::move(type));
  output->producer = node;
  node->outputs.push_back(output);
  node->extents.push_back({output->type.dims, nullptr});
  nodes_.push_back(node);
  return output;
}

Value* NodeList::Call(const std::string& kernel, std::vector<Value*> inputs,
                      std::vector<Attribute> attributes, const std::string& name, Type type) {
  Node* node = graph_->NewNode(NodeKind::kKernel);
  node->kernel = kernel;
  node->attributes = std::move(attributes);
  return Append(node, std::move(inputs), name, std::move(type));
}

Value* NodeList::Reshape(Value* x, Shape dims) {
  if (ShapeText(dims) == ShapeText(x->type.dims)) return x;
  return Append(graph_->NewNode(NodeKind::kReshape), {x}, x->name, TensorOf(x->type.dtype, std::move(dims)));
}

Value* NodeList::Slice(Value* x, int axis, std::int64_t start, std::int64_t end) {
  using Integers = std::vector<std::int64_t>;
  Type type = x->type;
  type.dims[static_cast<std::size_t>(axis)] = end - start;
  return Call(names::kSlice, {x},
              {{"starts", Integers{start}},
               {"ends", Integers{end}},
               {"axes", Integers{axis}},
               {"steps", Integers{1}}},
              x->name, std::move(type));
}

Value* NodeList::Concat(const std::vector<Value*>& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Type type = parts[0]->type;
  DimExpr& size = type.dims[static_cast<std::size_t>(axis)];
  size = 0;
  for (const Value* part : parts) size = size + part->type.dims[static_cast<std::size_t>(axis)];
  return Call(names::kConcat, parts, {{"axis", std::int64_t{axis}}}, parts[0]->name, std::move(type));
}

Value* NodeList::Int(const std::string& name, std::int64_t element) {
  return IntsOfShape(name, {&element, 1}, {});
}

Value* NodeList::Ints(const std::string& name, const std::vector<std::int64_t>& elements) {
  return IntsOfShape(name, elements, {static_cast<std::int64_t>(elements.size())});
}

Value* NodeList::IntsOfShape(const std::string& name, std::span<const std::int64_t> elements,
                             const std::vector<std::int64_t>& shape) {
  Value* value = graph_->NewValue(name, TensorOf(kInt64, ShapeOfInts(shape)));
  HostTensor tensor;
  tensor.dtype = kInt64;
  tensor.shape = shape;
  tensor.bytes = CopyBytes(std::as_bytes(elements));
  value->constant = std::move(tensor);
  return value;
}

}  // namespace rewire::compiler
