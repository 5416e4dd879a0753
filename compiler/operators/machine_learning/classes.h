// SPDX-License-Identifier: Apache-2.0
// The classifiers of ai.onnx.ml share their labels, and what becomes of scores at the end.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

// The labels of classes: numbers, or strings if there are any.
struct ClassLabels {
  Ints numbers;
  std::vector<std::string> strings;

  std::size_t size() const { return strings.empty() ? numbers.size() : strings.size(); }
};

// Reads classlabels_strings, and the attribute that has the numbers.
ClassLabels LabelsOf(const Op& op, const char* numbers);
// Sets output `i` to the labels of classes, i64[N]. Strings are positions in the list of labels.
void SetLabels(Op& op, int i, Value* classes, const ClassLabels& labels);
// The class with the highest score, the first of several: i64[N] of f32[N, C].
Value* HighestClass(Op& op, Value* scores);
// Applies a transform that the attribute post_transform can name to scores [N, C].
Result<Value*> PostTransformed(Op& op, Value* scores, const std::string& transform);
// Sets output i to the scores, transformed as the attribute post_transform says.
Status SetScores(Op& op, int i, Value* scores);
// X as [N, features] of f32 or f64.
Result<Value*> RowsOf(Op& op, DLDataType dtype);
// The same with a number of features that is known: X's, or where that is open the one that the operator's
// attributes tell (`told`, 0: they do not). A run checks the latter.
Result<Value*> FeaturesOf(Op& op, DLDataType dtype, std::int64_t told, std::int64_t* features);

}  // namespace rewire::compiler
