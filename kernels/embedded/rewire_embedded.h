// SPDX-License-Identifier: Apache-2.0
//
// Kernels for systems without an operating system: plain C99 (and C++) functions over raw pointers, without
// allocation, input or output. docs/kernels-embedded.md lists them.
//
// The function for the stock kernel rewire.NAME is rewire_embedded_NAME_DTYPE, with the dots as underscores.
// It takes a constant struct of sizes and attributes, which are known when the program is built. Then come
// the kernel's tensors in the order of docs/kernels.md, a workspace where it needs one, and what it writes. A
// missing tensor is NULL. Kernels for any element size have no dtype in their names.
//
// Tensors are contiguous, row-major and aligned for their elements. Each holds less than 2 GiB and fewer
// than 2^31 elements. Weights have the layouts of the stock kernels, so that an executable's constants are
// used as they are. Nothing is checked: the program that calls has been verified, and its sizes are right.
// What is written overlaps nothing else unless the comment of the function says so.
#ifndef REWIRE_EMBEDDED_H_
#define REWIRE_EMBEDDED_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Activations.
//
// A list says what happens to each element of a product before it is stored: the activation, then
// rewire_embedded_activate_move if post_scale and post_shift are given. Only the functions that a program
// names are linked. A null list is the activation "none".
struct rewire_embedded_activation {
  void (*apply)(const struct rewire_embedded_activation* activation, float* values, int32_t count);
  float alpha, beta;  // as the attributes
  const struct rewire_embedded_activation* next;
};

#define REWIRE_EMBEDDED_ACTIVATION(name)                                                                   \
  void rewire_embedded_activate_##name(const struct rewire_embedded_activation* activation, float* values, \
                                       int32_t count)
REWIRE_EMBEDDED_ACTIVATION(relu);
REWIRE_EMBEDDED_ACTIVATION(clip);  // alpha is the least, beta the most
REWIRE_EMBEDDED_ACTIVATION(sigmoid);
REWIRE_EMBEDDED_ACTIVATION(tanh);
REWIRE_EMBEDDED_ACTIVATION(hard_swish);
REWIRE_EMBEDDED_ACTIVATION(swish);
REWIRE_EMBEDDED_ACTIVATION(gelu);
REWIRE_EMBEDDED_ACTIVATION(leaky_relu);
REWIRE_EMBEDDED_ACTIVATION(move);  // times alpha (post_scale), plus beta (post_shift)

// Windows.
//
// One spatial axis of a convolution or pool, with auto_pad resolved: `before` is the padding in front. A
// window of one axis has REWIRE_EMBEDDED_NO_AXIS as its rows. Windows of three axes are not supported.
struct rewire_embedded_axis {
  int32_t input, output, kernel, stride, dilation, before;
};
#define REWIRE_EMBEDDED_NO_AXIS \
  { 1, 1, 1, 1, 1, 0 }

// Products by packed weights, f32.
//
// w as rewire.packed.pack writes it.

// rewire.packed.matmul: x [rows, depth], bias [columns], addend and out [rows, columns]. out may be
// addend.
struct rewire_embedded_packed_matmul {
  int32_t rows, depth, columns;
  const struct rewire_embedded_activation* activation;
};
void rewire_embedded_packed_matmul_f32(const struct rewire_embedded_packed_matmul* p, const float* x,
                                       const float* w, const float* bias, const float* addend, float* out);

// rewire.packed.conv: x [images, rows, columns, in_channels], out and addend [images, rows, columns,
// out_channels]. out may be addend.
struct rewire_embedded_packed_conv {
  int32_t images, in_channels, out_channels;
  struct rewire_embedded_axis rows, columns;
  const struct rewire_embedded_activation* activation;
};
void rewire_embedded_packed_conv_f32(const struct rewire_embedded_packed_conv* p, const float* x,
                                     const float* w, const float* bias, const float* addend, float* out);

// rewire.packed.depthwise: x [images, rows, columns, in_channels], out with in_channels * multiplier
// channels, w [taps, those].
struct rewire_embedded_packed_depthwise {
  int32_t images, in_channels, multiplier;
  struct rewire_embedded_axis rows, columns;
  const struct rewire_embedded_activation* activation;
};
void rewire_embedded_packed_depthwise_f32(const struct rewire_embedded_packed_depthwise* p, const float* x,
                                          const float* w, const float* bias, float* out);

