// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/lowering.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "rewire/base/utf8.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/import/node_order.h"
#include "rewire/compiler/import/tensor_data.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/lower/implied_ranks.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {
namespace {

// Functions that call functions: deeper than any model.
constexpr int kMaxCallDepth = 64;
constexpr std::size_t kMostSourceBytes = 1024;  // of what notes say about a node
// Longer names of dimensions are not used.
constexpr std::size_t kMostSymbolBytes = 128;
// Constants up to this size are made while compiling.
constexpr std::uint64_t kMaxFoldedBytes = std::uint64_t{64} << 20;
// The units that CompileLimits::work counts.
constexpr std::uint64_t kNodeWork = 64;
constexpr std::uint64_t kBytesOfWork = 16;  // of expressions, or of weights that are copied

Status CheckName(const char* what, std::size_t index, const std::string& name) {
  if (name.empty()) return Fail(StatusCode::kInvalidFile, fmt::format("{} {} has no name", what, index));
  if (IsPrintable(name) && name.size() <= kMostSourceBytes) return {};
  return Fail(StatusCode::kInvalidFile,
              fmt::format("the name of {} {} is not printable UTF-8 of at most {} bytes", what, index,
                          kMostSourceBytes));
}

bool FoldableSize(const Node& node) {
  for (const Node::Extent& extent : node.extents) {
    const auto dims = ConstantDims(extent.dims);
    if (extent.shape != nullptr || !dims) return false;
    const Result<std::uint64_t> bytes = CompactBytes(kFloat64, *dims);
    if (!bytes || *bytes > kMaxFoldedBytes) return false;
  }
  return true;
}

}  // namespace

Value* Scope::Find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
  }
  return nullptr;
}

bool Scope::Has(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    if (scope->names.contains(name)) return true;
  }
  return false;
}

Scope InnerScope(const Scope& outer) {
  Scope scope;
  scope.outer = &outer;
  scope.opsets = outer.opsets;
  scope.call = outer.call;
  scope.call_scope = outer.call_scope;
  scope.function = outer.function;
  scope.depth = outer.depth;
  scope.of_model = outer.of_model;
  return scope;
}

WorkMeter::Budget Lowering::WorkBudget(const LoweringOptions& options) {
  WorkMeter::Budget budget;
  budget.stage = "compiling the model, functions inlined and loops tried,";
  budget.units = options.work;
  budget.units_option = "--max-work (CompileLimits::work)";
  return budget;
}

void Lowering::ChargeDims(const Shape& dims) {
  for (const DimExpr& dim : dims)
    (void)work_.Spend(dim.text().size() / kBytesOfWork);  // asked at the next node
}

Value* Lowering::poison() {
  if (poison_ == nullptr) poison_ = graph_.NewValue("unsupported", UnrankedTensorOf(kFloat32));
  return poison_;
}

Value* Lowering::Constant(const std::string& name, HostTensor tensor) {
  Value* value = graph_.NewValue(name, TensorOf(tensor.dtype, ShapeOfInts(tensor.shape)));
  value->constant = std::move(tensor);
  return value;
}

Value* Lowering::ConstantCast(const Value* constant, DLDataType dtype) const {
  const auto found = constant_casts_.find(constant);
  if (found == constant_casts_.end()) return nullptr;
  for (Value* cast : found->second) {
    if (cast->type.dtype == dtype) return cast;
  }
  return nullptr;
}

void Lowering::SetConstantCast(const Value* constant, Value* cast) {
  constant_casts_[constant].push_back(cast);
}

