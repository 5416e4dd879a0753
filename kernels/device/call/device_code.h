// SPDX-License-Identifier: Apache-2.0
//
// The text of the files in code/, and of kernels/contract/scalar_functions.h.
#pragma once

namespace rewire::kernel::device {

extern const char kFunctionsText[];
extern const char kDialectText[];
extern const char kArgumentsText[];
extern const char kElementwiseText[];
extern const char kMovementText[];
extern const char kProductText[];
extern const char kWindowText[];
extern const char kReductionText[];
extern const char kQuantizationText[];
extern const char kIntegerText[];
extern const char kLinesText[];
extern const char kRecurrentText[];
extern const char kIndexingText[];
extern const char kScatterText[];
extern const char kTreesText[];
extern const char kTilesText[];
extern const char kAttentionText[];

}  // namespace rewire::kernel::device