// rewire.packed.separable. out may be addend. workspace: in_channels floats.
struct rewire_embedded_packed_separable {
  int32_t images, in_channels, out_channels;
  struct rewire_embedded_axis rows, columns;
  const struct rewire_embedded_activation *depthwise_activation, *activation;
};
void rewire_embedded_packed_separable_f32(const struct rewire_embedded_packed_separable* p, const float* x,
                                          const float* taps, const float* taps_bias, const float* w,
                                          const float* bias, const float* addend, float* workspace,
                                          float* out);

// Products by packed weights, integers.
//
// w as rewire.packed.pack_integers writes it. The argument `sums` of the stock kernels is not needed, so a
// program need not hold it. x is i8, or u8 where x_is_signed is 0, and so is its x_zero of one element; null
// is 0. w_zero has one element, or with w_zero_step = 1 one for each column; scale and scale_step likewise.
//
// `store` says what out holds: the sums (i32), floats, u8 or i8. whole_bias is a bias of i32, bias one of
// f32; at most one is given. workspace: REWIRE_EMBEDDED_INTEGER_WORKSPACE(padded depth) bytes, aligned to 4,
// where the padded depth is the second dimension of w.
struct rewire_embedded_integer_finish {
  void (*store)(const struct rewire_embedded_integer_finish* finish, const int32_t* sums, int32_t column,
                int32_t count, const float* scale, const float* bias, void* out, int32_t at);
  int32_t x_is_signed, w_zero_step, scale_step;
  const struct rewire_embedded_activation* activation;  // of floats
  float zero, least, most;  // of u8 and i8; least and most lie in the dtype's range
};
#define REWIRE_EMBEDDED_INTEGER_WORKSPACE(padded_depth) (2 * (padded_depth))

#define REWIRE_EMBEDDED_STORE(dtype)                                                                         \
  void rewire_embedded_store_##dtype(const struct rewire_embedded_integer_finish* finish,                    \
                                     const int32_t* sums, int32_t column, int32_t count, const float* scale, \
                                     const float* bias, void* out, int32_t at)
REWIRE_EMBEDDED_STORE(i32);
REWIRE_EMBEDDED_STORE(f32);
REWIRE_EMBEDDED_STORE(u8);
REWIRE_EMBEDDED_STORE(i8);

// rewire.packed.matmul_integer: x [rows, depth], out [rows, columns].
struct rewire_embedded_packed_matmul_integer {
  int32_t rows, depth, columns;
  struct rewire_embedded_integer_finish finish;
};
void rewire_embedded_packed_matmul_integer_bytes(const struct rewire_embedded_packed_matmul_integer* p,
                                                 const void* x, const int8_t* w, const void* x_zero,
                                                 const int8_t* w_zero, const float* scale,
                                                 const int32_t* whole_bias, const float* bias,
                                                 void* workspace, void* out);

// rewire.packed.conv_integer: as rewire.packed.conv.
struct rewire_embedded_packed_conv_integer {
  int32_t images, in_channels, out_channels;
  struct rewire_embedded_axis rows, columns;
  struct rewire_embedded_integer_finish finish;
};
void rewire_embedded_packed_conv_integer_bytes(const struct rewire_embedded_packed_conv_integer* p,
                                               const void* x, const int8_t* w, const void* x_zero,
                                               const int8_t* w_zero, const float* scale,
                                               const int32_t* whole_bias, const float* bias, void* workspace,
                                               void* out);

// rewire.packed.depthwise_integer: out_channels is in_channels. Needs no workspace.
void rewire_embedded_packed_depthwise_integer_bytes(const struct rewire_embedded_packed_conv_integer* p,
                                                    const void* x, const int8_t* w, const void* x_zero,
                                                    const int8_t* w_zero, const float* scale,
                                                    const int32_t* whole_bias, const float* bias, void* out);

