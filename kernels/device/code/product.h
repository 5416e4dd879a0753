// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and convolutions as products with an image whose columns are read where they lie. A
// group computes a tile (tiles.h).

// Where the two operands of a batch start.
#define BATCH_POSITIONS(batch, p, a_at, b_at)        \
  {                                                  \
    int rest = batch;                                \
    for (int axis = p.rank - 1; axis >= 0; --axis) { \
      int next = rest / p.dims[axis];                \
      int at = rest - next * p.dims[axis];           \
      a_at += at * p.a_batch[axis];                  \
      b_at += at * p.b_batch[axis];                  \
      rest = next;                                   \
    }                                                \
  }

// What lies under tap k (of all channels) of output n, from the image's first channel on; -1 outside of it.
FUNCTION int under_window(Window w, int taps, int n, int k) {
  int channel = k / taps;
  int tap = k - channel * taps;
  int t2 = tap % w.size[2];
  int t1 = tap / w.size[2] % w.size[1];
  int t0 = tap / (w.size[2] * w.size[1]);
  int o2 = n % w.output[2];
  int o1 = n / w.output[2] % w.output[1];
  int o0 = n / (w.output[2] * w.output[1]);
  int i0 = o0 * w.stride[0] - w.before[0] + t0 * w.dilation[0];
  int i1 = o1 * w.stride[1] - w.before[1] + t1 * w.dilation[1];
  int i2 = o2 * w.stride[2] - w.before[2] + t2 * w.dilation[2];
  int inside = i0 >= 0 && i0 < w.input[0] && i1 >= 0 && i1 < w.input[1] && i2 >= 0 && i2 < w.input[2];
  return inside ? ((channel * w.input[0] + i0) * w.input[1] + i1) * w.input[2] + i2 : -1;
}

FUNCTION float activated(int activation, float x) {
  return activation == kNoActivation ? x
         : activation == kReluActivation
             ? (x < 0.0f ? 0.0f : x)
             : 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

KERNEL(product)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL const real* c, GLOBAL real* out, Product p) {
  SHARED float left[STEP][TILE];
  SHARED float right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  int first_n = GROUP_ID(0) * TILE;
  int first_m = GROUP_ID(1) * TILE;
  int batch = GROUP_ID(2);
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  float sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }
  for (int first_k = 0; first_k < p.k; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      left[i % STEP][i / STEP] = m < p.m && k < p.k ? LOAD(a, a_at + m * p.a_row + k * p.a_column) : 0.0f;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      right[i / TILE][i % TILE] = n < p.n && k < p.k ? LOAD(b, b_at + k * p.b_row + n * p.b_column) : 0.0f;
    }
    BARRIER();
    MULTIPLY_TILES(float, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < p.m && n < p.n) {
        float sum = p.alpha * sums[i][j];
        if (p.has_c) sum += p.beta * LOAD(c, batch * p.c_batch + m * p.c_row + n * p.c_column);
        STORE(out, (batch * p.m + m) * p.n + n, activated(p.activation, sum));
      }
    }
  }
}

KERNEL(convolution)
(GLOBAL const real* x, GLOBAL const real* weights, GLOBAL const real* bias, GLOBAL real* out, Window w) {
  SHARED float left[STEP][TILE];
  SHARED float right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  int first_n = GROUP_ID(0) * TILE;
  int first_m = GROUP_ID(1) * TILE;
  int image = GROUP_ID(2);  // of a batch and a group
  int group = image % w.groups;
  int taps = w.size[0] * w.size[1] * w.size[2];
  int depth = w.channels * taps;
  int inputs = w.input[0] * w.input[1] * w.input[2];
  int outputs = w.output[0] * w.output[1] * w.output[2];
  int x_at = image * w.channels * inputs;
  int weights_at = group * w.out_channels * depth;
  float sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }
  for (int first_k = 0; first_k < depth; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      left[i % STEP][i / STEP] =
          m < w.out_channels && k < depth ? LOAD(weights, weights_at + m * depth + k) : 0.0f;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      float value = 0.0f;
      if (n < outputs && k < depth) {
        int at = under_window(w, taps, n, k);
        if (at >= 0) value = LOAD(x, x_at + at);
      }
      right[i / TILE][i % TILE] = value;
    }
    BARRIER();
    MULTIPLY_TILES(float, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < w.out_channels && n < outputs) {
        float sum = sums[i][j];
        if (w.has_bias) sum += LOAD(bias, group * w.out_channels + m);
        STORE(out, (image * w.out_channels + m) * outputs + n, sum);
      }
    }
  }
}

