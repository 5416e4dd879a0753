// SPDX-License-Identifier: Apache-2.0
//
// A table of which each rank has some rows, one after another.
#pragma once

#include <cstdint>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/node_list.h"

namespace rewire::compiler {

struct OwnRows {
  Value* positions = nullptr;  // among the rank's rows; 0 for a row that another rank has
  Value* own = nullptr;        // booleans: this rank has the row
};

// Appends what finds the rank's rows by positions in a table of so many rows, which the ranks divide. As in
// Gather, a negative position counts from the end. One outside of the table stays outside of the part, so
// that all ranks refuse it.
OwnRows FindOwnRows(NodeList* list, Value* positions, std::int64_t rows, std::int64_t ranks,
                    std::int64_t rank);

}  // namespace rewire::compiler