// Products of plain matrices, f32.
//
// rewire.gemm and rewire.dense: out [m, n] = alpha * sum over k of a[i * a_row + k * a_column] * b[k * b_row
// + j
// * b_column], plus beta * c[i * c_row + j * c_column]. c may be null. Transposes and broadcasting are steps
// in elements.
struct rewire_embedded_gemm {
  int32_t m, n, k;
  int32_t a_row, a_column, b_row, b_column, c_row, c_column;
  float alpha, beta;
};
void rewire_embedded_gemm_f32(const struct rewire_embedded_gemm* p, const float* a, const float* b,
                              const float* c, float* out);

// rewire.conv: x [images, in_channels, rows, columns], w [out_channels, in_channels / groups, kernel...], out
// [images, out_channels, rows, columns].
struct rewire_embedded_conv {
  int32_t images, in_channels, out_channels, groups;
  struct rewire_embedded_axis rows, columns;
};
void rewire_embedded_conv_f32(const struct rewire_embedded_conv* p, const float* x, const float* w,
                              const float* bias, float* out);

// Pools.
//
// rewire.max_pool without indices and rewire.avg_pool. With layout NHWC inner is the number of channels and
// outer the number of images; with NCHW inner is 1 and outer images * channels. out may be x's memory, at
// the same address, where neither axis has padding in front.
struct rewire_embedded_pool {
  int32_t outer, inner;
  struct rewire_embedded_axis rows, columns;
};
void rewire_embedded_max_pool_f32(const struct rewire_embedded_pool* p, const float* x, float* out);
void rewire_embedded_max_pool_i8(const struct rewire_embedded_pool* p, const int8_t* x, int8_t* out);
void rewire_embedded_max_pool_u8(const struct rewire_embedded_pool* p, const uint8_t* x, uint8_t* out);
// With count_include_pad each window divides by its positions on the padded image, which ends rows_after
// and columns_after positions behind x; these are the pads, without what ceil_mode adds.
struct rewire_embedded_avg_pool {
  struct rewire_embedded_pool pool;
  int32_t count_include_pad, rows_after, columns_after;
};
void rewire_embedded_avg_pool_f32(const struct rewire_embedded_avg_pool* p, const float* x, float* out);

// Softmax, f32.
//
// Views of x as [outer, count, inner], with the axis in the middle. out may be x.
struct rewire_embedded_along {
  int32_t outer, count, inner;
};
void rewire_embedded_softmax_f32(const struct rewire_embedded_along* p, const float* x, float* out);
void rewire_embedded_log_softmax_f32(const struct rewire_embedded_along* p, const float* x, float* out);

// Elementwise.
//
// A row computes `count` elements of out from its inputs. Element i of input j is x[j][i * steps[j]]: a step
// is 1, or 0 for an input that is broadcast. Where all inputs have out's shape or one element, a program
// calls the row itself; rewire_embedded_broadcast_rows calls it for each row of other shapes. The macros of
// rewire_embedded_rows.h make a row of an expression: so a chain of operations (rewire.fused) becomes one
// function of the program. That header also lists the rows that are here.
typedef void rewire_embedded_row(int32_t count, const void* const* x, const int32_t* steps, void* out);

// `dims` is out's shape; steps[j][i] the elements of input j from one index of axis i to the next, 0 where it
// is broadcast. Adjacent axes may be merged. sizes[j] is the bytes of an element of input j, out_size of
// out. out may be an input of out's shape and element size.
#define REWIRE_EMBEDDED_MOST_RANK 8
#define REWIRE_EMBEDDED_MOST_INPUTS 8
struct rewire_embedded_broadcast {
  int32_t rank, inputs;
  int32_t dims[REWIRE_EMBEDDED_MOST_RANK];
  int32_t steps[REWIRE_EMBEDDED_MOST_INPUTS][REWIRE_EMBEDDED_MOST_RANK];
  uint8_t sizes[REWIRE_EMBEDDED_MOST_INPUTS], out_size;
};
void rewire_embedded_broadcast_rows(const struct rewire_embedded_broadcast* p, rewire_embedded_row* row,
                                    const void* const* x, void* out);

