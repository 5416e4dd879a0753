// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/import/tflite_builtins.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace rewire::compiler::tflite {
namespace {

using Field = OptionField;

// By their codes, which begin with 0.
constexpr const char* kNames[] = {
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE",
    "DEQUANTIZE",
    "EMBEDDING_LOOKUP",
    "FLOOR",
    "FULLY_CONNECTED",
    "HASHTABLE_LOOKUP",
    "L2_NORMALIZATION",
    "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOGISTIC",
    "LSH_PROJECTION",
    "LSTM",
    "MAX_POOL_2D",
    "MUL",
    "RELU",
    "RELU_N1_TO_1",
    "RELU6",
    "RESHAPE",
    "RESIZE_BILINEAR",
    "RNN",
    "SOFTMAX",
    "SPACE_TO_DEPTH",
    "SVDF",
    "TANH",
    "CONCAT_EMBEDDINGS",
    "SKIP_GRAM",
    "CALL",
    "CUSTOM",
    "EMBEDDING_LOOKUP_SPARSE",
    "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "GATHER",
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    "TRANSPOSE",
    "MEAN",
    "SUB",
    "DIV",
    "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "STRIDED_SLICE",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "EXP",
    "TOPK_V2",
    "SPLIT",
    "LOG_SOFTMAX",
    "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "CAST",
    "PRELU",
    "MAXIMUM",
    "ARG_MAX",
    "MINIMUM",
    "LESS",
    "NEG",
    "PADV2",
    "GREATER",
    "GREATER_EQUAL",
    "LESS_EQUAL",
    "SELECT",
    "SLICE",
    "SIN",
    "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE",
    "TILE",
    "EXPAND_DIMS",
    "EQUAL",
    "NOT_EQUAL",
    "LOG",
    "SUM",
    "SQRT",
    "RSQRT",
    "SHAPE",
    "POW",
    "ARG_MIN",
    "FAKE_QUANT",
    "REDUCE_PROD",
    "REDUCE_MAX",
    "PACK",
    "LOGICAL_OR",
    "ONE_HOT",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "UNPACK",
    "REDUCE_MIN",
    "FLOOR_DIV",
    "REDUCE_ANY",
    "SQUARE",
    "ZEROS_LIKE",
    "FILL",
    "FLOOR_MOD",
    "RANGE",
    "RESIZE_NEAREST_NEIGHBOR",
    "LEAKY_RELU",
    "SQUARED_DIFFERENCE",
    "MIRROR_PAD",
    "ABS",
    "SPLIT_V",
    "UNIQUE",
    "CEIL",
    "REVERSE_V2",
    "ADD_N",
    "GATHER_ND",
    "COS",
    "WHERE",
    "RANK",
    "ELU",
    "REVERSE_SEQUENCE",
    "MATRIX_DIAG",
    "QUANTIZE",
    "MATRIX_SET_DIAG",
    "ROUND",
    "HARD_SWISH",
    "IF",
    "WHILE",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    "SCATTER_ND",
    "SELECT_V2",
    "DENSIFY",
    "SEGMENT_SUM",
    "BATCH_MATMUL",
    "PLACEHOLDER_FOR_GREATER_OP_CODES",
    "CUMSUM",
    "CALL_ONCE",
    "BROADCAST_TO",
    "RFFT2D",
    "CONV_3D",
    "IMAG",
    "REAL",
    "COMPLEX_ABS",
    "HASHTABLE",
    "HASHTABLE_FIND",
    "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE",
    "REDUCE_ALL",
    "CONV_3D_TRANSPOSE",
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE",
    "RANDOM_UNIFORM",
    "MULTINOMIAL",
    "GELU",
    "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1",
    "UNSORTED_SEGMENT_PROD",
    "UNSORTED_SEGMENT_MAX",
    "UNSORTED_SEGMENT_SUM",
    "ATAN2",
    "UNSORTED_SEGMENT_MIN",
    "SIGN",
    "BITCAST",
    "BITWISE_XOR",
    "RIGHT_SHIFT",
};

constexpr Field kConvolution[] = {
    {"padding", 0, Field::kByte},
    {"stride_w", 1, Field::kInt},
    {"stride_h", 2, Field::kInt},
    {"fused_activation_function", 3, Field::kByte},
    {"dilation_w_factor", 4, Field::kInt, 1},
    {"dilation_h_factor", 5, Field::kInt, 1},
};
constexpr Field kDepthwise[] = {
    {"padding", 0, Field::kByte},
    {"stride_w", 1, Field::kInt},
    {"stride_h", 2, Field::kInt},
    {"depth_multiplier", 3, Field::kInt},
    {"fused_activation_function", 4, Field::kByte},
    {"dilation_w_factor", 5, Field::kInt, 1},
    {"dilation_h_factor", 6, Field::kInt, 1},
};
constexpr Field kConcatenation[] = {
    {"axis", 0, Field::kInt},
    {"fused_activation_function", 1, Field::kByte},
};
constexpr Field kSlice[] = {
    {"begin_mask", 0, Field::kInt},       {"end_mask", 1, Field::kInt},
    {"ellipsis_mask", 2, Field::kInt},    {"new_axis_mask", 3, Field::kInt},
    {"shrink_axis_mask", 4, Field::kInt}, {"offset", 5, Field::kByte},
};
constexpr Field kPool[] = {
    {"padding", 0, Field::kByte},      {"stride_w", 1, Field::kInt},
    {"stride_h", 2, Field::kInt},      {"filter_width", 3, Field::kInt},
    {"filter_height", 4, Field::kInt}, {"fused_activation_function", 5, Field::kByte},
};
constexpr Field kArithmetic[] = {{"fused_activation_function", 0, Field::kByte}};
constexpr Field kReducer[] = {{"keep_dims", 0, Field::kByte}};
constexpr Field kSplit[] = {{"num_splits", 0, Field::kInt}};
constexpr Field kFullyConnected[] = {
    {"fused_activation_function", 0, Field::kByte},
    {"weights_format", 1, Field::kByte},
    {"keep_num_dims", 2, Field::kByte},
};
constexpr Field kSoftmax[] = {{"beta", 0, Field::kFloat}};
constexpr Field kReshape[] = {{"new_shape", 0, Field::kInts}};
constexpr Field kCall[] = {{"init_subgraph_index", kInitSubgraph, Field::kInt}};
constexpr Field kVariable[] = {
    {"container", kContainer, Field::kText},
    {"shared_name", kSharedName, Field::kText},
};

constexpr Options kOptions[] = {
    {0, 11, -1, kArithmetic},
    {1, 5, -1, kPool},
    {2, 10, -1, kConcatenation},
    {3, 1, 0, kConvolution},
    {4, 2, 3, kDepthwise},
    {9, 8, 0, kFullyConnected},
    {17, 5, -1, kPool},
    {18, 21, -1, kArithmetic},
    {22, 17, -1, kReshape},
    {25, 9, -1, kSoftmax},
    {40, 27, -1, kReducer},
    {41, 28, -1, kArithmetic},
    {45, 32, -1, kSlice},
    {49, 35, -1, kSplit},
    {102, 79, -1, kSplit},
    {kCallOnce, 103, -1, kCall},
    {kVarHandle, 111, -1, kVariable},
};

}  // namespace

std::string NameOfBuiltin(std::int32_t code) {
  if (code >= 0 && static_cast<std::size_t>(code) < std::size(kNames)) return kNames[code];
  return "builtin operator " + std::to_string(code);
}

const Options* OptionsOf(std::int32_t code) {
  const auto* found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                   [&](const Options& options) { return options.code == code; });
  return found == std::end(kOptions) ? nullptr : found;
}

}  // namespace rewire::compiler::tflite