void Lowering::Append(Node* node) {
  node->source = source_;
  for (Value* output : node->outputs) output->producer = node;
  bool constant =
      options_.fold && node->kind == NodeKind::kKernel && !node->inputs.empty() && IsPure(graph_, *node);
  bool at_load = false;
  for (const Value* input : node->inputs) {
    constant = constant && input != nullptr && input->IsConstant();
    at_load = at_load || (input != nullptr && input->at_load);
  }
  if (constant && at_load && FoldableSize(*node) && FoldAtLoad(node)) return;
  if (constant && !at_load && FoldableSize(*node)) {
    std::optional<std::vector<HostTensor>> results = options_.fold(*node);
    if (results) {
      for (std::size_t i = 0; i < node->outputs.size(); ++i) {
        Value* output = node->outputs[i];
        output->producer = nullptr;
        output->folded = node;
        output->type = TensorOf((*results)[i].dtype, ShapeOfInts((*results)[i].shape));
        output->constant = std::move((*results)[i]);
      }
      return;
    }
  }
  block_->nodes.push_back(node);
}

bool Lowering::FoldAtLoad(Node* node) {
  if (node->outputs.size() != 1 || node->returns || node->flags != 0) return false;
  Value* output = node->outputs[0];
  if (!output->type.IsTensor() || !output->type.ranked) return false;
  const std::optional<std::vector<std::int64_t>> dims = ConstantDims(output->type.dims);
  if (!dims) return false;
  BecomeAtLoad(output, output->type.dtype, *dims);
  output->producer = nullptr;
  output->folded = node;
  return true;
}

Value* Lowering::ModelConstant(const std::string& name, HostTensor tensor, const Scope& scope) {
  const bool of_model = scope.outer == nullptr && scope.call == nullptr;
  const bool named = !name.empty() && IsPrintable(name) && name.size() <= kMostSourceBytes;
  if (!of_model || !named || !options_.is_parameter || !options_.is_parameter(name, tensor))
    return Constant(name, std::move(tensor));
  // A node Constant is lowered again at each end of a node before it.
  Value*& value = parameters_[name];
  if (value != nullptr) return value;
  value = graph_.NewValue(name, {});
  BecomeAtLoad(value, tensor.dtype, tensor.shape);
  graph_.parameters.push_back({value, std::move(tensor)});
  return value;
}

void Lowering::Define(Value* value) {
  if (!value->type.IsTensor() || !value->type.ranked) return;
  for (std::size_t i = 0; i < value->type.dims.size(); ++i) {
    const std::optional<std::string> symbol = value->type.dims[i].symbol();
    if (symbol) graph_.DefineSymbol(*symbol, value, static_cast<std::uint32_t>(i));
  }
}

Result<Type> Lowering::DeclaredType(const onnx::TypeProto& proto, const std::string& name) {
  const onnx::TypeProto* inner = &proto;
  std::vector<TypeKind> around;
  while (inner->has_sequence_type() || inner->has_optional_type()) {
    around.push_back(inner->has_sequence_type() ? TypeKind::kSequence : TypeKind::kOptional);
    inner = inner->has_sequence_type() ? &inner->sequence_type().elem_type()
                                       : &inner->optional_type().elem_type();
  }
  if (!inner->has_tensor_type()) {
    return Fail(StatusCode::kUnsupported, fmt::format("'{}' is no tensor, sequence or optional", name));
  }
  const onnx::TypeProto::Tensor& tensor = inner->tensor_type();
  const std::optional<DLDataType> dtype = DTypeOfOnnx(tensor.elem_type());
  if (!dtype) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("'{}' has element type {}", name, OnnxTypeName(tensor.elem_type())));
  }
  Type type = UnrankedTensorOf(*dtype);
  if (tensor.has_shape()) {
    type.ranked = true;
    for (const onnx::TensorShapeProto::Dimension& dim : tensor.shape().dim()) {
      // Paddle names every dimension that it does not know "?": two of them need not be equal.
      const bool named = dim.has_dim_param() && dim.dim_param() != "?" &&
                         dim.dim_param().size() <= kMostSymbolBytes && IsPrintable(dim.dim_param());
      const std::string symbol = named ? dim.dim_param() : "";
      if (named) dim_names_.insert(symbol);
      const auto fixed = options_.dims.find(symbol);
      // Some exporters write -1 for what they do not know.
      if (dim.has_dim_value() && dim.dim_value() >= 0) {
        type.dims.emplace_back(dim.dim_value());
      } else if (fixed != options_.dims.end()) {
        type.dims.emplace_back(fixed->second);
      } else {
        type.dims.push_back(DimExpr::Symbol(symbol.empty() ? graph_.FreshSymbol(name) : symbol));
      }
    }
  }
  for (std::size_t i = around.size(); i-- > 0;) {
    type = around[i] == TypeKind::kSequence ? SequenceOf(std::move(type)) : OptionalOf(std::move(type));
  }
  return type;
}