// Movement.
//
// A strided copy: element i of `dims` goes from from[sum of i * from_steps] to to[sum of i * to_steps], in
// elements of 1, 2, 4, 8 or 16 bytes. rewire.transpose, slice, expand, tile and copy are one such copy,
// rewire.concat and split one for each part; a slice's start is added to `from`, a part's to `to`. Steps may
// be 0 or negative in `from`. There is at least one axis, and none is empty.
struct rewire_embedded_move {
  int32_t rank, element_bytes;
  int32_t dims[REWIRE_EMBEDDED_MOST_RANK], from_steps[REWIRE_EMBEDDED_MOST_RANK],
      to_steps[REWIRE_EMBEDDED_MOST_RANK];
};
void rewire_embedded_move_elements(const struct rewire_embedded_move* p, const void* from, void* to);

// rewire.trilu of `matrices` with `rows` and `columns` of elements of any size: those on the other side of
// the diagonal become 0. The diagonal is within -rows and columns. out may be x.
struct rewire_embedded_trilu {
  int32_t matrices, rows, columns, element_bytes, diagonal, upper;
};
void rewire_embedded_trilu_elements(const struct rewire_embedded_trilu* p, const void* x, void* out);

// Quantization.
//
// rewire.quantize_linear and rewire.dequantize_linear of [outer, count, inner] with scale and zero for each
// of `count`; count is 1 where they have one element. zero may be null. Blocked scales are not supported.
void rewire_embedded_quantize_linear_i8(const struct rewire_embedded_along* p, const float* x,
                                        const float* scale, const int8_t* zero, int8_t* out);
void rewire_embedded_quantize_linear_u8(const struct rewire_embedded_along* p, const float* x,
                                        const float* scale, const uint8_t* zero, uint8_t* out);
void rewire_embedded_dequantize_linear_i8(const struct rewire_embedded_along* p, const int8_t* x,
                                          const float* scale, const int8_t* zero, float* out);
void rewire_embedded_dequantize_linear_u8(const struct rewire_embedded_along* p, const uint8_t* x,
                                          const float* scale, const uint8_t* zero, float* out);

// rewire.map_bytes: out may be x. Bytes of either sign.
void rewire_embedded_map_bytes(int32_t count, const void* x, const void* table, void* out);

// rewire.add_quantized: out may be a or b. least and most lie in the dtype's range.
struct rewire_embedded_add_quantized {
  int32_t count;
  float a_scale, b_scale, scale;
  int32_t a_zero, b_zero;
  float zero, least, most;
};
void rewire_embedded_add_quantized_i8(const struct rewire_embedded_add_quantized* p, const int8_t* a,
                                      const int8_t* b, int8_t* out);
void rewire_embedded_add_quantized_u8(const struct rewire_embedded_add_quantized* p, const uint8_t* a,
                                      const uint8_t* b, uint8_t* out);

// Normalization, f32.
//
// rewire.layer_norm and rewire.rms_norm of `rows` rows of `count`; bias may be null. out may be x.
// means and factors, which may be null, get the mean of each row and what it is scaled by.
struct rewire_embedded_row_norm {
  int32_t rows, count;
  float epsilon;
};
void rewire_embedded_layer_norm_f32(const struct rewire_embedded_row_norm* p, const float* x,
                                    const float* scale, const float* bias, float* out, float* means,
                                    float* factors);
void rewire_embedded_rms_norm_f32(const struct rewire_embedded_row_norm* p, const float* x,
                                  const float* scale, float* out);

// rewire.group_norm in layout NCHW, which is instance normalization with as many groups as channels: x
// [images, groups, channels of a group, positions]. scale and bias have an element for each channel. out may
// be x.
struct rewire_embedded_group_norm {
  int32_t images, groups, group_channels, positions;
  float epsilon;
};
void rewire_embedded_group_norm_f32(const struct rewire_embedded_group_norm* p, const float* x,
                                    const float* scale, const float* bias, float* out);

// rewire.batch_norm of x [outer (images), count (channels), inner (positions)]. out may be x.
struct rewire_embedded_batch_norm {
  struct rewire_embedded_along view;
  float epsilon;
};
void rewire_embedded_batch_norm_f32(const struct rewire_embedded_batch_norm* p, const float* x,
                                    const float* scale, const float* bias, const float* mean,
                                    const float* variance, float* out);

