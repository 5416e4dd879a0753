/* SPDX-License-Identifier: Apache-2.0 */
/* The host passes these to device code by value. Compiled as C++ on the host and as device code. All members
 * have 4 bytes, so that both lay them out alike. Positions count elements and are below 2^31. */
#ifndef REWIRE_KERNELS_DEVICE_CODE_ARGUMENTS_H_
#define REWIRE_KERNELS_DEVICE_CODE_ARGUMENTS_H_

#define REWIRE_DEVICE_RANK 8

/* Operands that are broadcast to `dims`: steps of each along each axis. */
typedef struct Broadcast {
  int rank;
  int dims[REWIRE_DEVICE_RANK];
  int a[REWIRE_DEVICE_RANK];
  int b[REWIRE_DEVICE_RANK];
  int c[REWIRE_DEVICE_RANK];
} Broadcast;

/* Elements that go from one place to another: steps along each axis, and where the first one is. */
typedef struct Move {
  int rank;
  int from;
  int to;
  int dims[REWIRE_DEVICE_RANK];
  int from_steps[REWIRE_DEVICE_RANK];
  int to_steps[REWIRE_DEVICE_RANK];
} Move;

/* Tuples of indices. Each names a slice of a tensor, which is one of its batch's `dims`. */
typedef struct Tuples {
  int width;                     /* indices of a tuple */
  int run;                       /* elements of a slice */
  int per_batch;                 /* tuples for each batch */
  int batch_step;                /* elements from one batch to the next */
  int dims[REWIRE_DEVICE_RANK];  /* of the axes that a tuple names */
  int steps[REWIRE_DEVICE_RANK]; /* of these axes, in slices */
} Tuples;

/* Updates of places that indices name. Those of a place are made by one thread in their order. There are
 * `sharers` threads for each line of updates; each takes the places whose number leaves its own as the
 * remainder. */
typedef struct Scatter {
  int type, index_type; /* IntegerType */
  int operation;        /* ScatterOperation */
  int sharers;
  int length;      /* updates of a line */
  int update_step; /* from one to the next */
  int places;      /* that an index may name, */
  int place_step;  /* and the step from one to the next */
} Scatter;

/* Attention (kernels/cpu/attention). Rows are the queries that share a head of keys. */
typedef struct Attention {
  int heads, groups; /* groups: heads of keys */
  int rows;          /* heads / groups * length */
  int length, keys, size, value_size;
  int joined;  /* q and out are [batch, length, heads * size] */
  int visible; /* keys that may be seen at all */
  int left, right;
  int has_begin, begin_step;     /* there is one for each batch, or one for all */
  int has_lengths, lengths_step; /* likewise */
  int has_bias;
  int bias_steps[4];
  float scale, softcap;
} Attention;

/* Decision trees (kernels/cpu/machine_learning/tree_ensemble.cc), and what their tensors hold. */
typedef struct Forest {
  int trees, nodes, leaves, weights;
  int features, outputs;
  int aggregate; /* TreeAggregate */
} Forest;

/* A border of `before` elements in front of each axis, and what out has more than that and x behind it. */
typedef struct Border {
  int rank;
  int mode;                      /* PadMode of kernels/cpu/movement/pad_attributes.h */
  int dims[REWIRE_DEVICE_RANK];  /* of out */
  int inner[REWIRE_DEVICE_RANK]; /* of x */
  int before[REWIRE_DEVICE_RANK];
} Border;

/* A resize (kernels/contract/resize.h). `scale` says which element of the scales an axis has; -1: none,
 * then it is the output's size over the input's. */
typedef struct Resizing {
  int rank;
  int mode, coordinates, rounding;
  int exclude_outside;
  float cubic;
  int input[REWIRE_DEVICE_RANK];
  int output[REWIRE_DEVICE_RANK];
  int scale[REWIRE_DEVICE_RANK];
} Resizing;

/* Axes that stay, and axes that are reduced to one element. */
typedef struct Reduction {
  int rank;
  int reduced_rank;
  int count; /* elements that become one */
  int dims[REWIRE_DEVICE_RANK];
  int steps[REWIRE_DEVICE_RANK];
  int reduced_dims[REWIRE_DEVICE_RANK];
  int reduced_steps[REWIRE_DEVICE_RANK];
} Reduction;

/* out[m, n] = activation of alpha * sum over k of a[m, k] * b[k, n] + beta * c[m, n], for each batch. */
typedef struct Product {
  int m, n, k;
  int rows;            /* of an a without its batches */
  int a_row, a_column; /* steps */
  int b_row, b_column;
  int c_row, c_column;
  int has_c;
  int c_batch; /* from one batch's c to the next */
  int rank;    /* of the batch */
  int dims[REWIRE_DEVICE_RANK];
  int a_batch[REWIRE_DEVICE_RANK];
  int b_batch[REWIRE_DEVICE_RANK];
  float alpha, beta;
  int activation; /* ProductActivation */
} Product;