Status Lowering::AddInitializers(const onnx::GraphProto& proto, Scope* scope) {
  const auto add = [&](const std::string& name, std::size_t bytes, Result<HostTensor> tensor) -> Status {
    if (!tensor && tensor.error().code() == StatusCode::kUnsupported) {
      ReportTensor("initializer", name, tensor.error().message(), scope);
      return {};
    }
    if (!tensor) return Forward(tensor);
    if (Status charged = work_.Charge(1 + bytes / kBytesOfWork / 1024); !charged) return charged;
    if (scope->names.contains(name))
      return Fail(StatusCode::kInvalidFile, fmt::format("there are two initializers '{}'", name));
    scope->names.emplace(name, ModelConstant(name, *std::move(tensor), *scope));
    return {};
  };
  const bool of_model = scope->outer == nullptr && scope->call == nullptr;
  for (const onnx::TensorProto& initializer : proto.initializer()) {
    if (of_model && options_.overridden != nullptr && options_.overridden->contains(initializer.name()))
      continue;
    const Result<std::optional<Value*>> strings = StringConstant(initializer, initializer.name());
    if (!strings) return Forward(strings);
    if (*strings) {
      if (scope->names.emplace(initializer.name(), **strings).second) continue;
      return Fail(StatusCode::kInvalidFile,
                  fmt::format("there are two initializers '{}'", initializer.name()));
    }
    Result<HostTensor> tensor = ElementsOf(initializer, of_model);
    if (Status ok = add(initializer.name(), initializer.ByteSizeLong(), std::move(tensor)); !ok) return ok;
  }
  for (const onnx::SparseTensorProto& initializer : proto.sparse_initializer()) {
    Result<HostTensor> tensor = ReadSparse(initializer);
    const std::size_t bytes = tensor ? tensor->bytes.view.size() : 0;
    if (Status ok = add(initializer.values().name(), bytes, std::move(tensor)); !ok) return ok;
  }
  return {};
}

Result<HostTensor> Lowering::ElementsOf(const onnx::TensorProto& initializer, bool of_model) const {
  if (of_model && options_.given != nullptr) {
    const auto given = options_.given->find(initializer.name());
    if (given != options_.given->end()) return given->second;
  }
  return ReadTensorProto(initializer, model_.external(), model_.proto());
}

Result<std::optional<Value*>> Lowering::StringConstant(const onnx::TensorProto& proto,
                                                       const std::string& name) {
  if (proto.data_type() != onnx::TensorProto::STRING) return std::optional<Value*>();
  HostTensor tensor;
  tensor.dtype = kInt64;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  const Result<std::uint64_t> bytes = CompactBytes(kInt64, tensor.shape);
  if (!bytes) return Forward(bytes, fmt::format("tensor '{}'", name));
  const auto given = static_cast<std::uint64_t>(proto.string_data_size());
  if (tensor.shape.size() > kMaxRank || *bytes / sizeof(std::int64_t) != given) {
    return Fail(StatusCode::kInvalidFile, fmt::format("tensor '{}' has {} strings, its shape takes {}", name,
                                                      given, *bytes / sizeof(std::int64_t)));
  }
  StringPositions positions;
  std::vector<std::int64_t> elements;
  for (const std::string& text : proto.string_data()) elements.push_back(positions.Of(text));
  tensor.bytes = CopyBytes(
      {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(std::int64_t)});
  Value* value = Constant(name, std::move(tensor));
  strings_.Set(value, positions.Take());
  return std::optional<Value*>(value);
}