// Reductions.
//
// x's axes are split into the kept ones and the reduced ones. out has one element for each index of the kept
// axes, row-major. Steps are in elements of x.
struct rewire_embedded_reduce {
  int32_t kept_rank, reduced_rank;
  int32_t kept[REWIRE_EMBEDDED_MOST_RANK], kept_steps[REWIRE_EMBEDDED_MOST_RANK];
  int32_t reduced[REWIRE_EMBEDDED_MOST_RANK], reduced_steps[REWIRE_EMBEDDED_MOST_RANK];
};
#define REWIRE_EMBEDDED_REDUCTION_OF(name, dtype, T) \
  void rewire_embedded_reduce_##name##_##dtype(const struct rewire_embedded_reduce* p, const T* x, T* out)
#define REWIRE_EMBEDDED_REDUCTION(name) REWIRE_EMBEDDED_REDUCTION_OF(name, f32, float)
REWIRE_EMBEDDED_REDUCTION(sum);
REWIRE_EMBEDDED_REDUCTION(mean);
REWIRE_EMBEDDED_REDUCTION(prod);
REWIRE_EMBEDDED_REDUCTION(max);
REWIRE_EMBEDDED_REDUCTION(min);
REWIRE_EMBEDDED_REDUCTION(sum_square);
REWIRE_EMBEDDED_REDUCTION(l1);
REWIRE_EMBEDDED_REDUCTION(l2);
REWIRE_EMBEDDED_REDUCTION(log_sum_exp);
// Results of integers wrap, and a mean is cut toward zero.
#define REWIRE_EMBEDDED_INTEGER_REDUCTION(name)     \
  REWIRE_EMBEDDED_REDUCTION_OF(name, i8, int8_t);   \
  REWIRE_EMBEDDED_REDUCTION_OF(name, u8, uint8_t);  \
  REWIRE_EMBEDDED_REDUCTION_OF(name, i32, int32_t); \
  REWIRE_EMBEDDED_REDUCTION_OF(name, i64, int64_t)
REWIRE_EMBEDDED_INTEGER_REDUCTION(sum);
REWIRE_EMBEDDED_INTEGER_REDUCTION(mean);
REWIRE_EMBEDDED_INTEGER_REDUCTION(prod);
REWIRE_EMBEDDED_INTEGER_REDUCTION(max);
REWIRE_EMBEDDED_INTEGER_REDUCTION(min);

// rewire.argmax and rewire.argmin of x [outer, count, inner] with count in the middle; count is at least 1.
// out [outer, inner] is of i64 if out_is_wide, else of i32. `last` is select_last_index.
struct rewire_embedded_arg_reduce {
  struct rewire_embedded_along view;
  int32_t last, out_is_wide;
};
#define REWIRE_EMBEDDED_ARG_REDUCTION(name, T, dtype) \
  void rewire_embedded_##name##_##dtype(const struct rewire_embedded_arg_reduce* p, const T* x, void* out)
REWIRE_EMBEDDED_ARG_REDUCTION(argmax, float, f32);
REWIRE_EMBEDDED_ARG_REDUCTION(argmax, int8_t, i8);
REWIRE_EMBEDDED_ARG_REDUCTION(argmax, uint8_t, u8);
REWIRE_EMBEDDED_ARG_REDUCTION(argmin, float, f32);
REWIRE_EMBEDDED_ARG_REDUCTION(argmin, int8_t, i8);
REWIRE_EMBEDDED_ARG_REDUCTION(argmin, uint8_t, u8);

// Resizing.
//
// One pass of rewire.resize along one axis, from x [outer, input, inner] to out [outer, output, inner]. Each
// output position is the sum of `taps` input positions from first[position] on, times weights[position *
// taps] and so on; positions beyond an end are the one at that end. Several axes are several passes, the last
// axis first, with floats between them. Bytes are rounded to the nearest and even number.
struct rewire_embedded_resize {
  int32_t outer, input, output, inner, taps;
  const int32_t* first;
  const float* weights;
};
void rewire_embedded_resize_f32(const struct rewire_embedded_resize* p, const float* x, float* out);
#define REWIRE_EMBEDDED_RESIZE_OF(dtype, T)                                                        \
  void rewire_embedded_resize_##dtype(const struct rewire_embedded_resize* p, const T* x, T* out); \
  void rewire_embedded_resize_##dtype##_to_f32(const struct rewire_embedded_resize* p, const T* x, \
                                               float* out);                                        \
  void rewire_embedded_resize_f32_to_##dtype(const struct rewire_embedded_resize* p, const float* x, T* out)