/* A window over up to three spatial axes; axes that are missing come first and have size 1. */
typedef struct Window {
  int batch;
  int channels, out_channels; /* of one group */
  int groups;
  int has_bias;
  int counts_pads; /* of a mean: the pads are elements too */
  int size[3], stride[3], dilation[3], before[3], after[3];
  int input[3], output[3];
} Window;

/* The scale and zero of an element (kernels/cpu/quantization/scale_channels.h). */
typedef struct Channels {
  int count, inner; /* positions along the axis, and elements from one to the next */
  int block, blocks;
} Channels;

/* How the terms of a sum of bytes, and the sum, represent floats (kernels/cpu/quantization/quantized_sum.h).
 */
typedef struct QuantizedSum {
  float a_scale, b_scale, scale;
  int a_zero, b_zero, zero;
  int least, most; /* of the sum */
} QuantizedSum;

/* The operands of a product of bytes, less their zeros. An operand has no zero, one, or several: one for each
 * row of the left operand, for each column of the right one. */
typedef struct Bytes {
  int left_signed, right_signed;
  int left_zeros, right_zeros;
} Bytes;

/* A tensor's shape, for code that is told the axis on the device. */
typedef struct Extents {
  int rank;
  int dims[REWIRE_DEVICE_RANK];
} Extents;

/* A function of a recurrent layer (kernels/cpu/recurrent/rnn_attributes.h). */
typedef struct GateFunction {
  int kind; /* GateFunctionKind */
  float alpha, beta;
} GateFunction;

/* A recurrent layer. The scratch memory of its code has five numbers for each of directions * batch * hidden
 * units. First come the states before and after a step, in turn, and the cells. The gated states and update
 * gates of a GRU follow. */
typedef struct Recurrent {
  int kind; /* RecurrentKind */
  int steps, batch, hidden, directions;
  int reversed; /* a single direction that goes backwards */
  int batch_first;
  int has_bias, has_peepholes, has_lengths, has_y;
  int input_forget;        /* of an LSTM */
  int linear_before_reset; /* of a GRU */
  float clip;              /* 0: none */
  GateFunction functions[2][3];
} Recurrent;

enum RecurrentKind { kRecurrentRnn, kRecurrentGru, kRecurrentLstm };
enum GateFunctionKind {
  kGateSigmoid,
  kGateTanh,
  kGateRelu,
  kGateAffine,
  kGateLeakyRelu,
  kGateThresholdedRelu,
  kGateScaledTanh,
  kGateHardSigmoid,
  kGateElu,
  kGateSoftsign,
  kGateSoftplus
};
/* As kernels/cpu/indexing and kernels/cpu/machine_learning number them. */
enum ScatterOperation { kScatterSet, kScatterAdd, kScatterMultiply, kScatterLeast, kScatterMost };
enum TreeAggregate { kTreeSum, kTreeAverage, kTreeLeast, kTreeMost };
enum ProductActivation { kNoActivation, kReluActivation, kGeluActivation };
enum BorderMode { kBorderConstant, kBorderReflect, kBorderEdge, kBorderWrap };
enum ResizeMode { kResizeNearest, kResizeLinear, kResizeCubic };
enum ResizeCoordinates {
  kResizeHalfPixel,
  kResizePytorchHalfPixel,
  kResizeAlignCorners,
  kResizeAsymmetric,
  kResizeCrop,
  kResizeSymmetric,
  kResizeTfHalfPixel
};
enum ResizeRounding { kResizePreferFloor, kResizePreferCeil, kResizeFloor, kResizeCeil };
/* kTypeReal: no integers, but the program's real numbers. */
enum IntegerType { kTypeU8, kTypeI8, kTypeU16, kTypeI16, kTypeI32, kTypeI64, kTypeBool, kTypeReal };
enum UnaryOperation {
  kAbs,
  kCeil,
  kClip,
  kCos,
  kElu,
  kErf,
  kExp,
  kFloor,
  kGelu,
  kGeluTanh,
  kHardSigmoid,
  kHardSwish,
  kLeakyRelu,
  kLog,
  kNegate,
  kReciprocal,
  kRelu,
  kRound,
  kSelu,
  kSigmoid,
  kSign,
  kSin,
  kSoftplus,
  kSqrt,
  kSwish,
  kTanh
};
enum IntegerOperation {
  kIntegerAbs,
  kIntegerNegate,
  kIntegerSign,
  kIntegerRelu,
  kIntegerClip,
  kBitNot,
  kNot
};
enum BinaryOperation {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kRemainder,
  kPower,
  kMaximum,
  kMinimum,
  kAtLeast,
  kAtMost,
  kPRelu,
  kAnd,
  kOr,
  kXor
};
enum Comparison { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };
enum ReduceOperation { kSum, kMean, kMost, kLeast, kProduct, kSumOfSquares, kSumOfAbs, kNorm };

#endif /* REWIRE_KERNELS_DEVICE_CODE_ARGUMENTS_H_ */