StringList Lowering::ConstantList(const Strings& strings) {
  std::vector<std::int64_t> offsets = {0};
  std::string text;
  for (const std::string& each : strings) {
    text += each;
    offsets.push_back(static_cast<std::int64_t>(text.size()));
  }
  const auto constant = [&](DLDataType dtype, std::size_t count, const void* data, std::size_t size) {
    HostTensor tensor;
    tensor.dtype = dtype;
    tensor.shape = {static_cast<std::int64_t>(count)};
    tensor.bytes = CopyBytes({static_cast<const std::byte*>(data), size});
    return Constant("strings", std::move(tensor));
  };
  return {constant(kInt64, offsets.size(), offsets.data(), offsets.size() * sizeof(std::int64_t)),
          constant(kUInt8, text.size(), text.data(), text.size())};
}

StringList Lowering::ListOf(const Value* strings) {
  const StringList* computed = strings_.Computed(strings);
  return computed != nullptr ? *computed : ConstantList(*strings_.Find(strings));
}

Result<HostTensor> Lowering::ReadSparse(const onnx::SparseTensorProto& proto) {
  return ReadSparseTensorProto(proto, model_.external(), model_.proto(), &sparse_bytes_);
}

Status Lowering::AddInputs(Scope* scope) {
  std::vector<Value*> strings;
  const std::map<std::string, int> ranks = ImpliedRanks(model_.graph());
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    // Older models list every initializer among the inputs.
    if (scope->names.contains(input.name())) continue;
    if (Status named = CheckName("input", graph_.input_names.size(), input.name()); !named) return named;
    const bool is_strings = input.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
    onnx::TypeProto declared = input.type();
    if (is_strings) declared.mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
    Result<Type> type = DeclaredType(declared, input.name());
    const auto rank = ranks.find(input.name());
    if (type && type->IsTensor() && !type->ranked && rank != ranks.end()) {
      type->ranked = true;
      for (int i = 0; i < rank->second; ++i)
        type->dims.push_back(DimExpr::Symbol(graph_.FreshSymbol(input.name())));
    }
    if (type && is_strings && !type->ranked) {
      ReportTensor("input", input.name(), "it is strings and declares no shape", scope);
      continue;
    }
    if (!type && type.error().code() == StatusCode::kUnsupported) {
      ReportTensor("input", input.name(), type.error().message(), scope);
      continue;
    }
    if (!type) return Forward(type, "input");
    if (type->dims.size() > kMaxRank) {
      return Fail(StatusCode::kInvalidFile, fmt::format("input '{}' has {} dimensions, the limit is {}",
                                                        input.name(), type->dims.size(), kMaxRank));
    }
    Value* value = AddInput(input.name(), *std::move(type));
    scope->names.emplace(input.name(), value);
    if (is_strings) strings.push_back(value);
  }
  for (Value* input : strings) {
    for (const char* end : {".offsets", ".bytes"}) {
      if (scope->names.contains(input->name + end)) {
        return Fail(StatusCode::kUnsupported,
                    fmt::format("the name '{}{}' is needed for an input's strings", input->name, end));
      }
    }
    const DimExpr any = DimExpr::Symbol(graph_.FreshSymbol(""));
    const StringList list = {AddInput(input->name + ".offsets", TensorOf(kInt64, {any})),
                             AddInput(input->name + ".bytes", TensorOf(kUInt8, {any}))};
    strings_.SetInput(input, list);
    // A list from outside is checked once, so that all that follows can rely on it.
    Node* check = graph_.NewNode(NodeKind::kKernel);
    check->kernel = names::kTextCheck;
    check->inputs = {input, list.offsets, list.bytes};
    check->extents.push_back({input->type.dims, nullptr});
    check->outputs.push_back(graph_.NewValue(input->name, input->type));
    scope->names[input->name] = check->outputs[0];
    strings_.Set(check->outputs[0], list);
    Append(check);
  }
  return {};
}