REWIRE_EMBEDDED_RESIZE_OF(i8, int8_t);
REWIRE_EMBEDDED_RESIZE_OF(u8, uint8_t);

// rewire.resize with mode nearest, for elements of any size: out [outer, dims, inner] has inner_bytes at each
// position. They lie in x at the sum of one place for each axis of dims, in bytes; `places` lists those of
// all axes, one axis behind the other. outer_bytes lead from one index of outer to the next in x.
struct rewire_embedded_resize_nearest {
  int32_t outer, outer_bytes, inner_bytes, rank;
  int32_t dims[REWIRE_EMBEDDED_MOST_RANK];
  const int32_t* places;
};
void rewire_embedded_resize_nearest_elements(const struct rewire_embedded_resize_nearest* p, const void* x,
                                             void* out);

// Recurrent layers, f32.
//
// rewire.lstm and rewire.gru with ONNX's default activations, without clipping. Arguments are those of
// docs/kernels.md; all but x, r and the states that are written may be null. Without w, x already has the
// products with it. `multiply` is the product of a row by w or r: rewire_embedded_multiply_rows, or
// rewire_embedded_multiply_packed for packed weights. One direction of w or r has `columns` columns in
// memory.
//
// The last states are written over y_h and y_c, which may be initial_h and initial_c. workspace has 2 * gates
// * hidden floats, and `hidden` more for a GRU without linear_before_reset. Returns 0, or 1 if an element of
// lengths is not in 0 to steps; what is behind it is not written then.
void rewire_embedded_multiply_rows(const float* x, const float* w, int32_t depth, int32_t columns,
                                   const float* bias, float* out);
void rewire_embedded_multiply_packed(const float* x, const float* w, int32_t depth, int32_t columns,
                                     const float* bias, float* out);
struct rewire_embedded_recurrent {
  int32_t steps, batch, inputs, hidden, columns, directions;
  int32_t is_reversed, batch_first, linear_before_reset;
  void (*multiply)(const float* x, const float* w, int32_t depth, int32_t columns, const float* bias,
                   float* out);
};
int32_t rewire_embedded_lstm_f32(const struct rewire_embedded_recurrent* p, const float* x, const float* w,
                                 const float* r, const float* b, const int32_t* lengths,
                                 const float* initial_h, const float* initial_c, const float* peepholes,
                                 float* workspace, float* y, float* y_h, float* y_c);
int32_t rewire_embedded_gru_f32(const struct rewire_embedded_recurrent* p, const float* x, const float* w,
                                const float* r, const float* b, const int32_t* lengths,
                                const float* initial_h, float* workspace, float* y, float* y_h);

// Indexing.
//
// rewire.gather of x [outer, axis, inner] by `count` indices to out [outer, count, inner], for elements of
// any size: inner_bytes counts bytes. Negative indices count from the end. Returns 0, or 1 at an index out of
// range, and what is behind it is not written then.
struct rewire_embedded_gather {
  int32_t outer, axis, count, inner_bytes;
};
int32_t rewire_embedded_gather_i32(const struct rewire_embedded_gather* p, const void* x,
                                   const int32_t* indices, void* out);
int32_t rewire_embedded_gather_i64(const struct rewire_embedded_gather* p, const void* x,
                                   const int64_t* indices, void* out);

// rewire.gather_elements to out of `count` elements of any size, row-major over `dims`, which are those of
// indices and out. steps are those of x, with 0 along the axis, which has `axis` elements of axis_step.
// Steps count elements. Returns as rewire_embedded_gather.
struct rewire_embedded_gather_elements {
  int32_t rank, element_bytes, axis, axis_step;
  int32_t dims[REWIRE_EMBEDDED_MOST_RANK], steps[REWIRE_EMBEDDED_MOST_RANK];
};
int32_t rewire_embedded_gather_elements_i32(const struct rewire_embedded_gather_elements* p, const void* x,
                                            const int32_t* indices, void* out);
int32_t rewire_embedded_gather_elements_i64(const struct rewire_embedded_gather_elements* p, const void* x,
                                            const int64_t* indices, void* out);

#ifdef __cplusplus
}
#endif

#endif  // REWIRE_EMBEDDED_H_