// Bytes less their zeros, with sums of 32 bits, which wrap.
FUNCTION uint load_byte(GLOBAL const u8* p, int is_signed, int i) {
  return is_signed ? (uint)(int)((GLOBAL const signed char*)p)[i] : (uint)p[i];
}
FUNCTION uint load_shifted(GLOBAL const u8* p, GLOBAL const u8* zero, int is_signed, int zeros, int i,
                           int line) {
  uint shift = zeros == 0 ? 0 : load_byte(zero, is_signed, zeros == 1 ? 0 : line);
  return load_byte(p, is_signed, i) - shift;
}

KERNEL(integer_product)
(GLOBAL const u8* a, GLOBAL const u8* b, GLOBAL const u8* a_zero, GLOBAL const u8* b_zero, GLOBAL uint* out,
 Product p, Bytes bytes) {
  SHARED uint left[STEP][TILE];
  SHARED uint right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  int first_n = GROUP_ID(0) * TILE;
  int first_m = GROUP_ID(1) * TILE;
  int batch = GROUP_ID(2);
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  uint sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  for (int first_k = 0; first_k < p.k; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      left[i % STEP][i / STEP] = m < p.m && k < p.k
                                     ? load_shifted(a, a_zero, bytes.left_signed, bytes.left_zeros,
                                                    a_at + m * p.a_row + k * p.a_column, m % p.rows)
                                     : 0;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      right[i / TILE][i % TILE] = n < p.n && k < p.k
                                      ? load_shifted(b, b_zero, bytes.right_signed, bytes.right_zeros,
                                                     b_at + k * p.b_row + n * p.b_column, n)
                                      : 0;
    }
    BARRIER();
    MULTIPLY_TILES(uint, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < p.m && n < p.n) out[(batch * p.m + m) * p.n + n] = sums[i][j];
    }
  }
}

// The left operand is the weights, the right one the image.
KERNEL(integer_convolution)
(GLOBAL const u8* x, GLOBAL const u8* weights, GLOBAL const u8* x_zero, GLOBAL const u8* w_zero,
 GLOBAL uint* out, Window w, Bytes bytes) {
  SHARED uint left[STEP][TILE];
  SHARED uint right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  int first_n = GROUP_ID(0) * TILE;
  int first_m = GROUP_ID(1) * TILE;
  int image = GROUP_ID(2);  // of a batch and a group
  int first_channel = image % w.groups * w.out_channels;
  int taps = w.size[0] * w.size[1] * w.size[2];
  int depth = w.channels * taps;
  int outputs = w.output[0] * w.output[1] * w.output[2];
  int x_at = image * w.channels * w.input[0] * w.input[1] * w.input[2];
  uint sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  for (int first_k = 0; first_k < depth; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      int channel = first_channel + m;
      left[i % STEP][i / STEP] = m < w.out_channels && k < depth
                                     ? load_shifted(weights, w_zero, bytes.left_signed, bytes.left_zeros,
                                                    channel * depth + k, channel)
                                     : 0;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      int at = n < outputs && k < depth ? under_window(w, taps, n, k) : -1;
      right[i / TILE][i % TILE] =
          at < 0 ? 0 : load_shifted(x, x_zero, bytes.right_signed, bytes.right_zeros, x_at + at, 0);
    }
    BARRIER();
    MULTIPLY_TILES(uint, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < w.out_channels && n < outputs) {
        out[(image * w.out_channels + m) * outputs + n] = sums[i][j];
      }
    }
  }
}