Value* Lowering::AddInput(const std::string& name, Type type) {
  // A dimension without a name goes by the place where it stands: "x.2".
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const std::optional<std::string> symbol = type.dims[i].symbol();
    if (!symbol || symbol->front() != '$') continue;
    const std::string place = fmt::format("{}.{}", name, i);
    dim_names_.insert(place);
    const auto fixed = options_.dims.find(place);
    type.dims[i] = fixed != options_.dims.end() ? DimExpr(fixed->second) : DimExpr::Symbol(place);
  }
  Value* value = graph_.NewValue(name, std::move(type));
  Define(value);
  graph_.main.parameters.push_back(value);
  graph_.input_names.push_back(name);
  return value;
}

Status Lowering::Run() {
  Scope scope;
  scope.opsets = &model_.opsets();
  if (Status added = AddInitializers(model_.graph(), &scope); !added) return added;
  if (Status added = AddInputs(&scope); !added) return added;
  Wanted wanted;
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& output : model_.graph().output()) {
    if (Status named = CheckName("output", wanted.names.size(), output.name()); !named) return named;
    if (!names.insert(output.name()).second) {
      return Fail(StatusCode::kInvalidFile, fmt::format("there are two outputs '{}'", output.name()));
    }
    wanted.names.push_back(output.name());
    graph_.output_names.push_back(output.name());
  }
  if (wanted.names.empty()) return Fail(StatusCode::kInvalidFile, "the graph has no output");
  Result<Continuation> continuation = LowerNodes(model_.graph().node(), &scope, wanted);
  if (!continuation) return Forward(continuation);
  Result<std::vector<Value*>> results = JoinStrings(&*continuation);
  if (!results) return Forward(results);
  graph_.main.results = *std::move(results);
  return strings_.AddLists(&graph_.main.results, &graph_.output_names);
}

void Lowering::Report(const onnx::NodeProto& node, std::int64_t opset, const std::string& reason,
                      Scope* scope) {
  for (const std::string& output : node.output()) {
    if (!output.empty()) scope->names[output] = poison();
  }
  AddUnsupported({NodeName(node), node.op_type(), DomainOf(node.domain()), opset, reason});
}

void Lowering::ReportTensor(const char* what, const std::string& name, const std::string& reason,
                            Scope* scope) {
  scope->names[name] = poison();
  const auto opset = scope->opsets->find("");
  AddUnsupported({name, what, "", opset == scope->opsets->end() ? 0 : opset->second, reason});
  ++tensors_;
}

void Lowering::AddUnsupported(Unsupported what) {
  for (std::string* text : {&what.node, &what.op_type, &what.domain, &what.reason}) {
    *text = Printable(*text, kMostSourceBytes);
  }
  if (reported_.insert(what.node + "\n" + what.reason).second) unsupported_.push_back(std::move(what));
}

Status Lowering::LowerNode(const onnx::NodeProto& node, Scope* scope) {
  seen_.insert(&node);
  const std::string outer_source = std::exchange(source_, Printable(NodeText(node), kMostSourceBytes));
  if (Status charged = work_.Charge(kNodeWork); !charged) return Forward(charged, source_);
  const std::string domain = DomainOf(node.domain());
  const auto opset = scope->opsets->find(domain);
  Status lowered;
  if (const onnx::FunctionProto* function = model_.FindFunction(domain, node.op_type())) {
    lowered = CallFunction(*function, node, *scope);
  } else if (opset == scope->opsets->end()) {
    Report(node, 0, fmt::format("the model imports no operator set of domain '{}'", domain), scope);
  } else {
    Op op(node, opset->second, scope, this);
    if (op.HasPoison()) {
      JudgeUnseen(op, scope);
    } else if (const Status done = LowerOperator(&op); !done) {
      // Values of another rank may be what the model means it for: a check of a rank that fails leads
      // elsewhere.
      if (work_.exhausted()) {
        lowered = Forward(done, source_);  // what comes after would fail for the same reason
      } else if (at_ends_ && done.error().code() == StatusCode::kInvalidFile) {
        failure_ = {NodeName(node), node.op_type(), domain, opset->second, done.error().message()};
      } else {
        Report(node, opset->second, done.error().message(), scope);
      }
    }
  }
  source_ = outer_source;
  return lowered;
}

