// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft's GatherBlockQuantized: rows of a table of few bits, as floats. The table stays as it is, and
// only the rows that are gathered become floats. A table that has no more rows than are gathered becomes
// floats as a whole.
#include <string>
#include <vector>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/decomposition.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

using Form = Decomposition::Form;

bool IsPacked(const Value& table) { return table.type.dtype == kUInt8; }

// The attributes, as far as they fit each other and the inputs.
struct QuantizedTable {
  int gather_axis = 0, quantize_axis = 0;
  std::int64_t block = 0, bits = 4;
  bool packed = false;  // several elements in a byte, along the last axis

  // The axis that is quantized, once the rows are gathered.
  int AxisAfter(const Op& op) const {
    return quantize_axis < gather_axis ? quantize_axis : quantize_axis + op.in(1)->type.rank() - 1;
  }
};

Result<QuantizedTable> ReadTable(const Op& op) {
  const Value& data = *op.in(0);
  const int rank = data.type.rank();
  const Result<int> gather_axis = op.Axis(op.Int("gather_axis", 0), rank);
  if (!gather_axis) return Forward(gather_axis);
  const Result<int> quantize_axis = op.Axis(op.Int("quantize_axis", 1), rank);
  if (!quantize_axis) return Forward(quantize_axis);
  QuantizedTable table{*gather_axis, *quantize_axis, op.Int("block_size", 128), op.Int("bits", 4),
                       IsPacked(data)};
  if (table.block < 16 || (table.block & (table.block - 1)) != 0)
    return op.Invalid("block_size is {}, expected a power of two from 16 on", table.block);
  if (table.packed ? table.bits != 2 && table.bits != 4 && table.bits != 8
                   : table.bits != data.type.dtype.bits)
    return op.Invalid("bits is {} for data of {}", table.bits, DTypeName(data.type.dtype));
  if (table.packed && (table.gather_axis != 0 || table.quantize_axis != rank - 1 || rank < 2))
    return op.Invalid(
        "packed data are gathered along axis 0 and quantized along the last; the axes are {} and {} of {}",
        table.gather_axis, table.quantize_axis, rank);
  if (op.in(2)->type.rank() != rank)
    return op.Invalid("scales have shape {}, expected one of rank {}, as data has",
                      ShapeText(op.in(2)->type.dims), rank);
  return table;
}

// Whether the table has at most as many rows as are gathered.
bool HasFewRows(const Op& op, int gather_axis) {
  const std::optional<std::int64_t> rows =
      op.in(0)->type.dims[static_cast<std::size_t>(gather_axis)].constant();
  const std::optional<std::int64_t> gathered = ProductOf(op.in(1)->type.dims).constant();
  return rows && gathered && *rows <= *gathered;
}

// Gives each element of packed rows a byte. `width` is how many elements of a row count.
Value* Unpacked(Op& op, Decomposition* parts, Value* x, std::int64_t bits, const DimExpr& width) {
  if (bits == 8) return x;
  const std::int64_t per_byte = 8 / bits;
  const auto byte = [&](std::int64_t value) { return op.Scalar(kUInt8, static_cast<double>(value)); };
  const std::string last = parts->Name(op.IntsValue({-1}));
  Form along;
  along.attributes.push_back(IntAttribute("axis", -1));
  std::vector<std::string> elements;
  for (std::int64_t i = 0; i < per_byte; ++i) {
    Value* shifted = i == 0 ? x
                            : op.Call(names::kBitShift, {x, byte(i * bits)},
                                      {{"direction", std::string("RIGHT")}}, x->type);
    Value* element = op.Apply(names::kBitAnd, shifted, byte((1 << bits) - 1));
    elements.push_back(parts->Add("Unsqueeze", {parts->Name(element), last}));
  }
  const std::string joined = parts->Add("Concat", elements, along);
  if (!parts->status()) return x;
  Shape dims = x->type.dims;
  dims.back() = dims.back() * DimExpr(per_byte);
  Value* all = op.Reshape(parts->ValueOf(joined), dims);
  if (dims.back() == width) return all;
  // The last byte of a row is not full.
  const std::string cut = parts->Add(
      "Slice", {parts->Name(all), parts->Name(op.IntsValue({0})), parts->Name(op.DimsValue({width})), last});
  return parts->status() ? parts->ValueOf(cut) : x;
}

// data, indices, scales, zeros.
Status LowerGatherBlockQuantized(Op& op, const Operator& /*row*/) {
  const Result<QuantizedTable> table = ReadTable(op);
  if (!table) return Forward(table);
  Decomposition parts(op);
  Form gather, dequantize, to_bytes;
  gather.attributes.push_back(IntAttribute("axis", table->gather_axis));
  to_bytes.attributes.push_back(IntAttribute(
      "to", op.in(0)->type.dtype.code == kInt ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8));
  const bool gathers_first =
      table->gather_axis != table->quantize_axis && !HasFewRows(op, table->gather_axis);
  const int axis = gathers_first ? table->AxisAfter(op) : table->quantize_axis;
  dequantize.attributes.push_back(IntAttribute("axis", axis));
  dequantize.attributes.push_back(IntAttribute("block_size", table->block));
  // An input as it is dequantized: its rows, with a byte for each element.
  const auto prepared = [&](int input, bool codes) {
    std::string name = parts.In(input);
    if (codes && !table->packed) name = parts.Add("Cast", {name}, to_bytes);
    if (gathers_first) name = parts.Add("Gather", {name, parts.In(1)}, gather);
    return name;
  };
  std::string data = prepared(0, true);
  const std::string scales = prepared(2, false);
  std::string zeros = op.in(3) != nullptr ? prepared(3, true) : "";
  if (!parts.status()) return parts.status();
  if (table->packed) {
    const DimExpr blocks = op.in(2)->type.dims.back();
    const DimExpr width = op.in(0)->type.dims.back() * DimExpr(8 / table->bits);
    data = parts.Name(Unpacked(op, &parts, parts.ValueOf(data), table->bits, width));
    if (!zeros.empty()) {
      zeros = parts.Name(Unpacked(op, &parts, parts.ValueOf(zeros), table->bits, blocks));
    } else {
      // The middle code stands for zero.
      const std::string middle = parts.Name(op.Scalar(kUInt8, static_cast<double>(1 << (table->bits - 1))));
      zeros = parts.Add("Expand", {middle, parts.Name(op.ShapeOf(parts.ValueOf(scales)))});
    }
  }
  std::vector<std::string> inputs = {data, scales};
  if (!zeros.empty()) inputs.push_back(zeros);
  std::string result = parts.Add("DequantizeLinear", inputs, dequantize);
  if (!gathers_first) result = parts.Add("Gather", {result, parts.In(1)}, gather);
  if (!parts.status()) return parts.status();
  op.Set(0, parts.ValueOf(result));
  return {};
}

}  // namespace

std::span<const Operator> ContribGatherOperators() {
  static constexpr Operator kOperators[] = {
      {"GatherBlockQuantized", 1, 1, 3, 4, "bits block_size gather_axis quantize_axis",
       LowerGatherBlockQuantized},
  };
  return kOperators;
}

}  // namespace rewire::compiler
