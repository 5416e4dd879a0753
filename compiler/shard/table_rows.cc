// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/table_rows.h"

#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {

OwnRows FindOwnRows(NodeList* list, Value* positions, std::int64_t rows, std::int64_t ranks,
                    std::int64_t rank) {
  const std::string name = positions->name;
  const Type integers = TensorOf(kInt64, positions->type.dims);
  const auto integer = [&](const char* kernel, std::vector<Value*> inputs) {
    return list->Call(kernel, std::move(inputs), {}, name, integers);
  };
  const auto truth = [&](const char* kernel, Value* a, Value* b) {
    return list->Call(kernel, {a, b}, {}, name, TensorOf(kBool8, positions->type.dims));
  };
  Value* const zero = list->Int("zero", 0);
  const auto is_within = [&](Value* value, std::int64_t end) {
    Value* const below = truth(names::kLess, value, list->Int("end", end));
    return truth(names::kAnd, truth(names::kGreaterEqual, value, zero), below);
  };
  if (!(positions->type.dtype == kInt64)) positions = integer(names::kCast, {positions});
  Value* const from_end = integer(names::kAdd, {positions, list->Int("rows", rows)});
  Value* const counted = integer(names::kWhere, {truth(names::kLess, positions, zero), from_end, positions});
  Value* const local = integer(names::kSub, {counted, list->Int("first_row", rows / ranks * rank)});
  Value* const own = is_within(local, rows / ranks);
  Value* const others = integer(names::kWhere, {is_within(counted, rows), zero, positions});
  return {integer(names::kWhere, {own, local, others}), own};
}

}  // namespace rewire::compiler