void Lowering::JudgeUnseen(const Op& op, Scope* scope) {
  for (const std::string& output : op.node().output()) scope->names[output] = poison();
  if (const Result<const Operator*> row = RowOf(op); !row) {
    Report(op.node(), op.opset(), row.error().message(), scope);
  }
  for (const onnx::AttributeProto& attribute : op.node().attribute()) {
    std::vector<const onnx::GraphProto*> bodies;
    if (attribute.has_g()) bodies.push_back(&attribute.g());
    for (const onnx::GraphProto& body : attribute.graphs()) bodies.push_back(&body);
    for (const onnx::GraphProto* body : bodies) {
      Scope inner = InnerScope(*scope);
      for (const onnx::NodeProto& node : body->node()) {
        seen_.insert(&node);
        const std::string domain = DomainOf(node.domain());
        const auto opset = scope->opsets->find(domain);
        if (model_.FindFunction(domain, node.op_type()) != nullptr || opset == scope->opsets->end()) continue;
        JudgeUnseen(Op(node, opset->second, &inner, this), &inner);
      }
    }
  }
}

Status Lowering::CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                              Scope& scope) {
  for (const Scope* caller = &scope; caller != nullptr; caller = caller->call_scope) {
    if (caller->function != &function) continue;
    return Fail(StatusCode::kInvalidFile, fmt::format("{}: the function calls itself", source_));
  }
  if (scope.depth >= kMaxCallDepth) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("{}: functions call each other more than {} deep", source_, kMaxCallDepth));
  }
  const std::map<std::string, std::int64_t> opsets = OpsetsOf(function.opset_import());
  Scope body;
  body.opsets = &opsets;
  body.call = &node;
  body.call_scope = &scope;
  body.function = &function;
  body.depth = scope.depth + 1;
  body.of_model = false;
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = i < node.input_size() && !node.input(i).empty();
    body.names[function.input(i)] = given ? scope.Find(node.input(i)) : nullptr;
  }
  Wanted wanted{{}, " of its function"};
  for (int i = 0; i < node.output_size() && i < function.output_size(); ++i) {
    wanted.names.push_back(function.output(i));
  }
  Result<Continuation> continuation = LowerNodes(function.node(), &body, wanted);
  if (!continuation) return Forward(continuation, source_);
  Op op(node, 0, &scope, this);
  if (Status delivered = Deliver(&op, *std::move(continuation)); !delivered) {
    Report(node, 0, delivered.error().message(), &scope);
  }
  return {};
}

Result<Continuation> Lowering::LowerSubgraph(const onnx::GraphProto& body, const Scope& outer,
                                             const std::vector<Value*>& inputs) {
  Scope scope = InnerScope(outer);
  if (static_cast<std::size_t>(body.input_size()) != inputs.size()) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("its body has {} inputs, expected {}", body.input_size(), inputs.size()));
  }
  for (int i = 0; i < body.input_size(); ++i) {
    scope.names[body.input(i).name()] = inputs[static_cast<std::size_t>(i)];
  }
  if (Status added = AddInitializers(body, &scope); !added) return Forward(added);
  Wanted wanted{{}, " of its body"};
  for (const onnx::ValueInfoProto& output : body.output()) wanted.names.push_back(output.name());
  Result<Continuation> continuation = LowerNodes(body.node(), &scope, wanted);
  if (!continuation) return continuation;
  return continuation;
}

Result<std::vector<Value*>> Lowering::LowerBody(const onnx::GraphProto& body, const Scope& outer,
                                                const std::vector<Value*>& inputs) {
  Result<Continuation> continuation = LowerSubgraph(body, outer, inputs);
  if (!continuation) return Forward(continuation);
  return JoinStrings(&*continuation);
}

}  // namespace rewire::compiler
